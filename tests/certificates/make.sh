#!/usr/bin/env bash
# Makes the certificates of tests/api/wire_faults.rs again: valid for a century, except one that expired in 2021. The
# key protects nothing: no program trusts these authorities, and the script deletes their keys.
set -euo pipefail
cd "$(dirname "$0")"
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT

cat >"$scratch/ca.conf" <<'CONF'
[req]
distinguished_name = name
[name]
[ca]
database = $ENV::SCRATCH/index
new_certs_dir = $ENV::SCRATCH
default_md = sha256
policy = policy
rand_serial = yes
unique_subject = no
[policy]
commonName = supplied
[authority]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[host]
basicConstraints = critical, CA:false
extendedKeyUsage = serverAuth
subjectAltName = $ENV::NAMES
CONF
export SCRATCH=$scratch NAMES=DNS:unused
: >"$scratch/index"

key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"; }

request() { # key, common name
  openssl req -new -config "$scratch/ca.conf" -key "$1" -subj "/CN=$2" -out "$scratch/request"
}

sign() { # extensions, end, target, further arguments
  openssl ca -batch -notext -config "$scratch/ca.conf" -name ca -extensions "$1" -startdate 20200101000000Z \
    -enddate "$2" -in "$scratch/request" -out "$3" "${@:4}"
}

authority() { # target
  key "$1.key"
  request "$1.key" "annals test $(basename "$1")"
  sign authority 21200101000000Z "$1.pem" -selfsign -keyfile "$1.key"
}

host() { # name, authority, subject's names, end
  export NAMES=$3
  request host.key "annals test $1"
  sign host "$4" "$1.pem" -cert "$2.pem" -keyfile "$2.key"
}

authority "$scratch/authority"
authority "$scratch/stranger"
cp "$scratch/authority.pem" .
key host.key
host honest "$scratch/authority" DNS:localhost,IP:127.0.0.1 21200101000000Z
host elsewhere "$scratch/authority" DNS:elsewhere.example 21200101000000Z
host expired "$scratch/authority" DNS:localhost,IP:127.0.0.1 20210101000000Z
host unknown "$scratch/stranger" DNS:localhost,IP:127.0.0.1 21200101000000Z

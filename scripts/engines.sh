#!/usr/bin/env bash
# Engines for archives that outgrow one machine: Spark as a standalone cluster, and Sail as a local cluster. Also the libraries
# for the tests of `clients/python`.
#
#   scripts/engines.sh install            gets PySpark, Sail, DuckDB, Polars and Arrow from PyPI, pinned by hash (700 MB); as root on
#                                         Debian or Ubuntu, a Java runtime by apt-get too
#   scripts/engines.sh python             prints the path of a Python with these packages
#   scripts/engines.sh spark PORT         runs a master on that port of 127.0.0.1 and two workers of 1 GB, until it is killed
#   scripts/engines.sh sail PORT          runs Sail, a driver and two workers, in the same way: Spark Connect on that port
#   scripts/engines.sh check ARCHIVE [OPTION…]
#                                         starts both, asks them the questions of `queries/spark` and compares each answer with
#                                         DuckDB's; ANNALS names the program, else target/release/annals is used
#
# Exits with 3 and the reason if something is not installed.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
here=$root/tests/engines
cache=${XDG_CACHE_HOME:-$HOME/.cache}/annals
if command -v sha256sum >/dev/null; then sums=sha256sum; else sums='shasum -a 256'; fi
python=${PYTHON:-python3}

say() { printf 'engines: %s\n' "$*" >&2; }
absent() { say "$*"; exit 3; }

place() {
  command -v "$python" >/dev/null || { say "there is no $python"; return 3; }
  local tag
  tag=$("$python" -c 'import sys, sysconfig; print("cp%d%d-%s" % (*sys.version_info[:2], sysconfig.get_platform()))')
  printf '%s\n' "$cache/engines-$($sums "$here/requirements.txt" | cut -c1-12)-$tag"
}

found_python() {
  local place
  place=$(place) || exit 3
  [ -f "$place/done" ] || absent 'Spark and Sail are not here: run scripts/engines.sh install'
  printf '%s\n' "$place/bin/python"
}

pip_install() {
  "$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes "${@:2}"
}

install_packages() {
  local place log
  place=$(place) || return 3
  # A virtual environment cannot be moved, so one run at a time makes it in place.
  exec 9>"$place.lock"
  if command -v flock >/dev/null; then flock 9; fi
  [ -f "$place/done" ] && return 0
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { say "$python is older than 3.11"; return 3; }
  rm -rf "$place"
  log=$(mktemp)
  # PyPI has PySpark only as source: install its build tools first, and build nothing else.
  if "$python" -m venv "$place" >"$log" 2>&1 &&
    sed -n '/^setuptools==/,/[^\\]$/p; /^wheel==/,/[^\\]$/p; /^packaging==/,/[^\\]$/p' "$here/requirements.txt" >"$place/build.txt" &&
    pip_install "$place" --only-binary :all: -r "$place/build.txt" >"$log" 2>&1 &&
    pip_install "$place" --only-binary :all: --no-binary pyspark --no-build-isolation -r "$here/requirements.txt" >"$log" 2>&1; then
    touch "$place/done"
    say "Spark and Sail are in $place"
    rm -f "$log"
  else
    say "Spark and Sail cannot be installed: $(grep -m 1 ERROR "$log" || tail -n 1 "$log")"
    rm -f "$log"
    return 3
  fi
}

has_java() { command -v java >/dev/null && java -version >/dev/null 2>&1; }

install_java() {
  has_java && return 0
  if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
    say 'there is no Java runtime (17 or newer), and only root can install one here: Sail runs without it, Spark does not'
    return 3
  fi
  apt-get update -q && { apt-get install -q -y --no-install-recommends openjdk-17-jre-headless ||
    apt-get install -q -y --no-install-recommends default-jre-headless; }
}

run_spark() {
  local home scratch
  has_java || absent 'there is no Java runtime: run scripts/engines.sh install as root, or install Java 17'
  python=$(found_python) || exit 3
  home=$("$python" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"; kill 0' EXIT
  trap 'exit 0' TERM INT
  export SPARK_LOCAL_IP=127.0.0.1 SPARK_DAEMON_MEMORY=256m PYSPARK_PYTHON=$python
  # Each worker has a core and a gigabyte. Ports other than the master's are free ones.
  "$home/bin/spark-class" org.apache.spark.deploy.master.Master --host 127.0.0.1 --port "$1" --webui-port 0 &
  for worker in 1 2; do
    "$home/bin/spark-class" org.apache.spark.deploy.worker.Worker --host 127.0.0.1 --port 0 --webui-port 0 --cores 1 --memory 1g \
      --work-dir "$scratch/$worker" "spark://127.0.0.1:$1" &
  done
  wait
}

run_sail() {
  local place
  place=$(dirname "$(found_python)") || exit 3
  # Sail counts several times the memory that it uses. A query that exceeds this limit fails, so the machine keeps its memory.
  export SAIL_RUNTIME__MEMORY_POOL__TYPE=greedy SAIL_RUNTIME__MEMORY_POOL__GREEDY__MAX_SIZE=${SAIL_BYTES:-17179869184}
  export SAIL_MODE=local-cluster SAIL_CLUSTER__WORKER_INITIAL_COUNT=2 SAIL_CLUSTER__WORKER_MAX_COUNT=2
  exec "$place/sail" spark server --ip 127.0.0.1 --port "$1"
}

case ${1:-}:${2:-} in
  install:)
    mkdir -p "$cache"
    # A machine without them still builds, and tests everything else.
    install_packages || say 'the packages of other engines cannot be installed here'
    install_java || say 'a Java runtime for Spark cannot be installed here'
    ;;
  python:) found_python ;;
  spark:[0-9]*) run_spark "$2" ;;
  sail:[0-9]*) run_sail "$2" ;;
  check:?*)
    python=$(found_python) || exit 3
    exec "$python" "$here/check.py" "${@:2}"
    ;;
  *)
    say 'usage: scripts/engines.sh install | python | spark PORT | sail PORT | check ARCHIVE'
    exit 2
    ;;
esac

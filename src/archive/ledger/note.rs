//! A ledger's head in a form that anybody can check: a checkpoint, signed as a note.
//!
//! The forms are c2sp.org/tlog-checkpoint (origin, size, hash) and c2sp.org/signed-note (Ed25519, type 1). The hash is that of
//! the last line of a chain, not the root of a tree. So a proof needs the lines.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

use crate::model::{Digest, LedgerSeq, TeamKey};

/// The type of Ed25519 keys in a signed note.
const ED25519_TYPE: u8 = 1;
const SECRET_PREFIX: &str = "PRIVATE+KEY+";
const SIGNATURE_MARK: &str = "\u{2014} ";
const KEY_NAME_BYTES_MAX: usize = 120;
/// More than 100,000 heads: a longer text is another file.
pub const HEADS_BYTES_MAX: usize = 16 << 20;
const SIGNATURES_MAX: usize = 64;

/// A public key, which its owner gives to verifiers. Text form: `name+id+key`, as in other note tools.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey {
    name: String,
    bytes: [u8; 32],
}

impl PublicKey {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Distinguishes keys of one name; proves nothing.
    pub fn id(&self) -> u32 {
        let hash = Digest::of(&[self.name.as_bytes(), b"\n", &[ED25519_TYPE], &self.bytes].concat());
        u32::from_be_bytes([hash.0[0], hash.0[1], hash.0[2], hash.0[3]])
    }

    /// Whether this key made `signature` over `text`.
    pub fn verifies(&self, text: &str, signature: &NoteSignature) -> bool {
        signature.is_of(self)
            && UnparsedPublicKey::new(&ED25519, &self.bytes).verify(text.as_bytes(), &signature.bytes).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = STANDARD.encode([&[ED25519_TYPE], self.bytes.as_slice()].concat());
        write!(f, "{}+{:08x}+{key}", self.name, self.id())
    }
}

impl FromStr for PublicKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = |what: &str| format!("not a public key of the form name+id+key: {what}");
        let (name, id, bytes) = key_parts(text).map_err(|e| bad(&e))?;
        let key = Self { name: name.to_owned(), bytes };
        if key.id() != id {
            return Err(bad("its id belongs to another key"));
        }
        // Each key has one spelling.
        if key.to_string() != text { Err(bad("it is not in canonical form")) } else { Ok(key) }
    }
}

/// Name, id and the 32 key bytes of `name+id+base64`.
fn key_parts(text: &str) -> Result<(&str, u32, [u8; 32]), String> {
    let mut parts = text.splitn(3, '+');
    let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("expected three parts".to_owned());
    };
    check_key_name(name)?;
    let id = u32::from_str_radix(id, 16).map_err(|_| "its id is not hexadecimal".to_owned())?;
    let bytes = STANDARD.decode(key).map_err(|_| "its key is not base64".to_owned())?;
    match bytes.split_first() {
        Some((&ED25519_TYPE, rest)) => {
            let bytes = rest.try_into().map_err(|_| "an Ed25519 key has 32 bytes".to_owned())?;
            Ok((name, id, bytes))
        }
        _ => Err("only Ed25519 (type 1) is supported".to_owned()),
    }
}

/// Checks the name of a key, which stands in every signature.
pub fn check_key_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_graphic() && c != '+';
    if name.is_empty() || name.len() > KEY_NAME_BYTES_MAX || !name.chars().all(is_plain) {
        return Err(format!(
            "the name of a key is 1 to {KEY_NAME_BYTES_MAX} visible ASCII characters, without spaces and `+`"
        ));
    }
    Ok(())
}

/// A private key. Only [`SecretKey::to_file`] reveals it.
pub struct SecretKey {
    public: PublicKey,
    seed: [u8; 32],
    pair: Ed25519KeyPair,
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({})", self.public)
    }
}

impl SecretKey {
    /// A new key. Without a name its name is `annals-` and 8 hexadecimal digits.
    ///
    /// # Errors
    /// When the name is invalid, or the system's random source fails.
    pub fn generate(name: Option<&str>) -> Result<Self, String> {
        let mut seed = [0; 32];
        SystemRandom::new().fill(&mut seed).map_err(|_| "the system's random source failed".to_owned())?;
        Self::of_seed(name, seed)
    }

    /// The key of `seed`: 32 secret random bytes.
    pub fn of_seed(name: Option<&str>, seed: [u8; 32]) -> Result<Self, String> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|e| format!("not a key: {e}"))?;
        let bytes: [u8; 32] =
            pair.public_key().as_ref().try_into().map_err(|_| "BUG: an Ed25519 key has 32 bytes".to_owned())?;
        let name = name.map_or_else(|| format!("annals-{}", &Digest::of(&bytes).short()[..8]), str::to_owned);
        check_key_name(&name)?;
        Ok(Self { public: PublicKey { name, bytes }, seed, pair })
    }

    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The line of a key's file, with its newline.
    pub fn to_file(&self) -> String {
        let key = STANDARD.encode([&[ED25519_TYPE], self.seed.as_slice()].concat());
        format!("{SECRET_PREFIX}{}+{:08x}+{key}\n", self.public.name, self.public.id())
    }

    /// Parses a key's file. No error quotes the file.
    pub fn of_file(text: &str) -> Result<Self, String> {
        let line = text.trim_end_matches(['\n', '\r']);
        let parts = line.strip_prefix(SECRET_PREFIX).ok_or("it does not begin with the prefix of a private key")?;
        let (name, id, seed) = key_parts(parts)?;
        let key = Self::of_seed(Some(name), seed)?;
        if key.public.id() == id { Ok(key) } else { Err("its id belongs to another key".to_owned()) }
    }

    pub fn sign(&self, text: &str) -> NoteSignature {
        let bytes = self.pair.sign(text.as_bytes()).as_ref().to_vec();
        NoteSignature { name: self.public.name.clone(), id: self.public.id(), bytes }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteSignature {
    pub name: String,
    pub id: u32,
    pub bytes: Vec<u8>,
}

impl NoteSignature {
    /// Whether the signature names `key`.
    pub fn is_of(&self, key: &PublicKey) -> bool {
        self.name == key.name && self.id == key.id()
    }

    /// The id and the signature, in base64.
    pub fn encoded(&self) -> String {
        STANDARD.encode([self.id.to_be_bytes().as_slice(), &self.bytes].concat())
    }

    /// The signature of `name` from the output of [`NoteSignature::encoded`].
    pub fn decode(name: &str, encoded: &str) -> Result<Self, String> {
        check_key_name(name)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| "a signature is not base64".to_owned())?;
        let Some((id, bytes)) = bytes.split_first_chunk::<4>() else {
            return Err("a signature is too short".to_owned());
        };
        Ok(Self { name: name.to_owned(), id: u32::from_be_bytes(*id), bytes: bytes.to_vec() })
    }

    /// The signature's line in a note.
    pub fn line(&self) -> String {
        format!("{SIGNATURE_MARK}{} {}\n", self.name, self.encoded())
    }

    /// Parses a line of a note; `None` if the line is no signature.
    pub(in crate::archive) fn of_line(line: &str) -> Option<Result<Self, String>> {
        let rest = line.strip_prefix(SIGNATURE_MARK)?;
        let parts = rest.split_once(' ').ok_or_else(|| "a signature needs a name and a value".to_owned());
        Some(parts.and_then(|(name, encoded)| Self::decode(name, encoded)))
    }
}

/// The head of one team's ledger, with its signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub archive_id: String,
    pub team: TeamKey,
    pub seq: LedgerSeq,
    pub hash: Digest,
    pub signatures: Vec<NoteSignature>,
}

impl Head {
    /// The unsigned head of a line.
    pub fn new(archive_id: &str, team: &TeamKey, seq: LedgerSeq, hash: Digest) -> Self {
        Self { archive_id: archive_id.to_owned(), team: team.clone(), seq, hash, signatures: Vec::new() }
    }

    /// The name of the ledger: `annals/<archive>/team=<T>`.
    pub fn origin(&self) -> String {
        format!("annals/{}/team={}", self.archive_id, self.team)
    }

    pub fn text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin(), self.seq, STANDARD.encode(self.hash.0))
    }

    #[must_use]
    pub fn signed(mut self, key: &SecretKey) -> Self {
        let signature = key.sign(&self.text());
        self.signatures.push(signature);
        self
    }

    /// The note: the text, an empty line, and the signatures.
    pub fn note(&self) -> String {
        let signatures: String = self.signatures.iter().map(NoteSignature::line).collect();
        format!("{}\n{signatures}", self.text())
    }

    /// Parses a sequence of heads, as `annals anchor` prints them.
    ///
    /// # Errors
    /// A sentence that explains the mistake, with the line number.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, String> {
        if text.len() > HEADS_BYTES_MAX {
            return Err(format!("the text has {} bytes, more than heads can have", text.len()));
        }
        let mut heads: Vec<Self> = Vec::new();
        let mut lines = text.lines().enumerate().peekable();
        while let Some((number, line)) = lines.next() {
            let place = |what: String| format!("line {}: {what}", number + 1);
            if let Some(signature) = NoteSignature::of_line(line) {
                let head =
                    heads.last_mut().ok_or_else(|| place("a signature stands before the first head".to_owned()))?;
                if head.signatures.len() == SIGNATURES_MAX {
                    return Err(place(format!("the head has more than {SIGNATURES_MAX} signatures")));
                }
                head.signatures.push(signature.map_err(place)?);
            } else if !line.is_empty() {
                let mut rest = || lines.next().map_or("", |(_, line)| line);
                let (seq, hash) = (rest(), rest());
                heads.push(Self::of_lines(line, seq, hash).map_err(place)?);
            }
        }
        if heads.is_empty() { Err("the text holds no head of a ledger".to_owned()) } else { Ok(heads) }
    }

    fn of_lines(origin: &str, seq: &str, hash: &str) -> Result<Self, String> {
        let place = origin.strip_prefix("annals/").and_then(|rest| rest.rsplit_once("/team="));
        let place = place.and_then(|(archive, team)| Some((archive, TeamKey::parse(team)?)));
        let (archive_id, team) = place.ok_or("not a head: its first line is annals/<archive>/team=<team>")?;
        let number = seq.parse::<u64>().ok().filter(|number| number.to_string() == seq);
        let number = number.ok_or("not a head: its second line is the number of a ledger line")?;
        let bytes = STANDARD.decode(hash).ok().and_then(|bytes| bytes.try_into().ok());
        let bytes: [u8; 32] = bytes.ok_or("not a head: its third line is a SHA-256 in base64")?;
        Ok(Self::new(archive_id, &team, LedgerSeq(number), Digest(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TeamId;

    fn head() -> Head {
        Head::new("a1", &TeamKey::of(&TeamId::from("acme")), LedgerSeq(12), Digest::of(b"line"))
    }

    fn key(seed: u8) -> SecretKey {
        SecretKey::of_seed(None, [seed; 32]).unwrap()
    }

    /// The kind of key in the example of c2sp.org/tlog-checkpoint. The first test vector of RFC 8032 gives the key, and the key
    /// gives the id.
    #[test]
    fn heads_equal_the_published_examples_of_signed_notes() {
        let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        let secret = SecretKey::of_seed(Some("example.com/a"), hex::decode(seed).unwrap().try_into().unwrap()).unwrap();
        assert_eq!(hex::encode(secret.public().bytes), public);
        let hashed = [b"example.com/a\n\x01".as_slice(), &hex::decode(public).unwrap()].concat();
        let id = &Digest::of(&hashed).to_string()[..8];
        let encoded = STANDARD.encode([&[1], hex::decode(public).unwrap().as_slice()].concat());
        assert_eq!(secret.public().to_string(), format!("example.com/a+{id}+{encoded}"));
        let signed = head().signed(&secret);
        let text = format!("annals/a1/team=acme\n12\n{}\n", STANDARD.encode(Digest::of(b"line").0));
        assert_eq!(signed.text(), text);
        let note = signed.note();
        let line = note.strip_prefix(&text).unwrap().strip_prefix("\n\u{2014} example.com/a ").unwrap();
        assert_eq!(STANDARD.decode(line.trim_end()).unwrap().len(), 4 + 64);
        assert!(line.ends_with('\n') && note.lines().count() == 5);
    }

    /// A key with another key's name remains another key.
    #[test]
    fn a_signature_names_its_key_by_name_and_id() {
        let named = |name: &str, seed| SecretKey::of_seed(Some(name), [seed; 32]).unwrap();
        let (one, namesake, renamed) = (named("one", 1), named("one", 2), named("two", 1));
        let signature = one.sign("text");
        assert!(signature.is_of(one.public()) && one.public().verifies("text", &signature));
        for other in [&namesake, &renamed] {
            assert!(!signature.is_of(other.public()) && !other.public().verifies("text", &signature));
        }
        let same_id = NoteSignature { name: "two".to_owned(), ..signature.clone() };
        let same_name = NoteSignature { id: signature.id + 1, ..signature };
        assert!(!same_id.is_of(one.public()) && !same_name.is_of(one.public()));
    }

    #[test]
    fn keys_and_heads_round_trip() {
        let (one, two) = (key(1), key(2));
        assert_eq!(one.public().to_string().parse::<PublicKey>().unwrap(), *one.public());
        assert_eq!(SecretKey::of_file(&one.to_file()).unwrap().public(), one.public());
        let heads = [head().signed(&one).signed(&two), Head { seq: LedgerSeq(0), ..head() }];
        let text: String = heads.iter().map(|head| head.note() + "\n").collect();
        assert_eq!(Head::parse_all(&text).unwrap(), heads);
        let signature = &heads[0].signatures[0];
        assert!(one.public().verifies(&heads[0].text(), signature));
        assert!(!two.public().verifies(&heads[0].text(), signature));
        assert!(!one.public().verifies(&heads[1].text(), signature));
        assert!(!format!("{one:?}").contains(&one.to_file()[SECRET_PREFIX.len() + 30..]));
    }

    #[test]
    fn invalid_keys_and_heads_are_refused_with_the_reason() {
        let good = key(1).public().to_string();
        let last = good.rsplit('+').next().unwrap();
        for text in ["", "a", "a+b", "a+0+AA==", "a b+00000000+AA==", &good[1..], &format!("{good}="), last] {
            assert!(text.parse::<PublicKey>().is_err(), "{text}");
        }
        for text in [
            "",
            "\n",
            "x\n1\nAA==\n",
            "annals/a/team=T\n1\nAA==\n",
            "annals/a/team=t\n01\n",
            "annals/a/team=t\n1\nAA==\n",
            "\u{2014} a AAAA\n",
        ] {
            assert!(Head::parse_all(text).is_err(), "{text:?}");
        }
        let error = SecretKey::of_file("PRIVATE+KEY+a+00000000+c2VjcmV0").unwrap_err();
        assert!(!error.contains("c2Vj"), "{error}");
    }

    #[test]
    fn a_key_name_must_fit_a_note() {
        let longest = "n".repeat(KEY_NAME_BYTES_MAX);
        for name in ["a", "example.com/a", "~!", &longest] {
            assert_eq!(check_key_name(name), Ok(()), "{name}");
        }
        for name in ["", "a b", "a+b", "+", "\t", "a\n", "n\u{e4}me", &format!("{longest}n")] {
            assert!(check_key_name(name).is_err(), "{name:?}");
        }
    }
}

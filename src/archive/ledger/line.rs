//! The only code that encodes, parses and hashes a ledger line. `archive` documents the form for other readers.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::model::path::day_start;
use crate::model::{Digest, Instant, LedgerSeq, TeamId};

use crate::archive::Body;
use crate::archive::random::Nonce;

pub const LINE_VERSION: u32 = 1;
/// Prefix of the hashed bytes: it makes a ledger line's hash differ from every other hash.
pub const LINE_DOMAIN: &str = "annals ledger line v1\n";
/// `prev` of a team's first line.
pub const GENESIS: Digest = Digest([0; 32]);
pub const KIND_COMMIT: &str = "commit";

/// The longest line, including its newline. Writers refuse longer lines, so readers can refuse to hold them. Long backfills
/// make the largest commits: some megabytes.
pub const LINE_BYTES_MAX: usize = 64 << 20;

const HASH_MEMBER: &str = ",\"sha256\":\"";
const HASH_TAIL_BYTES: usize = HASH_MEMBER.len() + 64 + "\"}".len();
/// After a power loss, a disk can leave whole sectors of zeros in unsynced data.
const SECTOR_BYTES: usize = 512;

/// One line without its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerLine {
    pub v: u32,
    pub archive_id: String,
    pub team_id: TeamId,
    pub seq: LedgerSeq,
    pub prev: Digest,
    pub at: Instant,
    /// A random number of this line, so that equal lines of two writers differ.
    pub nonce: Nonce,
    pub kind: String,
    pub body: Body,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LineError {
    #[error("not a ledger line: {0}")]
    Form(String),
    #[error("the line has format version {found}, but this program knows version {LINE_VERSION}")]
    Version { found: u64 },
    #[error("the line's digest is {found}, but the line says {recorded}")]
    Hash { recorded: Digest, found: Digest },
    #[error("the line has unknown members, or its members are in another order")]
    Unknown,
}

impl LedgerLine {
    /// The line's bytes with its newline, and its hash.
    pub fn encode(&self) -> (Vec<u8>, Digest) {
        let mut bytes = serde_json::to_vec(self).expect("BUG: a ledger line has no map with odd keys");
        let closing = bytes.pop();
        debug_assert_eq!(closing, Some(b'}'));
        let hash = hash_of(&bytes);
        bytes.extend_from_slice(HASH_MEMBER.as_bytes());
        bytes.extend_from_slice(hash.to_string().as_bytes());
        bytes.extend_from_slice(b"\"}\n");
        (bytes, hash)
    }

    /// Parses a line (without its newline) and checks its hash.
    ///
    /// # Errors
    /// When the bytes differ from the output of [`LedgerLine::encode`].
    pub fn decode(bytes: &[u8]) -> Result<(Self, Digest), LineError> {
        let recorded =
            hash_in_line(bytes).ok_or_else(|| LineError::Form("the line does not end with a hash".to_owned()))?;
        let hashed = &bytes[..bytes.len() - HASH_TAIL_BYTES];
        let found = hash_of(hashed);
        if found != recorded {
            return Err(LineError::Hash { recorded, found });
        }
        let text = [hashed, b"}"].concat();
        let form = |e: serde_json::Error| LineError::Form(e.to_string());
        let line = match serde_json::from_slice::<LedgerLine>(&text) {
            Ok(line) if line.v == LINE_VERSION => line,
            other => return Err(of_another_version(&text).or(other.err().map(form)).unwrap_or(LineError::Unknown)),
        };
        // The parser ignores unknown members. Encoding the line again reveals them.
        match serde_json::to_vec(&line) {
            Ok(encoded) if encoded == text => Ok((line, found)),
            _ => Err(LineError::Unknown),
        }
    }
}

/// The error for a line of another version, which can have any members.
fn of_another_version(text: &[u8]) -> Option<LineError> {
    #[derive(Deserialize)]
    struct Versioned {
        v: u64,
    }
    let Versioned { v } = serde_json::from_slice(text).ok()?;
    (v == 0 || v > u64::from(LINE_VERSION)).then_some(LineError::Version { found: v })
}

fn hash_of(bytes: &[u8]) -> Digest {
    Digest::with_domain(LINE_DOMAIN, &[bytes])
}

fn hash_in_line(bytes: &[u8]) -> Option<Digest> {
    let tail = bytes.get(bytes.len().checked_sub(HASH_TAIL_BYTES)?..)?;
    let tail = std::str::from_utf8(tail).ok()?;
    let digits = tail.strip_prefix(HASH_MEMBER)?.strip_suffix("\"}")?;
    digits.parse().ok().filter(|digest: &Digest| digest.to_string() == digits)
}

/// The day of the file of a line. A clock that was set back does not change the order of the ledger.
pub fn day_of_line(at: Instant, day_before: Option<Instant>) -> Instant {
    day_before.map_or(day_start(at), |before| before.max(day_start(at)))
}

/// The end of a chain of lines that were hashed but not parsed.
pub struct ChainHead {
    archive_id: String,
    team_id: String,
    pub seq: LedgerSeq,
    pub head: Digest,
    day: Option<Instant>,
}

impl ChainHead {
    /// The head before a team's first line.
    pub fn genesis(archive_id: &str, team: &TeamId) -> Self {
        let json = |text: &str| serde_json::to_string(text).expect("BUG: a string is JSON");
        let (archive_id, team_id) = (json(archive_id), json(team.as_str()));
        Self { archive_id, team_id, seq: LedgerSeq(0), head: GENESIS, day: None }
    }

    /// Follows the next line, without its newline, of the file of `day`. `None` if it is not the next line of the chain or its
    /// hash is wrong.
    pub fn follow(&mut self, text: &[u8], day: Instant) -> Option<()> {
        let Self { archive_id, team_id, head, .. } = &*self;
        let seq = self.seq.next();
        let members = format!(
            "{{\"v\":{LINE_VERSION},\"archive_id\":{archive_id},\"team_id\":{team_id},\"seq\":{seq},\"prev\":\"{head}\",\"at\":\""
        );
        let rest = text.strip_prefix(members.as_bytes())?;
        let at: Instant = std::str::from_utf8(&rest[..memchr::memchr(b'"', rest)?]).ok()?.parse().ok()?;
        let found = hash_of(&text[..text.len().checked_sub(HASH_TAIL_BYTES)?]);
        let is_next = day == day_of_line(at, self.day) && hash_in_line(text) == Some(found);
        (self.seq, self.head, self.day) = (seq, found, Some(day));
        is_next.then_some(())
    }
}

/// Whether a power loss can have left this last line, which ends with a newline at the byte `at` of its file. A disk writes whole
/// sectors or none, so the zeros stand at the beginning of the line or at the end of a sector. A single flipped bit does not count.
pub fn is_zeroed(line: &[u8], at: u64) -> bool {
    let begin = usize::try_from(at % SECTOR_BYTES as u64).expect("BUG: less than a sector");
    let ends = (SECTOR_BYTES - 1 - begin..line.len()).step_by(SECTOR_BYTES);
    let looks_so = line.first() == Some(&0) || ends.into_iter().any(|end| line[end] == 0);
    looks_so && !is_flipped(line)
}

/// Whether one flipped bit turns the line's only zero into a valid line.
fn is_flipped(line: &[u8]) -> bool {
    let mut zeros = memchr::memchr_iter(0, line);
    let (Some(at), None) = (zeros.next(), zeros.next()) else { return false };
    let mut line = line.strip_suffix(b"\n").unwrap_or(line).to_vec();
    (0..8).any(|bit| {
        line[at] = 1 << bit;
        LedgerLine::decode(&line).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> LedgerLine {
        LedgerLine {
            v: 1,
            archive_id: "a1".to_owned(),
            team_id: TeamId::from("team \"one\""),
            seq: LedgerSeq(1),
            prev: GENESIS,
            at: "2026-11-20T08:00:00.5Z".parse().unwrap(),
            nonce: Nonce(0xab),
            kind: KIND_COMMIT.to_owned(),
            body: Body::default(),
        }
    }

    #[test]
    fn the_format_of_a_ledger_line_is_fixed() {
        let (bytes, hash) = line().encode();
        let expected = concat!(
            r#"{"v":1,"archive_id":"a1","team_id":"team \"one\"","seq":1,"#,
            r#""prev":"0000000000000000000000000000000000000000000000000000000000000000","#,
            r#""at":"2026-11-20T08:00:00.5Z","nonce":"00000000000000ab","kind":"commit","body":{}"#
        );
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text, format!("{expected},\"sha256\":\"{hash}\"}}\n"));
        assert_eq!(hash, Digest::of(format!("annals ledger line v1\n{expected}").as_bytes()));
        assert_eq!(LedgerLine::decode(text.trim_end().as_bytes()), Ok((line(), hash)));
    }

    #[test]
    fn every_flipped_bit_of_a_line_is_detected() {
        let (bytes, _) = line().encode();
        let bytes = &bytes[..bytes.len() - 1];
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(LedgerLine::decode(&flipped).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn each_line_must_have_the_hash_of_the_previous_line() {
        let (first_bytes, hash) = line().encode();
        let second = LedgerLine { seq: LedgerSeq(2), prev: hash, ..line() };
        let (second_bytes, _) = second.encode();
        let text = |bytes: &[u8]| bytes[..bytes.len() - 1].to_vec();
        let day = day_start(line().at);
        let followed = |lines: &[Vec<u8>], day: Instant| {
            let mut chain = ChainHead::genesis("a1", &line().team_id);
            lines.iter().all(|line| chain.follow(line, day).is_some())
        };
        let lines = [text(&first_bytes), text(&second_bytes)];
        assert!(followed(&lines, day) && !followed(&lines[1..], day) && !followed(&lines, Instant::from_nanos(0)));
        for (at, bit) in (0..lines[0].len() * 8).map(|bit| (bit / 8, bit % 8)) {
            let mut flipped = lines.clone();
            flipped[0][at] ^= 1 << bit;
            assert!(!followed(&flipped, day), "byte {at}, bit {bit}");
        }
        let stranger = LedgerLine { team_id: TeamId::from("other"), ..second }.encode().0;
        assert!(!followed(&[lines[0].clone(), text(&stranger)], day));
    }

    #[test]
    fn other_versions_and_unknown_members_are_refused() {
        let rehash = |text: &str| {
            let hash = hash_of(text.as_bytes());
            format!("{text}{HASH_MEMBER}{hash}\"}}").into_bytes()
        };
        let (bytes, _) = line().encode();
        let text = std::str::from_utf8(&bytes[..bytes.len() - 1 - HASH_TAIL_BYTES]).unwrap();
        assert!(LedgerLine::decode(&rehash(text)).is_ok());
        let of_version = |text: &str, v: u32| text.replace("\"v\":1", &format!("\"v\":{v}"));
        for v in [0, 2, u32::MAX] {
            assert_eq!(
                LedgerLine::decode(&rehash(&of_version(text, v))),
                Err(LineError::Version { found: u64::from(v) })
            );
        }
        let stranger = text.replace("\"body\":{}", "\"body\":{\"news\":1}");
        assert_eq!(LedgerLine::decode(&rehash(&stranger)), Err(LineError::Unknown));
    }

    #[test]
    fn zeros_of_a_power_loss_stand_at_the_ends_of_sectors() {
        let (bytes, _) = line().encode();
        let whole = &bytes[..bytes.len() - 1];
        assert!(is_zeroed(&[0; 5], 7) && !is_zeroed(whole, 0) && !is_zeroed(whole, 511));
        let half_written = [&whole[..20], &[0; 92], b"}".as_slice()].concat();
        assert!(is_zeroed(&half_written, 400) && is_zeroed(&half_written, 7 * 512 + 400));
        assert!(!is_zeroed(&half_written, 300) && !is_zeroed(&half_written, 399));
    }

    #[test]
    fn a_flipped_bit_at_the_end_of_a_sector_does_not_count_as_power_loss() {
        let (bytes, _) = line().encode();
        let space = bytes.iter().position(|byte| *byte == b' ').unwrap();
        let at = (SECTOR_BYTES - 1 - space) as u64;
        let mut altered = bytes[..bytes.len() - 1].to_vec();
        altered[space] = 0;
        assert!(!is_zeroed(&altered, at) && !is_zeroed(&[&altered, b"\n".as_slice()].concat(), at));
        altered[space - 1] = 0;
        assert!(is_zeroed(&altered, at), "two bytes differ in more than one bit");
    }
}

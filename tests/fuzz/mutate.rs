//! Makes inputs from others: flips, cuts, repeats, inserts and splices bytes, and inserts words that often break
//! parsers.

/// Words that often break parsers.
const WORDS: [&str; 52] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    "\\u",
    "\\ud800",
    "\\u0000",
    ":",
    ",",
    "null",
    "true",
    "-",
    "--",
    "-1",
    "0",
    "1e999",
    "1.5",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "253402300800",
    "\u{feff}",
    "\u{202e}",
    "\u{0}",
    "é",
    "\r\n",
    "\n",
    "\t",
    " ",
    "*",
    "*/0",
    "*/1",
    "1-59/7",
    "L",
    "?",
    "SUN",
    "2026-02-30",
    "2026-11-20",
    "T24:00:00Z",
    "+99:99",
    "..",
    "/",
    "%2f",
    "=",
    "secret",
    "id",
    "timestamp",
    "'",
    ";",
    "[[",
];

pub struct Chance(fastrand::Rng);

impl Chance {
    pub fn of(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// A number below `end`, or 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0.usize(..end.max(1))
    }

    /// A range within `length`, usually a short one.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let most = if self.below(4) == 0 { length } else { 16 };
        start..(start + self.below(most) + 1).min(length).max(start)
    }
}

/// One to six changes to `input`; `other` is spliced in.
pub fn mutated(input: &[u8], other: &[u8], chance: &mut Chance, bytes_max: usize) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=chance.below(6) {
        change(&mut bytes, other, chance);
        bytes.truncate(bytes_max);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, other: &[u8], chance: &mut Chance) {
    let range = chance.range(bytes.len());
    let place = range.start;
    match chance.below(10) {
        0 if !bytes.is_empty() => {
            let at = chance.below(bytes.len());
            bytes[at] ^= 1 << chance.below(8);
        }
        1 if !bytes.is_empty() => {
            let at = chance.below(bytes.len());
            bytes[at] = u8::try_from(chance.below(256)).unwrap();
        }
        2 => drop(bytes.drain(range)),
        3 => {
            let again = bytes[range].repeat(1 + chance.below(3));
            drop(bytes.splice(place..place, again));
        }
        4 | 5 => {
            let word = WORDS[chance.below(WORDS.len())];
            drop(bytes.splice(range, word.bytes()));
        }
        6 => {
            let word = WORDS[chance.below(WORDS.len())];
            drop(bytes.splice(place..place, word.bytes()));
        }
        7 => {
            let from = chance.range(other.len());
            drop(bytes.splice(range, other[from].iter().copied()));
        }
        8 => another_number(bytes, chance),
        _ => bytes.truncate(place),
    }
}

/// Replaces a run of digits with another number.
fn another_number(bytes: &mut Vec<u8>, chance: &mut Chance) {
    let from = chance.below(bytes.len() + 1);
    let Some(start) = (from..bytes.len()).find(|&at| bytes[at].is_ascii_digit()) else { return };
    let end = (start..bytes.len()).find(|&at| !bytes[at].is_ascii_digit()).unwrap_or(bytes.len());
    let number = match chance.below(5) {
        0 => chance.below(100).to_string(),
        1 => u64::MAX.to_string(),
        2 => i64::MIN.to_string(),
        3 => (chance.0.u64(..) >> chance.below(64)).to_string(),
        _ => String::new(),
    };
    drop(bytes.splice(start..end, number.bytes()));
}

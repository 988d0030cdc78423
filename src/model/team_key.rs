//! A team's id in paths.

use std::fmt;

use super::{Digest, TeamId};

/// Longer encoded team ids are shortened, and end with a hash.
const TEAM_KEY_BYTES_MAX: usize = 120;
const TEAM_KEY_KEPT_BYTES: usize = 80;

/// A team id in paths: each byte outside `[a-z0-9_-]` becomes `.` and two hexadecimal digits. Longer results than 120 bytes are
/// cut, and end with `..` and 32 digits of the id's SHA-256. So ids that differ only in case or length never collide.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct TeamKey(String);

impl TeamKey {
    pub fn of(team: &TeamId) -> Self {
        let mut text = String::new();
        for byte in team.as_str().bytes() {
            match byte {
                b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => text.push(char::from(byte)),
                _ => text.push_str(&format!(".{byte:02x}")),
            }
        }
        if text.len() > TEAM_KEY_BYTES_MAX {
            text.truncate(TEAM_KEY_KEPT_BYTES);
            let digest = Digest::of(team.as_str().as_bytes()).to_string();
            text.push_str("..");
            text.push_str(&digest[..32]);
        }
        if text.is_empty() {
            text.push('.');
        }
        Self(text)
    }

    /// The team's id; `None` if the key holds only a part of it.
    pub fn team_id(&self) -> Option<TeamId> {
        let text = if self.0 == "." { "" } else { self.0.as_str() };
        let mut pieces = text.split('.');
        let mut bytes = pieces.next()?.as_bytes().to_vec();
        for piece in pieces {
            let (digits, plain) = piece.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            bytes.extend_from_slice(plain.as_bytes());
        }
        let team = TeamId::new(String::from_utf8(bytes).ok()?);
        (Self::of(&team) == *self).then_some(team)
    }

    /// `None` if the text is no key.
    pub fn parse(text: &str) -> Option<Self> {
        let is_plain = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.');
        let is_fit = !text.is_empty() && text.len() <= TEAM_KEY_BYTES_MAX && text.bytes().all(is_plain);
        is_fit.then(|| Self(text.to_owned()))
    }
}

impl fmt::Display for TeamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn different_teams_have_different_keys_on_any_file_system(a in any::<String>(), b in any::<String>()) {
            let keys = [&a, &b].map(|t| TeamKey::of(&TeamId::from(t.as_str())));
            prop_assert_eq!(a == b, keys[0] == keys[1]);
            for (id, key) in [&a, &b].into_iter().zip(keys) {
                let is_cut = key.to_string().contains("..");
                prop_assert_eq!(key.team_id(), (!is_cut).then(|| TeamId::new(id.clone())));
            }
        }
    }

    #[test]
    fn long_and_odd_team_ids() {
        for (id, key) in [("acme", "acme"), ("Acme", ".41cme"), ("", "."), ("a/b", "a.2fb"), ("..", ".2e.2e")] {
            assert_eq!(TeamKey::of(&TeamId::from(id)).to_string(), key);
        }
        let long = |end: &str| TeamKey::of(&TeamId::new(format!("{}{end}", "X".repeat(500))));
        assert!(long("a").to_string().len() <= TEAM_KEY_BYTES_MAX && long("a") != long("b"));
    }

    #[test]
    fn a_long_team_key_is_shortened() {
        let of = |length: usize| TeamKey::of(&TeamId::new("t".repeat(length))).to_string();
        assert_eq!((of(120), of(121).len()), ("t".repeat(120), TEAM_KEY_KEPT_BYTES + 34));
        assert!(of(121).contains("t..") && of(121) != of(122));
        for (text, is_key) in [
            ("t", true),
            (&of(120), true),
            (&of(121), true),
            ("", false),
            (&"t".repeat(121), false),
            ("T", false),
            ("a/b", false),
        ] {
            assert_eq!(TeamKey::parse(text).is_some(), is_key, "{text}");
        }
    }
}

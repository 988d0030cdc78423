//! The subject of an erasure. No log, no error and no debug output shows its values.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use crate::model::Digest;

use crate::archive::deletion::hold::normal_subject;
use crate::archive::salts::{SUBJECT_DOMAIN, Salt};

/// The maximum size of one value.
const VALUE_BYTES_MAX: usize = 1_024;
/// The domain of a pseudonym that keeps none.
const NO_DOMAIN: &str = "erased.invalid";
/// A spelling of a value has at most this many times the bytes of its form for comparison.
const SPELLING_GROWTH: usize = 3;
/// The longest spelling of an address.
const ADDRESS_BYTES_MAX: usize = 45;

/// The values that mean a person or a computer: email addresses, ids, addresses, names. Each has its form for comparison:
/// see [`normal_subject`].
#[derive(Clone, PartialEq, Eq)]
pub struct Subject(Vec<String>);

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subject of {} values", self.0.len())
    }
}

impl Subject {
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut found = BTreeSet::new();
        for text in values {
            let value = normal_subject(text);
            if value.is_empty() {
                return Err("the subject is empty: give a value of the person or computer".to_owned());
            }
            if value.len() > VALUE_BYTES_MAX {
                return Err(format!("the subject has {} bytes, more than the limit of {VALUE_BYTES_MAX}", value.len()));
            }
            found.insert(value);
        }
        if found.is_empty() {
            Err("no subject is given: give each value of the person or computer with --subject, or on a line of standard input".to_owned())
        } else {
            Ok(Self(found.into_iter().collect()))
        }
    }

    /// Whether a value is an IP address.
    pub fn has_address(&self) -> bool {
        self.0.iter().any(|value| value.parse::<IpAddr>().is_ok())
    }

    /// The index of the value that the text equals.
    pub fn find(&self, text: &str) -> Option<usize> {
        let text = normal_subject(text);
        self.0.iter().position(|value| *value == text)
    }

    /// The pseudonym of each value under the key of an order. The pseudonym of an email address keeps the domain, so reports by
    /// domain keep their numbers, unless the domain is itself a value of the subject.
    pub fn pseudonyms(&self, key: &Salt) -> Vec<String> {
        let name = |value: &String| {
            let digits = key.keyed("annals pseudonym v1\n", value.as_bytes()).to_string();
            match value.contains('@') {
                true => format!("erased-{}@{}", &digits[..32], self.kept_domain(value)),
                false => format!("erased-{}", &digits[..32]),
            }
        };
        self.0.iter().map(name).collect()
    }

    /// The domain of a pseudonym: no domain that JSON would escape, and not the name in `@ann`.
    fn kept_domain<'a>(&self, address: &'a str) -> &'a str {
        let is_address = |(local, _): &(&str, &str)| !local.is_empty();
        let domain = address.rsplit_once('@').filter(is_address).map_or("", |(_, domain)| domain);
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-');
        match !domain.is_empty() && domain.chars().all(is_plain) && self.find(domain).is_none() {
            true => domain,
            false => NO_DOMAIN,
        }
    }

    /// Keyed digests of the values, sorted. Without the key they confirm no guess.
    pub fn digests(&self, key: &Salt) -> Vec<Digest> {
        let mut digests: Vec<Digest> = self.0.iter().map(|value| key.keyed(SUBJECT_DOMAIN, value.as_bytes())).collect();
        digests.sort();
        digests
    }

    /// Whether a text without white space around it is this value in any spelling.
    fn is_word(&self, place: usize, text: &[u8]) -> bool {
        std::str::from_utf8(text).is_ok_and(|text| text.trim() == text && self.find(text) == Some(place))
    }

    /// Replaces each value that stands in `text` as a whole word. For texts that are not valid JSON. `None` if there is none.
    pub fn replace_words(&self, text: &[u8], names: &[String]) -> Option<Vec<u8>> {
        let mut text = text.to_vec();
        let mut is_changed = false;
        for (place, (wanted, name)) in self.0.iter().zip(names).enumerate() {
            let longest = wanted.len() * SPELLING_GROWTH + ADDRESS_BYTES_MAX;
            let mut at = 0;
            while at < text.len() {
                let begins = ends_word(text[..at].iter().rev());
                let mut ends = ((at + 1)..=text.len().min(at + longest)).filter(|_| begins);
                let is_value = |end: &usize| ends_word(text[*end..].iter()) && self.is_word(place, &text[at..*end]);
                match ends.find(is_value) {
                    Some(end) => {
                        text.splice(at..end, name.bytes());
                        is_changed = true;
                        at += name.len();
                    }
                    None => at += 1,
                }
            }
        }
        is_changed.then_some(text)
    }
}

/// Whether a word ends before `rest`: `10.0.0.1` is a word of `10.0.0.1.`, but not of `10.0.0.12` or `10.0.0.1.5`.
fn ends_word<'a>(mut rest: impl Iterator<Item = &'a u8>) -> bool {
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || !byte.is_ascii();
    match rest.next() {
        Some(b'.') => !rest.next().is_some_and(goes_on),
        Some(byte) => !goes_on(byte),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(values: &[&str]) -> Subject {
        Subject::new(values.iter().copied()).unwrap()
    }

    #[test]
    fn a_value_is_matched_as_a_whole_and_an_address_in_every_spelling() {
        for (value, text, expected) in [
            ("ann@example.com", "Ann@Example.COM", true),
            ("ann@example.com", " ann@example.com ", true),
            ("ann@example.com", "joann@example.com", false),
            ("Zoë@example.com", "zoË@example.com", true),
            ("u-1", "u-1", true),
            ("u-1", "U-1", true),
            ("u-1", "u-1 ", true),
            ("u-1", "u-1 x", false),
            ("ZO24", "zo24", true),
            ("zoë", "ZOË", true),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.70", false),
            ("192.0.2.7", "::ffff:192.0.2.7", true),
            ("192.0.2.7", "::FFFF:c000:207", true),
            ("::ffff:192.0.2.7", "192.0.2.7", true),
            ("::ffff:192.0.2.7", "::ffff:192.0.2.8", false),
            ("2001:db8::1", "2001:0DB8:0:0::1", true),
            ("2001:db8::1", "2001:db8::2", false),
            ("192.0.2.7", " 192.0.2.7\t", true),
            ("fe80::7", "FE80::7%en0", true),
            ("fe80::7%en0", "fe80::7", true),
            ("fe80::7", "fe80::8%en0", false),
            ("50%off@example.com", "50%OFF@example.com", true),
            ("zo\u{eb}", "Zoe\u{308}", true),
            ("ZOE\u{308}@example.com", "zo\u{eb}@example.com", true),
            ("zo\u{eb}", "zoe", false),
            ("straße", "STRASSE", true),
            ("STRASSE@example.com", "stra\u{df}e@example.com", true),
            ("ΟΔΥΣΣΕΥΣ", "οδυσσευς", true),
            ("192.0.2.7", "192.0.2.7:443", false),
            ("192.0.2.7", "[192.0.2.7]", true),
            ("[2001:db8::1]", "2001:DB8::1", true),
            ("fe80::7", "[fe80::7%en0]", true),
            ("192.0.2.7", "192.000.002.007", true),
            ("192.0.2.7", "192.0.2.0007", false),
            ("192.0.2.7", "192.0.2.+7", false),
            ("192.0.2.7", "192.0.2.7.0", false),
            ("192.0.2.255", "192.0.2.256", false),
        ] {
            assert_eq!(subject(&[value]).find(text).is_some(), expected, "{value}: {text}");
        }
        let both = subject(&["u-1", "ann@example.com"]);
        assert_ne!(both.find("u-1").unwrap(), both.find("ann@example.com").unwrap());
    }

    #[test]
    fn debug_output_hides_the_subject_and_the_order_of_its_values_does_not_matter() {
        let (one, other) = (subject(&["u-1", "ann@example.com"]), subject(&["Ann@Example.com", "u-1", "U-1"]));
        assert_eq!(one, other);
        assert!(!format!("{one:?}").contains("ann") && !format!("{one:?}").contains("u-1"));
        let (key, another) = (Salt([1; 32]), Salt([2; 32]));
        assert_eq!(one.digests(&key), other.digests(&key));
        assert_ne!(one.digests(&key), one.digests(&another));
        assert_ne!(one.digests(&key), subject(&["u-1"]).digests(&key));
        assert_eq!(one.pseudonyms(&key), other.pseudonyms(&key));
        assert_ne!(one.pseudonyms(&key), one.pseudonyms(&another));
        for name in one.pseudonyms(&key) {
            assert!(name.starts_with("erased-") && !name.contains("ann") && one.find(&name).is_none(), "{name}");
        }
        for (values, domain) in [
            (&["Ann@Example.com", "u-1"][..], "@example.com"),
            (&["ann@smith.example", "smith.example"], "@erased.invalid"),
            (&["ann@smith.example", "Smith.Example"], "@erased.invalid"),
            (&["ann@a\"b"], "@erased.invalid"),
            (&["ann@"], "@erased.invalid"),
            (&["@ann"], "@erased.invalid"),
        ] {
            let names = subject(values).pseudonyms(&key);
            assert!(names.iter().any(|name| name.ends_with(domain)), "{names:?}");
        }
        for wrong in [&[][..], &[" "], &["\u{3000}"], &["x".repeat(2_000).as_str()]] {
            assert!(Subject::new(wrong.iter().copied()).is_err());
        }
    }

    #[test]
    fn whole_words_are_replaced_in_text_without_json() {
        for (value, text, expected) in [
            ("bob", "bob bobby (bob) bob.", Some("N bobby (N) N.")),
            ("bob", "bob-1 b_bob bob.x", None),
            ("Zoë", "zoë ZOË zoé", Some("N N zoé")),
            ("192.0.2.7", "from ::ffff:192.0.2.7", Some("from N")),
            ("2001:db8::7", "from 2001:DB8::7", Some("from N")),
            ("2001:db8::7", "from 2001:0DB8:0:0:0:0:0:7, again", Some("from N, again")),
            ("zoë@own.example", "by <Zoe\u{308}@own.example> and zoe@own.example", Some("by <N> and zoe@own.example")),
            ("bob", "(x) bob (bob )", Some("(x) N (N )")),
            ("strasse", "by Straße, STRAẞE", Some("by N, N")),
            (
                "192.0.2.7",
                "to 192.0.2.7, 192.0.2.77, 192.0.2.7.1 and 192.0.2.7.",
                Some("to N, 192.0.2.77, 192.0.2.7.1 and N."),
            ),
            ("a@b.de", "<A@B.de> a@b.de.org aa@b.de", Some("<N> a@b.de.org aa@b.de")),
        ] {
            let found = subject(&[value]).replace_words(text.as_bytes(), &["N".to_owned()]);
            assert_eq!(found.map(|bytes| String::from_utf8(bytes).unwrap()).as_deref(), expected, "{text}");
        }
    }
}

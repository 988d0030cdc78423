//! Whatever the JSON and however it is spelled: the subject goes, and nothing else changes.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::Value;

use super::super::Subject;
use super::*;

const EMAIL: &str = "ann.🦀/smith@example.com";

/// JSON in which some strings are the subject.
#[derive(Debug, Clone)]
enum Doc {
    Text(String),
    Subject,
    Number(i32),
    List(Vec<Doc>),
    Object(Vec<(Doc, Doc)>),
    /// A string that holds the text of JSON.
    Within(Box<Doc>),
}

/// Pieces of a text, and whether each is the subject.
type Pieces = Vec<(String, bool)>;

/// Spells as the numbers say.
struct Spelling<'a>(std::iter::Cycle<std::slice::Iter<'a, u8>>);

impl Spelling<'_> {
    fn char(&mut self, c: char, text: &mut String) {
        let must = matches!(c, '"' | '\\') || u32::from(c) < 0x20;
        match (self.0.next().unwrap() % 4, c) {
            (0, _) | (_, '\u{0}'..='\u{1f}') => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    text.push_str(&format!("\\u{unit:04x}"));
                }
            }
            (1, '/') => text.push_str("\\/"),
            _ if must => text.extend(['\\', c]),
            (2, _) if c.is_ascii_alphabetic() => text.push_str(&format!("\\u{:04X}", u32::from(c))),
            _ => text.push(c),
        }
    }

    fn string(&mut self, pieces: &Pieces, made: &mut Pieces) {
        made.push(("\"".to_owned(), false));
        for (piece, is_subject) in pieces {
            let mut text = String::new();
            piece.chars().for_each(|c| self.char(c, &mut text));
            made.push((text, *is_subject));
        }
        made.push(("\"".to_owned(), false));
    }

    fn doc(&mut self, doc: &Doc, made: &mut Pieces) {
        let plain = |text: &str| (text.to_owned(), false);
        match doc {
            Doc::Text(text) => self.string(&vec![plain(text)], made),
            Doc::Subject => {
                // In small or capital letters: the eraser finds both.
                let upper = self.0.next().unwrap().is_multiple_of(2);
                let email = if upper { EMAIL.to_uppercase() } else { EMAIL.to_owned() };
                self.string(&vec![(email, true)], made);
            }
            Doc::Number(number) => made.push((number.to_string(), false)),
            Doc::List(docs) => {
                made.push(plain("[ "));
                for (at, doc) in docs.iter().enumerate() {
                    made.push(plain(if at > 0 { "," } else { "" }));
                    self.doc(doc, made);
                }
                made.push(plain("]"));
            }
            Doc::Object(members) => {
                made.push(plain("{"));
                for (at, (key, value)) in members.iter().enumerate() {
                    made.push(plain(if at > 0 { ",\n" } else { "" }));
                    self.doc(key, made);
                    made.push(plain(" :"));
                    self.doc(value, made);
                }
                made.push(plain("}"));
            }
            Doc::Within(doc) => {
                let mut inner = Pieces::new();
                self.doc(doc, &mut inner);
                self.string(&inner, made);
            }
        }
    }
}

fn docs() -> impl Strategy<Value = Doc> {
    let text = any::<String>().prop_map(Doc::Text);
    let near =
        prop_oneof![Just("ann.🦀/smith@example.co"), Just("x ann.🦀/smith@example.com"), Just("\\u0061"), Just("\"")];
    let near = near.prop_map(|text| Doc::Text(text.to_owned()));
    let key = prop_oneof![3 => text.clone(), 1 => Just(Doc::Subject)];
    let leaf = prop_oneof![text, near, Just(Doc::Subject), any::<i32>().prop_map(Doc::Number)];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Doc::List),
            prop::collection::vec((key.clone(), inner.clone()), 0..4).prop_map(Doc::Object),
            inner.prop_map(|doc| Doc::Within(Box::new(doc))),
        ]
    })
}

fn order(values: &[&str]) -> Order {
    Order { id: "DPO-1".to_owned(), subject: Subject::new(values.iter().copied()).unwrap(), key: Salt([3; 32]) }
}

/// All strings of JSON at any depth, those of JSON within strings too.
fn strings_of(value: &Value, found: &mut BTreeSet<String>) {
    let mut take = |text: &str| {
        found.insert(text.to_lowercase());
        if let Ok(inner) = serde_json::from_str::<Value>(text) {
            strings_of(&inner, found);
        }
    };
    match value {
        Value::String(text) => take(text),
        Value::Array(values) => values.iter().for_each(|value| strings_of(value, found)),
        Value::Object(members) => members.iter().for_each(|(key, value)| {
            strings_of(&Value::String(key.clone()), found);
            strings_of(value, found);
        }),
        _ => {}
    }
}

proptest! {
    #[test]
    fn text_without_the_subject_stays_byte_for_byte(doc in docs(), spelling in prop::collection::vec(any::<u8>(), 1..40)) {
        let mut pieces = Pieces::new();
        Spelling(spelling.iter().cycle()).doc(&doc, &mut pieces);
        let order = order(&[EMAIL]);
        let eraser = Eraser::new(&order, Salt([0; 32]));
        let text: String = pieces.iter().map(|(piece, _)| piece.as_str()).collect();
        prop_assert!(serde_json::from_str::<Value>(&text).is_ok(), "the test's own text: {text}");
        let name = eraser.names[0].as_str();
        let meant: String = pieces.iter().map(|(piece, is)| if *is { name } else { piece.as_str() }).collect();
        let made = eraser.text(&text);
        prop_assert_eq!(made.is_some(), pieces.iter().any(|(_, is)| *is));
        let made = made.unwrap_or(text);
        prop_assert_eq!(&made, &meant);
        let mut left = BTreeSet::new();
        strings_of(&serde_json::from_str(&made).unwrap(), &mut left);
        prop_assert!(!left.contains(EMAIL));
        prop_assert_eq!(eraser.text(&made), None);
    }

    #[test]
    fn invalid_json_never_panics_the_eraser(text in prop::collection::vec(any::<u8>(), 0..60), value in "[a-c\"\\\\@]{1,3}") {
        let order = order(&[&value, "\""]);
        let _ = Eraser::new(&order, Salt([0; 32])).json(&text);
        let _ = order.subject.replace_words(&text, &["N".to_owned(), "M".to_owned()]);
    }
}

#[test]
fn a_whole_column_is_replaced_with_one_pseudonym_for_each_value() {
    let order = order(&["ann@example.com", "u-1"]);
    let eraser = Eraser::new(&order, Salt([0; 32]));
    let [email, user] = ["ANN@example.com", "u-1"].map(|text| eraser.text(text).unwrap());
    assert_ne!(email, user);
    assert!(email.ends_with("@example.com") && user.starts_with("erased-"), "{email} {user}");
    assert_eq!(eraser.text(r#"{"u-1":"ann@example.com"}"#).unwrap(), format!(r#"{{"{user}":"{email}"}}"#));
    assert_eq!(eraser.text("u-1 and others"), None);
    assert_eq!(eraser.text(r#"["by u-1"]"#), None);
}

#[test]
fn an_id_with_a_hash_of_the_content_changes_with_the_content() {
    let order = order(&["u-1"]);
    let eraser = Eraser::new(&order, Salt([0; 32]));
    let hash = "0123456789abcdef0123456789abcdef";
    let made = eraser.event_id(&format!("{hash}-2"));
    assert!(made.ends_with("-2") && made.len() == 34 && !made.contains(hash), "{made}");
    assert_eq!(eraser.event_id(&format!("{hash}-2")), made);
    assert_ne!(eraser.event_id(&format!("{hash}-3")), made);
    for own in ["evt-1", hash, "0123456789abcdef-1", &format!("{hash}-x")] {
        assert_eq!(eraser.event_id(own), own);
    }
}

/// A user name can be a word of the service.
#[test]
fn columns_with_words_of_the_service_stay() {
    let order = order(&["user"]);
    let kept = ["member_kind", "grantee_kind", "role", "remote_access", "tunnel_id", "source_type"];
    let text = |name| (name, Arc::new(StringArray::from(vec!["user"])) as ArrayRef);
    let batch = RecordBatch::try_from_iter(kept.into_iter().chain(["local_user_name"]).map(text)).unwrap();
    let (hits, all) = Eraser::new(&order, Salt([0; 32])).columns(&batch).unwrap();
    assert_eq!(hits.len(), 1);
    let value = |name: &str| all.column_by_name(name).unwrap().as_string::<i32>().value(0);
    assert_eq!(kept.map(value), ["user"; 6]);
    assert!(value("local_user_name").starts_with("erased-"));
}

/// The names of a person beside a pseudonym would say whose pseudonym it is. Namesakes keep theirs.
#[test]
fn the_own_row_of_a_person_loses_what_describes_the_person() {
    let text = |name, texts: [&str; 4]| (name, Arc::new(StringArray::from(texts.to_vec())) as ArrayRef, true);
    let batch = RecordBatch::try_from_iter_with_nullable([
        text("user_id", ["u-1", "u-2", "u-3", "u-4"]),
        text("email", ["x@example.com", "Ann@example.com", "bert@example.com", "cleo@example.com"]),
        text("first_name", ["Ann", "Ann", "Ann", "Cleo"]),
        text("last_name", ["Smith", "Smith", "Smith", "Jones"]),
        text("annotations", [r#"{"desk":"7"}"#, "{}", "{}", "{}"]),
        text("last_used_ip", ["192.0.2.7", "192.0.2.8", "192.0.2.9", "192.0.2.10"]),
        text("role", ["admin", "user", "user", "user"]),
    ]);
    let order = order(&["u-1", "ann@example.com", "192.0.2.9"]);
    let (hits, all) = Eraser::new(&order, Salt([0; 32])).columns(&batch.unwrap()).unwrap();
    assert_eq!(hits, BTreeSet::from([0, 1, 2]));
    let held = |name: &str| {
        let texts = all.column_by_name(name).unwrap().as_string::<i32>();
        texts.iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>()
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(held("first_name"), [None, None, some("Ann"), some("Cleo")]);
    assert_eq!(held("last_name"), [None, None, some("Smith"), some("Jones")]);
    assert_eq!(held("annotations"), [None, None, some("{}"), some("{}")]);
    assert_eq!(held("last_used_ip")[..2], [None, None]);
    assert!(held("last_used_ip")[2].as_ref().unwrap().starts_with("erased-"));
    assert_eq!(held("last_used_ip")[3], some("192.0.2.10"));
    assert_eq!(held("role"), ["admin", "user", "user", "user"].map(some));
    assert!(held("user_id")[0].as_ref().unwrap().starts_with("erased-") && held("user_id")[1] == some("u-2"));
}

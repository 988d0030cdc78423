use super::*;
use crate::report::{Format, Medium, sink_for};

fn pseudonyms(key: u8) -> Pseudonyms {
    let row = |kind: &str, text: &str, same: Option<&str>| (kind.to_owned(), text.to_owned(), same.map(str::to_owned));
    let rows = [
        row("person", "usr-anna", Some("usr-anna")),
        row("person", "Anna@alpine.example", Some("usr-anna")),
        row("named", "Anna Example", Some("usr-anna")),
        row("person", "anna@alpine.example", None),
        row("computer", "pc-1", None),
        row("computer", "Front desk; 2", None),
        row("local-user", "admin", None),
        row("person", "123456", Some("123456")),
    ];
    Pseudonyms::new([key; 32], rows)
}

#[test]
fn a_person_has_one_pseudonym_in_every_spelling() {
    let names = pseudonyms(7);
    let anna = names.whole("usr-anna");
    assert!(anna.starts_with("person-") && anna.len() == "person-".len() + DIGITS, "{anna}");
    for text in ["Anna@Alpine.example", " anna@alpine.example ", "Anna Example"] {
        assert_eq!(names.whole(text), anna, "{text}");
    }
    let other = pseudonyms(8);
    assert_ne!(other.whole("usr-anna"), anna, "another pack has other pseudonyms");
    assert_eq!(names.whole("usr-anna, pc-1"), format!("{anna}, {}", names.name("pc-1")));
    let json = names.whole(r#"{"user":"usr-anna","at":"2026-11-01T00:00:00Z","n":[1,"2","Bob"],"usr-anna":null}"#);
    assert!(json.contains("2026-11-01") && json.contains("[1,") && !json.contains("anna") && !json.contains("Bob"));
    assert_eq!(json.matches(&anna).count(), 2, "{json}");
}

#[test]
fn a_sentence_keeps_its_words_and_loses_its_identifiers() {
    let names = pseudonyms(7);
    let anna = names.name("usr-anna");
    for (text, expected) in [
        ("admin", "admin".to_owned()),
        ("by usr-anna.", format!("by {anna}.")),
        (
            "from 192.0.2.7/24: <x@y.example>",
            format!("from {}/24: <{}>", names.name("192.0.2.7"), names.name("x@y.example")),
        ),
        ("computer pc-1, 10:00:01 of 1.2.3", format!("computer {}, 10:00:01 of 1.2.3", names.name("pc-1"))),
        ("front desk; 2", names.name("Front desk; 2")),
        ("", String::new()),
    ] {
        assert_eq!(names.in_text(text), expected);
    }
    assert_eq!(names.left_in("{\"a\":\"usr-anna\"}"), Some("usr-anna"));
    assert_eq!(names.left_in("a#Anna@alpine.example→"), Some("Anna@alpine.example"));
    assert_eq!(names.left_in("usr-annabel xusr-anna 10:00:00.123456"), None);
    assert_eq!(names.left_in("person-12 admin pc-1 stranger@z.example"), None);
}

#[test]
fn an_identifier_is_found_inside_a_word() {
    let names = pseudonyms(7);
    let (anna, of) = (names.name("usr-anna"), |text: &str| names.name(text));
    for (text, expected) in [
        ("203.0.113.77:51234", format!("{}:51234", of("203.0.113.77"))),
        ("peer:198.51.100.9", format!("peer:{}", of("198.51.100.9"))),
        ("account:USR-anna", format!("account:{anna}")),
        ("203.0.113.77→192.0.2.9", format!("{}→{}", of("203.0.113.77"), of("192.0.2.9"))),
        ("203.0.113.79%eth0", format!("{}%eth0", of("203.0.113.79"))),
        ("peer:2001:db8::7%eth0", format!("peer:{}%eth0", of("2001:db8::7"))),
        ("[::ffff:192.0.2.9]:443", format!("[{}]:443", of("::ffff:192.0.2.9"))),
        ("ip-203.0.113.78.", format!("ip-{}.", of("203.0.113.78"))),
        ("x#203.0.113.81", format!("x#{}", of("203.0.113.81"))),
        ("«203.0.113.82»", format!("«{}»", of("203.0.113.82"))),
        ("éusr-anna", format!("é{anna}")),
        ("usr-annabel", "usr-annabel".to_owned()),
        (
            "10.0.19045.1 std::vec :: 1.2.3 2026-11-20T10:00:01Z",
            "10.0.19045.1 std::vec :: 1.2.3 2026-11-20T10:00:01Z".to_owned(),
        ),
    ] {
        assert_eq!(names.in_text(text), expected, "{text}");
        assert_eq!(names.left_in(&expected), None, "{expected}");
    }
}

/// A computer can have the name of a word, and the program's own words stay.
#[test]
fn a_column_of_words_keeps_the_words_that_are_names_of_computers() {
    let rows = [("computer", "medium"), ("person", "usr-anna"), ("named", "fluid")];
    let names = Pseudonyms::new([7; 32], rows.map(|(kind, text)| (kind.to_owned(), text.to_owned(), None)));
    let texts = StringArray::from(vec!["medium", "fluid", "usr-anna", "x@y.example"]);
    let mut out = Vec::new();
    let mut inner = sink_for(Format::Csv, &mut out, Medium::default());
    let sink = Pseudonymised::new(inner.as_mut(), &names);
    let of = |column: &str| {
        let changed = sink.texts(&texts, Content::of(column));
        changed.iter().map(|text| text.unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (medium, anna, stranger) = (names.name("medium"), names.name("usr-anna"), names.name("x@y.example"));
    assert_eq!(of("severity"), ["medium", "fluid", anna.as_str(), stranger.as_str()]);
    assert_eq!(of("detail"), [medium.as_str(), "fluid", anna.as_str(), stranger.as_str()]);
    assert_eq!(of("host"), [medium.clone(), names.name("fluid"), anna, stranger]);
}

#[test]
fn an_address_of_two_people_is_neither_of_them() {
    let row = |text: &str, same: Option<&str>| ("person".to_owned(), text.to_owned(), same.map(str::to_owned));
    let rows = [
        row("usr-anna", Some("usr-anna")),
        row("usr-zoe", Some("usr-zoe")),
        row("anna@corp.example", Some("usr-anna")),
        row("desk@corp.example", Some("usr-anna")),
        row("desk@corp.example", Some("usr-zoe")),
        row("desk@corp.example", None),
    ];
    let names = Pseudonyms::new([7; 32], rows);
    let desk = names.whole("Desk@corp.example");
    assert!(desk.starts_with("person-") && desk != names.whole("usr-anna") && desk != names.whole("usr-zoe"));
    assert_eq!(names.whole("anna@corp.example"), names.whole("usr-anna"));
}

use super::*;

fn names() -> TeamNames {
    let teams = [
        ("t1", Some("Lighthouse VFX")),
        ("t2", Some("Lab")),
        ("t3", Some("Lab")),
        ("t4", Some("t1")),
        ("t5", Some("\u{1b}[31mRed\u{202e}\n  Team\u{200b}\u{7}")),
        ("t6", Some(" \u{202e}\u{7} ")),
        ("t7", None),
    ];
    TeamNames::of(teams.map(|(team, name)| (TeamId::from(team), name.map(str::to_owned))))
}

#[test]
fn a_team_is_found_by_its_id_or_unique_name() {
    let names = names();
    for (asked, expected) in [
        ("t1", "t1"),
        ("Lighthouse VFX", "t1"),
        (" lighthouse  vfx ", "t1"),
        ("t3", "t3"),
        ("t4", "t4"),
        ("[31mRed Team", "t5"),
    ] {
        assert_eq!(names.resolve(asked).unwrap().as_str(), expected, "{asked}");
    }
    let shared = names.resolve("lab").unwrap_err().to_string();
    assert_eq!(shared, "2 teams have the name \"lab\": give the id of one: t2, t3");
    let near = names.resolve("Lighthose VFX").unwrap_err().to_string();
    assert_eq!(near, "unknown team \"Lighthose VFX\"; did you mean Lighthouse VFX?");
    let far = names.resolve("zzzz\u{1b}").unwrap_err().to_string();
    assert!(far.starts_with("unknown team \"zzzz\": the known teams are Lighthouse VFX (t1), Lab (t2)"), "{far}");
    assert_eq!(
        TeamNames::default().resolve("x").unwrap_err().to_string(),
        "unknown team \"x\": the archive has no team yet"
    );
}

#[test]
fn an_ambiguous_name_is_shown_with_the_id() {
    let names = names();
    let labels = ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "gone\u{7}"].map(|team| names.label(team));
    let expected = ["Lighthouse VFX", "Lab (t2)", "Lab (t3)", "t1 (t4)", "[31mRed Team", "t6", "t7", "gone"];
    assert_eq!(labels, expected);
    assert_eq!((names.with_id("t1"), names.with_id("t7")), ("Lighthouse VFX (t1)".into(), "t7".into()));
}

#[test]
fn a_cut_name_still_finds_its_team() {
    let long = "é".repeat(5_000);
    let names = TeamNames::of([(TeamId::from("t"), Some(long.clone()))]);
    assert_eq!(names.label("t"), format!("{}…", "é".repeat(NAME_CHARS_MAX)));
    assert_eq!(names.resolve(&long).unwrap().as_str(), "t");
    assert_eq!(names.resolve(&names.label("t")).unwrap().as_str(), "t");
}

//! The dossier of a subject that only the roster holds.

use serde_json::json;

use crate::golden::answers::Question;
use crate::reporting::Place;

use super::{asked, column, people, read_roster, user};

/// `annals erase` finds these rows, too.
#[test]
fn the_dossier_lists_rows_of_the_roster_that_hold_the_value_anywhere() {
    let place = Place::empty();
    let mut ann = user("u1", "ann@own.example");
    ann["annotations"] = json!([{"key": "deputy", "value": "Bob@own.example"}]);
    let computers = json!([{"id": "d1", "name": "PC-1", "users": ["u1"]}]);
    let mut served = people(&json!([ann, user("u3", "cat@own.example")]), &json!({}), &computers);
    served["info"] =
        json!({"u3": {"totp": {"enabled": true}, "tokenLog": [{"title": "cli", "lastUsedIPAddress": "192.0.2.7"}]}});
    read_roster(&place, "2026-10-20T03:00:00Z", &served);
    for (params, expected) in [
        (&[("subject", "bob@own.example")], vec![("inventory_users", "u1")]),
        (&[("subject", "::ffff:192.0.2.7")], vec![("inventory_tokens", "u3")]),
        (&[("subject", "admin")], vec![]),
    ] {
        let question = Question { params, ..asked("R21") };
        let found = column(&place, &question, "source").into_iter().zip(column(&place, &question, "what"));
        let expected: Vec<_> = expected.into_iter().map(|(source, what)| (json!(source), json!(what))).collect();
        assert_eq!(found.collect::<Vec<_>>(), expected, "{params:?}");
    }
}

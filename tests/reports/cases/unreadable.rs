//! Times that the service sent, and that Annals could not read.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use annals::archive::{Body, Draft, Finding, FindingKind};
use serde_json::json;

use crate::reporting::{Place, at};

use super::{NOW, asked, column, commit, people, read_roster, rows, user};

#[test]
fn a_time_that_nobody_could_read_is_unknown() {
    let place = Place::empty();
    let mut ann = user("u1", "ann@own.example");
    ann["lastUsedAt"] = json!("soon");
    let computers = json!([{"id": "d1", "name": "PC-1", "users": ["u1"], "lastOnlineAt": "soon"}]);
    let mut served = people(&json!([ann]), &json!({}), &computers);
    let token = json!({"title": "ci", "lastUsed": "soon", "expiresAt": "next year"});
    served["info"] = json!({"u1": {"totp": {"enabled": true}, "authProviders": [], "tokenLog": [token]}});
    read_roster(&place, "2026-10-13T03:00:00Z", &served);
    let states = || ["R11", "R12", "R13"].map(|report| column(&place, &asked(report), "state"));
    assert_eq!(states(), [["never used"], ["never online"], ["endless"]]);

    let found = |field: &str| {
        let subject = format!("{field}: string");
        Finding::new(None, FindingKind::UnknownField, &subject, "the field has another type", at(NOW))
    };
    let fields = ["users.lastUsedAt", "devices.lastOnlineAt", "info.tokenLog.lastUsed", "info.tokenLog.expiresAt"];
    commit(&place, Draft::from(Body { findings: fields.map(found).into(), ..Body::default() }), at(NOW));
    assert_eq!(states(), [["unknown"], ["unknown"], ["expiry unknown, use unknown"]]);
    let severities = ["R11", "R12", "R13"].map(|report| rows(&place, &asked(report))[0]["severity"].clone());
    assert_eq!(severities, ["low", "low", "low"]);
}

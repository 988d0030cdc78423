//! The recipes of the SQL cookbook.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use annals::model::Stream;

use crate::reporting::{Place, at};

use super::{FAILED, commit_twice, connection};

#[test]
fn the_recipe_of_failures_counts_a_changed_event_once() {
    let mut recipes =
        include_str!("../../../docs/sql.md").split("```sql\n").map(|text| text.split("```").next().unwrap());
    let recipe = recipes.find(|text| text.contains("AS failures")).unwrap();
    let place = Place::empty();
    commit_twice(&place, Stream::Connections, &[connection("f1", FAILED, at("2026-10-20T10:00:00Z"), |_| ())]);
    assert_eq!(place.run(&["sql", recipe, "--format", "json"]).json()[0]["failures"], 1);
}

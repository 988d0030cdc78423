//! Activity: who changed what. The document does not list the types, so the position of a field shows the type.

use crate::api::outline::ObjectView;
use crate::model::Reject;

use super::reject::exactly_one;

const NOT_TYPES: [&str; 2] = ["header", "id"];

/// The event's type, and its columns.
pub(super) fn read<'e, 'a>(event: ObjectView<'e, 'a>) -> Result<(&'e str, [Option<&'a str>; 2]), Reject> {
    let event_type = event_type(event)?;
    let token_info = event.object("header").and_then(|header| header.get("tokenInfo"));
    Ok((event_type, [token_info, event.get(event_type)]))
}

/// The field named `…Event`; without one, the only other object.
fn event_type<'e>(event: ObjectView<'e, '_>) -> Result<&'e str, Reject> {
    let others = || event.fields().into_iter().filter(|(key, _)| !NOT_TYPES.contains(key));
    let named: Vec<&str> = others().filter(|(key, _)| key.ends_with("Event")).map(|(key, _)| key).collect();
    if !named.is_empty() {
        return exactly_one(&named);
    }
    let objects: Vec<&str> = others().filter(|(_, text)| text.starts_with('{')).map(|(key, _)| key).collect();
    exactly_one(&objects)
}

//! Billing: the entry's `event` is an object with one field, whose name is the type.

use crate::api::outline::ObjectView;
use crate::model::Reject;

use super::reject::exactly_one;

/// The entry's type, and its column.
pub(super) fn read<'e, 'a>(entry: ObjectView<'e, 'a>) -> Result<(&'e str, [Option<&'a str>; 1]), Reject> {
    let event = entry.object("event");
    let names: Vec<&str> = event.iter().flat_map(|event| event.fields()).map(|(key, _)| key).collect();
    let event_type = exactly_one(&names)?;
    Ok((event_type, [event.and_then(|event| event.get(event_type))]))
}

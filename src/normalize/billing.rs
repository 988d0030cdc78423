//! Billing: the ledger entry's `event` is an object whose one field names the type.

use crate::api::json::Object;
use crate::model::Detail;

use super::reject::{Reject, exactly_one};

pub(super) fn read(entry: &Object<'_>) -> Result<(String, Detail), Reject> {
    let event = entry.object("event").unwrap_or_default();
    let names: Vec<&str> = event.fields().map(|(key, _)| key).collect();
    let event_type = exactly_one(&names)?;
    let payload = event.get(event_type).map(str::to_owned);
    Ok((event_type.to_owned(), Detail::Billing { payload }))
}

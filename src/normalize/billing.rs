//! Billing: the ledger entry's `event` is an object whose one field names the type.

use crate::api::outline::Inside;
use crate::model::{Detail, Text};

use super::reject::{Reject, exactly_one};

pub(super) fn read(entry: Inside<'_, '_>) -> Result<(Text, Detail), Reject> {
    let event = entry.object("event");
    let names: Vec<&str> = event.iter().flat_map(|event| event.fields()).map(|(key, _)| key).collect();
    let event_type = exactly_one(&names)?;
    let payload = event.and_then(|event| event.get(event_type)).map(str::to_owned);
    Ok((event_type.into(), Detail::Billing { payload }))
}

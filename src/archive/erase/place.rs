//! The path of the scratch file that keeps an order's key until the order is done.

use crate::model::path::SCRATCH;

const ORDER: &str = "erasure-";

/// The path of an order. `hash` is the first 16 digits of the SHA-256 of its name.
pub fn order_of(hash: &str) -> String {
    format!("{SCRATCH}/{ORDER}{hash}.json")
}

/// Whether the path is that of an order.
pub fn is_order(path: &str) -> bool {
    path.strip_prefix(SCRATCH).and_then(|rest| rest.strip_prefix('/')).is_some_and(|name| name.starts_with(ORDER))
}

//! A team's people, computers and groups: what is kept of them, and what changed since they were last seen. Pure.
//!
//! [`team`], [`users`], [`sso_users`], [`computers`] and [`user_info`] take from an answer's JSON what the allow-list names
//! ([`InventoryPart::columns`](crate::model::InventoryPart::columns)) and nothing else: secrets of invites and installers,
//! download links, avatars and whatever the document does not tell stay behind. A field that the document does not name, or
//! whose value is of another kind, is counted by its path and kind ([`Unknown`]), without its value.
//!
//! [`Standing`] is what the archive's rows say is there; [`Standing::changes`] compares it with a look.

mod entities;
mod fields;
mod standing;
mod time;

pub use entities::{Snapshot, computers, sso_users, team, user_info, users};
pub use fields::{Malformed, Unknown};
pub use standing::{Scope, Standing, Things};

#[cfg(test)]
mod tests;

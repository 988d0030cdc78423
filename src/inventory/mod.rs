//! A team's people, computers and groups: what Annals keeps, and what changed since the last read. Pure.
//!
//! [`team`], [`users`], [`sso_users`], [`computers`] and [`user_info`] take only the fields of the allow-list
//! ([`InventoryPart::columns`](crate::model::InventoryPart::columns)) from an answer's JSON. They drop secrets of invites and
//! installers, download links, avatars and undocumented fields. An undocumented field, or a value of another type, is counted by
//! its path and type ([`Unknown`]), without its value.
//!
//! [`ArchivedPart`] is the current state from the archive's rows; [`ArchivedPart::changes`] compares it with a new read.

mod archived_part;
mod entities;
mod fields;
mod time;

pub use archived_part::{ArchivedPart, Entries, Scope};
pub use entities::{ShownParts, computers, sso_users, team, user_info, users};
pub use fields::{Malformed, Unknown};

#[cfg(test)]
mod tests;

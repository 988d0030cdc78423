//! The rules of administration: pure functions over a team's state, which table tests check without a server.
//!
//! One request is one call of [`apply`]. It checks the whole request, then changes the state. It returns effects for
//! the streams: activity, billing entries, connection events, a removed computer.

mod access;
mod accounts;
mod actions;
mod annotations;
mod apply;
mod body;
mod computers;
mod events;
mod groups;
mod initial;
mod installers;
mod invites;
mod request;
mod settings;
mod state;
mod users;
pub mod views;

pub use accounts::{Membership, spread};
pub use apply::apply;
pub use body::{Field, Kind, check};
pub use initial::{apply_turnover, initial_state};
pub use request::{AccountChange, Actor, AdminRequest, Caller, Context, Effect, Outcome};
pub use state::{MemberRole, TeamState, User};

#[cfg(test)]
mod tests;

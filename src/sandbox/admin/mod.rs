//! The rules of administration: pure functions over a team's state, which table tests check without a server.
//!
//! One request is one call of [`apply`]. It checks the whole request, then changes the state. It returns effects for
//! the streams: activity, billing entries, connection events, a removed computer.

mod access;
mod accounts;
mod annotations;
mod apply;
mod asked;
mod body;
mod computers;
mod founding;
mod groups;
mod installers;
mod invites;
mod settings;
mod state;
mod told;
mod users;
mod verbs;
pub mod views;

pub use accounts::{Membership, spread};
pub use apply::apply;
pub use asked::{AccountChange, Actor, Asked, Caller, Context, Effect, Outcome};
pub use body::{Field, Kind, check};
pub use founding::{follow_seasons, found};
pub use state::{Standing, TeamState, User};

#[cfg(test)]
mod tests;

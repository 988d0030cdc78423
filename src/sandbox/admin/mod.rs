//! What administration does to a team: pure rules over the team's state, table-tested without a server.
//!
//! One request is one call of [`apply`]: everything is checked, then the state changes, and what the world outside
//! should learn (activity, billing entries, connection events, a computer that is gone) comes back as effects.

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

//! Annals keeps a remote-access team's history for as long as the team must keep it.
//!
//! # The flow
//! ```text
//! api      ->  collect    ->  normalize   ->  archive        ->  report
//! HTTP,        one window,    wire to         stage, ledger,     SQL over the
//! retries      all pages      typed rows      publish, verify    ledger's files
//! ```
//! `pipeline` is the only place where stages meet; `cli` is the face. `model` is the vocabulary that every room
//! speaks, `clock` the only source of time, sleep and randomness, `sandbox` the documented service for rehearsal.
//!
//! # What always holds
//! 1. Loss is allowed only inside a recorded gap.
//! 2. The archive grows by whole commits: one appended ledger line is one commit, and nothing else is.
//! 3. An upstream deletion never deletes here.
//! 4. What decides is pure and takes `now` as an argument; the world is touched behind three traits: the event source
//!    ([`api::EventSource`]), the store (`archive::Store`) and the clock ([`clock::Clock`]).

pub mod api;
pub mod archive;
pub mod cli;
pub mod clock;
pub mod collect;
pub mod config;
pub mod error;
pub mod model;
pub mod normalize;
pub mod pipeline;
pub mod report;
pub mod sandbox;

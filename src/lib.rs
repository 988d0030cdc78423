//! Annals keeps a remote-access team's history for as long as the team must keep it.
//!
//! # The flow
//! ```text
//! api      ->  collect    ->  normalize   ->  correlate  ->  archive        ->  report
//! HTTP,        one window,    wire to         events to      stage, ledger,     SQL over the
//! retries      all pages      typed rows      sessions       publish, verify    ledger's files
//! ```
//! `pipeline` is the only place where stages meet; `cli` is the face. `model` is the vocabulary that every room
//! speaks, `clock` the only source of time, sleep and randomness, `sandbox` the documented service for rehearsal.
//!
//! # The rooms, and whom each may use
//! | room | holds | may use |
//! |---|---|---|
//! | `model` | the vocabulary: streams, times, ranges, digests, events, rows | no room |
//! | `clock` | now, sleep and randomness | model |
//! | `files` | how a file of this machine is opened, and for whom one is made | no room |
//! | `api` | the event source's contract, wire types, client, retries, limits | model, clock |
//! | `collect` | one range -> all its events: walk, confirm, split, join | model, api's contract |
//! | `normalize` | wire to rows, rejects kept | model, api's wire types |
//! | `correlate` | events of one connection to its session | model |
//! | `inventory` | people, computers and groups: what is kept of them, and what changed | model, api's wire types |
//! | `archive` | store, schema, parquet, ledger, commit, recover, seal, verify | model |
//! | `report` | the SQL engine, its views, the catalog of reports, rendering, charts, pages, evidence packs | model, archive's list of live files |
//! | `pipeline` | where stages meet: a window, a stream, a team, the fleet; gaps and findings | all above but report |
//! | `sandbox` | the documented service over synthetic teams, its truth kept aside | model, clock, api's wire types |
//! | `web` | the daemon's port: health, metrics, the page, the API | report, and the state that pipeline shows |
//! | `alert` | what is worth a warning, and whom it goes to | model, clock, config, and the state that pipeline shows |
//! | `cli` | one file a verb | everything; only `main` uses it |
//!
//! Every room but `model` may use `files`. `planted` names the bugs that tests plant; every room may use it, and no release has any. `config` is what is set, checked once; `error` turns every room's errors into exit codes; `allocator` is the program's memory. `tests/tidy.rs` holds the table.
//!
//! # What always holds
//! 1. Loss is allowed only inside a recorded gap.
//! 2. The archive grows by whole commits: one appended ledger line is one commit, and nothing else is.
//! 3. An upstream deletion never deletes here.
//! 4. What decides is pure and takes `now` as an argument; the world is touched behind three traits: the event source
//!    ([`api::EventSource`]), the store ([`archive::Store`]) and the clock ([`clock::Clock`]).

pub mod alert;
pub mod api;
pub mod archive;
pub mod cli;
pub mod clock;
pub mod collect;
pub mod config;
pub mod correlate;
pub mod error;
pub mod files;
pub mod inventory;
pub mod model;
pub mod normalize;
pub mod pipeline;
mod planted;
pub mod report;
pub mod sandbox;
pub mod web;

#[cfg(test)]
extern crate self as annals;
/// In the library's own tests the simulation meets bugs that are planted.
#[cfg(test)]
#[path = "../tests/simulation/mod.rs"]
mod simulation;

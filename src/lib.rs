//! Annals keeps a remote-access team's history for as long as the team must keep it.
//!
//! # The flow
//! ```text
//! api      ->  collect    ->  normalize   ->  correlate  ->  archive        ->  report
//! HTTP,        one window,    wire to         events to      files, ledger,     SQL over the
//! retries      all pages      typed rows      sessions       vacuum, verify     ledger's files
//! ```
//! Only `pipeline` connects the stages, and `daemon` runs it again and again. `cli` holds the commands. `model` defines the types
//! that every room uses. `clock` is the only source of time, sleep and randomness. `sandbox` simulates the documented service.
//!
//! # The rooms, and their allowed imports
//! | room | holds | may use |
//! |---|---|---|
//! | `model` | the shared types: streams, times, ranges, digests, events, rows | no room |
//! | `clock` | now, sleep and randomness | model |
//! | `files` | opening and creating local files, and their permissions | no room |
//! | `api` | the event source's contract, wire types, client, retries, limits | model, clock |
//! | `collect` | one range -> all its events: walk, confirm, split, join | model, api's contract |
//! | `normalize` | wire to rows, rejects kept | model, api's wire types |
//! | `correlate` | events of one connection to its session | model |
//! | `inventory` | people, computers and groups: their kept fields, and the changes between two scans | model, api's wire types |
//! | `store` | files on a local disk, in memory or in a bucket, and the durability that a commit needs | model, clock |
//! | `archive` | schema, parquet, ledger, commit, recover, seal, verify | model, clock, store |
//! | `lake` | the open tables: Iceberg metadata over the archive's files, published, checked and expired | model, store, archive |
//! | `report` | the SQL engine, its views, the catalog of reports, rendering, charts, pages, evidence packs | model, store, archive's list of live files, lake's check |
//! | `pipeline` | where stages meet: one round of a team or of the fleet; gaps and findings | all above except files and report; also config and error |
//! | `sandbox` | the documented service over synthetic teams, and its ground truth | model, clock, api's wire types |
//! | `daemon` | when each task of each team runs, the runs, and the state for display | pipeline, lake, archive, store, api, config, model, clock |
//! | `web` | the daemon's port: health, metrics, the page, the API | model, clock, config, error, report, lake's catalog, the daemon's state, pipeline's status |
//! | `alert` | the alert conditions, the alert targets and the log of sent alerts | model, clock, config, the daemon's state, pipeline's status |
//! | `cli` | one file per command | everything; only `main` uses it |
//!
//! Rooms that open local files also use `files`. Rooms that send HTTP requests also use `http_client`, which starts a client, or
//! explains why it cannot start. `threads` runs work on several threads for `store`, `archive` and `pipeline`. `planted` names
//! the bugs that tests plant; a release contains none. `config` parses and checks the configuration once. `error` maps every
//! room's errors to exit codes. `allocator` selects the memory allocator. `tests/tidy.rs` enforces the table, and holds the exact
//! list of imports.
//!
//! # Invariants
//! 1. Loss is allowed only inside a recorded gap.
//! 2. The archive grows by whole commits: one appended ledger line is one commit, and no other write is a commit.
//! 3. A deletion in the upstream service never deletes data of the archive.
//! 4. Deciding functions are pure and take `now` as an argument. The pipeline reaches the world through three traits alone:
//!    the event source ([`api::EventSource`]), the store ([`store::Store`]) and the clock ([`clock::Clock`]).

pub mod alert;
pub mod api;
pub mod archive;
pub mod cli;
pub mod clock;
pub mod collect;
pub mod config;
pub mod correlate;
pub mod daemon;
pub mod error;
pub mod files;
mod http_client;
pub mod inventory;
pub mod lake;
pub mod model;
pub mod normalize;
pub mod pipeline;
mod planted;
pub mod report;
pub mod sandbox;
pub mod store;
mod threads;
pub mod web;

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod allocator;
#[cfg(test)]
extern crate self as annals;
/// The library's own tests run the simulation against planted bugs.
#[cfg(test)]
#[path = "../tests/simulation/mod.rs"]
mod simulation;

//! The daemon's tests.

use super::common;

mod alerts;
mod bucket_costs;
mod crowd;
mod deploy;
mod echo;
mod fleet;
mod kubernetes;
mod leftovers;
mod many;
mod outside;
mod page;
mod port;
mod program;
mod quiet;
mod restore;
mod shards;
mod systemd;
mod thousand;
mod trouble;
mod virtual_time;
mod weight;

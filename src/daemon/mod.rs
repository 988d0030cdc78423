//! The daemon runs the pipeline repeatedly. This room decides when each task of each team is due, runs it, and keeps
//! the state for display.
//!
//! `event_loop` owns everything and waits. `timetable` decides which task runs next, from each task's `job`. `task_run`
//! is one run of a task, on a team that `open_teams` keeps open. `team_list` follows the service's list of teams, and
//! `archive_check` the schedule of the checks. `clock_skew` compares the service's clock with the machine's. `live` shows the
//! state to the port, the metrics and the alerts, and `late` decides which streams are late.

mod archive_check;
mod clock_skew;
mod event_loop;
mod job;
mod late;
mod live;
mod open_teams;
mod task_run;
mod team_list;
mod timetable;

pub use clock_skew::SKEW_SECONDS_MAX;
pub use event_loop::{Daemon, DaemonCommand};
pub use job::Task;
pub use late::Late;
pub use live::{Detected, Detections, Live, LiveSnapshot, Publication, TaskLive, TeamLive, Verified};
pub use open_teams::weight;

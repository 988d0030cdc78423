//! The daemon: when each task of each team runs, what a run does, and the state for display.

pub mod event_loop;
mod job;
pub mod live;
pub mod open_teams;
pub mod timetable;
pub mod task_run;
mod team_list;

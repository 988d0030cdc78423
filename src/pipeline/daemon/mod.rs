//! The daemon: which team is visited when, what a visit does, and what can be shown of it.

pub mod event_loop;
pub mod live;
pub mod open_teams;
pub mod timetable;
pub mod task_run;

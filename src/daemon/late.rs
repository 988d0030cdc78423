//! When a stream counts as late.

use std::time::Duration;

use crate::config::Cron;
use crate::model::{Instant, Stream, TeamId};

/// A stream is late if it was last read before this number of scheduled polls: one may still run, and three were missed.
const LATE_POLLS: usize = 4;
/// A stream that was read within this time is never late.
const LATE_MIN: Duration = Duration::from_secs(10);

/// A stream that is late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Late {
    pub team: TeamId,
    pub stream: Stream,
    pub done_at: Option<Instant>,
    pub error: Option<String>,
}

/// A stream whose last successful reading is before this moment is late. A schedule can be uneven, so this counts its moments
/// instead of measuring the time between two of them.
pub(super) fn cutoff(cron: &Cron, now: Instant) -> Instant {
    cron.nth_before(LATE_POLLS, now).unwrap_or(Instant::EARLIEST).min(now.minus(LATE_MIN))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::job::{Job, Task};
    use super::super::live::Live;
    use super::super::task_run::TaskRun;
    use super::*;
    use crate::config::Config;

    #[test]
    fn a_success_before_the_clock_was_set_back_hides_no_failure() {
        let now: Instant = "2026-11-20T16:00:00Z".parse().unwrap();
        let ahead = now.plus(Duration::from_secs(86_400));
        let (live, team, task) = (Live::default(), TeamId::from("t"), Task::Read(Stream::Connections));
        live.change(|shown| {
            shown.schedule = Some(Config::of_text(Path::new("annals.toml"), "").unwrap().schedule);
        });
        let job = Job::new(task, Duration::ZERO, ahead);
        live.show_tasks(&team, |of| Some(&job).filter(|_| of == task));
        let run = TaskRun { error: None, ..TaskRun::broken(team, task, String::new()) };
        live.run_ended(run, 0, ahead);
        assert_eq!(live.late(now), Some(Vec::new()));
        assert_eq!(live.late(now.plus(Duration::from_secs(600))).unwrap().len(), 1);
    }

    #[test]
    fn a_stream_is_late_after_three_missed_polls_of_any_schedule() {
        for (schedule, now, done_at, is_late) in [
            // An even schedule, read with an offset of 20 seconds.
            ("* * * * *", "16:03:10", "16:02:20", false),
            ("* * * * *", "16:03:10", "16:00:20", false),
            ("* * * * *", "16:03:10", "15:59:50", true),
            // An uneven schedule, read exactly at its moments.
            ("0,5 * * * * *", "16:00:59", "16:00:05", false),
            ("0,5 * * * * *", "16:00:59", "15:59:05", false),
            ("0,5 * * * * *", "16:00:59", "15:58:05", true),
            // However often the stream is read, it is not late within ten seconds.
            ("* * * * * *", "16:00:20", "16:00:11", false),
            ("* * * * * *", "16:00:20", "16:00:09", true),
        ] {
            let at = |time: &str| format!("2026-11-20T{time}Z").parse::<Instant>().unwrap();
            let cutoff = cutoff(&schedule.parse().unwrap(), at(now));
            assert_eq!(at(done_at) < cutoff, is_late, "{schedule} at {now}, read at {done_at}: {cutoff}");
        }
    }
}

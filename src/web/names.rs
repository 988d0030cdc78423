//! The names of all metrics, in one place: what is scraped, drawn and warned of elsewhere uses these.
//!
//! Only `annals_team_…` have a `team` label. The totals without it are always there: sums, and of lag and time left the worst.

/// What kind of number a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name {
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

const STREAM: &[&str] = &["stream"];
const TASK: &[&str] = &["task"];
const OF_TEAM: &[&str] = &["team"];
const STREAM_OF_TEAM: &[&str] = &["team", "stream"];
const TASK_OF_TEAM: &[&str] = &["team", "task"];

macro_rules! names {
    ($($constant:ident $kind:ident $name:literal $labels:expr, $help:literal;)*) => {
        $(pub const $constant: Name = Name { name: $name, kind: Kind::$kind, labels: $labels, help: $help };)*
        /// Every metric there is.
        pub const ALL: &[Name] = &[$($constant),*];
    };
}

names! {
    BUILD_INFO Gauge "annals_build_info" &["version"], "1, and the version of the program";
    SHARD Gauge "annals_shard" &["shard", "shards"], "1, which shard of the fleet the daemon reads, from 1, and how many there are; 1 of 1 where the fleet is undivided";
    REQUESTS Counter "annals_requests_total" &["result"], "Requests to the service by how they ended; retry counts repeated ones again";
    EVENTS_NEW Counter "annals_events_new_total" STREAM, "Events archived";
    EVENTS_LATE Counter "annals_events_late_total" STREAM, "Events first seen after their window was settled";
    EVENTS_DUPLICATE Counter "annals_events_duplicate_total" STREAM, "Events read again that were archived already";
    EVENTS_QUARANTINED Counter "annals_events_quarantined_total" STREAM, "Events that could not become rows, kept in quarantine";
    COMMITS Counter "annals_commits_total" STREAM, "Commits to the archive";
    CONFLICTS Counter "annals_commit_conflicts_total" TASK, "Commits that another writer of the team was ahead of; what they held is read again";
    COMMIT_SECONDS Histogram "annals_commit_seconds" &[], "Seconds that a commit took, compression and syncing included";
    GAPS_RECORDED Counter "annals_gaps_recorded_total" STREAM, "Gaps recorded by this process";
    GAPS Gauge "annals_gaps" STREAM, "Gaps that stand in the archive";
    STREAMS Gauge "annals_streams" STREAM, "Streams that are read: one a team";
    STREAMS_LATE Gauge "annals_streams_late" STREAM, "Streams that are not within their lag";
    STREAMS_SHORT Gauge "annals_streams_short_of_time" STREAM, "Streams with less than alerts.time_left until a loss, and less than half of what there was";
    LAG Gauge "annals_lag_seconds" STREAM, "Seconds from what was read at least once to now, of the team that is worst off";
    WINDOW_AGE Gauge "annals_window_age_seconds" STREAM, "Seconds from the start of the oldest window of all teams that is not settled to now";
    TIME_LEFT Gauge "annals_time_left_to_loss_seconds" STREAM, "Seconds until unread events may be lost upstream, of the team that has the least";
    TASK_FAILURES Gauge "annals_task_failures" TASK, "The most failures in a row of any team";
    TASKS_UNFINISHED Gauge "annals_tasks_unfinished" TASK, "Teams that have more to read than one visit takes";
    QUARANTINED Gauge "annals_quarantined_events" &[], "Events in quarantine";
    ARCHIVE_BYTES Gauge "annals_archive_bytes" &[], "Bytes of the archive's live files";
    TEAM_EVENTS_NEW Counter "annals_team_events_new_total" STREAM_OF_TEAM, "Events archived";
    TEAM_EVENTS_LATE Counter "annals_team_events_late_total" STREAM_OF_TEAM, "Events first seen after their window was settled";
    TEAM_EVENTS_DUPLICATE Counter "annals_team_events_duplicate_total" STREAM_OF_TEAM, "Events read again that were archived already";
    TEAM_EVENTS_QUARANTINED Counter "annals_team_events_quarantined_total" STREAM_OF_TEAM, "Events that could not become rows, kept in quarantine";
    TEAM_COMMITS Counter "annals_team_commits_total" STREAM_OF_TEAM, "Commits to the archive";
    TEAM_GAPS_RECORDED Counter "annals_team_gaps_recorded_total" STREAM_OF_TEAM, "Gaps recorded by this process";
    TEAM_GAPS Gauge "annals_team_gaps" STREAM_OF_TEAM, "Gaps that stand in the archive";
    TEAM_LAG Gauge "annals_team_lag_seconds" STREAM_OF_TEAM, "Seconds from what was read at least once to now";
    TEAM_WINDOW_AGE Gauge "annals_team_window_age_seconds" STREAM_OF_TEAM, "Seconds from the start of the oldest window that is not settled to now";
    TEAM_TIME_LEFT Gauge "annals_team_time_left_to_loss_seconds" STREAM_OF_TEAM, "Seconds until unread events may be lost upstream";
    TEAM_KEPT Gauge "annals_team_kept_seconds" STREAM_OF_TEAM, "Seconds for which the service shows an event, or that its ten billing entries span at their pace";
    TEAM_STREAM_LATE Gauge "annals_team_stream_late" STREAM_OF_TEAM, "1 when the stream is not within its lag";
    TEAM_TASK_FAILURES Gauge "annals_team_task_failures" TASK_OF_TEAM, "Failures in a row";
    TEAM_CONFLICTS Counter "annals_team_commit_conflicts_total" TASK_OF_TEAM, "Commits that another writer of the team was ahead of; what they held is read again";
    TEAM_TASK_UNFINISHED Gauge "annals_team_task_unfinished" TASK_OF_TEAM, "1 while there is more to read than one visit takes";
    TEAM_TASK_DONE_AT Gauge "annals_team_task_done_timestamp_seconds" TASK_OF_TEAM, "When the task last went well, in seconds since 1970";
    TEAM_QUARANTINED Gauge "annals_team_quarantined_events" OF_TEAM, "Events in quarantine";
    TEAM_ARCHIVE_BYTES Gauge "annals_team_archive_bytes" OF_TEAM, "Bytes of the archive's live files";
    TEAM_LEDGER_SEQ Gauge "annals_team_ledger_seq" OF_TEAM, "The number of the ledger's last line";
    TEAMS Gauge "annals_teams" &[], "Teams that are read";
    TEAMS_OPEN Gauge "annals_teams_open" &[], "Teams whose state is held in memory";
    TEAMS_OPEN_BYTES Gauge "annals_teams_open_bytes" &[], "Bytes that this state takes, about";
    TEAMS_LISTED Gauge "annals_teams_listed" &[], "1 when the service last listed the teams, or they are configured";
    ALERTS Counter "annals_alerts_total" &["target", "result"], "Warnings by where they went and whether they arrived";
    DETECTIONS Gauge "annals_report_detections" &["report", "severity"], "What each report that detects something found when it was last run";
    REPORTS_FAILED Gauge "annals_reports_failed" &[], "Reports that could not be run the last time";
    REPORTS_AT Gauge "annals_reports_timestamp_seconds" &[], "When the reports were last run for the warnings, in seconds since 1970";
    VERIFY_FAULTS Gauge "annals_verify_faults" &[], "Faults that the last check of the whole archive found";
    VERIFY_AT Gauge "annals_verify_timestamp_seconds" &[], "When that check ended, in seconds since 1970";
}

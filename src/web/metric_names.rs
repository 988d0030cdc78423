//! The names of all metrics in one place, for scrapes, dashboards and alert rules.
//!
//! Only `annals_team_…` metrics have a `team` label. The totals without it always exist: sums, and the worst lag and time left.

/// The type of a metric.
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
        /// Every metric.
        pub const ALL: &[Name] = &[$($constant),*];
    };
}

names! {
    BUILD_INFO Gauge "annals_build_info" &["version"], "1, and the version of the program";
    SHARD Gauge "annals_shard" &["shard", "shards"], "1, with the shard that the daemon reads, counted from 1, and the number of shards; 1 of 1 for a fleet without shards";
    REQUESTS Counter "annals_requests_total" &["result"], "Requests to the service by result; retry counts each repeated request again";
    EVENTS_NEW Counter "annals_events_new_total" STREAM, "Events archived";
    EVENTS_LATE Counter "annals_events_late_total" STREAM, "Events first seen after their window was settled";
    EVENTS_DUPLICATE Counter "annals_events_duplicate_total" STREAM, "Events read again that the archive already holds";
    EVENTS_QUARANTINED Counter "annals_events_quarantined_total" STREAM, "Events that do not fit the schema, kept in quarantine";
    COMMITS Counter "annals_commits_total" STREAM, "Commits to the archive";
    CONFLICTS Counter "annals_commit_conflicts_total" TASK, "Commits that lost against another writer of the team; their events are read again";
    COMMIT_SECONDS Histogram "annals_commit_seconds" &[], "Seconds of a commit, with compression and syncing";
    GAPS Gauge "annals_gaps" STREAM, "Recorded gaps that no later line withdrew";
    GAP_AT Gauge "annals_gap_recorded_timestamp_seconds" STREAM, "Time of the record of the newest of these gaps, in seconds since 1970; 0 without a gap";
    STREAMS Gauge "annals_streams" STREAM, "Streams that the daemon reads: one for each team";
    STREAMS_LATE Gauge "annals_streams_late" STREAM, "Streams that missed at least three scheduled reads";
    STREAMS_SHORT Gauge "annals_streams_short_of_time" STREAM, "Streams with less than alerts.time_left until a loss, and less than half of the service's span";
    LAG Gauge "annals_lag_seconds" STREAM, "Seconds from the end of the part that was read to now, of the team with the largest delay";
    WINDOW_AGE Gauge "annals_window_age_seconds" STREAM, "Seconds from the start of the oldest unsettled window of all teams to now";
    TIME_LEFT Gauge "annals_time_left_to_loss_seconds" STREAM, "Seconds until the service may drop unread events, of the team with the least time";
    TASK_FAILURES Gauge "annals_task_failures" TASK, "Consecutive failures, of the team with the most";
    TASKS_UNFINISHED Gauge "annals_tasks_unfinished" TASK, "Teams that have more to read than one round reads";
    QUARANTINED Gauge "annals_quarantined_events" &[], "Events in quarantine";
    ARCHIVE_BYTES Gauge "annals_archive_bytes" &[], "Bytes of the archive's live files";
    TEAM_EVENTS_NEW Counter "annals_team_events_new_total" STREAM_OF_TEAM, "Events archived";
    TEAM_EVENTS_LATE Counter "annals_team_events_late_total" STREAM_OF_TEAM, "Events first seen after their window was settled";
    TEAM_EVENTS_DUPLICATE Counter "annals_team_events_duplicate_total" STREAM_OF_TEAM, "Events read again that the archive already holds";
    TEAM_EVENTS_QUARANTINED Counter "annals_team_events_quarantined_total" STREAM_OF_TEAM, "Events that do not fit the schema, kept in quarantine";
    TEAM_COMMITS Counter "annals_team_commits_total" STREAM_OF_TEAM, "Commits to the archive";
    TEAM_GAPS Gauge "annals_team_gaps" STREAM_OF_TEAM, "Recorded gaps that no later line withdrew";
    TEAM_GAP_AT Gauge "annals_team_gap_recorded_timestamp_seconds" STREAM_OF_TEAM, "Time of the record of the newest of these gaps, in seconds since 1970; 0 without a gap";
    TEAM_LAG Gauge "annals_team_lag_seconds" STREAM_OF_TEAM, "Seconds from the end of the part that was read to now";
    TEAM_WINDOW_AGE Gauge "annals_team_window_age_seconds" STREAM_OF_TEAM, "Seconds from the start of the oldest unsettled window to now";
    TEAM_TIME_LEFT Gauge "annals_team_time_left_to_loss_seconds" STREAM_OF_TEAM, "Seconds until the service may drop unread events";
    TEAM_KEPT Gauge "annals_team_kept_seconds" STREAM_OF_TEAM, "Seconds for which the service shows an event; for billing, the estimated span of its ten entries";
    TEAM_STREAM_LATE Gauge "annals_team_stream_late" STREAM_OF_TEAM, "1 when the stream missed at least three scheduled reads";
    TEAM_TASK_FAILURES Gauge "annals_team_task_failures" TASK_OF_TEAM, "Consecutive failures";
    TEAM_CONFLICTS Counter "annals_team_commit_conflicts_total" TASK_OF_TEAM, "Commits that lost against another writer of the team; their events are read again";
    TEAM_TASK_UNFINISHED Gauge "annals_team_task_unfinished" TASK_OF_TEAM, "1 while there is more to read than one round reads";
    TEAM_TASK_DONE_AT Gauge "annals_team_task_done_timestamp_seconds" TASK_OF_TEAM, "Time of the task's last success, in seconds since 1970";
    TEAM_QUARANTINED Gauge "annals_team_quarantined_events" OF_TEAM, "Events in quarantine";
    TEAM_ARCHIVE_BYTES Gauge "annals_team_archive_bytes" OF_TEAM, "Bytes of the archive's live files";
    TEAM_LEDGER_SEQ Gauge "annals_team_ledger_seq" OF_TEAM, "The number of the ledger's last line";
    TEAMS Gauge "annals_teams" &[], "Teams that the daemon reads";
    TEAMS_OPEN Gauge "annals_teams_open" &[], "Teams whose state is in memory";
    TEAMS_OPEN_BYTES Gauge "annals_teams_open_bytes" &[], "Estimated bytes of this state";
    CLOCK_SKEW Gauge "annals_service_clock_ahead_seconds" &[], "Seconds by which the service's clock (the header Date) is ahead of this machine's; negative if it is behind; missing without the header";
    TEAMS_LISTED Gauge "annals_teams_listed" &[], "1 if the last request for the list of teams succeeded, or the teams are configured";
    ALERTS Counter "annals_alerts_total" &["target", "result"], "Alerts by target and result";
    DETECTIONS Gauge "annals_report_detections" &["report", "severity"], "Detections in the last run of each detecting report";
    REPORTS_FAILED Gauge "annals_reports_failed" &[], "Reports that failed in their last run";
    REPORTS_AT Gauge "annals_reports_timestamp_seconds" &[], "Time of the last run of the reports for alerts, in seconds since 1970";
    VERIFY_FAULTS Gauge "annals_verify_faults" &[], "Faults in the last check of the whole archive";
    VERIFY_AT Gauge "annals_verify_timestamp_seconds" &[], "End of that check, in seconds since 1970";
    PUBLISH_FAILED Gauge "annals_publish_failed" &[], "1 if the last run that publishes the open tables failed";
    PUBLISH_AT Gauge "annals_publish_timestamp_seconds" &[], "Time of the last such run that succeeded, in seconds since 1970";
}

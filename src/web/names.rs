//! The names of all metrics, in one place: what is scraped, drawn and warned of elsewhere uses these.

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

const STREAM: &[&str] = &["team", "stream"];
const TASK: &[&str] = &["team", "task"];
const TEAM: &[&str] = &["team"];

macro_rules! names {
    ($($constant:ident $kind:ident $name:literal $labels:expr, $help:literal;)*) => {
        $(pub const $constant: Name = Name { name: $name, kind: Kind::$kind, labels: $labels, help: $help };)*
        /// Every metric there is.
        pub const ALL: &[Name] = &[$($constant),*];
    };
}

names! {
    BUILD_INFO Gauge "annals_build_info" &["version"], "1, and the version of the program";
    REQUESTS Counter "annals_requests_total" &["result"], "Requests to the service by how they ended; retry counts repeated ones again";
    EVENTS_NEW Counter "annals_events_new_total" STREAM, "Events archived";
    EVENTS_LATE Counter "annals_events_late_total" STREAM, "Events first seen after their window was settled";
    EVENTS_DUPLICATE Counter "annals_events_duplicate_total" STREAM, "Events read again that were archived already";
    EVENTS_QUARANTINED Counter "annals_events_quarantined_total" STREAM, "Events that could not become rows, kept in quarantine";
    COMMITS Counter "annals_commits_total" STREAM, "Commits to the archive";
    COMMIT_SECONDS Histogram "annals_commit_seconds" &[], "Seconds that a commit took, compression and syncing included";
    GAPS_RECORDED Counter "annals_gaps_recorded_total" STREAM, "Gaps recorded by this process";
    GAPS Gauge "annals_gaps" STREAM, "Gaps that stand in the archive";
    LAG Gauge "annals_lag_seconds" STREAM, "Seconds from what was read at least once to now";
    WINDOW_AGE Gauge "annals_window_age_seconds" STREAM, "Seconds from the start of the oldest window that is not settled to now";
    TIME_LEFT Gauge "annals_time_left_to_loss_seconds" STREAM, "Seconds until unread events may be lost upstream";
    KEPT Gauge "annals_kept_seconds" STREAM, "Seconds for which the service shows an event, or that its ten billing entries span at their pace";
    STREAM_LATE Gauge "annals_stream_late" STREAM, "1 when the stream is not within its lag";
    TASK_FAILURES Gauge "annals_task_failures" TASK, "Failures in a row";
    TASK_UNFINISHED Gauge "annals_task_unfinished" TASK, "1 while there is more to read than one visit takes";
    TASK_DONE_AT Gauge "annals_task_done_timestamp_seconds" TASK, "When the task last went well, in seconds since 1970";
    QUARANTINED Gauge "annals_quarantined_events" TEAM, "Events in quarantine";
    ARCHIVE_BYTES Gauge "annals_archive_bytes" TEAM, "Bytes of the archive's live files";
    LEDGER_SEQ Gauge "annals_ledger_seq" TEAM, "The number of the ledger's last line";
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

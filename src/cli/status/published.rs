//! The lines of `status` about the open tables: the last publication, and how far the tables are behind the ledgers.

use std::time::Duration;

use crate::config::Cron;
use crate::lake::TableLag;
use crate::model::Instant;
use crate::report::printable;

use super::super::output::counted;
use super::span;

/// A publication is late after this many intervals of its schedule.
const INTERVALS_LATE: u32 = 2;

/// No lines, if no table exists and no schedule publishes one.
pub fn lines(tables: &[TableLag], schedule: Option<&Cron>, now: Instant) -> Vec<String> {
    let errors = tables.iter().filter_map(|table| {
        let error = printable(table.error.as_ref()?);
        Some(format!("open table {}: it cannot be read: {error}", table.table))
    });
    let every = schedule.map(|schedule| schedule.interval(now));
    let none = "open tables: none is published yet, though [publish] schedule is set".to_owned();
    let summary = match tables.iter().filter_map(|table| table.published_at).max() {
        Some(newest) => Some(summary(tables, newest, every, now)),
        None => (tables.is_empty() && every.is_some()).then_some(none),
    };
    summary.into_iter().chain(errors).collect()
}

fn summary(tables: &[TableLag], newest: Instant, every: Option<Duration>, now: Instant) -> String {
    let newest = newest.floor_second();
    let behind = || tables.iter().filter_map(|table| Some((table.behind_since?, table)));
    let Some((since, worst)) = behind().min_by_key(|(since, _)| *since) else {
        return format!("open tables: last published {newest}, not behind the ledgers");
    };
    let known = tables.iter().filter(|table| table.commits_behind.is_some()).count();
    let commits = counted(worst.commits_behind.unwrap_or_default(), "commit");
    let published = worst.published_at.map_or_else(|| "unknown".to_owned(), |at| at.floor_second().to_string());
    let text = format!(
        "open tables: {} of {known} are behind the ledgers; the oldest is {}, {commits} behind since {}, last published \
         {published}",
        behind().count(),
        worst.table,
        since.floor_second()
    );
    match every {
        Some(every) if now.since(since) > every * INTERVALS_LATE => format!(
            "{text}; late: [publish] schedule publishes every {}; the daemon's log and page name a failure, and `annals \
             publish` shows it",
            span(every.as_secs())
        ),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(commits_behind: Option<u64>, behind_since: Option<&str>) -> TableLag {
        let at = |text: &str| text.parse().unwrap();
        TableLag {
            table: "connections",
            version: 3,
            published_at: Some(at("2026-11-20T00:00:00Z")),
            commits_behind,
            behind_since: behind_since.map(at),
            error: None,
        }
    }

    #[test]
    fn a_publication_is_late_after_two_intervals() {
        let schedule: Cron = "*/15 * * * *".parse().unwrap();
        let tables = [table(Some(2), Some("2026-11-20T01:00:00Z"))];
        let said = |now: &str| lines(&tables, Some(&schedule), now.parse().unwrap()).join("\n");
        assert!(
            said("2026-11-20T01:30:00Z")
                .ends_with("behind since 2026-11-20T01:00:00Z, last published 2026-11-20T00:00:00Z")
        );
        assert!(said("2026-11-20T01:30:01Z").contains("; late: [publish] schedule publishes every 15m;"));
    }

    #[test]
    fn an_archive_without_tables_says_nothing_unless_a_schedule_asks_for_them() {
        let schedule: Cron = "*/15 * * * *".parse().unwrap();
        let now = "2026-11-20T01:30:00Z".parse().unwrap();
        assert_eq!(lines(&[], None, now), Vec::<String>::new());
        assert!(lines(&[], Some(&schedule), now)[0].contains("none is published yet"));
        assert!(lines(&[table(Some(0), None)], None, now)[0].ends_with("not behind the ledgers"));
    }
}

//! The key figures at the top of the overview.

use crate::model::Instant;
use crate::report::{Zone, counted, plural, printable};

use super::super::answer::health::{DaemonHealth, Totals};
use super::super::format::{ago, bytes, span, time};
use super::super::query_service::TEAMS_TOGETHER_MAX;

/// A key figure.
pub struct Figure {
    pub label: &'static str,
    pub value: String,
    pub detail: String,
    pub class: &'static str,
    /// The link of the detail.
    pub href: &'static str,
}

/// The last check of the archive: its faults first, then the error that ended it early.
fn last_check(daemon: &DaemonHealth, now: Instant, zone: &Zone) -> Figure {
    let figure = |value: String, detail, class| Figure { label: "Last check", value, detail, class, href: "" };
    match (&daemon.verified, &daemon.check_error) {
        (Some(found), _) if found.faults > 0 => {
            let detail = printable(found.first.as_deref().unwrap_or_default());
            figure(plural(found.faults as u64, "fault"), detail, "bad")
        }
        (_, Some(error)) => figure("did not end".to_owned(), printable(error), "warn"),
        (Some(found), None) => figure(ago(found.at, now), format!("no fault, {}", time(found.at, zone).text), "good"),
        (None, None) => figure("not yet".to_owned(), "by the daemon".to_owned(), "calm"),
    }
}

/// The key figures at the top of the overview.
pub fn figures(daemon: &DaemonHealth, totals: &Totals, now: Instant, zone: &Zone) -> Vec<Figure> {
    let fresh_class = if totals.late > 0 {
        "warn"
    } else if totals.waiting > 0 || totals.streams == 0 {
        "calm"
    } else {
        "good"
    };
    let so_far = |text: &str| if totals.unseen == totals.teams { "not known yet".to_owned() } else { text.to_owned() };
    let is_few = totals.teams <= TEAMS_TOGETHER_MAX as u64;
    vec![
        Figure {
            label: "Up to date",
            value: format!("{} of {}", counted(totals.fresh), counted(totals.streams)),
            detail: "streams read as scheduled".into(),
            class: fresh_class,
            href: "",
        },
        Figure {
            label: "Least time left",
            value: totals.seconds_to_loss.map_or_else(|| "not known".to_owned(), span),
            detail: "until unread events can be lost".into(),
            class: "calm",
            href: "",
        },
        Figure {
            label: "Recorded gaps",
            value: if totals.gaps == 0 { so_far("none") } else { counted(totals.gaps) },
            detail: match (totals.gaps, totals.unseen, totals.teams) {
                (1.., _, _) => if is_few { "see each of them" } else { "see the teams" }.into(),
                // Without a known team, the page must not claim that nothing is lost.
                (0, _, 0) => "no team known yet".into(),
                (0, 0, _) => "no loss is known".into(),
                (0, unseen, _) => format!("{} not read yet", plural(unseen, "team")),
            },
            class: match (totals.gaps, totals.unseen, totals.teams) {
                (1.., _, _) => "bad",
                (0, 0, 1..) => "good",
                (0, _, _) => "calm",
            },
            href: if totals.gaps > 0 && is_few { "/findings?kind=gap" } else { "" },
        },
        Figure {
            label: "Events",
            value: so_far(&counted(totals.events)),
            detail: format!("in {}", bytes(totals.bytes)),
            class: "calm",
            href: "",
        },
        last_check(daemon, now, zone),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::super::answer::health::VerifyResult;
    use super::*;
    use crate::model::Shard;

    #[test]
    fn the_overview_is_not_green_before_any_team_is_known() {
        let now = Instant::from_seconds(1_800_000_000);
        let daemon = DaemonHealth::unread(now, Shard::WHOLE);
        let figures = figures(&daemon, &daemon.totals(), now, &Zone::utc());
        let gaps = figures.iter().find(|figure| figure.label == "Recorded gaps").unwrap();
        assert_eq!(
            (gaps.value.as_str(), gaps.detail.as_str(), gaps.class),
            ("not known yet", "no team known yet", "calm")
        );
        assert!(figures.iter().all(|figure| figure.class != "good"));
    }

    #[test]
    fn a_check_that_did_not_end_is_not_green_and_hides_no_fault() {
        let now = Instant::from_seconds(1_800_000_000);
        let result = |faults| Some(VerifyResult { at: now, faults, first: Some("damaged".to_owned()) });
        for (verified, error, expected) in [
            (None, None, ("not yet", "by the daemon", "calm")),
            (result(0), Some("no answer"), ("did not end", "no answer", "warn")),
            (None, Some("no\nanswer"), ("did not end", "no answer", "warn")),
            (result(2), Some("no answer"), ("2 faults", "damaged", "bad")),
        ] {
            let check_error = error.map(str::to_owned);
            let daemon = DaemonHealth { verified, check_error, ..DaemonHealth::unread(now, Shard::WHOLE) };
            let figure = last_check(&daemon, now, &Zone::utc());
            assert_eq!((figure.value.as_str(), figure.detail.as_str(), figure.class), expected);
        }
    }
}

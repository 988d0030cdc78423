//! The chain of lines: which line follows another, and what it changes.

use super::super::random::Nonce;
use super::super::{Body, DeviceDelta, Finding, FindingKind, SessionsRecord, StateError, TeamState, WindowState::*};
use super::rules::{FIRST, THIRD, file, files, part, quarantined, state, sum, window_file};
use super::*;
use crate::archive::ledger::line::{KIND_COMMIT, LINE_VERSION, LedgerLine};
use crate::model::{FileRole, LedgerSeq};

/// The next line of a state.
fn next_line(state: &TeamState) -> LedgerLine {
    LedgerLine {
        v: LINE_VERSION,
        archive_id: state.archive_id.clone(),
        team_id: state.team_id.clone(),
        seq: state.seq.next(),
        prev: state.head,
        at: now(),
        nonce: Nonce(7),
        kind: KIND_COMMIT.to_owned(),
        body: Body::default(),
    }
}

#[test]
fn a_line_follows_only_the_line_before_it() {
    let state = state();
    let good = || next_line(&state);
    let (seq, expected) = (state.seq.next(), state.head);
    assert_eq!(state.check_link(&good()), Ok(()));
    for (line, error) in [
        (
            LedgerLine { archive_id: "other".to_owned(), ..good() },
            StateError::ArchiveId { found: "other".to_owned(), expected: "archive-1".to_owned() },
        ),
        (
            LedgerLine { team_id: "other".into(), ..good() },
            StateError::TeamId { found: "other".into(), expected: team() },
        ),
        (LedgerLine { seq: state.seq, ..good() }, StateError::Seq { found: state.seq, expected: seq }),
        (LedgerLine { seq: seq.next(), ..good() }, StateError::Seq { found: seq.next(), expected: seq }),
        (LedgerLine { prev: sum(1), ..good() }, StateError::Chain { seq, found: sum(1), expected }),
        (LedgerLine { kind: "other".to_owned(), ..good() }, StateError::Kind { seq, kind: "other".to_owned() }),
    ] {
        assert_eq!(state.check_link(&line), Err(error.clone()));
        let mut same = state.clone();
        assert_eq!(same.try_follow(line, sum(9)), Err(error));
        assert_eq!(same, state, "a refused line changes nothing");
    }
}

#[test]
fn a_line_changes_only_its_declared_records() {
    let gap = |subject: &str, kind| Finding {
        stream: Some(Stream::Connections),
        kind,
        subject: subject.to_owned(),
        from: None,
        to: None,
        reason: String::new(),
        count: 1,
        found_at: now(),
    };
    let devices = |added: &[&str], removed: &[&str]| DeviceDelta {
        added: added.iter().map(|id| (*id).into()).collect(),
        removed: removed.iter().map(|id| (*id).into()).collect(),
        ..DeviceDelta::default()
    };
    let mark = SessionsMark { rules: 7, through: None, until: None };
    let begun = Body {
        devices: devices(&["a", "b"], &[]),
        findings: vec![gap("one", FindingKind::Gap), gap("two", FindingKind::Gap)],
        sessions: Some(SessionsRecord { mark, replaced: 0, replaced_digest: sum(0), added: 0, added_digest: sum(0) }),
        draft: Some(sum(1)),
        ..Body::default()
    };
    let before = state().try_advance(begun).unwrap();
    let wide = file(Stream::Connections, FileRole::Window, FIRST, 5, 9);
    let body = Body {
        devices: devices(&["c"], &["a"]),
        findings: vec![gap("one", FindingKind::GapClosed)],
        windows: vec![record(day("2026-11-03"), Settled, 4)],
        ..files(vec![wide.clone()], &[part()])
    };
    let mut state = before.clone();
    state.try_follow(LedgerLine { body, ..next_line(&before) }, sum(9)).unwrap();
    assert_eq!((state.seq, state.head, state.at), (before.seq.next(), sum(9), Some(now())));
    assert_eq!(state.gaps().map(|gap| gap.subject.as_str()).collect::<Vec<_>>(), ["two"]);
    assert_eq!(state.findings.last().map(|(seq, _)| *seq), Some(LedgerSeq(before.seq.0 + 1)));
    assert_eq!(state.devices, devices(&["b", "c"], &[]).added);
    assert_eq!((state.sessions, state.draft), (Some(mark), None));
    let paths: Vec<&String> = state.files.keys().collect();
    assert_eq!(
        paths,
        [&window_file().path, &wide.path, &quarantined().path]
            .into_iter()
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    );
    assert_eq!(state.windows[&(Stream::Connections, at(THIRD))], record(day("2026-11-03"), Settled, 4));
    assert_eq!(state.windows[&(Stream::Connections, at(FIRST))], record(day("2026-11-01"), Settled, 5));
    let unchanged = TeamState { streams: before.streams.clone(), ..state.clone() };
    assert_eq!(unchanged, state);
}

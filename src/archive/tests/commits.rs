//! The effect of a commit on files, state and later readers.

use object_server::ObjectServer;
use parquet::file::metadata::ParquetMetaDataReader;

use super::super::table::schema_of;
use super::super::{FindingKind, StateError};
use super::*;
use crate::model::FileRole;
use crate::store::{LocalStore, MemoryStore, s3};

/// Runs a test on every kind of store.
fn on_every_store(test: impl Fn(Arc<dyn Store>)) {
    test(Arc::new(MemoryStore::new()));
    let directory = tempfile::tempdir().unwrap();
    test(Arc::new(LocalStore::new(directory.path().join("archive"))));
    let server = ObjectServer::start();
    test(Arc::new(s3(&server)));
}

#[test]
fn a_history_reads_back_complete_after_every_step() {
    on_every_store(|store| {
        let archive = open(&store);
        let mut writer = writer(&archive);
        for (step, draft) in history().into_iter().enumerate() {
            let outcome = commit(&mut writer, draft).unwrap();
            assert!(matches!(outcome, Committed::Committed { .. }), "step {step}: {outcome:?}");
            assert_eq!(ids_in(&archive), ids_after(step + 1), "step {step}");
            assert_eq!(archive.read(&team()).unwrap().state(), writer.state(), "step {step}");
            let there = files_under(&store, "tables");
            assert!(writer.state().files.keys().all(|live| there.contains(live)), "step {step}");
            assert_eq!(files_under(&store, "scratch"), Vec::<String>::new(), "step {step}");
        }
        assert_eq!(archive.teams().unwrap(), vec![team()]);
    });
}

#[test]
fn the_path_of_a_file_follows_its_role() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let archive = open(&store);
    let mut writer = writer(&archive);
    let roles: [&[FileRole]; 6] = [
        &[FileRole::Part],
        &[FileRole::Part, FileRole::Part, FileRole::Part],
        &[FileRole::Window, FileRole::Window],
        &[FileRole::Window, FileRole::Day],
        &[FileRole::Day, FileRole::Month, FileRole::Amendment],
        &[FileRole::Day, FileRole::Month, FileRole::Amendment, FileRole::Amendment],
    ];
    for (draft, expected) in history().into_iter().zip(roles) {
        let _ = commit(&mut writer, draft).unwrap();
        let files = writer.state().files.values().filter(|f| f.dataset.as_str() == "connections");
        let mut found: Vec<FileRole> = files.map(|file| file.role).collect();
        found.sort_unstable();
        assert_eq!(found, expected);
    }
    for file in writer.state().files.values() {
        let prefix = match (file.dataset.as_str(), file.role) {
            ("quarantine", _) => "tables/quarantine/team=acme/month=2026-11/20261120t000000z-part-",
            ("inventory_computers", FileRole::Month) => {
                "tables/inventory_computers/team=acme/month=2026-10/20261001t000000z-month-"
            }
            ("inventory_computers", _) => "tables/inventory_computers/team=acme/month=2026-11/20261101t000000z-part-",
            (_, FileRole::Day) => "tables/connections/team=acme/month=2026-11/20261102t000000z-day-",
            (_, FileRole::Amendment) if file.rows == 1 => {
                "tables/connections/team=acme/month=2026-11/20261102t000000z-amendment-"
            }
            (_, FileRole::Month) => "tables/connections/team=acme/month=2026-11/20261101t000000z-month-",
            (_, FileRole::Amendment) => "tables/connections/team=acme/month=2026-11/20261101t000000z-amendment-",
            other => panic!("{other:?}"),
        };
        assert!(file.path.starts_with(prefix), "{}", file.path);
    }
    let rejects = writer.rows().rejects(Stream::Connections).unwrap();
    assert_eq!(rejects[0].digest, crate::model::Digest::of(b"{\"id\":\"odd\"\xff}"));
    assert_eq!(writer.rows().rejects(Stream::Activity).unwrap(), vec![]);
}

#[test]
fn an_empty_draft_writes_nothing() {
    on_every_store(|store| {
        let archive = committed(&store);
        let before = files_under(&store, "");
        let mut writer = writer(&archive);
        let head = writer.state().head;
        assert_eq!(commit(&mut writer, Draft::default()).unwrap(), Committed::Nothing);
        let idle = Draft { rows: vec![rows("2026-12-01", Vec::new(), true)], ..Draft::default() };
        assert_eq!(commit(&mut writer, idle).unwrap(), Committed::Nothing);
        let again = history().pop().unwrap();
        let seq = writer.state().seq;
        assert_eq!(commit(&mut writer, again).unwrap(), Committed::AlreadyCommitted { seq });
        assert_eq!((writer.state().head, files_under(&store, "")), (head, before));
    });
}

#[test]
fn a_draft_with_other_bytes_under_equal_ids_is_another_draft() {
    on_every_store(|store| {
        let mut writer = writer(&open(&store));
        let draft = |raw: &'static [u8]| {
            let row = EventRow { raw: raw.into(), ..event("e", day("2026-11-02").start) };
            Draft { rows: vec![rows("2026-11-02", vec![row], false)], ..Draft::default() }
        };
        let (first, other) = (draft(b"{\"id\":\"e\",\"n\":1}"), draft(b"{\"id\":\"e\",\"n\":2}"));
        assert!(matches!(commit(&mut writer, first.clone()).unwrap(), Committed::Committed { .. }));
        let seq = writer.state().seq;
        assert_eq!(commit(&mut writer, first).unwrap(), Committed::AlreadyCommitted { seq });
        assert!(matches!(commit(&mut writer, other).unwrap(), Committed::Committed { .. }));
        assert_eq!(writer.state().seq, seq.next());
    });
}

#[test]
fn a_second_writer_is_refused_until_the_first_one_ends() {
    on_every_store(|store| {
        let archive = open(&store);
        let held = writer(&archive);
        let second = archive.writer(&team()).err();
        assert!(matches!(second, Some(ArchiveError::Locked { .. })), "{second:?}");
        assert!(archive.writer(&TeamId::from("other")).is_ok());
        drop(held);
        assert!(archive.writer(&team()).is_ok());
    });
}

#[test]
fn a_refused_draft_changes_nothing_and_the_writer_continues() {
    on_every_store(|store| {
        let archive = open(&store);
        let mut writer = writer(&archive);
        let mut steps = history().into_iter();
        for draft in steps.by_ref().take(3) {
            let _ = commit(&mut writer, draft).unwrap();
        }
        let (before, files) = (writer.state().clone(), files_under(&store, "ledger"));
        let first = "2026-11-01";
        let back =
            Draft::from(Body { windows: vec![record(day(first), WindowState::Provisional, 7)], ..Body::default() });
        let stranger = Draft { rows: vec![rows("2026-11-03", events(first, 0, 1), false)], ..Draft::default() };
        let twice = [events(first, 9, 1), events(first, 9, 1)].concat();
        let doubled = Draft { rows: vec![rows(first, twice, false)], ..Draft::default() };
        let early = Draft::from(Body { sealed_months: vec![(Stream::Connections, november())], ..Body::default() });
        for (draft, is_state) in [(back, true), (stranger, false), (doubled, false), (early, true)] {
            let error = commit(&mut writer, draft).unwrap_err();
            assert_eq!(matches!(error, ArchiveError::State { .. }), is_state, "{error}");
            assert!(!error.needs_reopen(), "{error}");
            assert_eq!((writer.state(), &files_under(&store, "ledger")), (&before, &files));
        }
        let _ = commit(&mut writer, steps.next().unwrap()).unwrap();
        assert_eq!(ids_in(&archive), ids_after(4));
    });
}

#[test]
fn a_clock_set_back_does_not_reorder_the_ledger() {
    on_every_store(|store| {
        let archive = open(&store);
        let mut writer = writer(&archive);
        let mut steps = history().into_iter();
        let earlier = at("2026-11-18T00:00:00Z");
        let _ = writer.commit(steps.next().unwrap(), now()).unwrap();
        let _ = writer.commit(steps.next().unwrap(), earlier).unwrap();
        assert_eq!(files_under(&store, "ledger"), ["ledger/team=acme/2026-11-20.jsonl"]);
        let regressions = |writer: &TeamWriter| {
            let findings = writer.state().findings.iter();
            let of_clock = findings.filter(|(_, finding)| finding.kind == FindingKind::ClockRegression);
            of_clock.map(|(seq, finding)| (seq.0, finding.subject.clone())).collect::<Vec<_>>()
        };
        assert_eq!(
            regressions(&writer),
            [(2, "commit 1".to_owned())],
            "the line with the earlier time reports the clock regression"
        );
        let _ = writer.commit(Draft::default(), at("2026-11-17T00:00:00Z")).unwrap();
        drop(writer);
        let mut writer = archive.writer(&team()).unwrap();
        let _ = writer.commit(steps.next().unwrap(), at("2026-11-21T00:00:00Z")).unwrap();
        assert_eq!(regressions(&writer).len(), 1, "once");
        assert_eq!(files_under(&store, "ledger").len(), 2);
        assert_eq!(archive.read(&team()).unwrap().state(), writer.state());
        assert_eq!(ids_in(&archive), ids_after(3));
    });
}

#[test]
fn another_version_and_a_missing_manifest_are_refused() {
    let store = MemoryStore::new();
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    assert!(matches!(Archive::open(Arc::clone(&shared)).err(), Some(ArchiveError::NotAnArchive)));
    let _ = committed(&shared);
    let manifest = store.read("archive.json").unwrap().to_bytes().unwrap();
    store.tamper("archive.json", None);
    let error = Archive::open_or_create(Arc::clone(&shared), || panic!("no new id")).err().unwrap();
    assert!(matches!(error, ArchiveError::ManifestMissing { .. }), "{error}");
    for other in [0, 1, 2, 4] {
        let text = String::from_utf8(manifest.to_vec()).unwrap();
        let text = text.replace("\"version\": 3", &format!("\"version\": {other}"));
        store.tamper("archive.json", Some(text.into()));
        let error = Archive::open(Arc::clone(&shared)).err().unwrap().to_string();
        assert!(
            error.starts_with(&format!("archive.json: format version {other}, but this program knows version 3: ")),
            "{error}"
        );
    }
}

/// Other engines find columns by these numbers.
#[test]
fn every_column_of_every_file_has_the_field_id_of_its_dataset() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let state = committed(&store).read(&team()).unwrap().state().clone();
    let mut seen = std::collections::BTreeSet::new();
    for file in state.files.values() {
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&store.read(&file.path).unwrap()).unwrap();
        let fields = metadata.file_metadata().schema().get_fields().iter();
        let found: Vec<_> = fields.map(|field| (field.get_basic_info().id(), field.name().to_owned())).collect();
        let schema = schema_of(file.dataset);
        let expected = (1..).zip(schema.fields()).map(|(id, field)| (id, field.name().to_owned())).collect::<Vec<_>>();
        assert_eq!(found, expected, "{}", file.path);
        seen.insert(file.dataset);
    }
    assert!(seen.len() >= 3, "{seen:?}");
}

#[test]
fn equal_rows_and_random_numbers_make_equal_files() {
    let paths = |open: fn(&Arc<dyn Store>) -> Archive| {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let mut writer = writer(&open(&store));
        for draft in history() {
            let _ = commit(&mut writer, draft).unwrap();
        }
        (writer.state().head, files_under(&store, ""))
    };
    assert_eq!(paths(open_same), paths(open_same));
    let ((_, one), (_, other)) = (paths(open), paths(open));
    let shared: Vec<&String> = one.iter().filter(|path| other.contains(path)).collect();
    assert_eq!(shared, ["archive.json", "ledger/team=acme/2026-11-20.jsonl", "snapshots/team=acme/1.json"]);
}

#[test]
fn an_overlap_is_refused_with_both_windows() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let archive = open(&store);
    let mut writer = writer(&archive);
    let whole = day("2026-11-01");
    let (_, half) = whole.halves().unwrap();
    let windows = vec![record(whole, WindowState::Provisional, 0), record(half, WindowState::Provisional, 0)];
    let error = commit(&mut writer, Draft::from(Body { windows, ..Body::default() })).unwrap_err();
    let ArchiveError::State { source: StateError::Overlap { .. }, .. } = error else { panic!("{error}") };
}

/// A daemon runs while somebody moves its archive away, or while its volume is not mounted.
#[test]
fn a_writer_begins_no_second_ledger_where_the_archive_was() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("archive");
    let archive = committed(&(Arc::new(LocalStore::new(&root)) as Arc<dyn Store>));
    let other = TeamId::from("other");
    std::fs::rename(&root, directory.path().join("moved")).unwrap();
    for team in [team(), other.clone()] {
        assert!(matches!(archive.writer(&team).err(), Some(ArchiveError::Store(_))), "{team}");
    }
    assert!(!root.try_exists().unwrap(), "the writer creates nothing");
    std::fs::create_dir(&root).unwrap();
    for team in [team(), other.clone()] {
        assert!(matches!(archive.writer(&team).err(), Some(ArchiveError::NotAnArchive)), "{team}");
    }
    std::fs::remove_dir_all(&root).unwrap();
    let _ = Archive::open_or_create(Arc::new(LocalStore::new(&root)), || "archive-2".to_owned()).unwrap();
    assert!(matches!(archive.writer(&other).err(), Some(ArchiveError::NotAnArchive)), "another archive lies there");
    std::fs::remove_dir_all(&root).unwrap();
    std::fs::rename(directory.path().join("moved"), &root).unwrap();
    assert_eq!(archive.writer(&team()).unwrap().state().seq.0, history().len() as u64);
    assert!(archive.writer(&other).is_ok(), "a new team of the archive");
}

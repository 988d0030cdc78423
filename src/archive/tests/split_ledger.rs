//! The ledger lies elsewhere than the data: the archive works as usual, and refuses a wrong place of the ledger.

use std::path::Path;

use super::super::{FaultCode, VerifyOptions, verify};
use super::*;
use crate::model::GRACE_LOCAL;
use crate::model::path::{LEDGER_MANIFEST, MANIFEST, is_in_ledger};
use crate::store::{Fault, FaultyStore, LocalStore, SplitStore, get, put};

/// An archive's two places.
#[derive(Clone, Default)]
struct Places {
    data: MemoryStore,
    ledger: MemoryStore,
}

impl Places {
    fn store(&self) -> Arc<dyn Store> {
        split(&self.data, &self.ledger)
    }

    /// Both disks after a crash at this moment.
    fn snapshot(&self) -> Self {
        Self { data: self.data.snapshot(), ledger: self.ledger.snapshot() }
    }
}

fn split(data: &MemoryStore, ledger: &MemoryStore) -> Arc<dyn Store> {
    Arc::new(SplitStore::new(Arc::new(data.clone()), Arc::new(ledger.clone())))
}

fn whole(store: &MemoryStore) -> Arc<dyn Store> {
    Arc::new(store.clone())
}

fn begin(store: Arc<dyn Store>) -> Result<Archive, ArchiveError> {
    Archive::open_or_create(store, || "archive-1".to_owned())
}

fn is_clean(store: &Arc<dyn Store>) {
    let report = verify(store.as_ref(), &VerifyOptions::default()).unwrap();
    assert!(report.is_clean(), "{:?}", report.faults);
}

#[test]
fn a_history_is_the_same_with_the_ledger_elsewhere() {
    let places = Places::default();
    let archive = committed(&places.store());
    assert_eq!(ids_in(&archive), ids_after(history().len()));
    is_clean(&places.store());
    let paths = |store: &MemoryStore| files_under(&whole(store), "");
    assert!(paths(&places.data).iter().all(|path| !is_in_ledger(path)));
    assert!(paths(&places.ledger).iter().all(|path| is_in_ledger(path)));
    let manifest = get(&places.data, MANIFEST).unwrap();
    assert!(String::from_utf8_lossy(&manifest).contains("\"ledger\": \"elsewhere\""), "{manifest:?}");
    // Vacuum removes replaced files, and nothing of the ledger.
    let (files, lines) = (paths(&places.data).len(), paths(&places.ledger));
    for store in [&places.data, &places.ledger] {
        store.set_now(store.now().unwrap().plus(Duration::from_secs(10 * 86_400)));
    }
    let _ = writer(&open(&places.store())).vacuum(now()).unwrap();
    assert!(paths(&places.data).len() < files);
    assert_eq!(paths(&places.ledger), lines);
    is_clean(&places.store());
}

#[test]
fn a_history_is_the_same_on_two_directories() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| Arc::new(LocalStore::new(directory.path().join(name)));
    let store: Arc<dyn Store> = Arc::new(SplitStore::new(place("data"), place("ledger")));
    let archive = committed(&store);
    assert_eq!(ids_in(&archive), ids_after(history().len()));
    is_clean(&store);
    let is_there = |path: &str| Path::new(directory.path()).join(path).try_exists().unwrap();
    assert!(is_there("ledger/ledger/archive.json") && is_there("data/archive.json") && !is_there("data/ledger"));
    // A lock of either directory fences other processes.
    let _writer = writer(&archive);
    let other: Arc<dyn Store> = Arc::new(SplitStore::new(place("data"), place("ledger")));
    assert!(matches!(open(&other).writer(&team()).err(), Some(ArchiveError::Locked { .. })));
}

/// Changes an archive's places, and opens them in some way.
type Case = (&'static str, fn(&Places) -> Arc<dyn Store>, fn(&ArchiveError) -> bool);

#[test]
fn a_wrong_place_of_the_ledger_is_refused() {
    let cases: [Case; 5] = [
        ("the key is missing", |places| whole(&places.data), |e| matches!(e, ArchiveError::LedgerElsewhere)),
        (
            "the key names an empty place",
            |places| split(&places.data, &MemoryStore::new()),
            |e| matches!(e, ArchiveError::LedgerMissing),
        ),
        (
            "the key names the ledger of another archive",
            |places| {
                let ledger = MemoryStore::new();
                Archive::open_or_create(split(&MemoryStore::new(), &ledger), || "archive-2".to_owned()).unwrap();
                split(&places.data, &ledger)
            },
            |e| matches!(e, ArchiveError::OtherLedger { found } if found == "archive-2"),
        ),
        (
            "the archive has its ledger inside",
            |_| {
                let inside = MemoryStore::new();
                committed(&whole(&inside));
                split(&inside, &MemoryStore::new())
            },
            |e| matches!(e, ArchiveError::LedgerInside),
        ),
        (
            "the manifest of the ledger is gone",
            |places| {
                places.ledger.remove(&[LEDGER_MANIFEST]).unwrap();
                places.store()
            },
            |e| matches!(e, ArchiveError::LedgerMissing),
        ),
    ];
    let places = Places::default();
    committed(&places.store());
    for (name, of, is_expected) in cases {
        let store = of(&places.snapshot());
        let before = store.list("").unwrap();
        for error in [Archive::open(store.clone()).unwrap_err(), begin(store.clone()).unwrap_err()] {
            assert!(is_expected(&error) && error.is_wrong_ledger(), "{name}: {error}");
            assert!(!error.to_string().contains('\n'), "{name}: {error}");
        }
        assert_eq!(store.list("").unwrap(), before, "{name}: something was written");
        let report = verify(store.as_ref(), &VerifyOptions::default()).unwrap();
        assert!(report.faults.iter().any(|fault| fault.code == FaultCode::Manifest), "{name}: {:?}", report.faults);
    }
}

#[test]
fn a_new_archive_never_begins_in_the_ledger_of_another() {
    let places = Places::default();
    committed(&places.store());
    let used = begin(split(&MemoryStore::new(), &places.ledger)).unwrap_err();
    assert!(matches!(&used, ArchiveError::OtherLedger { found } if found == "archive-1"), "{used}");
    let inside = begin(whole(&places.ledger)).unwrap_err();
    assert!(matches!(&inside, ArchiveError::ManifestMissing { .. }), "{inside}");
    assert!(Archive::is_at(&places.ledger) && Archive::is_at(&places.data) && !Archive::is_at(&MemoryStore::new()));
    // A place with lines but without a manifest is refused, too.
    let lines = MemoryStore::new();
    put(&lines, "ledger/team=team-one/2026-11-20.jsonl", b"a line\n").unwrap();
    let old = begin(split(&MemoryStore::new(), &lines)).unwrap_err();
    assert!(matches!(&old, ArchiveError::ManifestMissing { .. }), "{old}");
}

/// A copy is whole, and a copy into two places divides it.
#[test]
fn a_copy_joins_or_divides_the_places() {
    let places = Places::default();
    committed(&places.store());
    let copy = |from: Arc<dyn Store>, to: Arc<dyn Store>| {
        let copy = super::super::Copy::new(Archive::open(from).unwrap(), to.clone(), GRACE_LOCAL).unwrap();
        copy.team(&team(), &|_| {}).unwrap();
        is_clean(&to);
        assert_eq!(ids_in(&Archive::open(to).unwrap()), ids_after(history().len()));
    };
    let (one, two) = (MemoryStore::new(), Places::default());
    copy(places.store(), whole(&one));
    copy(whole(&one), two.store());
    let ledgers = |store: &MemoryStore| files_under(&whole(store), "ledger/team=team-one");
    assert_eq!((ledgers(&two.ledger), ledgers(&two.data)), (ledgers(&places.ledger), vec![]));
}

/// Creates the archive and commits one step.
fn live(store: &Arc<dyn Store>) -> Result<(), ArchiveError> {
    let archive = begin(store.clone())?;
    let mut writer = archive.writer(&team())?;
    let draft = with_sessions(&mut writer, history().swap_remove(0))?;
    writer.commit(draft, now()).map(|_| ())
}

/// Any operation can fail first: the same configuration continues the creation, and begins no second ledger.
#[test]
fn a_creation_cut_off_anywhere_continues() {
    let counting = FaultyStore::new(Places::default().store(), u64::MAX, false, Fault::Failed);
    live(&(Arc::new(counting.clone()) as Arc<dyn Store>)).unwrap();
    for verb in 0..counting.verbs() {
        for (fault, forever) in [Fault::Failed, Fault::FailedButDone].into_iter().flat_map(|f| [(f, false), (f, true)])
        {
            let case = format!("verb {verb}, {fault:?}, forever {forever}");
            let places = Places::default();
            let faulty: Arc<dyn Store> = Arc::new(FaultyStore::new(places.store(), verb, forever, fault));
            let _ = live(&faulty);
            drop(faulty);
            let places = places.snapshot();
            let other = begin(split(&places.data, &MemoryStore::new()));
            let has_salts = !places.data.list("salts").unwrap().is_empty();
            assert!(!has_salts || other.is_err(), "{case}: a second ledger began");
            let archive = begin(places.store()).unwrap_or_else(|e| panic!("{case}: {e}"));
            let mut writer = writer(&archive);
            if writer.state().seq.0 == 0 {
                let draft = with_sessions(&mut writer, history().swap_remove(0)).unwrap();
                let _ = commit(&mut writer, draft).unwrap();
            }
            drop(writer);
            assert_eq!(ids_in(&archive), ids_after(1), "{case}");
            is_clean(&places.store());
        }
    }
}

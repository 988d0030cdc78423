//! The exact number of syncs of a commit on a local disk. Each sync has its reason, so a commit syncs no more often.

use std::path::Path;

use super::*;
use crate::store::{LocalStore, Syncs, syncs_of};

const DATE: &str = "2026-11-19";

/// Why a commit syncs files and directories.
#[derive(Debug, Clone, Copy, Default)]
struct Reasons {
    /// New data files, salts and snapshots. The content of each is synced, and then the directory with its name.
    files: usize,
    /// The line, and its signature if a key is configured. The content of the day's file is synced.
    appends: usize,
    /// The first line or signature of a day. The directory with the new name of the day's file is synced.
    day_files: usize,
    /// New directories. The directory above each is synced, which makes its name durable.
    directories: usize,
    /// Directories from which an old snapshot is removed. Each is synced once, for all of its removals.
    removals: usize,
}

impl Reasons {
    fn syncs(self) -> Syncs {
        let Self { files, appends, day_files, directories, removals } = self;
        Syncs { files: files + appends, directories: files + day_files + directories + removals }
    }
}

/// The `nth` event of each of these streams.
fn draft(streams: &[Stream], nth: u64) -> Draft {
    let row = |stream: &Stream| {
        let event = events(DATE, nth, 1).swap_remove(0);
        let detail = match stream {
            Stream::Activity => Detail::Activity { token_info: None, payload: None },
            Stream::Billing => Detail::Billing { payload: None },
            Stream::Connections => event.detail.clone(),
        };
        WindowRows::new(*stream, day(DATE), vec![EventRow { detail, ..event }], false)
    };
    let window = |stream: &Stream| WindowRecord { reads: 1, events: nth + 1, ..WindowRecord::new(*stream, day(DATE)) };
    Draft {
        body: Body { windows: streams.iter().map(window).collect(), ..Body::default() },
        rows: streams.iter().map(row).collect(),
        ..Draft::default()
    }
}

fn directories_in(root: &Path) -> usize {
    let below = std::fs::read_dir(root).unwrap().map(Result::unwrap);
    below.filter(|entry| entry.file_type().unwrap().is_dir()).map(|entry| 1 + directories_in(&entry.path())).sum()
}

fn assert_syncs(what: &str, writer: &mut TeamWriter, draft: Draft, at: Instant, expected: Reasons) {
    let syncs = syncs_of(|| {
        let _ = writer.commit(draft, at).unwrap();
    });
    assert_eq!(syncs, expected.syncs(), "{what}: {expected:?}");
}

#[test]
fn a_commit_on_a_local_disk_syncs_only_for_a_reason() {
    let root = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(LocalStore::new(root.path()));
    let archive = open(&store);
    let mut writer = writer(&archive);
    let (one, three) = ([Stream::Connections], Stream::ALL);
    let tomorrow = now().plus(Duration::from_secs(86_400));

    let before = directories_in(root.path());
    let first = syncs_of(|| {
        let _ = commit(&mut writer, draft(&one, 0)).unwrap();
    });
    // A file of rows, two salts (of November, and of the digests of drafts) and the first snapshot.
    let directories = directories_in(root.path()) - before;
    let expected = Reasons { files: 4, appends: 1, day_files: 1, directories, removals: 0 };
    assert_eq!(first, expected.syncs(), "the first commit: {expected:?}");
    let _ = commit(&mut writer, draft(&three, 1)).unwrap();

    let known = Reasons { appends: 1, ..Reasons::default() };
    assert_syncs("one stream", &mut writer, draft(&one, 2), now(), Reasons { files: 1, ..known });
    assert_syncs("three streams", &mut writer, draft(&three, 3), now(), Reasons { files: 3, ..known });
    let expected = Reasons { files: 1, day_files: 1, ..known };
    assert_syncs("one stream, the next day", &mut writer, draft(&one, 4), tomorrow, expected);
    assert_syncs("the same draft again", &mut writer, draft(&one, 4), tomorrow, Reasons::default());
    assert_syncs("an empty poll", &mut writer, Draft::default(), tomorrow, Reasons::default());
}

#[test]
fn a_signature_and_a_snapshot_are_synced_once_each() {
    let root = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(LocalStore::new(root.path()));
    let archive = open(&store).snapshots_every(1).with_signer(Some(Arc::new(signing::signer(4))));
    let mut writer = writer(&archive);
    for nth in 0..2 {
        let _ = commit(&mut writer, draft(&[Stream::Connections], nth)).unwrap();
    }
    // A file of rows and a snapshot; the line and its signature; the oldest of three snapshots goes.
    let expected = Reasons { files: 2, appends: 2, removals: 1, ..Reasons::default() };
    assert_syncs("a signed line with a snapshot", &mut writer, draft(&[Stream::Connections], 2), now(), expected);
}

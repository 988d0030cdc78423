//! Slow readers, beside commits and a vacuum. Within the grace a reader finishes with the rows of its line (S4). Later it sees the
//! same rows, or an error names a file that is gone. It never sees other rows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use annals::archive::{Archive, ArchiveError, TeamReader};
use annals::clock::Clock;
use annals::model::{Digest, Instant, Range, Stream, TeamId};
use annals::store::{MemoryStore, Store};
use futures::future::join_all;

use super::faults::{Fault, Rare};
use super::run::Run;

/// How often each row is there.
type Rows = BTreeMap<String, u64>;

struct SlowReader {
    reader: TeamReader,
    began: Instant,
    /// The rows at its beginning.
    rows: Rows,
}

/// The events, the quarantined events and the open sessions that a reader sees.
fn rows_of(reader: &TeamReader) -> Result<Rows, ArchiveError> {
    let mut rows = Rows::new();
    let all = Range::new(Instant::from_nanos(i64::MIN), Instant::from_nanos(i64::MAX));
    for stream in Stream::ALL {
        reader.rows().rows_in(stream, all, &mut |row| {
            let digest = row.served_digest.unwrap_or_else(|| Digest::of(&row.raw));
            *rows.entry(format!("{stream} {} {} {digest}", row.event_id, row.revision)).or_default() += 1;
            Ok(())
        })?;
        for reject in reader.rows().rejects(stream)? {
            *rows.entry(format!("{stream} {} {}", reject.event_id, reject.digest)).or_default() += 1;
        }
    }
    for session in reader.rows().open_sessions(|_| true)? {
        *rows.entry(format!("{:?}", session.row)).or_default() += 1;
    }
    Ok(rows)
}

fn open(files: &MemoryStore, team: &TeamId) -> Result<TeamReader, ArchiveError> {
    Archive::open(Arc::new(files.clone()))?.read(team)
}

impl Run {
    /// The planned slow readers of this process's life.
    pub async fn slow_readers(&self, archive: Arc<Archive>) {
        let now = self.clock.truth().seconds();
        let due = self.plan.readers.iter().filter(|(from, _)| *from >= now);
        join_all(due.map(|(from, seconds)| {
            let (wait, archive) = (Duration::from_secs((from - now).unsigned_abs()), archive.clone());
            async move {
                self.clock.sleep(wait).await;
                let begun = self.begin_readers();
                self.clock.sleep(Duration::from_secs(seconds.unsigned_abs())).await;
                for (team, reader) in begun {
                    // Somebody vacuums by hand, and another writer's lock can refuse it.
                    let _ = archive.writer(&team).and_then(|mut writer| writer.vacuum(self.clock.now()));
                    self.finish_reader(&team, &reader);
                }
            }
        }))
        .await;
    }

    fn begin_readers(&self) -> Vec<(TeamId, SlowReader)> {
        // Before the first sync there is no archive.
        let Ok(archive) = Archive::open(Arc::new(self.files.clone())) else { return Vec::new() };
        let began = self.clock.truth();
        let begin = |team: TeamId| {
            let begun = open(&self.files, &team).and_then(|reader| Ok((rows_of(&reader)?, reader)));
            match begun {
                Ok((rows, reader)) => Some((team, SlowReader { reader, began, rows })),
                Err(error) => {
                    self.reader_breaks(format!("S1: a reader of {team} cannot begin at {began}: {error}"));
                    None
                }
            }
        };
        archive.teams().unwrap_or_default().into_iter().filter_map(begin).collect()
    }

    fn finish_reader(&self, team: &TeamId, SlowReader { reader, began, rows }: &SlowReader) {
        let (now, seed) = (self.clock.truth(), self.plan.seed);
        let seq = reader.state().seq;
        if open(&self.files, team).is_ok_and(|newer| newer.state().seq > seq) {
            self.disk.inner().coverage.fault(Fault::SlowReader, seed);
        }
        let reader_of = format!("a reader of {team} at line {seq}, from {began} to {now},");
        match rows_of(reader) {
            Ok(found) if found == *rows => {}
            Ok(_) => self.reader_breaks(format!("S4: {reader_of} sees other rows at its end")),
            Err(error) if now.since(*began) <= self.plan.grace => {
                self.reader_breaks(format!("S4: {reader_of} cannot finish within the grace: {error}"));
            }
            Err(error) => {
                let text = error.to_string();
                let mut gone = reader.state().files.keys().filter(|path| self.files.read(path).is_err());
                match gone.any(|path| text.contains(path.as_str())) {
                    true => self.disk.inner().coverage.rare(Rare::ReaderRefused, seed),
                    false => self.reader_breaks(format!("S4: {reader_of} gets no error that names a file: {text}")),
                }
            }
        }
    }

    fn reader_breaks(&self, law: String) {
        self.disk.inner().broken.push(law);
    }
}

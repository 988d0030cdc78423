//! The store over memory: it fails, lies, flips bits, and loses power as the plan has it. What it has answered `Ok` for
//! stays; what was under way when the power went is kept, torn, zeroed or gone.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use annals::archive::{Blob, FaultyStore, FileWriter, Guard, Listed, MemoryStore, Store, StoreError, Tail};
use bytes::Bytes;

use super::clock::SimClock;
use super::draw::Draw;
use super::faults::{Coverage, Fault, Rare};
use super::plan::{Deadly, Plan};
use super::readers::{Notes, Readers, SNAPSHOTS};
use super::trace::Trace;

/// What the disk remembers beyond the life of a process.
pub struct Disk {
    pub plan: Arc<Plan>,
    pub clock: Arc<SimClock>,
    pub trace: Arc<Trace>,
    pub inner: Mutex<Remembered>,
}

pub struct Remembered {
    pub coverage: Coverage,
    /// Laws that were broken.
    pub broken: Vec<String>,
    /// When a verb failed, in nanoseconds.
    pub failures: Vec<i64>,
    chance: Draw,
    /// Ledger files as they were acknowledged.
    pub acknowledged: BTreeMap<String, Bytes>,
    /// Sealed files as they were acknowledged.
    sealed: BTreeMap<String, Bytes>,
    /// Power goes in the verb of this kind, so many later; whether what is under way is torn.
    pub deadly: Option<(Deadly, u64, bool)>,
    pub is_dead: bool,
    /// The last append found its bytes there already: a writer is being opened.
    is_recovering: bool,
    readers: Readers,
}

impl Disk {
    pub fn new(plan: Arc<Plan>, clock: Arc<SimClock>, trace: Arc<Trace>) -> Arc<Self> {
        let inner = Remembered {
            coverage: Coverage::default(),
            broken: Vec::new(),
            failures: Vec::new(),
            chance: Draw::of(plan.seed, "disk"),
            acknowledged: BTreeMap::new(),
            sealed: BTreeMap::new(),
            deadly: None,
            is_dead: false,
            is_recovering: false,
            readers: Readers::default(),
        };
        Arc::new(Self { plan, clock, trace, inner: Mutex::new(inner) })
    }

    pub fn inner(&self) -> MutexGuard<'_, Remembered> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every acknowledged line stands, and every sealed file is as it was.
    pub fn check(&self, files: &MemoryStore) -> Vec<String> {
        let inner = self.inner();
        let mut broken = Vec::new();
        let content = |path: &str| files.read(path).ok().and_then(|blob| blob.to_bytes().ok()).unwrap_or_default();
        for (path, bytes) in &inner.acknowledged {
            if !content(path).starts_with(bytes) {
                broken.push(format!("I6: {path} does not begin with the {} bytes that were acknowledged", bytes.len()));
            }
        }
        for (path, bytes) in &inner.sealed {
            if content(path) != *bytes {
                broken.push(format!("I7: {path} was sealed, and has changed"));
            }
        }
        broken
    }
}

impl Disk {
    /// Readers beside the writer: of the team that a path is of, or of all.
    pub fn look(&self, files: &MemoryStore, of: Option<&str>) {
        let mut inner = self.inner();
        let Remembered { readers, coverage, broken, .. } = &mut *inner;
        readers.look(files, of, &mut Notes { seed: self.plan.seed, coverage, broken });
    }
}

/// One process's view of the disk.
#[derive(Clone)]
pub struct SimStore {
    pub disk: Arc<Disk>,
    pub files: MemoryStore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Create,
    Write,
    Sync,
    Read,
    List,
    Publish,
    Remove,
    Append,
}

/// What happens to a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    /// Nothing is done, and that is known.
    Refused,
    /// Nothing is done.
    Failed,
    /// It is done, and the answer says that it failed.
    FailedButDone,
    /// A bit is not what it was.
    Flipped,
    /// The power goes before, in the middle of, or after it.
    Dies(u64),
    Dead,
}

impl SimStore {
    fn fate(&self, act: Act, path: &str) -> Fate {
        let now = self.disk.clock.truth();
        let mut inner = self.disk.inner();
        if inner.is_dead {
            return Fate::Dead;
        }
        let fate = self.drawn(&mut inner, act, path);
        if fate != Fate::Done {
            inner.failures.push(now.nanos());
            if path.starts_with(SNAPSHOTS) {
                inner.readers.expect();
            }
            self.disk.trace.note(now, || format!("store: {act:?} {path}: {fate:?}"));
        }
        fate
    }

    fn drawn(&self, inner: &mut Remembered, act: Act, path: &str) -> Fate {
        if let Some((deadly, after, is_torn)) = inner.deadly {
            let is_it = match deadly {
                Deadly::Any => true,
                Deadly::Publish => act == Act::Publish,
                Deadly::Remove => act == Act::Remove,
                Deadly::Snapshot => path.starts_with(SNAPSHOTS),
            };
            if is_it && after == 0 {
                inner.is_dead = true;
                return Fate::Dies(if is_torn { inner.chance.below(4) } else { inner.chance.below(2) });
            }
            inner.deadly = Some((deadly, after - u64::from(is_it), is_torn));
        }
        let (now, seed) = (self.disk.clock.truth().seconds(), self.disk.plan.seed);
        let is_change = !matches!(act, Act::Read | Act::List);
        for spell in self.disk.plan.spells.iter().filter(|spell| spell.from <= now && now < spell.until) {
            let fate = match (spell.fault, act) {
                (Fault::DiskFull, Act::Create | Act::Write) => Fate::Failed,
                (Fault::DiskFull, Act::Append) => Fate::Refused,
                (Fault::DiskErrors, Act::Write) => continue,
                (Fault::DiskErrors, _) if is_change && inner.chance.is(50) => Fate::FailedButDone,
                (Fault::DiskErrors, _) => Fate::Failed,
                (Fault::AppendButDone, Act::Append) => Fate::FailedButDone,
                (Fault::WriteFails, Act::Write | Act::Sync) => Fate::Failed,
                (Fault::BitFlip, Act::Write) => Fate::Flipped,
                _ => continue,
            };
            if spell.percent == 100 || inner.chance.is(spell.percent) {
                inner.coverage.fault(spell.fault, seed);
                return fate;
            }
        }
        Fate::Done
    }

    fn run<T>(&self, act: Act, path: &str, done: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        match self.fate(act, path) {
            Fate::Done | Fate::Flipped => done(),
            Fate::FailedButDone => {
                done()?;
                Err(failed(path, false))
            }
            Fate::Dies(how) => {
                if how % 2 == 1 {
                    done()?;
                }
                Err(failed(path, false))
            }
            Fate::Refused => Err(failed(path, true)),
            Fate::Failed | Fate::Dead => Err(failed(path, false)),
        }
    }

    fn rare(&self, state: Rare) {
        let seed = self.disk.plan.seed;
        self.disk.inner().coverage.rare(state, seed);
    }

    fn content(&self, path: &str) -> Bytes {
        self.files.read(path).ok().and_then(|blob| blob.to_bytes().ok()).unwrap_or_default()
    }

    fn tear(&self, path: &str, kept: &[u8], bytes: &[u8], how: u64) {
        let part = bytes.len() / 2;
        let torn = match how {
            0 => return,
            1 => [kept, bytes].concat(),
            2 => [kept, &bytes[..part]].concat(),
            _ => [kept, &vec![0; bytes.len()]].concat(),
        };
        self.files.tamper(path, Some(torn.into()));
    }

    /// A file that is sealed never changes: months of events.
    fn is_sealed(path: &str) -> bool {
        let is_of_events =
            ["activity", "connections", "billing"].iter().any(|of| path.starts_with(&format!("tables/{of}/")));
        is_of_events && ["-day-", "-month-", "-amendment-"].iter().any(|role| path.contains(role))
    }
}

/// What a verb that failed answers.
fn failed(path: &str, undone: bool) -> StoreError {
    let fault = if undone { annals::archive::Fault::FailedUndone } else { annals::archive::Fault::Failed };
    let store = FaultyStore::new(Arc::new(MemoryStore::new()), 0, false, fault);
    store.remove(path).expect_err("its first verb fails")
}

impl Store for SimStore {
    fn create(&self, path: &str) -> Result<Box<dyn FileWriter>, StoreError> {
        let inner = self.run(Act::Create, path, || self.files.create(path))?;
        Ok(Box::new(SimWriter { store: self.clone(), inner: Some(inner), path: path.to_owned(), content: Vec::new() }))
    }

    fn read(&self, path: &str) -> Result<Blob, StoreError> {
        self.run(Act::Read, path, || self.files.read(path))
    }

    fn list(&self, directory: &str) -> Result<Vec<Listed>, StoreError> {
        self.run(Act::List, directory, || self.files.list(directory))
    }

    fn publish(&self, from: &str, to: &str) -> Result<(), StoreError> {
        if self.disk.inner().is_recovering && self.files.read(from).is_ok() {
            self.rare(Rare::RollForward);
        }
        self.run(Act::Publish, to, || self.files.publish(from, to))?;
        let content = self.content(to);
        let mut inner = self.disk.inner();
        if Self::is_sealed(to) {
            let before = inner.sealed.insert(to.to_owned(), content.clone());
            if before.is_some_and(|before| before != content) {
                inner.broken.push(format!("I7: {to} was sealed, and is written again"));
            }
        }
        Ok(())
    }

    fn remove(&self, path: &str) -> Result<(), StoreError> {
        if Self::is_sealed(path) {
            self.disk.inner().broken.push(format!("I7: {path} is sealed, and is taken away"));
        }
        self.run(Act::Remove, path, || self.files.remove(path))
    }

    fn append(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError> {
        if tail.torn > 0 {
            self.rare(Rare::TornLine);
        }
        let fate = self.fate(Act::Append, path);
        let before = self.content(path);
        if let Fate::Dies(how) = fate {
            let kept = before.get(..usize::try_from(tail.keep).unwrap()).unwrap_or_default().to_vec();
            self.tear(path, &kept, bytes, how);
        }
        match fate {
            Fate::Done | Fate::Flipped => self.files.append(path, tail, bytes)?,
            Fate::FailedButDone => {
                self.files.append(path, tail, bytes)?;
                return Err(failed(path, false));
            }
            Fate::Refused => return Err(failed(path, true)),
            Fate::Failed | Fate::Dies(_) | Fate::Dead => return Err(failed(path, false)),
        }
        let content = self.content(path);
        let mut inner = self.disk.inner();
        inner.is_recovering = content == before;
        let acknowledged = inner.acknowledged.insert(path.to_owned(), content.clone());
        if acknowledged.is_some_and(|acknowledged| !content.starts_with(&acknowledged)) {
            inner.broken.push(format!("I6: {path} does not go on from what was acknowledged"));
        }
        Ok(())
    }

    fn lock(&self, name: &str) -> Result<Box<dyn Guard>, StoreError> {
        let guard = self.files.lock(name);
        if matches!(guard, Err(StoreError::Locked { .. })) {
            self.rare(Rare::FencedWriter);
        }
        guard
    }
}

struct SimWriter {
    store: SimStore,
    inner: Option<Box<dyn FileWriter>>,
    path: String,
    content: Vec<u8>,
}

impl Write for SimWriter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let fate = self.store.fate(Act::Write, &self.path);
        let error = || io::Error::other("as the simulation wants");
        let inner = self.inner.as_mut().expect("it is written before it is finished");
        match fate {
            Fate::Done => inner.write_all(buffer)?,
            Fate::Flipped => {
                let mut flipped = buffer.to_vec();
                let at = flipped.len() / 2;
                flipped.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 4);
                inner.write_all(&flipped)?;
            }
            fate => {
                if matches!(fate, Fate::Dies(_)) {
                    self.content.extend_from_slice(buffer);
                }
                return Err(error());
            }
        }
        self.content.extend_from_slice(buffer);
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FileWriter for SimWriter {
    fn finish(mut self: Box<Self>) -> Result<(), StoreError> {
        let inner = self.inner.take().expect("a file is finished once");
        let (store, path) = (self.store.clone(), self.path.clone());
        let done = match store.fate(Act::Sync, &path) {
            Fate::Dies(how) => {
                store.tear(&path, &[], &self.content, how);
                Err(failed(&path, false))
            }
            Fate::Failed | Fate::Refused | Fate::Dead => Err(failed(&path, false)),
            Fate::FailedButDone => inner.finish().and_then(|()| Err(failed(&path, false))),
            Fate::Done | Fate::Flipped => inner.finish(),
        };
        if path.starts_with(SNAPSHOTS) && store.disk.inner().readers.is_due() {
            store.disk.look(&store.files, Some(&path));
        }
        done
    }
}

impl Drop for SimWriter {
    /// What was not synced when the power went.
    fn drop(&mut self) {
        if self.inner.is_some() && self.store.disk.inner().is_dead {
            let how = self.store.disk.inner().chance.below(4);
            self.store.tear(&self.path, &[], &self.content, how);
            if self.path.starts_with("staging/") {
                self.store.rare(Rare::Litter);
            }
        }
    }
}

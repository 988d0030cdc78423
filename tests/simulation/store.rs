//! A store in memory that fails, lies, flips bits and loses power as planned. Data stays once the store has answered
//! `Ok`. A power loss keeps, tears, zeroes or drops unfinished writes.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use annals::model::Instant;
use annals::store::{Blob, FileWriter, Guard, Listed, MemoryStore, Store, StoreError, Tail};
use bytes::Bytes;

use super::clock::SimClock;
use super::faults::{Coverage, Fault, Rare};
use super::faulty_store::FaultyStore;
use super::laws::{StoreLaws, content, store_time};
use super::plan::{Deadly, Plan};
use super::random::Draw;
use super::readers::{Readers, SNAPSHOTS};
use super::stalls::Stalls;
use super::trace::Trace;

/// The state that outlives a process.
pub struct Disk {
    pub plan: Arc<Plan>,
    pub clock: Arc<SimClock>,
    pub trace: Arc<Trace>,
    pub inner: Mutex<DiskState>,
}

pub struct DiskState {
    pub coverage: Coverage,
    /// Broken laws.
    pub broken: Vec<String>,
    /// When an operation failed, in nanoseconds.
    pub failures: Vec<i64>,
    chance: Draw,
    /// The acknowledged content of ledger files.
    pub acknowledged: BTreeMap<String, Bytes>,
    pub laws: StoreLaws,
    /// Scratch files of dead processes.
    scratch: u64,
    /// Power is lost in an operation of this kind, after this many, and whether that tears unfinished writes.
    pub deadly: Option<(Deadly, u64, bool)>,
    pub is_dead: bool,
    pub readers: Readers,
    pub stalls: Stalls,
}

impl Disk {
    pub fn new(plan: Arc<Plan>, clock: Arc<SimClock>, trace: Arc<Trace>) -> Arc<Self> {
        let inner = DiskState {
            coverage: Coverage::default(),
            broken: Vec::new(),
            failures: Vec::new(),
            chance: Draw::of(plan.seed, "disk"),
            acknowledged: BTreeMap::new(),
            laws: StoreLaws::new(plan.grace),
            scratch: 0,
            deadly: None,
            is_dead: false,
            readers: Readers::default(),
            stalls: Stalls::new(plan.stalls.clone()),
        };
        Arc::new(Self { plan, clock, trace, inner: Mutex::new(inner) })
    }

    pub fn inner(&self) -> MutexGuard<'_, DiskState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The laws that were broken since the last check. Then checks that every acknowledged line and every file of these lines is
    /// there.
    pub fn check(&self, files: &MemoryStore) -> Vec<String> {
        let mut inner = self.inner();
        let mut broken = std::mem::take(&mut inner.broken);
        let content = |path: &str| content(files, path).unwrap_or_default();
        for (path, bytes) in &inner.acknowledged {
            if !content(path).starts_with(bytes) {
                broken.push(format!("I6: {path} does not begin with the {} bytes that were acknowledged", bytes.len()));
            }
        }
        broken.extend(inner.laws.check(files));
        broken
    }
}

/// One process's view of the disk.
#[derive(Clone)]
pub struct SimStore {
    pub disk: Arc<Disk>,
    pub files: MemoryStore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Create,
    Write,
    Sync,
    Read,
    List,
    Remove,
    Append,
}

/// The fault of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OperationFault {
    Done,
    /// The operation does nothing and reports it.
    Refused,
    /// The operation does nothing.
    Failed,
    /// The operation succeeds but reports a failure.
    FailedButDone,
    /// One bit is flipped.
    Flipped,
    /// Power is lost before, during or after the operation.
    Dies(u64),
    Dead,
}

impl SimStore {
    fn operation_fault(&self, act: Act, path: &str) -> OperationFault {
        self.stall(act, path);
        let now = self.disk.clock.truth();
        self.files.set_now(store_time(now, self.disk.plan.seed));
        let mut inner = self.disk.inner();
        if inner.is_dead {
            return OperationFault::Dead;
        }
        let operation_fault = self.draw_fault(&mut inner, act, path);
        if operation_fault != OperationFault::Done {
            inner.failures.push(now.nanos());
            if path.starts_with(SNAPSHOTS) {
                inner.readers.expect();
            }
            self.disk.trace.note(now, || format!("store: {act:?} {path}: {operation_fault:?}"));
        }
        operation_fault
    }

    fn draw_fault(&self, inner: &mut DiskState, act: Act, path: &str) -> OperationFault {
        if let Some((deadly, after, is_torn)) = inner.deadly {
            let is_it = match deadly {
                Deadly::Any => true,
                Deadly::Append => act == Act::Append,
                Deadly::Remove => act == Act::Remove,
                Deadly::Snapshot => path.starts_with(SNAPSHOTS),
            };
            if is_it && after == 0 {
                inner.is_dead = true;
                return OperationFault::Dies(if is_torn { inner.chance.below(4) } else { inner.chance.below(2) });
            }
            inner.deadly = Some((deadly, after - u64::from(is_it), is_torn));
        }
        let (now, seed) = (self.disk.clock.truth().seconds(), self.disk.plan.seed);
        let is_change = !matches!(act, Act::Read | Act::List);
        for spell in self.disk.plan.spells.iter().filter(|spell| spell.from <= now && now < spell.until) {
            let operation_fault = match (spell.fault, act) {
                (Fault::DiskFull, Act::Create | Act::Write) => OperationFault::Failed,
                (Fault::DiskFull, Act::Append) => OperationFault::Refused,
                (Fault::DiskErrors, Act::Write) => continue,
                (Fault::DiskErrors, _) if is_change && inner.chance.is(50) => OperationFault::FailedButDone,
                (Fault::DiskErrors, _) => OperationFault::Failed,
                (Fault::AppendButDone, Act::Append) => OperationFault::FailedButDone,
                (Fault::WriteFails, Act::Write | Act::Sync) => OperationFault::Failed,
                (Fault::BitFlip, Act::Write | Act::Sync) => OperationFault::Flipped,
                _ => continue,
            };
            if spell.percent == 100 || inner.chance.is(spell.percent) {
                inner.coverage.fault(spell.fault, seed);
                return operation_fault;
            }
        }
        OperationFault::Done
    }

    fn run<T>(&self, act: Act, path: &str, done: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        match self.operation_fault(act, path) {
            OperationFault::Done | OperationFault::Flipped => done(),
            OperationFault::FailedButDone => {
                done()?;
                Err(failed(path, false))
            }
            OperationFault::Dies(how) => {
                if how % 2 == 1 {
                    done()?;
                }
                Err(failed(path, false))
            }
            OperationFault::Refused => Err(failed(path, true)),
            OperationFault::Failed | OperationFault::Dead => Err(failed(path, false)),
        }
    }

    fn rare(&self, state: Rare) {
        let seed = self.disk.plan.seed;
        self.disk.inner().coverage.rare(state, seed);
    }

    fn append_fenced(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError> {
        let done = self.files.append(path, tail, bytes);
        if done.as_ref().is_err_and(StoreError::is_fenced) {
            self.rare(Rare::FencedWriter);
        }
        done
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
}

/// The error of a failed operation.
fn failed(path: &str, undone: bool) -> StoreError {
    let fault = if undone { super::faulty_store::Fault::FailedUndone } else { super::faulty_store::Fault::Failed };
    let store = FaultyStore::new(Arc::new(MemoryStore::new()), 0, false, fault);
    store.remove(&[path]).expect_err("its first verb fails")
}

impl Store for SimStore {
    fn create(&self) -> Result<Box<dyn FileWriter>, StoreError> {
        let inner = self.run(Act::Create, NAMELESS, || self.files.create())?;
        Ok(Box::new(SimWriter { store: self.clone(), inner: Some(inner), content: Vec::new(), is_flipped: false }))
    }

    fn read(&self, path: &str) -> Result<Blob, StoreError> {
        self.run(Act::Read, path, || self.files.read(path))
    }

    fn list(&self, directory: &str) -> Result<Vec<Listed>, StoreError> {
        self.run(Act::List, directory, || self.files.list(directory))
    }

    fn remove(&self, paths: &[&str]) -> Result<(), StoreError> {
        for path in paths {
            {
                let mut inner = self.disk.inner();
                let DiskState { laws, coverage, broken, .. } = &mut *inner;
                broken.extend(laws.remove(&self.files, path, coverage, self.disk.plan.seed));
            }
            self.run(Act::Remove, path, || self.files.remove(&[path]))?;
        }
        Ok(())
    }

    fn append(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError> {
        if tail.torn > 0 {
            self.rare(Rare::TornLine);
        }
        let operation_fault = self.operation_fault(Act::Append, path);
        let before = content(&self.files, path).unwrap_or_default();
        // A local disk writes nothing if the bytes are there already: an opening only syncs the last line again.
        let is_there = before.get(usize::try_from(tail.keep).unwrap()..) == Some(bytes);
        if let OperationFault::Dies(how) = operation_fault
            && !is_there
        {
            let kept = before.get(..usize::try_from(tail.keep).unwrap()).unwrap_or_default().to_vec();
            self.tear(path, &kept, bytes, how);
        }
        match operation_fault {
            OperationFault::Done | OperationFault::Flipped => self.append_fenced(path, tail, bytes)?,
            OperationFault::FailedButDone => {
                self.append_fenced(path, tail, bytes)?;
                return Err(failed(path, false));
            }
            OperationFault::Refused => return Err(failed(path, true)),
            OperationFault::Failed | OperationFault::Dies(_) | OperationFault::Dead => return Err(failed(path, false)),
        }
        let content = content(&self.files, path).unwrap_or_default();
        let mut inner = self.disk.inner();
        let DiskState { laws, broken, .. } = &mut *inner;
        laws.follow(&self.files, path, broken);
        let acknowledged = inner.acknowledged.insert(path.to_owned(), content.clone());
        if acknowledged.is_some_and(|acknowledged| !content.starts_with(&acknowledged)) {
            inner.broken.push(format!("I6: {path} does not continue the acknowledged bytes"));
        }
        Ok(())
    }

    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.run(Act::Create, path, || self.files.create_new(path, bytes))
    }

    fn has_process_locks(&self) -> bool {
        !self.disk.plan.is_without_locks()
    }

    fn lock(&self, name: &str) -> Result<Box<dyn Guard>, StoreError> {
        if self.disk.plan.is_without_locks() {
            return Ok(Box::new(()));
        }
        let guard = self.files.lock(name);
        if matches!(guard, Err(StoreError::Locked { .. })) {
            self.rare(Rare::FencedWriter);
        }
        guard
    }

    fn now(&self) -> Result<Instant, StoreError> {
        self.files.set_now(store_time(self.disk.clock.truth(), self.disk.plan.seed));
        self.files.now()
    }
}

/// The trace's name for a file without a name.
const NAMELESS: &str = "a new file";

struct SimWriter {
    store: SimStore,
    inner: Option<Box<dyn FileWriter>>,
    content: Vec<u8>,
    is_flipped: bool,
}

impl Write for SimWriter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let operation_fault = self.store.operation_fault(Act::Write, NAMELESS);
        let error = || io::Error::other("as the simulation wants");
        self.inner.as_ref().expect("it is written before it is finished");
        match operation_fault {
            OperationFault::Done => self.content.extend_from_slice(buffer),
            OperationFault::Flipped => {
                self.content.extend_from_slice(buffer);
                let at = self.content.len() - buffer.len().div_ceil(2);
                self.content[at] ^= 4;
                self.is_flipped = true;
            }
            operation_fault => {
                if matches!(operation_fault, OperationFault::Dies(_)) {
                    self.content.extend_from_slice(buffer);
                }
                return Err(error());
            }
        }
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FileWriter for SimWriter {
    fn finish(mut self: Box<Self>, path: &str) -> Result<(), StoreError> {
        let mut inner = self.inner.take().expect("a file is finished once");
        let store = self.store.clone();
        let operation_fault = store.operation_fault(Act::Sync, path);
        if operation_fault == OperationFault::Flipped {
            let at = self.content.len() / 2;
            self.content[at] ^= 4;
        }
        if path.starts_with(SNAPSHOTS) && self.is_flipped {
            store.disk.inner().readers.expect();
        }
        let place = |content: &[u8]| {
            inner.write_all(content).expect("a write to memory never fails");
            inner.finish(path)
        };
        let done = match operation_fault {
            OperationFault::Done | OperationFault::Flipped => place(&self.content),
            OperationFault::FailedButDone => place(&self.content).and_then(|()| Err(failed(path, false))),
            OperationFault::Dies(how) if how % 2 == 1 => place(&self.content).and_then(|()| Err(failed(path, false))),
            OperationFault::Dies(_) | OperationFault::Failed | OperationFault::Refused | OperationFault::Dead => {
                Err(failed(path, false))
            }
        };
        if path.starts_with(SNAPSHOTS) && store.disk.inner().readers.is_due() {
            store.disk.check_readers(&store.files, Some(path));
        }
        done
    }
}

impl Drop for SimWriter {
    /// A write that was unfinished at a power loss.
    fn drop(&mut self) {
        if self.inner.is_some() && self.store.disk.inner().is_dead {
            let (how, path) = {
                let mut inner = self.store.disk.inner();
                inner.scratch += 1;
                (inner.chance.below(4), format!("scratch/{}", inner.scratch))
            };
            self.store.tear(&path, &[], &self.content, how);
        }
    }
}

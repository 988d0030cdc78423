//! Reads the new events of an open window.
//!
//! The walk continues at its checkpoint if the anchors are in their places: a poll requests only the new pages. If they
//! are not, the list changed before the checkpoint, and the reader walks the window twice from its start. A list of one
//! empty page needs no second walk, because a page is atomic. This reading is provisional: the settled reading proves
//! the window later.

use crate::api::ApiError;
use crate::model::{Digest, Instant, Multiset, RawEvent};
use crate::planted::{self, Bug};

use super::joined::{CountedEvent, Joined};
use super::lists::{Lists, PageError, ReadStats, note};
use super::padded_range::PaddedRange;
use super::span::RESTARTS_MAX;
use super::walk::{Step, Walk};

/// A window with more events has its second walk in the settled reading, to bound memory.
const AGREED_EVENTS_MAX: u64 = 100_000;

/// New events of an open window, and the checkpoint after them.
#[derive(Debug)]
pub struct TailChunk {
    pub events: Vec<CountedEvent>,
    /// Events passed, and the digest prefixes of the last ones. `None`: a later reading must begin at the start.
    pub point: Option<(u64, Vec<[u8; 16]>)>,
    pub stats: ReadStats,
    /// The service's clock at the first page of this chunk.
    pub began_at: Option<Instant>,
    /// The service's clock at the last page.
    pub ended_at: Option<Instant>,
}

/// How the reading of an open window ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TailEnd {
    /// The window is read up to now.
    Whole,
    /// The list changed under every walk: events of its later pages may be unread.
    Moved,
    /// The list is empty, although events of the window are archived.
    Silent,
}

/// Where the reading of an open window begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TailStart {
    /// At a checkpoint: events passed, and the digest prefixes of the last ones.
    Point(u64, Vec<[u8; 16]>),
    /// At the list's start. Nothing of the window is archived, so an empty page agrees with the archive.
    Empty,
    /// At the list's start. Events of the window are archived, so one empty page is not believed.
    FromStart,
}

impl TailStart {
    /// `point` is the last checkpoint, `events` the number of archived events of the window.
    pub fn of(point: Option<(u64, Vec<[u8; 16]>)>, events: u64) -> Self {
        match point {
            Some((offset, anchors)) => Self::Point(offset, anchors),
            None if events == 0 => Self::Empty,
            None => Self::FromStart,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    /// Continues at a checkpoint.
    Resumed,
    /// A walk from the start. `former` has the tally of the walk before, and how often that walk found `hasMoreEvents`
    /// untrue.
    FromStart {
        former: Option<(Multiset<Digest>, u64)>,
    },
    Done(TailEnd),
}

/// Reads an open window chunk by chunk.
pub struct TailReader {
    lists: Lists,
    asked: PaddedRange,
    /// The size of one chunk, in events of usual size: a bound of memory, and of the work that a crash repeats.
    chunk_events: usize,
    /// Whether an empty list agrees with the archive.
    may_be_empty: bool,
    phase: Phase,
    walk: Walk,
    tally: Multiset<Digest>,
    joined: Joined,
    restarts: u32,
    stats: ReadStats,
    began_at: Option<Instant>,
    ended_at: Option<Instant>,
}

impl TailReader {
    pub fn new(lists: Lists, asked: PaddedRange, start: TailStart, chunk_events: usize) -> Self {
        let may_be_empty = start == TailStart::Empty;
        let (phase, walk) = match start {
            TailStart::Point(offset, anchors) if lists.devices.len() == 1 => {
                (Phase::Resumed, Walk::resumed(offset, anchors))
            }
            _ => (Phase::FromStart { former: None }, Walk::from_start()),
        };
        Self {
            lists,
            asked,
            chunk_events,
            may_be_empty,
            phase,
            walk,
            tally: Multiset::default(),
            joined: Joined::default(),
            restarts: 0,
            stats: ReadStats::default(),
            began_at: None,
            ended_at: None,
        }
    }

    /// How the reading ended, or `None` while it has more chunks.
    pub fn end(&self) -> Option<TailEnd> {
        if let Phase::Done(end) = self.phase { Some(end) } else { None }
    }

    /// The next chunk, or `None` after the last one.
    ///
    /// # Errors
    /// When the service does not answer; earlier chunks stay valid.
    pub async fn next(&mut self) -> Result<Option<TailChunk>, ApiError> {
        if self.end().is_some() {
            return Ok(None);
        }
        if self.lists.devices.len() != 1 {
            return self.lists_in_turn().await.map(Some);
        }
        let list = self.lists.devices[0].clone();
        while self.end().is_none() && self.joined.size() < self.chunk_events {
            let served = match self.lists.page(&list, self.asked, self.walk.next_offset(), &mut self.stats).await {
                Ok(served) => served,
                // A refused limit says nothing about the list: the walk continues with shorter pages.
                Err(PageError::LimitRefused) => continue,
                Err(PageError::Api(error)) => return Err(error),
            };
            self.note_date(served.at);
            let page = served.body;
            match self.walk.take(&page) {
                Step::Moved => {
                    self.joined.add_page(page.events, |event| self.asked.keeps(event));
                    self.moved();
                }
                Step::Whole => self.end_walk(),
                Step::More { new } => {
                    let is_short = page.events.len() < self.lists.limit_of(&list) as usize;
                    let new = &page.events[page.events.len() - new..];
                    let fresh: Multiset<Digest> = new.iter().map(|event| event.digest).collect();
                    self.count(new);
                    let keeps = |e: &RawEvent| self.asked.keeps(e) && fresh.count(&e.digest) > 0;
                    self.joined.add_page(page.events, keeps);
                    if is_short && planted::is(Bug::ShortPageEnds) {
                        self.phase = Phase::Done(TailEnd::Whole);
                    }
                }
            }
        }
        Ok(Some(self.chunk()))
    }

    fn note_date(&mut self, at: Option<Instant>) {
        self.began_at = self.began_at.or(at);
        self.ended_at = at.or(self.ended_at);
    }

    fn count(&mut self, new: &[RawEvent]) {
        if self.walk.passed() > AGREED_EVENTS_MAX {
            self.phase = Phase::Resumed;
            self.tally = Multiset::default();
        }
        if self.phase != Phase::Resumed {
            new.iter().for_each(|event| _ = self.tally.add(event.digest));
        }
    }

    fn chunk(&mut self) -> TailChunk {
        // A second walk is behind the first: only the end of a walk, or the progress of the first walk, is a checkpoint.
        let second = matches!(self.phase, Phase::FromStart { former: Some(_) });
        let events = self.joined.take_all();
        if self.walk.passed() > AGREED_EVENTS_MAX {
            self.joined.forget();
        }
        TailChunk {
            events,
            point: (!second).then(|| self.walk.point()),
            stats: std::mem::take(&mut self.stats),
            began_at: self.began_at.take(),
            ended_at: self.ended_at.take(),
        }
    }

    fn moved(&mut self) {
        self.stats.restarts += 1;
        self.restarts += 1;
        if self.restarts > RESTARTS_MAX {
            self.walk = Walk::from_start();
            self.phase = Phase::Done(TailEnd::Moved);
        } else {
            self.restart(None);
        }
    }

    fn restart(&mut self, former: Option<(Multiset<Digest>, u64)>) {
        note(&mut self.stats, &self.walk);
        self.walk = Walk::from_start();
        self.tally = Multiset::default();
        self.phase = Phase::FromStart { former };
    }

    fn end_walk(&mut self) {
        self.stats.walks += 1;
        let tally = std::mem::take(&mut self.tally);
        let end = self.end_at(self.walk.passed());
        match std::mem::replace(&mut self.phase, Phase::Done(end)) {
            Phase::FromStart { former: Some((held, untrue)) } if held == tally => {
                note(&mut self.stats, &self.walk);
                self.stats.anomalies.has_more += untrue.min(self.walk.anomalies.has_more);
            }
            Phase::FromStart { former: None } if self.is_one_page() => note(&mut self.stats, &self.walk),
            Phase::FromStart { former } => {
                self.restarts += u32::from(former.is_some());
                if self.restarts <= RESTARTS_MAX {
                    self.restart(Some((tally, self.walk.anomalies.has_more)));
                }
            }
            Phase::Resumed | Phase::Done(_) => note(&mut self.stats, &self.walk),
        }
    }

    /// The end of a reading whose last walk passed this number of events.
    fn end_at(&self, passed: u64) -> TailEnd {
        if passed == 0 && !self.may_be_empty { TailEnd::Silent } else { TailEnd::Whole }
    }

    /// Whether this walk was one page, which showed that the list is as empty as the archive.
    fn is_one_page(&self) -> bool {
        self.walk.passed() == 0 && self.may_be_empty && self.restarts == 0
    }

    /// Many lists (the deprecated history): one plain walk over each, without a checkpoint.
    async fn lists_in_turn(&mut self) -> Result<TailChunk, ApiError> {
        let devices = self.lists.devices.clone();
        let (mut passed, mut are_whole) = (0, true);
        for list in devices.iter() {
            let mut walk = Walk::from_start();
            let mut is_whole = false;
            for _ in 0..self.chunk_events {
                let served = match self.lists.page(list, self.asked, walk.next_offset(), &mut self.stats).await {
                    Ok(served) => served,
                    Err(PageError::LimitRefused) => continue,
                    Err(PageError::Api(error)) => return Err(error),
                };
                self.note_date(served.at);
                let step = walk.take(&served.body);
                self.joined.add_page(served.body.events, |event| self.asked.keeps(event));
                if !matches!(step, Step::More { .. }) {
                    is_whole = step == Step::Whole;
                    break;
                }
            }
            passed += walk.passed();
            are_whole &= is_whole;
        }
        self.phase = Phase::Done(if are_whole { self.end_at(passed) } else { TailEnd::Moved });
        self.stats.walks += 1;
        let mut chunk = self.chunk();
        chunk.point = None;
        Ok(chunk)
    }
}

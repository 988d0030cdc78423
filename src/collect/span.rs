//! Reads a range completely: by two equal anchored walks, or by halves if the list changes.

use std::sync::Arc;

use crate::api::{ApiError, Page, PageComparison, Served};
use crate::model::{DeviceId, Digest, Instant, Multiset, Range, RawEvent};
use crate::planted::{self, Bug};

use super::joined::{CountedEvent, Joined};
use super::lists::{Lists, PageError, ReadStats, note};
use super::padded_range::PaddedRange;
use super::split_budget::SplitBudget;
use super::walk::{Step, Walk};
use super::walk_pages::{WalkPage, WalkPages};

/// Restarts of one range before it is read as two halves.
pub const RESTARTS_MAX: u32 = 5;
/// The same when the round has spent its budget for unstable ranges.
const RESTARTS_LAST_MAX: u32 = 1;
/// After this number of unstable seconds, the reader leaves the rest of the span to another round.
pub const UNSTABLE_SECONDS_MAX: u32 = 16;
/// Padding up to this number of seconds only guards the bounds. Events in it belong to the neighbour's reading.
const NEIGHBOUR_SECONDS: i64 = 1;
/// Pages of the last, plain reading of an unstable range.
const SALVAGE_PAGES_MAX: u32 = 1_000;

/// Whether a range was proved complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeOutcome {
    /// Two whole walks agreed.
    Confirmed,
    /// The list changed under every walk. The seen events are kept, and the range stays open.
    Unstable,
    /// Unstable, and the round has no budget left to split it: it waits for another round.
    Deferred,
}

/// The result of reading a range.
enum Confirm {
    Confirmed,
    /// The range has too many events for one walk.
    TooBig,
    /// The list changed under too many walks.
    Unstable,
}

/// One part of a span, after its reading.
#[derive(Debug)]
pub struct Segment {
    pub range: Range,
    pub outcome: RangeOutcome,
    /// Events that the range owns, and events that the span does not own: with unusable times, from outside, and from wide padding.
    pub events: Vec<CountedEvent>,
    pub stats: ReadStats,
    /// The service's clock at the first page of the reading.
    pub began_at: Option<Instant>,
    /// The service's clock at the last page.
    pub ended_at: Option<Instant>,
}

impl Segment {
    /// The number of events that `range` owns.
    pub fn owned_by(&self, range: Range) -> u64 {
        self.events.iter().filter(|held| held.event.at().is_some_and(|at| range.owns(at))).count() as u64
    }
}

/// Reads a span of event time, part by part.
pub struct SpanReader {
    lists: Lists,
    whole: Range,
    pad: i64,
    /// The size of one walk, in events of usual size, above which a range is cut, to bound memory.
    walk_events_max: u64,
    stack: Vec<Range>,
    joined: Joined,
    /// The result of a former reading, used as the first of the two walks over the whole span.
    prior: Option<Multiset<Digest>>,
    unstable_left: u32,
    budget: Arc<SplitBudget>,
    stats: ReadStats,
    began_at: Option<Instant>,
    ended_at: Option<Instant>,
}

enum WalkEnd {
    Whole(WalkPages),
    Moved,
    /// Too many events, and the walk so far.
    TooBig(WalkPages),
    LimitRefused,
}

/// The former walk that a walk is compared with.
enum PreviousWalk {
    None,
    /// The archive, with the result of a former reading.
    Archive(Multiset<Digest>),
    Walk(WalkPages),
    /// The beginning of a walk over a longer range.
    Beginning(WalkPages, PaddedRange),
}

impl PreviousWalk {
    fn pages(&self) -> Option<&WalkPages> {
        match self {
            PreviousWalk::Walk(pages) | PreviousWalk::Beginning(pages, _) => Some(pages),
            PreviousWalk::None | PreviousWalk::Archive(_) => None,
        }
    }

    /// Whether a whole walk had the same events.
    fn equals(&self, tally: &Multiset<Digest>, asked: PaddedRange) -> bool {
        match self {
            PreviousWalk::None => false,
            PreviousWalk::Archive(held) => held == tally,
            PreviousWalk::Walk(pages) => pages.tally(|at| asked.keeps_at(at)) == *tally,
            PreviousWalk::Beginning(pages, longer) => {
                let keeps = |at: Instant| asked.range.owns(at) || longer.is_outside(at);
                pages.tally(|at| at.is_none_or(keeps)) == *tally
            }
        }
    }
}

impl SpanReader {
    pub fn new(lists: Lists, asked: PaddedRange, walk_events_max: u64, prior: Option<Multiset<Digest>>) -> Self {
        Self {
            lists,
            whole: asked.range,
            pad: asked.pad,
            walk_events_max,
            stack: vec![asked.range],
            joined: Joined::default(),
            prior,
            unstable_left: UNSTABLE_SECONDS_MAX,
            budget: Arc::default(),
            stats: ReadStats::default(),
            began_at: None,
            ended_at: None,
        }
    }

    /// Shares `budget` with the other readers of a round.
    pub fn within(self, budget: Arc<SplitBudget>) -> Self {
        Self { budget, ..self }
    }

    /// The next part of the span, or `None` when the span is read.
    ///
    /// # Errors
    /// When the service does not answer. [`SpanReader::into_partial`] then returns the events seen so far.
    pub async fn next(&mut self) -> Result<Option<Segment>, ApiError> {
        let Some(mut range) = self.stack.pop() else { return Ok(None) };
        if self.unstable_left == 0 {
            self.salvage(range).await?;
            return Ok(Some(self.segment(range, RangeOutcome::Unstable)));
        }
        loop {
            let confirm = self.confirm(&mut range).await?;
            let outcome = match (&confirm, range.halves()) {
                (Confirm::Confirmed, _) => return Ok(Some(self.confirmed(range))),
                (Confirm::Unstable, Some(_)) if self.budget.is_spent() => RangeOutcome::Deferred,
                (_, Some((left, right))) => {
                    self.stack.push(right);
                    range = left;
                    continue;
                }
                (_, None) => {
                    self.unstable_left -= 1;
                    RangeOutcome::Unstable
                }
            };
            self.salvage(range).await?;
            return Ok(Some(self.segment(range, outcome)));
        }
    }

    /// Whether every part was handed out.
    pub fn is_done(&self) -> bool {
        self.stack.is_empty()
    }

    /// The events seen of parts that were not handed out, after an error.
    pub fn into_partial(mut self) -> (Vec<CountedEvent>, ReadStats) {
        (self.joined.take_all(), self.stats)
    }

    fn confirmed(&mut self, range: Range) -> Segment {
        let segment = self.segment(range, RangeOutcome::Confirmed);
        let page = u64::from(self.lists.limit.events().max(1));
        self.budget.note_confirmed((segment.events.len() as u64).div_ceil(page));
        segment
    }

    /// Whether two whole walks in a row agreed. A range with too many events for one walk is cut at the end of its first walk, which
    /// then counts as the first walk of the shorter range.
    async fn confirm(&mut self, range: &mut Range) -> Result<Confirm, ApiError> {
        let prior = self.prior.take().filter(|_| *range == self.whole);
        let mut former = prior.map_or(PreviousWalk::None, PreviousWalk::Archive);
        let mut restarts = 0;
        let mut events_max = self.walk_events_max;
        self.began_at = None;
        let restarts_max = if self.budget.is_spent() { RESTARTS_LAST_MAX } else { RESTARTS_MAX };
        while restarts <= restarts_max {
            let asked = PaddedRange { range: *range, pad: self.pad_of(*range) };
            match self.walk(asked, former.pages(), events_max).await? {
                WalkEnd::Whole(pages) => {
                    self.stats.walks += 1;
                    // Sums are needed for events without ids, and to compare walks with different pages.
                    let is_same = matches!(&former, PreviousWalk::Walk(former) if former.equals(&pages));
                    let tally = if is_same && !self.joined.needs_sums() {
                        Multiset::default()
                    } else {
                        pages.tally(|at| asked.keeps_at(at))
                    };
                    if is_same || former.equals(&tally, asked) || planted::is(Bug::SingleWalk) {
                        if let PreviousWalk::Walk(former) = &former {
                            self.stats.anomalies.has_more += pages.has_more_untrue(former);
                        }
                        self.joined.confirm(&tally);
                        return Ok(Confirm::Confirmed);
                    }
                    restarts += u32::from(!matches!(former, PreviousWalk::None));
                    former = PreviousWalk::Walk(pages);
                }
                WalkEnd::Moved => {
                    self.stats.restarts += 1;
                    restarts += 1;
                    former = PreviousWalk::None;
                }
                WalkEnd::TooBig(pages) => {
                    let may_cut = self.lists.devices.len() == 1 && events_max == self.walk_events_max;
                    if let Some((left, right)) = pages.cut(asked).filter(|_| may_cut) {
                        // The range may have grown, but not to twice the size of the walk.
                        events_max = pages.size().saturating_mul(2);
                        self.stack.push(right);
                        *range = left;
                        former = PreviousWalk::Beginning(pages, asked);
                        continue;
                    }
                    // A third walk may count an event without an id twice: the exhaustive checker finds it.
                    let may_grow = may_cut && asked.pad <= NEIGHBOUR_SECONDS && !self.joined.needs_sums();
                    let Some(end) = pages.dense_second_end(asked).filter(|_| may_grow) else {
                        return Ok(Confirm::TooBig);
                    };
                    // One second cannot be cut, and each smaller part beside it would read it again.
                    events_max = u64::MAX;
                    former = PreviousWalk::None;
                    if end < range.end {
                        self.stack.push(Range::new(end, range.end));
                        *range = Range::new(range.start, end);
                    }
                }
                WalkEnd::LimitRefused => former = PreviousWalk::None,
            }
        }
        self.budget.note_failed();
        Ok(Confirm::Unstable)
    }

    /// Only the whole span has wide padding: around an unstable second it would make the neighbours unstable.
    fn pad_of(&self, range: Range) -> i64 {
        let length = i64::try_from(range.length().as_secs()).unwrap_or(i64::MAX);
        if range == self.whole { self.pad } else { self.pad.min(length.max(NEIGHBOUR_SECONDS)) }
    }

    /// One walk over every list of the stream. A page that is the same as in `former` is not parsed again.
    async fn walk(
        &mut self,
        asked: PaddedRange,
        former: Option<&WalkPages>,
        events_max: u64,
    ) -> Result<WalkEnd, ApiError> {
        let mut pages = WalkPages::default();
        let mut known = former;
        let devices = self.lists.devices.clone();
        for (place, list) in devices.iter().enumerate() {
            let mut walk = Walk::from_start();
            let end = loop {
                let page = (place, walk.next_offset(), self.lists.limit_of(list));
                let seen = known.and_then(|former| former.next(pages.pages(), page)).cloned();
                let step = match self.page(list, asked, &mut walk, seen.as_deref()).await {
                    Ok(None) => {
                        let seen = seen.expect("BUG: a page is the same as one that was seen");
                        let step = seen.step;
                        pages.note_again(seen);
                        step
                    }
                    Ok(Some((body, step))) => {
                        known = None;
                        pages.note(page, &body, step, walk.clone());
                        self.add_page(body, asked);
                        step
                    }
                    Err(PageError::LimitRefused) => break Some(WalkEnd::LimitRefused),
                    Err(PageError::Api(error)) => return Err(error),
                };
                match step {
                    Step::Moved => break Some(WalkEnd::Moved),
                    Step::Whole => break None,
                    Step::More { .. } => {}
                }
                if pages.size() > events_max && asked.range.halves().is_some() {
                    break Some(WalkEnd::TooBig(std::mem::take(&mut pages)));
                }
            };
            note(&mut self.stats, &walk);
            pages.has_more += walk.anomalies.has_more;
            if let Some(end) = end {
                return Ok(end);
            }
        }
        Ok(WalkEnd::Whole(pages))
    }

    /// Reads one page, and passes it to the walk. `None` if the page is the same as `seen`.
    async fn page(
        &mut self,
        list: &Option<DeviceId>,
        asked: PaddedRange,
        walk: &mut Walk,
        seen: Option<&WalkPage>,
    ) -> Result<Option<(Page, Step)>, PageError> {
        let served = match seen {
            None => {
                let Served { body, at } = self.lists.page(list, asked, walk.next_offset(), &mut self.stats).await?;
                Served { body: PageComparison::Changed(body), at }
            }
            Some(seen) => self.lists.page_again(list, asked, walk.next_offset(), seen, &mut self.stats).await?,
        };
        self.began_at = self.began_at.or(served.at);
        self.ended_at = served.at.or(self.ended_at);
        match (served.body, seen) {
            (PageComparison::Same, Some(seen)) => {
                walk.clone_from(&seen.after);
                Ok(None)
            }
            (PageComparison::Changed(page), _) => {
                let step = walk.take(&page);
                Ok(Some((page, step)))
            }
            (PageComparison::Same, None) => unreachable!("BUG: only a page that was seen comes again"),
        }
    }

    fn add_page(&mut self, page: Page, asked: PaddedRange) {
        // The wide padding of a re-scan may be the only reading that shows its events.
        self.joined.add_page(page.events, |event| self.pad > NEIGHBOUR_SECONDS || asked.keeps(event));
    }

    /// Reads an unstable range once more without anchors, to keep its visible events.
    async fn salvage(&mut self, range: Range) -> Result<(), ApiError> {
        let asked = PaddedRange { range, pad: self.pad_of(range) };
        let devices = self.lists.devices.clone();
        for list in devices.iter() {
            let mut offset = 0;
            let mut before = None;
            for _ in 0..SALVAGE_PAGES_MAX {
                let page = match self.lists.page(list, asked, offset, &mut self.stats).await {
                    Ok(served) => served.body,
                    Err(PageError::LimitRefused) => continue,
                    Err(PageError::Api(error)) => return Err(error),
                };
                // The same event may come with other text.
                let name = |event: &RawEvent| (event.id.clone(), event.id.is_none().then_some(event.digest));
                let first = page.events.first().map(name);
                let count = page.events.len() as u64;
                self.joined.add_page(page.events, |event| asked.keeps(event));
                if first.is_none() || (before == first && offset > 0) || offset > self.walk_events_max {
                    break;
                }
                before = first;
                offset += count;
            }
        }
        Ok(())
    }

    fn segment(&mut self, range: Range, outcome: RangeOutcome) -> Segment {
        Segment {
            range,
            outcome,
            events: self.joined.take(range, self.whole),
            stats: std::mem::take(&mut self.stats),
            began_at: self.began_at.take(),
            ended_at: self.ended_at.take(),
        }
    }
}

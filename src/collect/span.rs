//! Reading a range completely: two equal anchored walks, halves where it will not hold still.

use crate::api::ApiError;
use crate::model::{DeviceId, Digest, Instant, Multiset, Range};

use super::joined::{Counted, Joined};
use super::lists::{Asked, Lists, PageError, ReadStats, note};
use super::planted::{self, Bug};
use super::walk::{Step, Walk};

/// Restarts of one range before it is read as two halves.
pub const RESTARTS_MAX: u32 = 5;
/// Seconds of one span that may fail to hold still before the rest of the span is given up for this time.
pub const UNSTABLE_SECONDS_MAX: u32 = 16;
/// Padding up to so many seconds only guards the bounds: the neighbour's own reading is under way.
const NEIGHBOUR_SECONDS: i64 = 1;
/// Pages of the last, plain look at a range that never held still.
const SALVAGE_PAGES_MAX: u32 = 10_000;

/// Whether a range was proved complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Two whole walks agreed.
    Confirmed,
    /// It never held still: what was seen is kept, and the range stays open.
    Unstable,
}

/// One part of a span, read.
#[derive(Debug)]
pub struct Leaf {
    pub range: Range,
    pub outcome: Outcome,
    /// What the range owns, and what the span does not: unusable times, events outside what was asked for, and what
    /// stood in a wide padding.
    pub events: Vec<Counted>,
    pub stats: ReadStats,
    /// The service's clock at the first page of the reading.
    pub began_at: Option<Instant>,
    /// The service's clock at the last page.
    pub ended_at: Option<Instant>,
}

/// Reads a span of event time, part by part.
pub struct SpanReader<'a> {
    lists: Lists<'a>,
    whole: Range,
    pad: i64,
    /// Events of one walk above which a range is read as two halves, to bound memory.
    walk_events_max: u64,
    stack: Vec<Range>,
    joined: Joined,
    /// What a former reading proved, taken as the first of the two walks over the whole span.
    prior: Option<Multiset<Digest>>,
    unstable_left: u32,
    stats: ReadStats,
    began_at: Option<Instant>,
    ended_at: Option<Instant>,
}

enum WalkEnd {
    Whole(Multiset<Digest>),
    Moved,
    TooBig,
    LimitRefused,
}

impl<'a> SpanReader<'a> {
    pub fn new(lists: Lists<'a>, asked: Asked, walk_events_max: u64, prior: Option<Multiset<Digest>>) -> Self {
        Self {
            lists,
            whole: asked.range,
            pad: asked.pad,
            walk_events_max,
            stack: vec![asked.range],
            joined: Joined::default(),
            prior,
            unstable_left: UNSTABLE_SECONDS_MAX,
            stats: ReadStats::default(),
            began_at: None,
            ended_at: None,
        }
    }

    /// The next part of the span, or `None` when the span is read.
    ///
    /// # Errors
    /// When the service does not answer. What was seen so far can still be had by [`SpanReader::into_partial`].
    pub async fn next(&mut self) -> Result<Option<Leaf>, ApiError> {
        let Some(mut range) = self.stack.pop() else { return Ok(None) };
        if self.unstable_left == 0 {
            self.salvage(range).await?;
            return Ok(Some(self.leaf(range, Outcome::Unstable)));
        }
        loop {
            if self.confirm(range).await? {
                return Ok(Some(self.leaf(range, Outcome::Confirmed)));
            }
            let Some((left, right)) = range.halves() else {
                self.unstable_left -= 1;
                self.salvage(range).await?;
                return Ok(Some(self.leaf(range, Outcome::Unstable)));
            };
            self.stack.push(right);
            range = left;
        }
    }

    /// What was seen of the parts that were not handed out, after an error.
    pub fn into_partial(mut self) -> (Vec<Counted>, ReadStats) {
        (self.joined.hand_out(), self.stats)
    }

    /// True when two whole walks in a row agreed; false when the range is too big or too restless.
    async fn confirm(&mut self, range: Range) -> Result<bool, ApiError> {
        let mut last = self.prior.take().filter(|_| range == self.whole);
        let mut restarts = 0;
        self.began_at = None;
        while restarts <= RESTARTS_MAX {
            match self.walk(range).await? {
                WalkEnd::Whole(tally) => {
                    self.stats.walks += 1;
                    if last.as_ref() == Some(&tally) || planted::is(Bug::SingleWalk) {
                        self.joined.confirm(&tally);
                        return Ok(true);
                    }
                    restarts += u32::from(last.is_some());
                    last = Some(tally);
                }
                WalkEnd::Moved => {
                    self.stats.restarts += 1;
                    restarts += 1;
                    last = None;
                }
                WalkEnd::TooBig => return Ok(false),
                WalkEnd::LimitRefused => last = None,
            }
        }
        Ok(false)
    }

    /// One walk over every list of the stream.
    async fn walk(&mut self, range: Range) -> Result<WalkEnd, ApiError> {
        let mut tally = Multiset::default();
        let mut passed = 0;
        let lists = self.lists;
        for list in lists.devices {
            match self.walk_list(list, range, &mut tally, &mut passed).await? {
                None => {}
                Some(end) => return Ok(end),
            }
        }
        Ok(WalkEnd::Whole(tally))
    }

    async fn walk_list(
        &mut self,
        list: &Option<DeviceId>,
        range: Range,
        tally: &mut Multiset<Digest>,
        passed: &mut u64,
    ) -> Result<Option<WalkEnd>, ApiError> {
        let asked = Asked { range, pad: self.pad };
        let mut walk = Walk::from_start();
        let end = loop {
            let served = match self.lists.page(list, asked, walk.next_offset(), &mut self.stats).await {
                Ok(served) => served,
                Err(PageError::LimitRefused) => break Some(WalkEnd::LimitRefused),
                Err(PageError::Api(error)) => return Err(error),
            };
            self.began_at = self.began_at.or(served.at);
            self.ended_at = served.at.or(self.ended_at);
            let page = served.body;
            let step = walk.take(&page);
            // A re-scan's wide padding may be the only look that ever shows what stands in it.
            self.joined.look(&page.events, |event| self.pad > NEIGHBOUR_SECONDS || asked.keeps(event));
            match step {
                Step::Moved => break Some(WalkEnd::Moved),
                Step::Whole => break None,
                Step::More { new } => {
                    for event in &page.events[page.events.len() - new..] {
                        if asked.keeps(event) {
                            tally.add(event.digest);
                        }
                    }
                    *passed += new as u64;
                    if *passed > self.walk_events_max && range.halves().is_some() {
                        break Some(WalkEnd::TooBig);
                    }
                }
            }
        };
        note(&mut self.stats, &walk);
        Ok(end)
    }

    /// A last, plain look at what never held still, so that what can be seen is kept.
    async fn salvage(&mut self, range: Range) -> Result<(), ApiError> {
        let asked = Asked { range, pad: self.pad };
        let lists = self.lists;
        for list in lists.devices {
            let mut offset = 0;
            let mut before: Option<Digest> = None;
            for _ in 0..SALVAGE_PAGES_MAX {
                let page = match self.lists.page(list, asked, offset, &mut self.stats).await {
                    Ok(served) => served.body,
                    Err(PageError::LimitRefused) => continue,
                    Err(PageError::Api(error)) => return Err(error),
                };
                self.joined.look(&page.events, |event| asked.keeps(event));
                let first = page.events.first().map(|event| event.digest);
                if first.is_none() || (before == first && offset > 0) {
                    break;
                }
                before = first;
                offset += page.events.len() as u64;
            }
        }
        Ok(())
    }

    fn leaf(&mut self, range: Range, outcome: Outcome) -> Leaf {
        Leaf {
            range,
            outcome,
            events: self.joined.take(range, self.whole),
            stats: std::mem::take(&mut self.stats),
            began_at: self.began_at.take(),
            ended_at: self.ended_at.take(),
        }
    }
}

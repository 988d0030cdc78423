//! Reading spans side by side: settling what is past its lag, and re-scanning what is settled.

use futures::channel::mpsc;
use futures::stream::FuturesUnordered;
use futures::{SinkExt, StreamExt};

use crate::collect::{Asked, SpanReader};
use crate::model::{Digest, Multiset, Range};
use crate::pipeline::error::RoundError;
use crate::pipeline::plan::span_planner::SpanPlanner;
use crate::pipeline::read::round::{PAD_SECONDS, Purpose, Round};
use crate::pipeline::read::segment_stage::{SegmentStage, Sorted};
use crate::pipeline::settings::{READ_EVENTS_MAX, RESCAN_EVENTS_MAX, RESCAN_WALK_EVENTS_MAX, WALK_EVENTS_MAX};

/// Leaves that may wait for the segment stage.
const SEGMENTS_WAITING_MAX: usize = 1;
/// Seconds of padding of the re-scans, each of which shifts the bounds.
const RESCAN_PAD_SECONDS: [i64; 3] = [61, 601, 3601];
impl Round<'_> {
    /// Reads spans side by side, and sends what they bring in the order in which they bring it.
    pub async fn spans(&self, planner: SpanPlanner, purpose: Purpose) -> Result<(), RoundError> {
        self.ctx.progress.planned(&self.ctx.team, self.stream, planner.seconds_left());
        let (sender, segments) = mpsc::channel::<Sorted>(SEGMENTS_WAITING_MAX);
        let reading = SpanStage { round: self, planner, purpose, segments: sender, is_stopped: false };
        // Each stage owns its end of the channel, so that either one's end, or error, ends the other.
        let (read, sent) = futures::future::join(reading.run(), SegmentStage::new(self, purpose).run(segments)).await;
        sent.and(read)
    }
}

/// Reads spans, several at once, and sends their segments.
struct SpanStage<'a> {
    round: &'a Round<'a>,
    planner: SpanPlanner,
    purpose: Purpose,
    segments: mpsc::Sender<Sorted>,
    /// No more spans are begun: one failed, nobody takes the segments, or the round has worked long enough.
    is_stopped: bool,
}

impl SpanStage<'_> {
    async fn run(mut self) -> Result<(), RoundError> {
        let (round, purpose) = (self.round, self.purpose);
        let mut reading = FuturesUnordered::new();
        let mut failed = None;
        let mut is_first = true;
        loop {
            while !self.is_stopped
                && reading.len() < round.ctx.readings_at_once()
                && let Some(span) = self.next_span(is_first)
            {
                is_first = false;
                reading.push(round.span(span, purpose, self.segments.clone()));
            }
            match reading.next().await {
                Some(Ok(Some(parts))) => parts.into_iter().for_each(|(part, events)| self.planner.learn(part, events)),
                Some(Ok(None)) => self.is_stopped = true,
                Some(Err(error)) => {
                    self.is_stopped = true;
                    failed = failed.or(Some(error));
                }
                None => return failed.map_or(Ok(()), Err),
            }
        }
    }

    /// The next span. A round that has worked long enough makes some way all the same: it reads the first.
    fn next_span(&mut self, is_first: bool) -> Option<Range> {
        if !is_first && self.round.ctx.is_spent() && !self.planner.is_empty() {
            self.round.ctx.deferred.note_unfinished();
            self.is_stopped = true;
            return None;
        }
        self.planner.next_span()
    }
}

impl Round<'_> {
    /// Reads one span and sends its parts; returns these and how many events each brought, to learn the density from, or
    /// `None` when nobody takes the parts any more.
    async fn span(
        &self,
        span: Range,
        purpose: Purpose,
        mut segments: mpsc::Sender<Sorted>,
    ) -> Result<Option<Vec<(Range, u64)>>, RoundError> {
        let pad = if purpose == Purpose::Settle { PAD_SECONDS } else { self.rescan_pad(span) };
        let prior = match purpose {
            Purpose::Settle => None,
            Purpose::Rescan => Some(self.archived(span).await?),
        };
        let (read_events_max, walk_events_max) = match purpose {
            Purpose::Settle => (READ_EVENTS_MAX, WALK_EVENTS_MAX),
            Purpose::Rescan => (RESCAN_EVENTS_MAX, RESCAN_WALK_EVENTS_MAX),
        };
        let asked = Asked { range: span, pad };
        let mut reader = SpanReader::new(self.lists, asked, walk_events_max as u64, prior).within(self.budget.clone());
        let mut parts = Vec::new();
        while !reader.is_done() {
            let mut permit = self.ctx.reserve(read_events_max).await?;
            match reader.next().await {
                Ok(Some(mut segment)) => {
                    // What stands in a re-scan's padding says nothing of the span: spans would become ever shorter, down to a second.
                    let owned =
                        segment.events.iter().filter(|held| held.event.at().is_some_and(|at| segment.range.owns(at)));
                    parts.push((segment.range, owned.count() as u64));
                    permit.hold(segment.events.len(), true);
                    let pieces = self.pieces(segment.range, std::mem::take(&mut segment.events));
                    if segments.send(Sorted { segment, pieces, permit }).await.is_err() {
                        return Ok(None);
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    let (events, _) = reader.into_partial();
                    if !events.is_empty() {
                        let pieces = self.of_windows(events);
                        self.ctx.add_held(permit, |batch| self.sort_in(batch, pieces)).await?;
                    }
                    return Err(error.into());
                }
            }
        }
        Ok(Some(parts))
    }

    async fn archived(&self, span: Range) -> Result<Multiset<Digest>, RoundError> {
        Ok(self.ctx.stored(self.stream, span).await?.into_iter().map(|event| event.digest).collect())
    }

    /// Another padding at each re-scan, so that bounds fall elsewhere.
    fn rescan_pad(&self, span: Range) -> i64 {
        let done = self.windows.get(&self.index.of(span.start).start).map_or(0, |held| held.rescans as usize);
        RESCAN_PAD_SECONDS[done.min(RESCAN_PAD_SECONDS.len() - 1)]
    }
}

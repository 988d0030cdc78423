//! Reads several spans in parallel: settles windows past their lag, and re-scans settled windows.

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use crate::collect::{CountedEvent, PaddedRange, Segment, SpanReader};
use crate::model::{Digest, Multiset, Range};
use crate::pipeline::commit::Batch;
use crate::pipeline::error::RoundError;
use crate::pipeline::plan::SpanPlanner;
use crate::pipeline::read::round::{PAD_SECONDS, Purpose, Round};
use crate::pipeline::settings::{READ_EVENTS_MAX, RESCAN_EVENTS_MAX, RESCAN_WALK_EVENTS_MAX, WALK_EVENTS_MAX};
use crate::pipeline::team::{Permit, split_off};

/// Seconds of padding of the re-scans. Each re-scan shifts the bounds.
const RESCAN_PAD_SECONDS: [i64; 3] = [61, 601, 3601];

/// A segment with the room for its events, and the reading that continues after it.
type Step = (Range, SpanReader, Option<(Segment, Permit)>);

impl Round<'_> {
    /// Reads several spans at once, and sends each segment to the commit stage as soon as it is read. After an error it
    /// begins no more spans, and finishes the current ones.
    pub async fn spans(&self, mut planner: SpanPlanner, purpose: Purpose) -> Result<(), RoundError> {
        self.ctx.progress.planned(&self.ctx.team, self.stream, planner.seconds_left());
        let mut readings = FuturesUnordered::new();
        let (mut is_first, mut failed) = (true, None);
        loop {
            while failed.is_none() && readings.len() < self.ctx.readings_at_once() {
                // A round that is out of time still makes some progress: it reads the first span.
                if !is_first && self.ctx.is_out_of_time() && !planner.is_empty() {
                    // A re-scan reads old events again, so read points do not wait for it.
                    self.ctx.leave_rest((purpose == Purpose::Settle).then_some(self.stream));
                    break;
                }
                let Some(span) = planner.next_span() else { break };
                is_first = false;
                readings.push(self.step(span, None, purpose));
            }
            match readings.next().await {
                None => return failed.map_or(Ok(()), Err),
                Some(Err(error)) => failed = failed.or(Some(error)),
                Some(Ok((span, reader, step))) => {
                    let Some((segment, permit)) = step else { continue };
                    // Events in the padding of a re-scan say nothing about the span: the span would become ever shorter.
                    planner.learn(segment.range, segment.owned_by(segment.range));
                    self.note_read(&segment);
                    let batch = self.batch_of(segment, purpose).await?;
                    self.ctx.inbox.add(batch.within(permit)).await?;
                    if !reader.is_done() {
                        readings.push(self.step(span, Some(reader), purpose));
                    }
                }
            }
        }
    }

    /// Reads the next segment of a span. The first reading of the span has no reader.
    async fn step(&self, span: Range, reader: Option<SpanReader>, purpose: Purpose) -> Result<Step, RoundError> {
        let mut reader = match reader {
            Some(reader) => reader,
            None => self.reader(span, purpose).await?,
        };
        let room = if purpose == Purpose::Settle { READ_EVENTS_MAX } else { RESCAN_EVENTS_MAX };
        let mut permit = self.ctx.reserve(room).await?;
        let read = async move {
            let segment = reader.next().await;
            (reader, segment)
        };
        let (reader, segment) = self.ctx.workers.spawn(read).await;
        match segment {
            Ok(segment) => {
                drop(split_off(
                    &mut permit,
                    segment.as_ref().map_or(0, |segment| CountedEvent::total_size(&segment.events)),
                ));
                Ok((span, reader, segment.map(|segment| (segment, permit))))
            }
            Err(error) => {
                let (events, _) = reader.into_partial();
                let mut batch = Batch::default();
                self.add_events(&mut batch, events);
                self.ctx.inbox.add(batch.within(permit)).await?;
                Err(error.into())
            }
        }
    }

    async fn reader(&self, span: Range, purpose: Purpose) -> Result<SpanReader, RoundError> {
        let (pad, events_max, prior) = match purpose {
            Purpose::Settle => (PAD_SECONDS, WALK_EVENTS_MAX, None),
            Purpose::Rescan => (self.rescan_pad(span), RESCAN_WALK_EVENTS_MAX, Some(self.archived(span).await?)),
        };
        let reader = SpanReader::new(self.lists.clone(), PaddedRange { range: span, pad }, events_max as u64, prior);
        Ok(reader.within(self.budget.clone()))
    }

    async fn archived(&self, span: Range) -> Result<Multiset<Digest>, RoundError> {
        let stream = self.stream;
        let stored = self.ctx.with_writer(move |writer| writer.rows().events_in(stream, span)).await?;
        Ok(stored.into_iter().map(|event| event.digest).collect())
    }

    /// Each re-scan has another padding, so its bounds are at other times.
    fn rescan_pad(&self, span: Range) -> i64 {
        let window = self.windows.of_event(span.start);
        let done = self.windows.held.get(&window.start).map_or(0, |held| held.rescans as usize);
        RESCAN_PAD_SECONDS[done.min(RESCAN_PAD_SECONDS.len() - 1)]
    }
}

//! Open windows: their new events, and events dated into the future.

use std::time::Duration;

use crate::api::ApiError;
use crate::archive::{EventKey, FindingKind, WalkPoint};
use crate::collect::{Lists, PaddedRange, PageLimit, TailEnd, TailReader, TailStart};
use crate::model::{Instant, Range};
use crate::pipeline::commit::{Batch, WindowChange};
use crate::pipeline::error::RoundError;
use crate::pipeline::settings::{READ_EVENTS_MAX, WALK_EVENTS_MAX};

use super::round::{PAD_SECONDS, Round};

/// Events are read this far into the future.
const LOOK_AHEAD: Duration = Duration::from_secs(400 * 86_400);

impl Round<'_> {
    /// Reads the new events of an open window. If some may be unread, this round makes no read point of the stream.
    pub async fn tail(&self, window: Range) -> Result<(), RoundError> {
        let asked = PaddedRange { range: window, pad: PAD_SECONDS };
        let held = self.windows.held.get(&window.start);
        let before = held.and_then(|held| held.walk.clone());
        let key = self.ctx.writer().await.salts().event_key()?;
        let point = before.as_ref().and_then(|point| decode_point(point, &key));
        let start = TailStart::of(point, held.map_or(0, |held| held.events));
        let mut reader = TailReader::new(self.lists.clone(), asked, start, WALK_EVENTS_MAX);
        let mut rest = window;
        while reader.end().is_none() {
            let permit = self.ctx.reserve(READ_EVENTS_MAX).await?;
            let Some(chunk) = reader.next().await? else { break };
            self.ctx.service().observe(chunk.ended_at);
            self.ctx.progress.read(&self.ctx.team, self.stream, window, chunk.events.len() as u64, false);
            let mut batch = Batch::default();
            batch.findings = self.left_meanwhile(rest, chunk.ended_at).await;
            rest.start = chunk.events.iter().filter_map(|held| held.event.at()).fold(rest.start, Instant::max);
            let walk = chunk.point.map(|point| encode_point(point, &key)).filter(|point| point.offset > 0);
            if batch.findings.is_empty() && chunk.events.is_empty() && (walk.is_none() || walk == before) {
                continue;
            }
            let mut change = WindowChange::new(self.stream, window, chunk.began_at.unwrap_or(self.now));
            (change.walks, change.requests, change.walk) = (chunk.stats.walks, chunk.stats.requests, walk);
            self.note_anomalies(&mut batch, window, chunk.stats.anomalies);
            batch.changes.push(change);
            self.add_events(&mut batch, chunk.events);
            self.ctx.inbox.add(batch.within(permit)).await?;
        }
        match reader.end() {
            Some(TailEnd::Whole) | None => return Ok(()),
            Some(TailEnd::Moved) => {}
            Some(TailEnd::Silent) if self.is_emptied(window).await? => return Ok(()),
            Some(TailEnd::Silent) => {
                let why = "the service answered with an empty list, but the archive holds events of this window";
                let finding = self.finding(FindingKind::Silence, &window.to_string(), window, why);
                self.ctx.add(|batch| batch.deferred_findings.push(finding)).await?;
            }
        }
        tracing::warn!(team = %self.ctx.team, stream = %self.stream, %window, "an open window was not read whole: the next round reads it again");
        self.ctx.deferred().unread.insert(self.stream);
        Ok(())
    }

    /// Reads events with future dates into their own windows. Read points do not follow them. A refusal loses nothing:
    /// the windows are read later at their own time.
    pub async fn look_ahead(&self) -> Result<(), RoundError> {
        let from = self.windows.of_event(self.now).end.min(Instant::LATEST);
        let asked =
            PaddedRange { range: Range::new(from, from.plus(LOOK_AHEAD).min(Instant::LATEST)), pad: PAD_SECONDS };
        // A refusal must not count as a refusal of the page size.
        let limit = PageLimit::fixed(self.lists.limit.events());
        let lists = Lists { limit, ..self.lists.clone() };
        let mut reader = TailReader::new(lists, asked, TailStart::Point(0, Vec::new()), WALK_EVENTS_MAX);
        let refused = |error: ApiError| {
            tracing::debug!(stream = %self.stream, %error, "the service refused to list future events");
            None
        };
        loop {
            let permit = self.ctx.reserve(READ_EVENTS_MAX).await?;
            let Some(chunk) = reader.next().await.unwrap_or_else(refused) else { return Ok(()) };
            let mut batch = Batch::default();
            self.add_events(&mut batch, chunk.events);
            self.ctx.inbox.add(batch.within(permit)).await?;
        }
    }
}

fn decode_point(point: &WalkPoint, key: &EventKey) -> Option<(u64, Vec<[u8; 16]>)> {
    let anchors = point.anchors.iter().map(|anchor| {
        let mut bytes = [0; 16];
        hex::decode_to_slice(anchor, &mut bytes).ok().map(|()| key.decrypt(bytes))
    });
    Some((point.offset, anchors.collect::<Option<Vec<_>>>()?))
        .filter(|(offset, anchors)| anchors.len() as u64 <= *offset)
}

fn encode_point((offset, anchors): (u64, Vec<[u8; 16]>), key: &EventKey) -> WalkPoint {
    WalkPoint { offset, anchors: anchors.into_iter().map(|anchor| hex::encode(key.encrypt(anchor))).collect() }
}

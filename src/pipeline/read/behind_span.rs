//! Connections that left the plan's span before they were read.

use std::time::Duration;

use crate::archive::{Finding, FindingKind, StreamRecord};
use crate::model::ranges::clip;
use crate::model::{Instant, Range, Stream};
use crate::pipeline::loss::{PLAN_SPAN, ReadHistory};
use crate::pipeline::read::round::Round;
use crate::pipeline::team::TeamContext;
use crate::planted::{self, Bug};

/// The gaps of connections that no reading holds, and that `plan_span` no longer shows at `now`.
pub async fn gaps_behind_span(ctx: &TeamContext, plan_span: Option<Duration>, now: Instant) -> Vec<Finding> {
    let Some(span) = plan_span.filter(|_| ctx.settings.reads(Stream::Connections)) else { return Vec::new() };
    let points = ctx.memory.points(Stream::Connections);
    let (recorded, history) = ctx
        .with_state(|state| {
            let recorded = state.streams.get(&Stream::Connections).and_then(StreamRecord::plan_span);
            (recorded, ReadHistory::of(state, &points, &ctx.settings))
        })
        .await;
    let longest = recorded.map_or(span, |held| held.max(span));
    let reason =
        "Annals did not finish reading this time within the plan's span: the service may no longer show its events";
    let gap = |range| Finding::new(Some(Stream::Connections), FindingKind::Gap, PLAN_SPAN, reason, now).over(range);
    let is_read = |gap: &Finding| ctx.settings.until.is_none_or(|until| gap.from < Some(until));
    let unread = history.unread_behind(span, longest, now).into_iter().filter(|_| !planted::is(Bug::NoSpanGap));
    unread.map(gap).filter(is_read).collect()
}

impl Round<'_> {
    /// The gaps of events of `part` that left the plan's span after the round began. The reading of the part ended at `read_by`.
    pub async fn left_meanwhile(&self, part: Range, read_by: Option<Instant>) -> Vec<Finding> {
        let read_by = read_by.filter(|read_by| self.now < *read_by && self.stream == Stream::Connections);
        let Some((span, read_by)) = self.plan_span.zip(read_by) else { return Vec::new() };
        // Earlier events lie in the gap of the round's start.
        let left = Range { start: self.now.minus(span), end: read_by.minus(span) };
        let Some(left) = clip(part, left) else { return Vec::new() };
        let gaps = gaps_behind_span(self.ctx, self.plan_span, read_by).await.into_iter();
        gaps.filter_map(|gap| clip(gap.range()?, left).map(|range| gap.over(range))).collect()
    }
}

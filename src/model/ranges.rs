//! Sets of half-open ranges.

use super::Range;

/// The union of `ranges` and `added`, disjoint and in order. Neighbours become one range.
pub fn union(ranges: &[Range], added: Range) -> Vec<Range> {
    merge(ranges.iter().copied().chain([added]))
}

/// The union of `ranges`, as [`union`] gives it.
pub fn merge(ranges: impl IntoIterator<Item = Range>) -> Vec<Range> {
    let mut all: Vec<Range> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
    all.sort();
    let mut merged: Vec<Range> = Vec::with_capacity(all.len());
    for range in all {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// The parts of `whole` in none of `ranges`, which are disjoint and in order.
pub fn missing(whole: Range, ranges: &[Range]) -> Vec<Range> {
    let mut open = Vec::new();
    let mut from = whole.start;
    for range in ranges.iter().filter(|range| range.overlaps(&whole)) {
        if from < range.start {
            open.push(Range::new(from, range.start));
        }
        from = from.max(range.end);
    }
    if from < whole.end {
        open.push(Range::new(from, whole.end));
    }
    open
}

/// The part of `range` in `within`, if there is one.
pub fn clip(range: Range, within: Range) -> Option<Range> {
    range.overlaps(&within).then(|| Range::new(range.start.max(within.start), range.end.min(within.end)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Instant;
    use proptest::prelude::*;

    fn range(start: i64, end: i64) -> Range {
        Range::new(Instant::from_seconds(start), Instant::from_seconds(end))
    }

    proptest! {
        #[test]
        fn held_and_missing_parts_add_up_to_the_whole_range(parts in prop::collection::vec((0_i64..100, 1_i64..30), 0..8)) {
            let whole = range(0, 100);
            let held = parts.iter().fold(Vec::new(), |held, (start, length)| union(&held, range(*start, start + length)));
            let open = missing(whole, &held);
            for second in 0..100 {
                let at = Instant::from_seconds(second);
                let in_parts = parts.iter().any(|(start, length)| range(*start, start + length).owns(at));
                prop_assert_eq!(held.iter().filter(|r| r.owns(at)).count(), usize::from(in_parts));
                prop_assert_eq!(open.iter().filter(|r| r.owns(at)).count(), usize::from(!in_parts));
            }
        }
    }
}

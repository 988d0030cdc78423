//! Billing by comparison of snapshots: the service shows only its ten newest entries.

use crate::archive::SnapshotEntry;
use crate::planted::{self, Bug};

/// Entries that the service shows at most.
pub const SNAPSHOT_ENTRIES_MAX: usize = 10;

/// How a snapshot, newest first, joins the snapshot before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    /// The first snapshot.
    First,
    /// No entry between the two snapshots is lost.
    Joined,
    /// The same, but equal entries allow several numbers of new entries.
    Ambiguous,
    /// The oldest entry shown is new: entries between the two snapshots may be lost.
    Overrun,
}

/// Compares a snapshot with the snapshot before it.
pub fn compare(before: &[SnapshotEntry], now: &[SnapshotEntry], is_first: bool) -> Overlap {
    if is_first {
        return Overlap::First;
    }
    // Fewer than ten entries are the whole billing history, unless the list is shorter than before: entries are only added. An
    // empty list says nothing.
    if now.is_empty() || (now.len() < SNAPSHOT_ENTRIES_MAX && before.len() <= now.len()) {
        return Overlap::Joined;
    }
    let fits: Vec<usize> = (0..now.len()).filter(|&new| fits(before, &now[new..])).collect();
    match fits.as_slice() {
        [new, _, ..] if *new > 0 => Overlap::Ambiguous,
        [_, ..] => Overlap::Joined,
        // A known entry further up can be a corrected one, which the service shows among new ones.
        [] if now.last().is_some_and(|oldest| before.iter().any(|known| same(oldest, known))) => Overlap::Joined,
        [] if planted::is(Bug::NoBillingGap) => Overlap::Joined,
        [] => Overlap::Overrun,
    }
}

/// Counts the equal entries without id at the old end of the answer. The service may hide more of these equal entries,
/// and no answer can show how many. Zero if the answer is not full: a short answer hides nothing.
pub fn duplicates_at_the_end(before: &[SnapshotEntry], now: &[SnapshotEntry]) -> usize {
    if now.len() < SNAPSHOT_ENTRIES_MAX {
        return 0;
    }
    let times =
        |shown: &[SnapshotEntry], entry: &SnapshotEntry| shown.iter().filter(|other| same(other, entry)).count();
    let is_equal = |entry: &&SnapshotEntry| entry.id.is_none() && (times(now, entry) > 1 || times(before, entry) > 1);
    now.iter().rev().take_while(is_equal).count()
}

/// The snapshot for the next comparison: this one. If it is shorter than the snapshot before it, it keeps the missing entries.
pub fn next_snapshot(before: &[SnapshotEntry], now: &[SnapshotEntry]) -> Vec<SnapshotEntry> {
    let hidden = before.iter().filter(|known| now.len() < before.len() && !now.iter().any(|entry| same(entry, known)));
    now.iter().chain(hidden).take(SNAPSHOT_ENTRIES_MAX).cloned().collect()
}

/// Whether the former snapshot continues where `rest` begins.
fn fits(before: &[SnapshotEntry], rest: &[SnapshotEntry]) -> bool {
    !before.is_empty() && rest.iter().zip(before).all(|(entry, known)| same(entry, known))
}

/// Whether two entries are the same: by id, because the service may edit the content. Without an id, by content.
fn same(a: &SnapshotEntry, b: &SnapshotEntry) -> bool {
    match (&a.id, &b.id) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a.digest == b.digest,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Digest;

    /// Letters are entries with ids; digits are entries without.
    fn snapshot(text: &str) -> Vec<SnapshotEntry> {
        let entry = |c: char| SnapshotEntry {
            id: c.is_alphabetic().then(|| c.to_string()),
            digest: Digest::of(c.to_string().as_bytes()),
        };
        text.chars().map(entry).collect()
    }

    #[test]
    fn snapshots_join_by_their_overlap() {
        for (scenario, before, now, expected) in [
            ("nothing new", "jihgfedcba", "jihgfedcba", Overlap::Joined),
            ("two new", "jihgfedcba", "lkjihgfedc", Overlap::Joined),
            ("nine new, one left", "jihgfedcba", "srqponmlkj", Overlap::Joined),
            ("ten new", "jihgfedcba", "tsrqponmlk", Overlap::Overrun),
            ("from few to ten, joined", "cba", "jihgfedcba", Overlap::Joined),
            ("from none to ten", "", "jihgfedcba", Overlap::Overrun),
            ("fewer than ten are the whole history", "cba", "xyz", Overlap::Joined),
            ("one answer is empty", "jihgfedcba", "", Overlap::Joined),
            ("fewer than before", "jihgfedcba", "kjih", Overlap::Joined),
            ("fewer than before, none of them known", "jihgfedcba", "onm", Overlap::Overrun),
            ("an entry vanished in the middle", "jihgfedcba", "kjigfedcba", Overlap::Joined),
            ("a corrected entry before old ones", "jihgfedcba", "ekjihgfdcb", Overlap::Joined),
            ("a corrected entry before new ones", "jihgfedcba", "evutsrqpon", Overlap::Overrun),
            ("a corrected entry among new ones", "jihgfedcba", "vutsreqpon", Overlap::Overrun),
            ("equal entries, no change", "1111111111", "1111111111", Overlap::Joined),
            ("equal entries allow several overlaps", "1212121212", "3412121212", Overlap::Ambiguous),
        ] {
            assert_eq!(compare(&snapshot(before), &snapshot(now), false), expected, "{scenario}");
        }
        assert_eq!(compare(&[], &snapshot("jihgfedcba"), true), Overlap::First);
    }

    #[test]
    fn a_full_answer_that_ends_in_equal_entries_may_hide_more_of_them() {
        for (scenario, before, now, expected) in [
            ("entries with ids", "jihgfedcba", "jihgfedcba", 0),
            ("entries without ids, all different", "9876543210", "9876543210", 0),
            ("equal entries before others", "11hgfedcba", "x11hgfedcb", 0),
            ("equal entries at the end", "abcdefgh11", "abcdefgh11", 2),
            ("an entry without an equal one", "bcdefghijk", "abcdefghi1", 0),
            ("only one of two equal entries is still shown", "abcdefgh11", "xabcdefgh1", 1),
            ("only equal entries", "1111111111", "1111111111", 10),
            ("two kinds in turns", "1212121212", "ab12121212", 8),
            ("fewer than ten are all there are", "11", "111", 0),
        ] {
            assert_eq!(duplicates_at_the_end(&snapshot(before), &snapshot(now)), expected, "{scenario}");
        }
    }

    #[test]
    fn a_shorter_snapshot_keeps_the_known_entries() {
        for (before, now, expected) in [
            ("jihgfedcba", "", "jihgfedcba"),
            ("jihgfedcba", "kji", "kjihgfedcb"),
            ("jihgfedcba", "kjihgfedcb", "kjihgfedcb"),
            ("cba", "dcba", "dcba"),
        ] {
            assert_eq!(next_snapshot(&snapshot(before), &snapshot(now)), snapshot(expected), "{before} {now}");
        }
    }

    #[test]
    fn an_edited_entry_counts_as_the_same_entry() {
        let before = snapshot("jihgfedcba");
        let mut now = before.clone();
        now[3].digest = Digest::of(b"edited");
        assert_eq!(compare(&before, &now, false), Overlap::Joined);
    }
}

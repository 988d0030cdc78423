//! What a report says about itself: the coverage of its period, and reasons to doubt its rows.

pub(super) mod about;
pub(super) mod coverage;
pub(super) mod roster_reads;
pub(super) mod sessions_behind;
pub(super) mod without_text;

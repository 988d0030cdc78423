//! Deletion: retention and the months that it lets expire, holds, erasure, and the removal of files that no line names.

pub(super) mod active_holds;
pub(super) mod due_months;
pub(super) mod erase;
pub(super) mod expiry_record;
pub(super) mod expiry_rules;
pub(super) mod hold;
pub(super) mod published;
pub(super) mod vacuum;

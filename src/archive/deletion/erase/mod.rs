//! Erasure: an order replaces every value of a subject, in every row, by a pseudonym. Nobody can compute the value from it.
//!
//! 1. A scratch file keeps the order and its random key until the order is done. So an interrupted order continues with the same
//!    pseudonyms, and afterwards nobody has the key.
//! 2. For each team, the writer writes the files that hold the subject again. A ledger line replaces the old files by the new
//!    ones; its sums prove that nothing else changed. If this takes long, several lines do so, one after the other.
//! 3. The writer removes the old files at once, together with all other files that no line names.
//!
//! An order that is given again continues with the remaining teams: a finished team holds no row of the subject.

mod eraser;
mod execute;
mod order;
mod order_holds;
mod record;
mod rules;
mod scan;
mod strings;
mod subject;

pub use execute::Erasure;
pub use order::{Order, PendingOrder};
pub use order::{is_order, order_path};
pub use record::{ErasedPart, ErasedRecord, ResaltedFile, check_order};
pub use scan::FoundRow;
pub use subject::Subject;

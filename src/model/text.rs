//! Short texts, of which rows are full.

/// A text of up to 23 bytes takes no memory of its own; a longer one is shared by its copies.
pub type Text = smol_str::SmolStr;

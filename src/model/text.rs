//! Short texts, for rows.

/// A text of up to 23 bytes needs no heap memory; copies of a longer one share its memory.
pub type Text = smol_str::SmolStr;

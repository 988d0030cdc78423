//! The columns with words of the program or of the service.

/// Columns with sentences of the program or of the service, and ids that name no person.
const SENTENCES: [&str; 24] = [
    "after",
    "before",
    "change",
    "confirmed_by",
    "connection_id",
    "detail",
    "event",
    "head_sha256",
    "kept_by",
    "line_sha256",
    "order_id",
    "pack_sha256",
    "path",
    "pattern",
    "policy",
    "reason",
    "reasons",
    "reports",
    "subject",
    "team",
    "team_id",
    "via",
    "what",
    "why",
];
/// Columns with only words. A computer can have the name of such a word, for example `high`: the word stays.
const WORDS: [&str; 26] = [
    "class",
    "code",
    "connection_type",
    "end_state",
    "event_type",
    "gap_reasons",
    "kind",
    "outcome",
    "payment",
    "remote_access",
    "removed_known_by",
    "result",
    "role",
    "scopes",
    "second_factor",
    "severity",
    "sign_in_methods",
    "since_known",
    "source",
    "source_type",
    "standing",
    "state",
    "stream",
    "tunnel_id",
    "verdict",
    "weekday",
];

/// What a text column holds.
#[derive(Clone, Copy)]
pub enum Content {
    Value,
    Sentence,
    Word,
}

impl Content {
    /// What a column of this name holds.
    pub fn of(column: &str) -> Self {
        match column {
            word if WORDS.contains(&word) => Content::Word,
            sentence if SENTENCES.contains(&sentence) => Content::Sentence,
            _ => Content::Value,
        }
    }
}

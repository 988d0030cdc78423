//! A sandbox as one JSON file: its configuration and all later changes. The file omits what the seed makes.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::model::{DeviceId, Instant};

use super::admin::TeamState;
use super::choices::Choices;
use super::fault_rules::CountedRule;
use super::issued::{Issued, Minute};
use super::overlay::{TextEvent, Withdrawal};
use super::stream_store::Changes;
use super::time::SavedClock;

/// Raise this with every change of the format.
pub(super) const FORMAT: u64 = 2;

/// Why a saved sandbox cannot be loaded.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SavedError {
    #[error("the text cannot be read as a saved sandbox: {0}")]
    Unreadable(String),
    #[error(
        "the saved sandbox has format {format}{}, and this is annals {}, which reads format {FORMAT}: load it with \
         the version that saved it",
        .saved_by.as_ref().map(|version| format!(", saved by annals {version}")).unwrap_or_default(),
        env!("CARGO_PKG_VERSION")
    )]
    Format { format: u64, saved_by: Option<String> },
    #[error("the saved sandbox has other data than this sandbox: start a sandbox with it (annals sandbox --load FILE)")]
    OtherData,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saved {
    pub(super) format: u64,
    /// The version of Annals that saved it. The error message of an unreadable format shows it.
    pub(super) saved_by: String,
    pub(super) made_of: DataConfig,
    pub(super) clock: SavedClock,
    pub(super) choices: Choices,
    pub(super) faults: Vec<CountedRule>,
    pub(super) tokens: BTreeMap<String, Issued>,
    /// The counters of the rate limit.
    pub(super) minute: Minute,
    pub(super) teams: Vec<SavedTeam>,
}

/// The part of the configuration that determines the synthetic data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DataConfig {
    pub(super) seed: u64,
    pub(super) teams: u32,
    pub(super) days: u32,
    pub(super) sessions_per_day: u32,
    pub(super) people_per_team: u32,
    pub(super) computers_per_team: u32,
    pub(super) end: Instant,
    pub(super) days_ahead: u32,
    pub(super) late_per_million: u32,
    pub(super) late_up_to_ms: u64,
    pub(super) dense_every_days: u32,
    pub(super) odd_events: bool,
    pub(super) plan_span_seconds: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedTeam {
    pub(super) state: TeamState,
    pub(super) activity: SavedChanges,
    pub(super) connections: SavedChanges,
    pub(super) billing: Vec<SavedEvent>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedChanges {
    pub(super) events: Vec<SavedEvent>,
    /// Removed computers of the synthetic history, by position.
    removed: BTreeMap<u32, Instant>,
    /// First and last position, and the time of the deletion.
    withdrawn: Vec<(u32, u32, Instant)>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedEvent {
    /// The event's text; for bytes that are not UTF-8, the other field holds them in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw_hex: Option<String>,
    at: Instant,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    device: Option<DeviceId>,
    visible_from: Instant,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    visible_until: Option<Instant>,
}

impl Saved {
    /// Reads a saved sandbox.
    ///
    /// # Errors
    /// When the text is not a saved sandbox, or has another format.
    pub fn parse(text: &[u8]) -> Result<Self, SavedError> {
        Self::read(serde_json::from_slice(text).map_err(unreadable)?)
    }

    /// # Errors
    /// As [`Saved::parse`].
    pub(super) fn read(value: Value) -> Result<Self, SavedError> {
        match value.get("format").and_then(Value::as_u64) {
            Some(FORMAT) => serde_json::from_value(value).map_err(unreadable),
            Some(format) => {
                let saved_by = value.get("saved_by").and_then(Value::as_str).map(str::to_owned);
                Err(SavedError::Format { format, saved_by })
            }
            None => Err(unreadable("it has no format")),
        }
    }
}

fn unreadable(error: impl ToString) -> SavedError {
    SavedError::Unreadable(error.to_string())
}

impl SavedChanges {
    pub(super) fn of(changes: &Changes) -> Self {
        let withdrawn = |one: &Withdrawal| (one.positions.start, one.positions.end, one.at);
        Self {
            events: changes.text_events.iter().map(SavedEvent::of).collect(),
            removed: changes.removed.iter().map(|(&place, &at)| (place, at)).collect(),
            withdrawn: changes.withdrawals.iter().map(withdrawn).collect(),
        }
    }

    pub(super) fn changes(self) -> Result<Changes, SavedError> {
        let withdrawal = |(start, end, at): (u32, u32, Instant)| Withdrawal { positions: start..end, at };
        Ok(Changes {
            text_events: self.events.into_iter().map(SavedEvent::extra).collect::<Result<_, _>>()?,
            removed: self.removed.into_iter().collect(),
            withdrawals: self.withdrawn.into_iter().map(withdrawal).collect(),
        })
    }
}

impl SavedEvent {
    pub(super) fn of(extra: &TextEvent) -> Self {
        let text = std::str::from_utf8(&extra.raw).ok().map(str::to_owned);
        Self {
            raw_hex: text.is_none().then(|| hex::encode(&extra.raw)),
            raw: text,
            at: extra.at,
            device: extra.device.clone(),
            visible_from: extra.visible_from,
            visible_until: extra.visible_until,
        }
    }

    pub(super) fn bytes(&self) -> Result<Bytes, SavedError> {
        match (&self.raw, &self.raw_hex) {
            (Some(text), None) => Ok(Bytes::copy_from_slice(text.as_bytes())),
            (None, Some(hex)) => hex::decode(hex).map(Bytes::from).map_err(unreadable),
            _ => Err(unreadable("an event has one of raw and raw_hex")),
        }
    }

    pub(super) fn extra(self) -> Result<TextEvent, SavedError> {
        let raw = self.bytes()?;
        let Self { at, device, visible_from, visible_until, .. } = self;
        Ok(TextEvent { raw, at, device, visible_from, visible_until })
    }
}

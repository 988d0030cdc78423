//! The vocabulary: what every room speaks. Pure, and knows no other room.

mod digest;
mod duration;
mod event;
mod ids;
mod instant;
mod inventory;
mod grace;
mod location;
mod multiset;
mod row;
mod session;
mod severity;
mod shard;
mod stream;
mod text;
mod texts;
mod when;
mod window;

pub use digest::{Digest, DigestHasher, DigestMap};
pub use duration::parse_duration;
pub use event::{EventIdentity, RawEvent, ServedTime};
pub use grace::{GRACE_BUCKET, GRACE_LOCAL, GRACE_MIN};
pub use ids::{ConnectionId, DeviceId, EventId, LedgerSeq, TeamId};
pub use instant::{Instant, NANOS_PER_SECOND, TimeError, TimeUnit};
pub use inventory::{InventoryColumn, InventoryKind, InventoryPart, InventoryRow, InventoryValue};
pub use location::{BucketLocation, Location, LocationError, Scheme};
pub use multiset::Multiset;
pub use row::{ConnectionDetail, ConnectionTexts, Detail, EventRow, RejectRow, RowRef};
pub use session::{ConnectionEvent, KeptConnectionEvent, Outcome, SESSION_DETAILS, SessionRow, SessionTexts};
pub use severity::Severity;
pub use shard::{SHARDS_MAX, Shard};
pub use stream::Stream;
pub use text::Text;
pub use when::When;
pub use window::{Range, WindowGrid};

//! The requests of a round's scan.

use crate::model::InventoryPart;

/// After this number of refusals without an answer, the scan assumes that the token may not see any user's sign-in info.
pub const REFUSALS_MAX: usize = 3;

/// A request, and the parts that its answer shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanRequest {
    Team,
    Computers,
    Users,
    SsoUsers,
}

impl ScanRequest {
    pub const ALL: [ScanRequest; 4] =
        [ScanRequest::Team, ScanRequest::Computers, ScanRequest::Users, ScanRequest::SsoUsers];

    pub const fn parts(self) -> &'static [InventoryPart] {
        match self {
            ScanRequest::Team => &[InventoryPart::Team, InventoryPart::Groups, InventoryPart::Memberships],
            ScanRequest::Computers => &[InventoryPart::Computers, InventoryPart::Grants],
            ScanRequest::Users => &[InventoryPart::Users],
            ScanRequest::SsoUsers => &[InventoryPart::SsoUsers],
        }
    }
}

//! A team's people, computers and groups as rows: `inventory` makes them, `archive` keeps them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One table of the inventory, and one dataset of the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InventoryPart {
    Team,
    Users,
    SsoUsers,
    Computers,
    Groups,
    Memberships,
    Grants,
    /// Each user's sign-in methods.
    SignIn,
    /// Each user's tokens, by title; never the tokens themselves.
    Tokens,
}

/// The type of an inventory column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InventoryKind {
    Text,
    Int,
    Flag,
    /// UTC, microseconds.
    Time,
}

/// One column of a part. Key columns are texts and never null; the others can be null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InventoryColumn {
    pub name: &'static str,
    pub kind: InventoryKind,
}

/// One value of a column.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::EnumTryAs)]
#[serde(untagged)]
pub enum InventoryValue {
    /// Missing in the answer, or not usable.
    Unknown,
    Text(String),
    Int(i64),
    Flag(bool),
    /// Microseconds since the epoch.
    Time(i64),
}

/// One entry of a part, as a read showed it, or as gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InventoryRow {
    /// The values of the part's key columns.
    pub key: Vec<String>,
    /// The service's time at the read, in microseconds since the epoch; no two rows of one key have the same.
    pub seen_at: i64,
    /// False if the entry is gone; the values are its last ones.
    pub present: bool,
    /// True if the row repeats the key's previous row: so one month can be read without earlier ones, and each read of a user
    /// is recorded. The views leave out such rows.
    pub repeats: bool,
    /// The values of the part's other columns.
    pub values: Vec<InventoryValue>,
}

const fn text(name: &'static str) -> InventoryColumn {
    InventoryColumn { name, kind: InventoryKind::Text }
}

const fn time(name: &'static str) -> InventoryColumn {
    InventoryColumn { name, kind: InventoryKind::Time }
}

const fn flag(name: &'static str) -> InventoryColumn {
    InventoryColumn { name, kind: InventoryKind::Flag }
}

const fn int(name: &'static str) -> InventoryColumn {
    InventoryColumn { name, kind: InventoryKind::Int }
}

impl InventoryPart {
    pub const ALL: [InventoryPart; 9] = [
        InventoryPart::Team,
        InventoryPart::Users,
        InventoryPart::SsoUsers,
        InventoryPart::Computers,
        InventoryPart::Groups,
        InventoryPart::Memberships,
        InventoryPart::Grants,
        InventoryPart::SignIn,
        InventoryPart::Tokens,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            InventoryPart::Team => "team",
            InventoryPart::Users => "users",
            InventoryPart::SsoUsers => "sso_users",
            InventoryPart::Computers => "computers",
            InventoryPart::Groups => "groups",
            InventoryPart::Memberships => "memberships",
            InventoryPart::Grants => "grants",
            InventoryPart::SignIn => "sign_in",
            InventoryPart::Tokens => "tokens",
        }
    }

    /// The name of the dataset and of the view.
    pub const fn table(self) -> &'static str {
        match self {
            InventoryPart::Team => "inventory_team",
            InventoryPart::Users => "inventory_users",
            InventoryPart::SsoUsers => "inventory_sso_users",
            InventoryPart::Computers => "inventory_computers",
            InventoryPart::Groups => "inventory_groups",
            InventoryPart::Memberships => "inventory_memberships",
            InventoryPart::Grants => "inventory_grants",
            InventoryPart::SignIn => "inventory_sign_in",
            InventoryPart::Tokens => "inventory_tokens",
        }
    }

    /// The columns that identify one entry of the part, together with the team's id.
    pub const fn keys(self) -> &'static [&'static str] {
        match self {
            InventoryPart::Team => &[],
            InventoryPart::Users | InventoryPart::SsoUsers | InventoryPart::SignIn => &["user_id"],
            InventoryPart::Computers => &["device_id"],
            InventoryPart::Groups => &["group_id"],
            InventoryPart::Memberships => &["group_id", "member_kind", "member_id"],
            InventoryPart::Grants => &["device_id", "grantee_kind", "grantee_id"],
            InventoryPart::Tokens => &["user_id", "token_key"],
        }
    }

    /// The kept columns of one entry: the allow-list. JSON columns are texts: `auth_providers`, `scopes` and `tags` are sorted
    /// lists of strings, `annotations` and `plan_features` are objects.
    pub const fn columns(self) -> &'static [InventoryColumn] {
        const TEAM: [InventoryColumn; 5] = [
            text("name"),
            time("created_at"),
            int("device_events_max_retrieval_s"),
            text("plan_features"),
            flag("limited_view"),
        ];
        const USERS: [InventoryColumn; 11] = [
            text("email"),
            text("first_name"),
            text("last_name"),
            text("role"),
            text("remote_access"),
            flag("totp_enabled"),
            text("auth_providers"),
            time("last_used_at"),
            flag("scim"),
            text("annotations"),
            time("joined_on"),
        ];
        const SSO_USERS: [InventoryColumn; 4] = [text("email"), text("first_name"), text("last_name"), flag("scim")];
        const COMPUTERS: [InventoryColumn; 7] = [
            text("name"),
            time("last_online_at"),
            text("tags"),
            text("annotations"),
            text("os_hostname"),
            text("os_platform"),
            text("os_version"),
        ];
        const GROUPS: [InventoryColumn; 3] = [text("name"), flag("scim_managed"), text("annotations")];
        const SIGN_IN: [InventoryColumn; 2] = [flag("totp_enabled"), text("auth_providers")];
        const TOKENS: [InventoryColumn; 5] =
            [text("title"), text("scopes"), time("last_used_at"), text("last_used_ip"), time("expires_at")];
        match self {
            InventoryPart::Team => &TEAM,
            InventoryPart::Users => &USERS,
            InventoryPart::SsoUsers => &SSO_USERS,
            InventoryPart::Computers => &COMPUTERS,
            InventoryPart::Groups => &GROUPS,
            InventoryPart::Memberships | InventoryPart::Grants => &[],
            InventoryPart::SignIn => &SIGN_IN,
            InventoryPart::Tokens => &TOKENS,
        }
    }
}

impl fmt::Display for InventoryPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

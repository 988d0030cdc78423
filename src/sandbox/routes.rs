//! The table of every path that the sandbox answers. The router, the body checks and the OpenAPI description use it.

use super::admin::{Field, Kind};

mod table;

pub(super) use table::ROUTES;

/// The path of the OpenAPI description. It needs no token.
pub(super) const OPENAPI_PATH: &str = "/openapi.json";

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Teams,
    Team,
    Devices,
    Device,
    RenameDevice,
    RemoveDevice,
    DeviceUrls,
    DeviceAnnotations,
    AnnotateDevice,
    UnannotateDevice,
    ReplaceAccess,
    AddAccess,
    RemoveAccess,
    AddAccessBulk,
    RemoveAccessBulk,
    CreateInstaller,
    RemoveInstaller,
    Users,
    InviteUser,
    RemoveInvite,
    ChangeUser,
    RemoveUser,
    UserInfo,
    RemoveTotp,
    SsoUsers,
    AddSsoUser,
    UserAnnotations,
    AnnotateUser,
    UnannotateUser,
    CreateGroup,
    RenameGroup,
    RemoveGroup,
    AddMembers,
    RemoveMembers,
    AddMembersBulk,
    RemoveMembersBulk,
    GroupAnnotations,
    AnnotateGroup,
    UnannotateGroup,
    History,
    DeviceEvents,
    DeviceHistory,
    Billing,
    // The sandbox's own operations begin here.
    Truth,
    Connect,
    Disconnect,
    Install,
    Join,
    Online,
    Mail,
    ConfirmTotp,
    SsoAccount,
    Settings,
    AgentConfig,
    Deletion,
    Migration,
    ScimGroup,
    IssueToken,
    Clock,
    SetClock,
    Choices,
    ChangeChoices,
    Faults,
    SetFaults,
    Saved,
    Load,
    OpenApi,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// A query parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parameter {
    pub name: &'static str,
    pub kind: ParameterKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterKind {
    Text,
    Flag,
    Integer,
    /// From 1 to the maximum for team histories (true) or computer histories, which a switch sets.
    Limit(bool),
    Offset,
    /// A repeated parameter.
    Ids,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Route {
    pub op: Op,
    pub method: Method,
    pub path: &'static str,
    pub summary: &'static str,
    pub query: &'static [Parameter],
    pub body: &'static [Field],
    /// The status of success.
    pub status: u16,
    /// The schema of the answer's body; `None`: the document shows no body.
    pub answer: Option<&'static str>,
}

impl Route {
    const fn new(op: Op, method: Method, path: &'static str, status: u16, summary: &'static str) -> Self {
        Self { op, method, path, summary, query: &[], body: &[], status, answer: None }
    }

    const fn query(self, query: &'static [Parameter]) -> Self {
        Self { query, ..self }
    }

    const fn body(self, body: &'static [Field]) -> Self {
        Self { body, ..self }
    }

    const fn answers(self, schema: &'static str) -> Self {
        Self { answer: Some(schema), ..self }
    }

    /// Whether the service's document has this path.
    pub(super) fn is_documented(&self) -> bool {
        self.path.starts_with("/v1/")
    }
}

/// The table's row of an operation.
pub(super) fn route_of(op: Op) -> &'static Route {
    ROUTES.iter().find(|route| route.op == op).expect("BUG: every operation has its row")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_rows_share_an_operation_or_a_method_and_path() {
        let ops: HashSet<String> = ROUTES.iter().map(|route| format!("{:?}", route.op)).collect();
        let places: HashSet<String> = ROUTES.iter().map(|route| format!("{:?} {}", route.method, route.path)).collect();
        assert_eq!((ops.len(), places.len()), (ROUTES.len(), ROUTES.len()));
        assert_eq!(ROUTES.iter().filter(|route| route.is_documented()).count(), 43);
    }
}

//! Every path that the sandbox answers, once: the router, the checks of bodies and the OpenAPI description are made of
//! this table.

use super::admin::{Field, Kind};

mod table;

pub(super) use table::ROUTES;

/// What a request asks for.
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
    // From here on: the sandbox's own.
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
    /// At least 1, and at most as the switch for team histories (true) or computer histories says.
    Limit(bool),
    Offset,
    /// Repeated, once each.
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
    /// The schema of what is answered then; none: no body is shown.
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

    /// Whether the documented service has it.
    pub(super) fn is_documented(&self) -> bool {
        self.path.starts_with("/v1/")
    }
}

/// The row of an operation.
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

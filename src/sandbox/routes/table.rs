//! The rows in the document's order, then the sandbox's own rows.

use super::Method::{Delete, Get, Patch, Post, Put};
use super::{Field, Kind, Op, Parameter, ParameterKind, Route};

const NAME: Kind = Kind::Text(0, 64);
const TEXT: Kind = Kind::Text(0, 256);
/// A hundred years: every time stays inside the calendar.
const SECONDS: Kind = Kind::Count(100 * 366 * 86_400);
const NUMBER: Kind = Kind::Count(1_000_000);

const RENAME: &[Field] = &[Field::required("name", NAME)];
const ANNOTATE: &[Field] = &[Field::required("annotations", Kind::Annotations)];
const UNANNOTATE: &[Field] = &[Field::required("annotationKeys", Kind::Keys)];
const ACCESS: &[Field] = &[Field::optional("users", Kind::Ids), Field::optional("groups", Kind::Ids)];
const ACCESS_BULK: &[Field] =
    &[Field::optional("devices", Kind::Ids), Field::optional("users", Kind::Ids), Field::optional("groups", Kind::Ids)];
const MEMBERS: &[Field] = &[Field::optional("users", Kind::Ids), Field::optional("devices", Kind::Ids)];
const MEMBERS_BULK: &[Field] =
    &[Field::optional("groups", Kind::Ids), Field::optional("users", Kind::Ids), Field::optional("devices", Kind::Ids)];
const INSTALLER: &[Field] = &[
    Field::optional("name", NAME),
    Field::optional("users", Kind::Ids),
    Field::optional("groups", Kind::Ids),
    Field::optional("expirySecs", SECONDS),
    Field::optional("singleUse", Kind::Flag),
    Field::optional("requireAuthentication", Kind::Flag),
];
const INVITE: &[Field] = &[
    Field::optional("sendTo", TEXT),
    Field::optional("singleUse", Kind::Flag),
    Field::optional("name", NAME),
    Field::optional("groups", Kind::Ids),
    Field::optional("devices", Kind::Ids),
];
const USER: &[Field] = &[
    Field::optional("role", Kind::OneOf(&["admin", "admin-read-only", "user"])),
    Field::optional("remoteAccess", Kind::OneOf(&["enabled", "disabled"])),
];
const GROUP: &[Field] = &[Field::required("name", Kind::Text(1, 64))];
const CONNECT: &[Field] = &[
    Field::optional("userID", TEXT),
    Field::optional("tunnelID", Kind::OneOf(&["fluid", "rdp", "vnc", "unknown"])),
    Field::optional("sourceType", Kind::OneOf(&["cloud", "directip", "unknown"])),
    Field::optional("failedAttempts", Kind::Count(100)),
    Field::optional("seconds", Kind::Count(366 * 86_400)),
    Field::optional("open", Kind::Flag),
];
const INSTALL: &[Field] =
    &[Field::required("secret", TEXT), Field::required("name", Kind::Text(1, 64)), Field::optional("userID", TEXT)];
const JOIN: &[Field] = &[
    Field::required("secret", TEXT),
    Field::optional("email", TEXT),
    Field::optional("firstName", TEXT),
    Field::optional("lastName", TEXT),
    Field::optional("avatarURL", TEXT),
    Field::optional("totpEnabled", Kind::Flag),
];
const SECRET: &[Field] = &[Field::required("secret", TEXT)];
const ACCOUNT: &[Field] = &[
    Field::required("email", TEXT),
    Field::optional("firstName", TEXT),
    Field::optional("lastName", TEXT),
    Field::optional("avatarURL", TEXT),
    Field::optional("totpEnabled", Kind::Flag),
    Field::optional("scim", Kind::Flag),
];
const PLAN: &[Field] = &[
    Field::optional("licensedUsers", NUMBER),
    Field::optional("installers", NUMBER),
    Field::optional("groups", NUMBER),
    Field::optional("annotations", NUMBER),
    Field::optional("enterprise", Kind::Flag),
    Field::optional("sso", Kind::Flag),
    Field::optional("ssoOwner", TEXT),
];
const CONFIG: &[Field] = &[
    Field::required("name", NAME),
    Field::optional("groups", Kind::Ids),
    Field::optional("devices", Kind::Ids),
    Field::optional("installers", Kind::Ids),
];
const DELETION: &[Field] = &[Field::optional("inSeconds", SECONDS)];
const MIGRATION: &[Field] = &[Field::optional("devices", Kind::Ids)];
const SCIM_GROUP: &[Field] = &[Field::required("name", Kind::Text(1, 64)), Field::optional("users", Kind::Ids)];

const TOKEN: &[Field] = &[Field::optional("readOnly", Kind::Flag)];
const CLOCK: &[Field] = &[
    Field::optional("now", TEXT),
    Field::optional("advanceSeconds", SECONDS),
    Field::optional("speed", Kind::Count(1_000_000)),
];

const fn parameter(name: &'static str, kind: ParameterKind) -> Parameter {
    Parameter { name, kind }
}

const BY_NAME: &[Parameter] = &[parameter("name", ParameterKind::Text)];
const BY_EMAIL: &[Parameter] = &[parameter("email", ParameterKind::Text)];
const DESC: Parameter = parameter("desc", ParameterKind::Flag);
const LIMIT: Parameter = parameter("limit", ParameterKind::Limit(true));
const OFFSET: Parameter = parameter("offset", ParameterKind::Offset);
const START: Parameter = parameter("startTime", ParameterKind::Integer);
const STOP: Parameter = parameter("stopTime", ParameterKind::Integer);
const RANGE: &[Parameter] = &[DESC, LIMIT, OFFSET, START, STOP];
const RANGE_IDS: &[Parameter] = &[DESC, parameter("ids", ParameterKind::Ids), LIMIT, OFFSET, START, STOP];
const RANGE_OLD: &[Parameter] = &[DESC, parameter("limit", ParameterKind::Limit(false)), OFFSET, START, STOP];

const TEAM: &str = "/v1/team/{teamID}";
const DEVICE: &str = "/v1/team/{teamID}/device/{deviceID}";
const DEVICE_NOTES: &str = "/v1/team/{teamID}/device/{deviceID}/annotations";
const DEVICE_MEMBERS: &str = "/v1/team/{teamID}/device/{deviceID}/members";
const USER_PATH: &str = "/v1/team/{teamID}/user/{userID}";
const USER_NOTES: &str = "/v1/team/{teamID}/user/{userID}/annotations";
const GROUP_PATH: &str = "/v1/team/{teamID}/group/{groupID}";
const GROUP_NOTES: &str = "/v1/team/{teamID}/group/{groupID}/annotations";
const UNNOTE_DEVICE: &str = "/v1/team/{teamID}/device/{deviceID}/annotations/delete";
const UNNOTE_USER: &str = "/v1/team/{teamID}/user/{userID}/annotations/delete";
const UNNOTE_GROUP: &str = "/v1/team/{teamID}/group/{groupID}/annotations/delete";
const REMOVE_ACCESS: &str = "/v1/team/{teamID}/device/{deviceID}/members/delete";
const BULK_ACCESS: &str = "/v1/team/{teamID}/device/members";
const BULK_UNACCESS: &str = "/v1/team/{teamID}/device/members/delete";
const MEMBERS_PATH: &str = "/v1/team/{teamID}/group/{groupID}/members";
const REMOVE_MEMBERS: &str = "/v1/team/{teamID}/group/{groupID}/members/delete";
const BULK_MEMBERS: &str = "/v1/team/{teamID}/group/members";
const BULK_UNMEMBERS: &str = "/v1/team/{teamID}/group/members/remove";
const REMOVE_INSTALLER: &str = "/v1/team/{teamID}/invite/device/{inviteID}";

const fn row(op: Op, method: super::Method, path: &'static str, status: u16, summary: &'static str) -> Route {
    Route::new(op, method, path, status, summary)
}

pub(in crate::sandbox) const ROUTES: &[Route] = &[
    row(Op::Teams, Get, "/v1/user/teams", 200, "the teams of the token").answers("TeamIDs"),
    row(Op::Team, Get, TEAM, 200, "the whole team; for callers who are no admins, a limited view").answers("TeamInfo"),
    row(Op::Devices, Get, "/v1/team/{teamID}/devices", 200, "lists computers, optionally by name")
        .query(BY_NAME)
        .answers("Devices"),
    row(Op::Device, Get, DEVICE, 200, "one computer").answers("TeamDeviceInfo"),
    row(Op::RenameDevice, Patch, DEVICE, 200, "renames a computer").body(RENAME).answers("IdAndName"),
    row(Op::RemoveDevice, Delete, DEVICE, 200, "removes a computer and its connection history"),
    row(Op::DeviceUrls, Get, "/v1/team/{teamID}/device/{deviceID}/urls", 200, "launch links").answers("TeamDeviceURLs"),
    row(Op::DeviceAnnotations, Get, DEVICE_NOTES, 200, "a computer's annotations").answers("Annotations"),
    row(Op::AnnotateDevice, Post, DEVICE_NOTES, 201, "writes annotations").body(ANNOTATE).answers("Annotations"),
    row(Op::UnannotateDevice, Post, UNNOTE_DEVICE, 200, "deletes annotations").body(UNANNOTATE),
    row(Op::ReplaceAccess, Put, DEVICE_MEMBERS, 201, "replaces the people and groups with direct access").body(ACCESS),
    row(Op::AddAccess, Post, DEVICE_MEMBERS, 201, "adds people and groups with direct access").body(ACCESS),
    row(Op::RemoveAccess, Post, REMOVE_ACCESS, 201, "removes direct access").body(ACCESS),
    row(Op::AddAccessBulk, Patch, BULK_ACCESS, 200, "adds access to several computers")
        .body(ACCESS_BULK)
        .answers("DeviceBulk"),
    row(Op::RemoveAccessBulk, Patch, BULK_UNACCESS, 200, "removes access to several computers")
        .body(ACCESS_BULK)
        .answers("DeviceBulk"),
    row(Op::CreateInstaller, Post, "/v1/team/{teamID}/invite/device", 201, "makes an installer")
        .body(INSTALLER)
        .answers("TeamDeviceInstallerInfo"),
    row(Op::RemoveInstaller, Delete, REMOVE_INSTALLER, 201, "deletes an installer"),
    row(Op::Users, Get, "/v1/team/{teamID}/users", 200, "lists users, optionally by whole email address")
        .query(BY_EMAIL)
        .answers("Users"),
    row(Op::InviteUser, Post, "/v1/team/{teamID}/invite/user", 201, "invites a user")
        .body(INVITE)
        .answers("TeamUserInvite"),
    row(Op::RemoveInvite, Delete, "/v1/team/{teamID}/invite/user/{secret}", 201, "deletes an invite"),
    row(Op::ChangeUser, Patch, USER_PATH, 201, "changes role and remote access").body(USER).answers("TeamUserInfo"),
    row(Op::RemoveUser, Delete, USER_PATH, 200, "removes a user"),
    row(Op::UserInfo, Get, "/v1/team/{teamID}/user/{userID}/info", 200, "how a user signs in")
        .answers("ApiUserAuthInfo"),
    row(Op::RemoveTotp, Post, "/v1/team/{teamID}/user/{userID}/removetotp", 200, "sends a link that removes 2FA"),
    row(Op::SsoUsers, Get, "/v1/team/{teamID}/saml/users", 200, "the people who share the team's SSO connection")
        .answers("SsoUsers"),
    row(Op::AddSsoUser, Post, "/v1/team/{teamID}/users/{userID}", 200, "adds an SSO user").answers("APIUserInfo"),
    row(Op::UserAnnotations, Get, USER_NOTES, 200, "a user's annotations").answers("Annotations"),
    row(Op::AnnotateUser, Post, USER_NOTES, 201, "writes annotations").body(ANNOTATE).answers("Annotations"),
    row(Op::UnannotateUser, Post, UNNOTE_USER, 201, "deletes annotations").body(UNANNOTATE).answers("Annotations"),
    row(Op::CreateGroup, Post, "/v1/team/{teamID}/group", 201, "makes a group").body(GROUP).answers("TeamGroupInfo"),
    row(Op::RenameGroup, Patch, GROUP_PATH, 200, "renames a group").body(RENAME).answers("IdAndName"),
    row(Op::RemoveGroup, Delete, GROUP_PATH, 200, "deletes a group"),
    row(Op::AddMembers, Post, MEMBERS_PATH, 201, "adds users and computers to a group").body(MEMBERS),
    row(Op::RemoveMembers, Post, REMOVE_MEMBERS, 201, "removes users and computers from a group").body(MEMBERS),
    row(Op::AddMembersBulk, Patch, BULK_MEMBERS, 200, "adds users and computers to several groups")
        .body(MEMBERS_BULK)
        .answers("GroupBulk"),
    row(Op::RemoveMembersBulk, Patch, BULK_UNMEMBERS, 200, "removes users and computers from several groups")
        .body(MEMBERS_BULK)
        .answers("GroupBulk"),
    row(Op::GroupAnnotations, Get, GROUP_NOTES, 200, "a group's annotations").answers("Annotations"),
    row(Op::AnnotateGroup, Post, GROUP_NOTES, 201, "writes annotations").body(ANNOTATE).answers("Annotations"),
    row(Op::UnannotateGroup, Post, UNNOTE_GROUP, 200, "deletes annotations").body(UNANNOTATE),
    row(Op::History, Get, "/v1/team/{teamID}/history", 200, "activity").query(RANGE).answers("ActivityPage"),
    row(Op::DeviceEvents, Get, "/v1/team/{teamID}/history/devices", 200, "connection events")
        .query(RANGE_IDS)
        .answers("ConnectionPage"),
    row(Op::DeviceHistory, Get, "/v1/team/{teamID}/device/{deviceID}/history", 200, "deprecated: use history/devices")
        .query(RANGE_OLD)
        .answers("DeviceHistoryPage"),
    row(Op::Billing, Get, "/v1/team/{teamID}/billing/events", 200, "the ten newest entries").answers("BillingEvents"),
    row(
        Op::Truth,
        Get,
        "/sandbox/truth/{teamID}/{stream}",
        200,
        "every event that ever existed, one JSON object a line",
    ),
    row(Op::Connect, Post, "/sandbox/team/{teamID}/device/{deviceID}/connect", 201, "someone connects")
        .body(CONNECT)
        .answers("Connection"),
    row(Op::Disconnect, Post, "/sandbox/team/{teamID}/connection/{connectionID}/close", 200, "an open connection ends"),
    row(Op::Online, Post, "/sandbox/team/{teamID}/device/{deviceID}/online", 200, "a computer connects to the cloud")
        .answers("TeamDeviceInfo"),
    row(Op::Install, Post, "/sandbox/team/{teamID}/install", 201, "a person runs an installer")
        .body(INSTALL)
        .answers("TeamDeviceInfo"),
    row(Op::Join, Post, "/sandbox/team/{teamID}/join", 201, "a person accepts an invite")
        .body(JOIN)
        .answers("TeamUserInfo"),
    row(Op::Mail, Get, "/sandbox/team/{teamID}/mail", 200, "the emails to the team's people").answers("Mail"),
    row(Op::ConfirmTotp, Post, "/sandbox/team/{teamID}/confirm", 200, "a person follows a link that removes 2FA")
        .body(SECRET),
    row(Op::SsoAccount, Post, "/sandbox/team/{teamID}/sso", 201, "the identity provider adds a person")
        .body(ACCOUNT)
        .answers("APIUserInfo"),
    row(Op::Settings, Patch, "/sandbox/team/{teamID}/plan", 200, "changes the plan and its limits")
        .body(PLAN)
        .answers("Plan"),
    row(Op::AgentConfig, Post, "/sandbox/team/{teamID}/config", 201, "makes and assigns an agent configuration")
        .body(CONFIG)
        .answers("TeamDeviceConfig"),
    row(Op::Deletion, Put, "/sandbox/team/{teamID}/deletion", 200, "schedules or cancels the team's deletion")
        .body(DELETION)
        .answers("DeleteSchedule"),
    row(
        Op::Migration,
        Put,
        "/sandbox/team/{teamID}/user/{userID}/migration",
        200,
        "starts or cancels a migration of a person's computers",
    )
    .body(MIGRATION)
    .answers("TeamUserDeviceMigrate"),
    row(Op::ScimGroup, Post, "/sandbox/team/{teamID}/scim-group", 201, "the identity provider pushes a group")
        .body(SCIM_GROUP)
        .answers("TeamGroupInfo"),
    row(Op::IssueToken, Post, "/sandbox/team/{teamID}/user/{userID}/token", 201, "a token for a person")
        .body(TOKEN)
        .answers("Token"),
    row(Op::Clock, Get, "/sandbox/clock", 200, "the sandbox's clock").answers("Clock"),
    row(Op::SetClock, Post, "/sandbox/clock", 200, "moves the clock or changes its speed").body(CLOCK).answers("Clock"),
    row(Op::Choices, Get, "/sandbox/choices", 200, "the switches").answers("Choices"),
    row(Op::ChangeChoices, Patch, "/sandbox/choices", 200, "sets switches by name").answers("Choices"),
    row(Op::Faults, Get, "/sandbox/faults", 200, "the fault rules").answers("Faults"),
    row(Op::SetFaults, Put, "/sandbox/faults", 200, "replaces the fault rules").answers("Faults"),
    row(Op::Saved, Get, "/sandbox/state", 200, "the whole sandbox as one JSON file").answers("Saved"),
    row(Op::Load, Put, "/sandbox/state", 200, "restores a saved state of this sandbox").answers("Clock"),
    row(Op::OpenApi, Get, super::OPENAPI_PATH, 200, "this description; needs no token").answers("Description"),
];

//! Calls the rule of each operation.

use crate::sandbox::routes::{Op, route_of};

use super::annotations::{self, Subject};
use super::request::{AdminRequest, Answer, Context, Outcome};
use super::state::TeamState;
use super::{access, actions, body, computers, groups, installers, invites, settings, users, views};

/// Checks the whole request, then changes the state. A refusal changes nothing.
pub fn apply(state: &mut TeamState, request: &AdminRequest<'_>, context: &Context<'_>) -> Answer {
    body::check(route_of(request.op).body, request.body, context.choices.refuse_unknown_fields)?;
    match request.op {
        Op::Team => Ok(Outcome::ok().with(views::team(state, context))),
        Op::Devices => Ok(computers::list(state, request)),
        Op::Device => computers::show(state, request),
        Op::RenameDevice => computers::rename(state, request),
        Op::RemoveDevice => computers::remove(state, request),
        Op::DeviceUrls => computers::urls(state, request),
        Op::DeviceAnnotations => annotations::list(state, Subject::Device, request),
        Op::AnnotateDevice => annotations::write(state, Subject::Device, request),
        Op::UnannotateDevice => annotations::delete(state, Subject::Device, request),
        Op::ReplaceAccess => access::replace(state, request),
        Op::AddAccess => access::add(state, request),
        Op::RemoveAccess => access::remove(state, request),
        Op::AddAccessBulk => Ok(access::bulk(state, request, access::grant)),
        Op::RemoveAccessBulk => Ok(access::bulk(state, request, access::revoke)),
        Op::CreateInstaller => installers::create(state, request, context),
        Op::RemoveInstaller => installers::remove(state, request, context),
        Op::Users => Ok(users::list(state, request)),
        Op::InviteUser => invites::create(state, request, context),
        Op::RemoveInvite => invites::remove(state, request, context),
        Op::ChangeUser => users::change(state, request, context),
        Op::RemoveUser => users::remove(state, request, context),
        Op::UserInfo => users::info(state, request),
        Op::RemoveTotp => users::remove_totp(state, request, context),
        Op::SsoUsers => users::sso_list(state, context),
        Op::AddSsoUser => users::sso_add(state, request, context),
        Op::UserAnnotations => annotations::list(state, Subject::User, request),
        Op::AnnotateUser => annotations::write(state, Subject::User, request),
        Op::UnannotateUser => annotations::delete(state, Subject::User, request),
        Op::CreateGroup => groups::create(state, request),
        Op::RenameGroup => groups::rename(state, request),
        Op::RemoveGroup => groups::remove(state, request),
        Op::AddMembers => groups::add_members(state, request),
        Op::RemoveMembers => groups::remove_members(state, request),
        Op::AddMembersBulk => Ok(groups::bulk(state, request, groups::insert_members)),
        Op::RemoveMembersBulk => Ok(groups::bulk(state, request, groups::delete_members)),
        Op::GroupAnnotations => annotations::list(state, Subject::Group, request),
        Op::AnnotateGroup => annotations::write(state, Subject::Group, request),
        Op::UnannotateGroup => annotations::delete(state, Subject::Group, request),
        Op::Connect => actions::connect(state, request, context),
        Op::Disconnect => actions::disconnect(state, request, context),
        Op::Install => actions::install(state, request, context),
        Op::Join => actions::join(state, request, context),
        Op::Online => actions::online(state, request, context),
        Op::Mail => Ok(actions::mail(state)),
        Op::ConfirmTotp => actions::confirm_totp(state, request, context),
        Op::SsoAccount => actions::sso_account(state, request, context),
        Op::Settings => settings::change(state, request),
        Op::AgentConfig => settings::assign_config(state, request),
        Op::Deletion => settings::schedule_deletion(state, request, context),
        Op::Migration => settings::migrate(state, request, context),
        Op::ScimGroup => settings::scim_group(state, request),
        other => unreachable!("BUG: {other:?} is not a request about a team's state"),
    }
}

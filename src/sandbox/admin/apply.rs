//! Calls the rule of each operation.

use crate::sandbox::answer::Refusal;
use crate::sandbox::routes::{Op, route_of};

use super::annotations::{self, Subject};
use super::asked::{Asked, Context, Outcome};
use super::state::TeamState;
use super::{access, body, computers, groups, installers, invites, settings, users, verbs, views};

pub type Answer = Result<Outcome, Refusal>;

/// Checks the whole request, then changes the state. A refusal changes nothing.
pub fn apply(state: &mut TeamState, asked: &Asked<'_>, context: &Context<'_>) -> Answer {
    body::check(route_of(asked.op).body, asked.body, context.choices.refuse_unknown_fields)?;
    match asked.op {
        Op::Team => Ok(Outcome::ok().with(views::team(state, context))),
        Op::Devices => Ok(computers::list(state, asked)),
        Op::Device => computers::one(state, asked),
        Op::RenameDevice => computers::rename(state, asked),
        Op::RemoveDevice => computers::remove(state, asked),
        Op::DeviceUrls => computers::urls(state, asked),
        Op::DeviceAnnotations => annotations::list(state, Subject::Device, asked),
        Op::AnnotateDevice => annotations::write(state, Subject::Device, asked),
        Op::UnannotateDevice => annotations::delete(state, Subject::Device, asked),
        Op::ReplaceAccess => access::replace(state, asked),
        Op::AddAccess => access::add(state, asked),
        Op::RemoveAccess => access::remove(state, asked),
        Op::AddAccessBulk => Ok(access::bulk(state, asked, access::grant)),
        Op::RemoveAccessBulk => Ok(access::bulk(state, asked, access::revoke)),
        Op::CreateInstaller => installers::create(state, asked, context),
        Op::RemoveInstaller => installers::remove(state, asked, context),
        Op::Users => Ok(users::list(state, asked)),
        Op::InviteUser => invites::create(state, asked, context),
        Op::RemoveInvite => invites::remove(state, asked, context),
        Op::ChangeUser => users::change(state, asked, context),
        Op::RemoveUser => users::remove(state, asked, context),
        Op::UserInfo => users::info(state, asked),
        Op::RemoveTotp => users::remove_totp(state, asked, context),
        Op::SsoUsers => users::sso_list(state, context),
        Op::AddSsoUser => users::sso_add(state, asked, context),
        Op::UserAnnotations => annotations::list(state, Subject::User, asked),
        Op::AnnotateUser => annotations::write(state, Subject::User, asked),
        Op::UnannotateUser => annotations::delete(state, Subject::User, asked),
        Op::CreateGroup => groups::create(state, asked),
        Op::RenameGroup => groups::rename(state, asked),
        Op::RemoveGroup => groups::remove(state, asked),
        Op::AddMembers => groups::add(state, asked),
        Op::RemoveMembers => groups::take(state, asked),
        Op::AddMembersBulk => Ok(groups::bulk(state, asked, groups::put_in)),
        Op::RemoveMembersBulk => Ok(groups::bulk(state, asked, groups::take_out)),
        Op::GroupAnnotations => annotations::list(state, Subject::Group, asked),
        Op::AnnotateGroup => annotations::write(state, Subject::Group, asked),
        Op::UnannotateGroup => annotations::delete(state, Subject::Group, asked),
        Op::Connect => verbs::connect(state, asked, context),
        Op::Disconnect => verbs::disconnect(state, asked, context),
        Op::Install => verbs::install(state, asked, context),
        Op::Join => verbs::join(state, asked, context),
        Op::Online => verbs::online(state, asked, context),
        Op::Mail => Ok(verbs::mail(state)),
        Op::ConfirmTotp => verbs::confirm_totp(state, asked, context),
        Op::SsoAccount => verbs::sso_account(state, asked, context),
        Op::Settings => settings::change(state, asked),
        Op::AgentConfig => settings::assign_config(state, asked),
        Op::Deletion => settings::schedule_deletion(state, asked, context),
        Op::Migration => settings::migrate(state, asked, context),
        Op::ScimGroup => settings::scim_group(state, asked),
        other => unreachable!("BUG: {other:?} is not a request about a team's state"),
    }
}

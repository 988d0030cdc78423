//! Checks an order before anything changes, and finds what it would change.

use std::collections::BTreeSet;

use crate::archive::{Archive, FoundRow, Order, PendingOrder, Subject};
use crate::error::Error;
use crate::model::{Dataset, InventoryPart, TeamId};
use crate::store::Unerased;

use super::super::output::counted;
use super::super::teams;
use super::request::Request;

/// The documented values and fields of the service, and the fields that Annals itself writes into JSON. They stand in events of
/// everybody, as values or keys, so none of them can be a subject.
const WORDS: &str = "\
admin admin-read-only user enabled disabled fluid rdp vnc unknown cloud directip \
annotations annotationKeys askScreenShare associatedIncomingConnectionEvent authFailedEvent authProviders \
authSucceededEvent avatarURL billing clientInfo code computerHostName connect connectDownloads connectionClosedEvent \
connectionID createdAt dashboard deleteSchedule detail deviceConfigID deviceConfigs deviceEvents \
deviceEventsMaxRetrievalDuration deviceID deviceInvites devices directConnectionInfo email errors event events \
eventTimestampUnixNano expirySecs expiresAt firstName group groupID groups hasMoreEvents header id incomingConnectionEvent \
incomingConnectionRequest ipAddress joinedOn key lastName lastOnlineAt lastUsed lastUsedAt lastUsedIPAddress localUserName \
macpkg name nextOffset peerInfo planFeatures provider reason remoteAccess requireAuthentication role saml scimManaged \
scimUserInfo scopes secret security sendTo sentTo singleUse sourceType tag teamid timestamp title tokenInfo tokenLog totp \
totpEnabled tunnelID userDeviceMigrate userID userInvites users value winexe winmsi \
connection_id device_id computer_host_name tunnel_id source_type peer_email peer_ip direct_ip local_user_name failure_reason";

/// An order, and the rows that it would change.
pub struct Prepared {
    pub teams: BTreeSet<TeamId>,
    pub order: Order,
    pub pending: PendingOrder,
    /// An earlier run was interrupted.
    pub is_resumed: bool,
    pub found: Found,
    /// One sentence for each team with a hold on these rows.
    pub holds: Vec<String>,
}

impl Prepared {
    pub fn new(archive: &Archive, request: &Request, unlinkable: bool) -> Result<Self, Error> {
        let Request { order: id, subject, .. } = request;
        let mut asked: BTreeSet<TeamId> = teams::in_archive(archive, &request.team)?.into_iter().collect();
        let pending = archive.pending_orders()?.into_iter().find(|pending| pending.order == *id);
        asked.extend(pending.iter().flat_map(|pending| pending.teams.iter().cloned()));
        refuse_another(archive, id, subject)?;
        let is_resumed = pending.is_some();
        let (order, pending) = match pending {
            Some(pending) => (pending.resumed(subject).ok_or_else(|| of_another(id))?, pending),
            None => archive.new_order(id, subject, asked.clone()),
        };
        let pending = if unlinkable { pending.making_unlinkable() } else { pending };
        let found = found(archive, &asked, &order)?;
        let holds = holds_on(archive, &asked, &order)?;
        Ok(Self { teams: asked, order, pending, is_resumed, found, holds })
    }

    /// The number of user ids that the roster joins to the subject, and that are not given.
    pub fn further_ids(&self) -> usize {
        let parts = [InventoryPart::Users, InventoryPart::SsoUsers].map(Dataset::Inventory);
        let of_users = self.found.rows.iter().filter(|(_, row)| parts.contains(&row.dataset));
        let ids: BTreeSet<&str> = of_users.map(|(_, row)| row.id.as_str()).collect();
        // An earlier order left a pseudonym.
        let is_further = |id: &&&str| self.order.subject.find(id).is_none() && !id.starts_with("erased-");
        ids.iter().filter(is_further).count()
    }
}

fn of_another(order: &str) -> Error {
    Error::Usage(format!("order {order} was given before for another subject: give each order its own name"))
}

/// Refuses an order that was given for another subject, and a subject that identifies no person and no computer.
fn refuse_another(archive: &Archive, order: &str, subject: &Subject) -> Result<(), Error> {
    if WORDS.split_whitespace().any(|word| subject.find(word).is_some()) {
        let what = "a value of the subject is a word of the service, so the order would change events of everybody: give other \
                    values of the person, such as an email address or the id of the user";
        return Err(Error::Usage(what.to_owned()));
    }
    for team in archive.teams()? {
        let reader = archive.read(&team)?;
        if reader.order_is_of_another(order, subject)? {
            return Err(of_another(order));
        }
        let types = reader.state().streams.values().flat_map(|stream| &stream.event_types);
        if subject.find(team.as_str()).is_some() || types.into_iter().any(|name| subject.find(name).is_some()) {
            let what =
                "the subject is the id of a team or the name of an event type: give a value of a person or a computer";
            return Err(Error::Usage(what.to_owned()));
        }
    }
    Ok(())
}

/// The rows that hold the subject.
pub struct Found {
    pub rows: Vec<(TeamId, FoundRow)>,
    pub all: u64,
    /// More than half of all rows.
    pub is_most: bool,
    /// The number of files that no ledger line names, and that hold the subject or cannot be searched.
    pub unnamed: usize,
    /// The entries whose names Annals never gives. The order leaves them.
    pub foreign: Vec<Unerased>,
}

impl Found {
    /// These files, for a message. `None` if there is none.
    pub fn unnamed(&self) -> Option<String> {
        let files = counted(self.unnamed as u64, "file");
        (self.unnamed > 0).then(|| format!("{files} that no ledger line names, and that may hold the subject"))
    }
}

fn found(archive: &Archive, asked: &BTreeSet<TeamId>, order: &Order) -> Result<Found, Error> {
    let mut found = Found { rows: Vec::new(), all: 0, is_most: false, unnamed: 0, foreign: Vec::new() };
    for team in asked {
        let reader = archive.read(team)?;
        let (rows, all) = reader.rows_of_subject(order)?;
        found.all += all;
        let (unnamed, foreign) = reader.unnamed_files_of_subject(order)?;
        found.unnamed += unnamed;
        found.foreign.extend(foreign);
        found.rows.extend(rows.into_iter().map(|row| (team.clone(), row)));
    }
    found.is_most = found.rows.len() as u64 > found.all / 2;
    Ok(found)
}

fn holds_on(archive: &Archive, asked: &BTreeSet<TeamId>, order: &Order) -> Result<Vec<String>, Error> {
    let mut reasons = Vec::new();
    for team in asked {
        let holds = archive.holds_on_order(team, order)?.into_iter().collect::<Vec<_>>().join(", ");
        if !holds.is_empty() {
            let label = teams::archived_label(archive, team);
            reasons.push(format!("team {label}: legal hold {holds} covers rows of the subject"));
        }
    }
    Ok(reasons)
}

//! Team names: `--team` takes an id or a name, and the output shows the name.

use crate::api::EventSource;
use crate::archive::{Archive, Body, Draft, SIGN_ALL, TeamWriter};
use crate::error::{Error, Exit};
use crate::model::{Shard, TeamId};
use crate::report::{TeamNameError, TeamNames, clean_name};

use super::{output, reading};

/// Up to this many name requests are sent without a message.
const ASKED_QUIETLY_MAX: usize = 20;

/// The names of all teams in the archive, from one small file for each team.
///
/// # Errors
/// When the archive cannot be read, or a ledger is not valid.
pub fn archived(archive: &Archive) -> Result<TeamNames, Error> {
    let mut names = TeamNames::default();
    for team in archive.teams()? {
        names.put_archived(archive, archive.read(&team)?.state());
    }
    Ok(names)
}

/// A team of the archive in a message: its name and id, or its id if the name is unknown.
pub fn archived_label(archive: &Archive, team: &TeamId) -> String {
    let mut names = TeamNames::default();
    if let Ok(reader) = archive.read(team) {
        names.put_archived(archive, reader.state());
    }
    label(team, names.name(team.as_str()))
}

/// The teams that `asked` names, which the archive must hold; all its teams if `asked` is empty.
///
/// # Errors
/// When a text names no team, or more than one.
pub fn in_archive(archive: &Archive, asked: &[String]) -> Result<Vec<TeamId>, Error> {
    let ids = archive.teams()?;
    if asked.is_empty() {
        return Ok(ids);
    }
    let is_id = |asked: &String| ids.iter().any(|team| team.as_str() == asked);
    let names = if asked.iter().all(is_id) {
        TeamNames::of(ids.into_iter().map(|team| (team, None)))
    } else {
        archived(archive)?
    };
    resolved(&names, asked)
}

/// The listed teams that `asked` names. The archive knows most names; this function asks the service for the others.
///
/// # Errors
/// When the service does not answer, or a text names no team or more than one.
pub async fn at_service(
    source: &dyn EventSource,
    archive: Option<&Archive>,
    asked: &[String],
) -> Result<Vec<TeamId>, Error> {
    let ids = archive.map_or_else(|| Ok(Vec::new()), Archive::teams)?;
    if asked.iter().all(|asked| ids.iter().any(|team| team.as_str() == asked)) {
        return Ok(asked.iter().map(|team| TeamId::from(team.as_str())).collect());
    }
    let listed = source.teams().await?.body;
    let mut names = TeamNames::of(listed.iter().map(|team| (team.clone(), None)));
    if asked.iter().all(|asked| names.holds(asked)) {
        return resolved(&names, asked);
    }
    let known = match archive {
        Some(archive) => archived(archive)?,
        None => TeamNames::default(),
    };
    let (known_there, unknown): (Vec<TeamId>, Vec<TeamId>) =
        listed.into_iter().partition(|team| known.name(team.as_str()).is_some());
    known_there.into_iter().for_each(|team| {
        let name = known.name(team.as_str()).map(str::to_owned);
        names.put(team, name.as_deref());
    });
    if unknown.len() > ASKED_QUIETLY_MAX {
        output::say(&format!(
            "asking the service for the names of {} teams; give team ids to avoid these requests",
            unknown.len()
        ));
    }
    for team in unknown {
        let name = source.team(&team).await?.body.name;
        names.put(team, name.as_deref());
    }
    resolved(&names, asked)
}

fn resolved(names: &TeamNames, asked: &[String]) -> Result<Vec<TeamId>, Error> {
    let teams = asked.iter().map(|asked| names.resolve(asked).cloned());
    teams.collect::<Result<_, _>>().map_err(name_error)
}

/// The teams that `--team` names, which must belong to `shard`.
///
/// # Errors
/// When another shard reads one of them.
pub fn own(teams: Vec<TeamId>, shard: Shard) -> Result<Vec<TeamId>, Error> {
    let other = teams.iter().find_map(|team| Some((team, shard.other_owner(team)?)));
    match other {
        None => Ok(teams),
        Some((team, owner)) => Err(Error::Usage(format!(
            "--team: team {} belongs to shard {owner}, but this process is shard {shard}",
            label(team, None)
        ))),
    }
}

/// The exit code of a team whose ledger has this number of unsigned lines, although a key is configured. Names the team if there
/// are any.
#[must_use]
pub fn exit_of_unsigned(label: &str, unsigned_lines: u64) -> Exit {
    if unsigned_lines == 0 {
        return Exit::Done;
    }
    let lines = output::counted(unsigned_lines, "ledger line");
    output::say(&format!("team {label}: {lines} without a signature, and Annals signs no later line: {SIGN_ALL}"));
    Exit::Weaker
}

/// Commits a line to a team's ledger, and says what the line does. Returns the exit code of unsigned lines.
///
/// # Errors
/// When the ledger cannot be written.
pub fn commit(archive: &Archive, writer: &mut TeamWriter, body: Body, what: &str) -> Result<Exit, Error> {
    let _ = writer.commit(Draft::from(body), reading::clock().now())?;
    let (label, seq) = (archived_label(archive, &writer.state().team_id), writer.state().seq);
    output::say(&format!("team {label}: line {seq} of the ledger {what}"));
    Ok(exit_of_unsigned(&label, writer.unsigned_lines()))
}

/// The error for a text after `--team` that names no team.
pub fn name_error(error: TeamNameError) -> Error {
    Error::Usage(format!("--team: {error}"))
}

/// A team in a message, with its name if the service gave one.
pub fn label(team: &TeamId, name: Option<&str>) -> String {
    TeamNames::of([(team.clone(), name.and_then(clean_name))]).with_id(team.as_str())
}

//! The members of a team: people, computers, groups, invites and installers, all determined by the seed.

use std::collections::HashMap;

use crate::model::{DeviceId, TeamId};

use super::config::SandboxConfig;
use super::json::{push_escaped_string, push_string};
use super::names::{CLIENT_SYSTEMS, COMPUTER_KINDS, GROUP_NAMES, HOSTILE_NAMES, TEAM_NAMES};
use super::person::{Person, address, person};
use super::seed::{SeededRandom, mix2, opaque_id, secret};
use super::turnover::{self, TemporaryMember};

const NAME_CHARS_MAX: usize = 64;
/// More than the number of people of a team.
const FIRST_TEMPORARY: u32 = 1 << 17;
/// Far longer than a valid name. The least used computer has it.
const LONG_HOST_REPEATS: usize = 270;
const HOST_FIELD: &[u8] = b",\"computerHostName\":";

pub(super) struct Computer {
    pub id: DeviceId,
    pub name: String,
    pub system: &'static str,
    pub address: u32,
    pub users: Vec<usize>,
    pub groups: Vec<usize>,
    /// `,"deviceID":…`
    pub id_json: Vec<u8>,
    /// `,"computerHostName":…`; empty if the computer has no host name.
    pub host_json: Vec<u8>,
}

pub(super) struct Group {
    pub id: String,
    pub name: String,
    pub users: Vec<usize>,
    pub scim: bool,
}

pub(super) struct Invite {
    pub id: String,
    pub secret: String,
    pub name: String,
    pub sent_to: Option<String>,
}

pub(super) struct Roster {
    pub id: TeamId,
    pub name: String,
    pub seed: u64,
    pub people: Vec<Person>,
    /// The members who join and leave. No record refers to them by position.
    pub temporary: Vec<TemporaryMember>,
    pub computers: Vec<Computer>,
    pub groups: Vec<Group>,
    pub user_invites: Vec<Invite>,
    pub installers: Vec<Invite>,
    /// Whether some connection events differ from the document.
    pub odd_events: bool,
    computer_places: HashMap<DeviceId, u32>,
}

impl Roster {
    pub(super) fn new(config: &SandboxConfig, number: u32) -> Self {
        let (people, computers) = (config.people_per_team, config.computers_per_team);
        let seed = mix2(config.seed, u64::from(number));
        let mut random = SeededRandom::new(mix2(seed, 1));
        let people: Vec<Person> = (0..people.max(1)).map(|place| person(seed, place, number, &mut random)).collect();
        let groups: Vec<Group> =
            (0..GROUP_NAMES.len()).map(|place| group(seed, place, people.len(), &mut random)).collect();
        let mut computers = (0..computers.max(1))
            .map(|place| computer(seed, place, people.len(), groups.len(), &mut random))
            .collect::<Vec<_>>();
        for computer in computers.iter_mut().filter(|computer| !config.odd_events && computer.host_json.is_empty()) {
            computer.host_json = host_json(&computer.name);
        }
        if let Some(rarest) = computers.last_mut() {
            rarest.host_json = host_json(&"long-host-name-".repeat(LONG_HOST_REPEATS));
        }
        let computer_places = computers.iter().zip(0..).map(|(computer, place)| (computer.id.clone(), place)).collect();
        let round = number as usize / TEAM_NAMES.len();
        let name = TEAM_NAMES[number as usize % TEAM_NAMES.len()];
        Self {
            id: TeamId::new(opaque_id(seed, 0x7ea4)),
            name: if round == 0 { name.to_owned() } else { format!("{name} {}", round + 1) },
            seed,
            temporary: temporary(seed, people.len(), number),
            people,
            computers,
            groups,
            user_invites: (0..3).map(|place| invite(seed, 0x10 + place, "invite", place == 0)).collect(),
            installers: (0..2).map(|place| invite(seed, 0x20 + place, "installer", false)).collect(),
            odd_events: config.odd_events,
            computer_places,
        }
    }

    pub(super) fn computer_place(&self, id: &DeviceId) -> Option<u32> {
        self.computer_places.get(id).copied()
    }
}

/// Uses its own random numbers, so that it changes nothing about the other members.
fn temporary(seed: u64, people: usize, team: u32) -> Vec<TemporaryMember> {
    if people < turnover::PEOPLE_MIN as usize {
        return Vec::new();
    }
    let mut random = SeededRandom::new(mix2(seed, 0x5ea5));
    let one = |number: u32| {
        let mut person = person(seed, FIRST_TEMPORARY + number, team, &mut random);
        (person.role, person.remote_access) = ("user", true);
        TemporaryMember::new(person, number, seed)
    };
    (0..turnover::TEMPORARY_MEMBERS).map(one).collect()
}

fn computer(seed: u64, place: u32, people: usize, groups: usize, random: &mut SeededRandom) -> Computer {
    let id = DeviceId::new(opaque_id(seed, 0x0200_0000 + u64::from(place)));
    let name = computer_name(place, random);
    let mut id_json = b",\"deviceID\":".to_vec();
    push_string(&mut id_json, id.as_str());
    let host_json = match place % 16 {
        5 => [HOST_FIELD, &escaped(&name)].concat(),
        9 => Vec::new(),
        _ => host_json(&name),
    };
    let members = 1 + random.below(4);
    let mut users: Vec<usize> = (0..members).map(|_| random.place(people)).collect();
    users.sort_unstable();
    users.dedup();
    let groups = if random.per_mille(700) { vec![random.place(groups)] } else { Vec::new() };
    Computer {
        id,
        name,
        system: CLIENT_SYSTEMS[random.place(CLIENT_SYSTEMS.len())],
        address: address(0xC633_6400, random.next_u64(), 0xff),
        users,
        groups,
        id_json,
        host_json,
    }
}

fn host_json(name: &str) -> Vec<u8> {
    let mut json = HOST_FIELD.to_vec();
    push_string(&mut json, name);
    json
}

fn escaped(name: &str) -> Vec<u8> {
    let mut json = Vec::new();
    push_escaped_string(&mut json, name);
    json
}

fn computer_name(place: u32, random: &mut SeededRandom) -> String {
    let name = match place % 4 {
        3 => HOSTILE_NAMES[(place as usize / 4) % HOSTILE_NAMES.len()].to_owned(),
        _ => format!("{}-{:03}", random.pick(&COMPUTER_KINDS), place + 1),
    };
    name.chars().take(NAME_CHARS_MAX).collect()
}

fn group(seed: u64, place: usize, people: usize, random: &mut SeededRandom) -> Group {
    let users = (0..people).filter(|_| random.per_mille(300)).collect();
    Group {
        id: opaque_id(seed, 0x0300_0000 + place as u64),
        name: GROUP_NAMES[place].to_owned(),
        users,
        scim: place % 3 == 2,
    }
}

fn invite(seed: u64, what: u64, kind: &str, sent: bool) -> Invite {
    Invite {
        id: opaque_id(seed, 0x0400_0000 + what),
        secret: secret(seed, what),
        name: format!("{kind} {}", what & 0xf),
        sent_to: sent.then(|| "newcomer@elsewhere.example".to_owned()),
    }
}

//! One person of a team, determined by the seed.

use super::json::{push_escaped_string, push_string};
use super::names::{FIRST_NAMES, LAST_NAMES, ZONES_MINUTES};
use super::seed::{SeededRandom, opaque_id};

pub(super) struct Person {
    pub id: String,
    pub email: String,
    pub first_name: String,
    pub last_name: String,
    pub role: &'static str,
    pub remote_access: bool,
    pub totp: bool,
    pub sso: bool,
    pub scim: bool,
    pub zone_minutes: i64,
    pub home_address: u32,
    /// `"peerInfo":{"email":…,"ipAddress":"`. The writer appends an address and `"}`.
    pub peer_json: Vec<u8>,
    /// `,"localUserName":…`
    pub local_user_json: Vec<u8>,
}

/// An address in the network of `base` with a random host part.
pub(super) fn address(base: u32, roll: u64, hosts: u32) -> u32 {
    base | u32::try_from(roll & u64::from(hosts)).expect("BUG: masked by 32 bits")
}

pub(super) fn person(seed: u64, place: u32, team: u32, random: &mut SeededRandom) -> Person {
    let first_name = (*random.pick(&FIRST_NAMES)).to_owned();
    let last_name = (*random.pick(&LAST_NAMES)).to_owned();
    let plain = |name: &str| name.chars().filter(char::is_ascii_alphabetic).collect::<String>().to_lowercase();
    let email = format!("{}.{}{}@team{}.example", plain(&first_name), plain(&last_name), place, team + 1);
    let role = match place {
        0 => "admin",
        1 => "admin-read-only",
        _ if random.per_mille(60) => "admin",
        _ => "user",
    };
    let mut peer_json = b"\"peerInfo\":{\"email\":".to_vec();
    push_string(&mut peer_json, &email);
    peer_json.extend_from_slice(b",\"ipAddress\":\"");
    let mut local_user_json = b",\"localUserName\":".to_vec();
    if random.per_mille(100) {
        push_escaped_string(&mut local_user_json, &format!("ÉCRAN\\{first_name}"));
    } else {
        push_string(&mut local_user_json, &format!("{}{}", plain(&first_name), place));
    }
    Person {
        id: opaque_id(seed, 0x0100_0000 + u64::from(place)),
        email,
        first_name,
        last_name,
        role,
        remote_access: place < 2 || !random.per_mille(80),
        totp: random.per_mille(600),
        sso: place == 0 || random.per_mille(400),
        scim: random.per_mille(200),
        zone_minutes: *random.pick(&ZONES_MINUTES),
        // 198.18.0.0/15 is reserved for tests of networks.
        home_address: address(0xC612_0000, random.next_u64(), 0x0001_FFFF),
        peer_json,
        local_user_json,
    }
}

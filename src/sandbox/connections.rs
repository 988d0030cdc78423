//! Writes the JSON text of a connection event from its record for each answer.

use super::json::{push_hex, push_int, push_ipv4, push_string};
use super::names::FAILURE_REASONS;
use super::person::{Person, address};
use super::roster::{Computer, Roster};
use super::seed::{SeededRandom, index, mix2};
use super::sessions::{ConnectionKind, ConnectionRecord, Traits, traits};

/// Hexadecimal digits of the ids of events and connections.
const ID_DIGITS: u32 = 16;

/// The history that serves a connection event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionForm {
    Team,
    /// The deprecated per-computer history, whose events have no `deviceID`.
    Computer,
}

/// The fields that all events of a connection share.
struct Scene<'a> {
    who: Traits,
    person: &'a Person,
    computer: &'a Computer,
    source: &'static str,
    peer_address: Option<u32>,
    names_local_user: bool,
    extra_field: bool,
    peer_id: bool,
}

impl<'a> Scene<'a> {
    fn draw(roster: &'a Roster, who: Traits) -> Self {
        let person = &roster.people[usize::from(who.person)];
        let mut random = SeededRandom::new(mix2(who.seed, 0x1007));
        let source = match random.below(100) {
            0..70 => "cloud",
            70..96 => "directip",
            _ => "unknown",
        };
        // One random number serves several fields, because this runs for every event.
        let bits = random.next_u64();
        let roams = bits & 0x7 == 0;
        let peer_address = if roams { address(0xC612_0000, bits >> 32, 0x0001_FFFF) } else { person.home_address };
        Self {
            who,
            person,
            computer: &roster.computers[usize::from(who.computer)],
            source,
            peer_address: (!roster.odd_events || bits >> 3 & 0x3f != 0).then_some(peer_address),
            names_local_user: bits >> 9 & 0x3 != 0,
            extra_field: roster.odd_events && bits >> 11 & 0xff == 0,
            peer_id: roster.odd_events && bits >> 19 & 0x1f == 0,
        }
    }

    /// Request and established events hold the connection's details themselves.
    fn push_own(&self, name: &[u8], out: &mut Vec<u8>) {
        push_name(name, out);
        self.push_details(out);
    }

    /// Authentication and close events hold the connection's details one level down.
    fn push_associated(&self, name: &[u8], reason: Option<&str>, out: &mut Vec<u8>) {
        push_name(name, out);
        out.push(b'{');
        if let Some(reason) = reason {
            out.extend_from_slice(b"\"reason\":");
            push_string(out, reason);
            out.push(b',');
        }
        out.extend_from_slice(b"\"associatedIncomingConnectionEvent\":");
        self.push_details(out);
        out.push(b'}');
    }

    fn push_details(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"connectionID\":\"");
        push_hex(out, mix2(self.who.seed, 0xc1), ID_DIGITS);
        out.extend_from_slice(b"\",\"tunnelID\":\"");
        out.extend_from_slice(self.who.tunnel.name().as_bytes());
        out.extend_from_slice(b"\",\"sourceType\":\"");
        out.extend_from_slice(self.source.as_bytes());
        out.push(b'"');
        if self.peer_id {
            out.extend_from_slice(b",\"peerID\":\"");
            push_hex(out, mix2(self.who.seed, 0x9e), ID_DIGITS);
            out.push(b'"');
        }
        if let Some(address) = self.peer_address {
            out.push(b',');
            out.extend_from_slice(&self.person.peer_json);
            push_ipv4(out, address);
            out.extend_from_slice(b"\"}");
        }
        if self.source == "directip" {
            out.extend_from_slice(b",\"directConnectionInfo\":{\"ipaddress\":\"");
            push_ipv4(out, self.computer.address);
            out.extend_from_slice(b"\"}");
        }
        if self.names_local_user {
            out.extend_from_slice(&self.person.local_user_json);
        }
        out.push(b'}');
    }
}

fn push_name(name: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name);
    out.extend_from_slice(b"\":");
}

/// Writes the event's JSON text, without a separator.
pub(super) fn push_connection(roster: &Roster, record: ConnectionRecord, form: ConnectionForm, out: &mut Vec<u8>) {
    let scene = Scene::draw(roster, traits(roster, record.session));
    let seed = scene.who.seed;
    let event_seed = mix2(seed, 0x100 + record.step());
    out.extend_from_slice(b"{\"id\":\"");
    push_hex(out, event_seed, ID_DIGITS);
    out.extend_from_slice(b"\",\"timestamp\":");
    push_int(out, record.at_ms());
    if form == ConnectionForm::Team {
        out.extend_from_slice(&scene.computer.id_json);
    }
    out.extend_from_slice(&scene.computer.host_json);
    if scene.extra_field {
        // Unusual spaces and number forms, which a reader must keep as they are.
        out.extend_from_slice(b",\"agentTrace\": { \"hops\" : [1, 2.50, 1e3], \"build\": \"");
        push_hex(out, seed, 8);
        out.extend_from_slice(b"\" }");
    }
    match record.kind() {
        ConnectionKind::Requested => scene.push_own(b"incomingConnectionRequest", out),
        ConnectionKind::Established => scene.push_own(b"incomingConnectionEvent", out),
        ConnectionKind::AuthSucceeded => scene.push_associated(b"authSucceededEvent", None, out),
        ConnectionKind::AuthFailed => {
            let reason = FAILURE_REASONS[index(event_seed, FAILURE_REASONS.len())];
            scene.push_associated(b"authFailedEvent", Some(reason), out);
        }
        ConnectionKind::Unknown => scene.push_associated(b"clipboardSharedEvent", None, out),
        ConnectionKind::Closed => scene.push_associated(b"connectionClosedEvent", None, out),
    }
    out.push(b'}');
}

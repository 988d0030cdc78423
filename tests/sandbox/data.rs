//! The sandbox's data: every kind of event, and every unusual case that a reader must handle.

use crate::common;

use std::collections::{HashMap, HashSet};

use annals::model::{Digest, Stream};
use annals::sandbox::{SECRET_PREFIX, SandboxConfig, TruthEvent};
use serde_json::Value;

use common::sandbox_client::{SandboxClient, small};

const CONNECTION_KINDS: [&str; 5] = [
    "incomingConnectionRequest",
    "incomingConnectionEvent",
    "authSucceededEvent",
    "authFailedEvent",
    "connectionClosedEvent",
];

struct Event {
    kind: String,
    json: Value,
    truth: TruthEvent,
}

impl Event {
    /// The connection's details, from the place where the event kind holds them.
    fn details(&self) -> &Value {
        let own = &self.json[&self.kind];
        own.get("associatedIncomingConnectionEvent").unwrap_or(own)
    }

    fn connection(&self) -> String {
        self.details()["connectionID"].as_str().unwrap().to_owned()
    }
}

async fn month(stream: Stream) -> Vec<Event> {
    let client = SandboxClient::of(SandboxConfig { days: 45, sessions_per_day: 300, ..small() }).await;
    let beside = HashSet::from(["id", "timestamp", "deviceID", "computerHostName", "agentTrace", "header"]);
    let read = |truth: TruthEvent| {
        let json: Value = serde_json::from_slice(&truth.raw).unwrap();
        let kinds = json.as_object().unwrap().keys().filter(|key| !beside.contains(key.as_str()));
        let kinds: Vec<String> = kinds.cloned().collect();
        assert_eq!(kinds.len(), 1, "{json}");
        Event { kind: kinds[0].clone(), json, truth }
    };
    client.sandbox.handle.truth(client.team(), stream).map(read).collect()
}

fn busiest_second(events: &[Event]) -> usize {
    let mut seconds: HashMap<i64, usize> = HashMap::new();
    for event in events {
        *seconds.entry(event.truth.at.seconds()).or_default() += 1;
    }
    seconds.into_values().max().unwrap()
}

#[tokio::test]
async fn connections_are_of_every_kind_tunnel_and_source() {
    let events = month(Stream::Connections).await;
    let kinds: HashSet<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    assert!(CONNECTION_KINDS.iter().all(|kind| kinds.contains(kind)));
    assert_eq!(kinds.len(), 6, "one unknown kind: {kinds:?}");
    let values = |field: &str| -> HashSet<String> {
        events.iter().map(|event| event.details()[field].as_str().unwrap().to_owned()).collect()
    };
    let set = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<HashSet<_>>();
    assert_eq!(values("tunnelID"), set(&["fluid", "rdp", "vnc", "unknown"]));
    assert_eq!(values("sourceType"), set(&["cloud", "directip", "unknown"]));
    for event in &events {
        let details = event.details();
        let authenticates = event.kind.starts_with("auth");
        assert!(!authenticates || details["tunnelID"] == "fluid");
        assert_eq!(event.kind == "authFailedEvent", event.json[&event.kind].get("reason").is_some());
        assert_eq!(details["sourceType"] == "directip", details["directConnectionInfo"]["ipaddress"].is_string());
        let nested = event.json[&event.kind].get("associatedIncomingConnectionEvent").is_some();
        assert_eq!(nested, !event.kind.starts_with("incoming"), "{}", event.kind);
        assert_eq!(event.json["timestamp"].as_i64().unwrap() * 1_000_000, event.truth.at.nanos());
        assert_eq!(event.json["deviceID"].as_str(), event.truth.device.as_ref().map(annals::model::DeviceId::as_str));
    }
    for optional in ["peerInfo", "localUserName"] {
        let with = events.iter().filter(|event| event.details().get(optional).is_some()).count();
        assert!(0 < with && with < events.len(), "{optional}");
    }
    let ids: HashSet<&str> = events.iter().map(|event| event.json["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), events.len());
}

#[tokio::test]
async fn connections_last_from_seconds_to_weeks_and_some_never_answer_or_close() {
    let events = month(Stream::Connections).await;
    let mut connections: HashMap<String, Vec<&Event>> = HashMap::new();
    for event in &events {
        connections.entry(event.connection()).or_default().push(event);
    }
    let has = |events: &[&Event], kind: &str| events.iter().any(|event| event.kind == kind);
    let answered = |events: &[&Event]| has(events, "incomingConnectionEvent");
    let count = |is_so: &dyn Fn(&[&Event]) -> bool| connections.values().filter(|events| is_so(events)).count();
    assert!(count(&|events| !answered(events) && !has(events, "authFailedEvent")) > 100, "never answered");
    assert!(count(&|events| answered(events) && !has(events, "connectionClosedEvent")) > 100, "never closed");
    assert!(count(&|events| !has(events, "incomingConnectionRequest")) > 50, "without a request");
    assert!(
        count(&|events| has(events, "authFailedEvent") && has(events, "authSucceededEvent")) > 50,
        "then succeeded"
    );
    let lengths: Vec<i64> = connections
        .values()
        .filter(|events| has(events, "connectionClosedEvent"))
        .map(|events| {
            let times = || events.iter().map(|event| event.truth.at.seconds());
            times().max().unwrap() - times().min().unwrap()
        })
        .collect();
    assert!(lengths.iter().any(|&seconds| seconds < 60));
    assert!(lengths.iter().any(|&seconds| seconds > 14 * 86_400));
}

#[tokio::test]
async fn some_seconds_hold_more_than_a_page() {
    assert!(busiest_second(&month(Stream::Connections).await) > 1_001);
    assert!(busiest_second(&month(Stream::Activity).await) > 1_001);
}

#[tokio::test]
async fn activity_has_no_ids_but_twins_and_secrets() {
    let events = month(Stream::Activity).await;
    let mut copies: HashMap<&[u8], usize> = HashMap::new();
    let mut secrets = 0;
    for event in &events {
        assert!(event.json.get("id").is_none());
        assert_eq!(event.json["header"]["eventTimestampUnixNano"], event.truth.at.nanos());
        *copies.entry(&event.truth.raw).or_default() += 1;
        if let Some(secret) = event.json[&event.kind].get("secret") {
            assert!(secret.as_str().unwrap().starts_with(SECRET_PREFIX));
            secrets += 1;
        }
    }
    assert!(copies.values().filter(|&&count| count == 2).count() > 20);
    assert!(secrets > 20);
    let with_token = events.iter().filter(|event| event.json["header"].get("tokenInfo").is_some()).count();
    assert!(0 < with_token && with_token < events.len());
    let kinds: HashSet<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    for kind in ["teamUserAddedEvent", "teamDeviceRenamedEvent", "teamUserLoggedInEvent", "teamSettingsChangedEvent"] {
        assert!(kinds.contains(kind), "{kind}");
    }
}

#[tokio::test]
async fn activity_removes_no_computer_of_the_team() {
    let client = SandboxClient::of(SandboxConfig { days: 45, ..small() }).await;
    let devices = client.sandbox.handle.devices(client.team());
    for event in client.sandbox.handle.truth(client.team(), Stream::Activity) {
        let text = String::from_utf8(event.raw.to_vec()).unwrap();
        let is_removal = text.contains("teamDeviceRemovedEvent");
        assert!(!is_removal && !devices.iter().any(|device| text.contains(device.as_str())), "{text}");
    }
}

#[tokio::test]
async fn strings_are_hostile_long_and_escaped_in_two_ways() {
    let events = month(Stream::Connections).await;
    let text: String = events.iter().map(|event| String::from_utf8(event.truth.raw.to_vec()).unwrap()).collect();
    for hostile in
        ["<script>", "=HYPERLINK(", "DROP TABLE", "\\u001b[31m", "東京", "\\u00c9CRAN", "\"hops\" : [1, 2.50, 1e3]"]
    {
        assert!(text.contains(hostile), "{hostile}");
    }
    assert!(events.iter().any(|event| event.truth.raw.len() > 4_000));
    assert!(events.iter().any(|event| event.json.get("computerHostName").is_none()));
}

#[tokio::test]
async fn an_events_text_is_about_380_bytes() {
    let events = month(Stream::Connections).await;
    let bytes: usize = events.iter().map(|event| event.truth.raw.len()).sum();
    let mean = bytes / events.len();
    assert!((350..=410).contains(&mean), "{mean}");
}

#[tokio::test]
async fn weekends_are_quieter_and_nights_are_not_empty() {
    let events = month(Stream::Connections).await;
    let requests: Vec<i64> = events
        .iter()
        .filter(|event| event.kind == "incomingConnectionEvent")
        .map(|event| event.truth.at.seconds())
        .collect();
    let on = |weekdays: &[i64]| {
        requests.iter().filter(|&&at| weekdays.contains(&((at / 86_400 + 4) % 7))).count() / weekdays.len()
    };
    assert!(on(&[0, 6]) * 2 < on(&[1, 2, 3, 4, 5]));
    let hours: HashSet<i64> = requests.iter().map(|at| at / 3600 % 24).collect();
    assert_eq!(hours.len(), 24);
}

/// The data is a function of the seed on every machine; a change here changes the data of every seed.
#[tokio::test]
async fn the_data_of_a_seed_never_changes_unnoticed() {
    let client = SandboxClient::of(small()).await;
    let digests = Stream::ALL.map(|stream| {
        let events = client.sandbox.handle.truth(client.team(), stream);
        let text: Vec<u8> = events.flat_map(|event| [&event.raw[..], b"\n"].concat()).collect();
        Digest::of(&text).to_string()
    });
    let golden = [
        "332f6fae352022f83c23192fc156f34d4e787ee9051a1a0ea2d78666ce8d3182",
        "cca8c4956794d66ed1ddfd1bb9ea83e284bdc3f9989b3089ce20cf6f1d137557",
        "41e8b45b9effe0ad4b64c26c79b26a6a1f3bea3546ea8d49205519226f38cb4c",
    ];
    assert_eq!(digests, golden);
}

//! The planted cases of the golden archive, listed by hand: exactly these rows must be detections of each report.

use super::answers::Question;

/// Questions in addition to the usual one.
pub const MORE: &[Question] = &[
    Question { name: "vienna-spring", period: SPRING, team: Some("alpine"), ..Question::usual("R14") },
    Question { name: "new-york", team: Some("hudson"), zone: "America/New_York", ..Question::usual("R14") },
    Question {
        name: "new-york-spring",
        period: SPRING,
        team: Some("hudson"),
        zone: "America/New_York",
        ..Question::usual("R14")
    },
    Question { name: "night-shift", team: Some("alpine"), params: NIGHT, ..Question::usual("R14") },
    Question { name: "window", team: Some("alpine"), params: WINDOW, ..Question::usual("R19") },
    Question { name: "person", params: &[("subject", "Dora@alpine.example")], ..Question::usual("R21") },
    Question { name: "computer", params: &[("subject", "pc-hydra")], ..Question::usual("R21") },
    Question { name: "policy", params: &[("keep_at_most_days", "200")], ..Question::usual("R25") },
];

const SPRING: (&str, &str) = ("2026-03-02T00:00:00Z", "2026-04-05T00:00:00Z");
const NIGHT: &[(&str, &str)] = &[("opens", "22:00"), ("closes", "06:30"), ("holidays", "2026-10-23")];
const WINDOW: &[(&str, &str)] =
    &[("own_domains", "alpine.example,evil.example"), ("approved_from", "2026-10-28"), ("approved_to", "2026-11-01")];

/// The detections of a question: the columns that identify them, and their values with `|` between.
pub struct Detections {
    /// The golden's name: the report's id, a dot, and the question's name.
    pub question: &'static str,
    pub columns: &'static [&'static str],
    pub rows: &'static [&'static str],
}

pub const DETECTIONS: &[Detections] = &[
    Detections {
        question: "R02",
        columns: &["severity", "pattern", "peer_ip", "device_id", "failures"],
        rows: &[
            "high|burst|192.0.2.66|pc-atlas|12",
            "high|spray|192.0.2.99|pc-atlas|1",
            "high|spray|192.0.2.99|pc-boreas|1",
            "high|spray|192.0.2.99|pc-castor|1",
            "high|spray|192.0.2.99|pc-gulf|1",
            "high|spray|192.0.2.99|pc-hydra|1",
            "high|distributed|203.0.113.101|pc-echo|1",
            "high|distributed|203.0.113.102|pc-echo|1",
            "high|distributed|203.0.113.103|pc-echo|1",
            "high|distributed|203.0.113.104|pc-echo|1",
            "high|distributed|203.0.113.105|pc-echo|1",
        ],
    },
    Detections {
        question: "R03",
        columns: &["peer_email", "peer_ip", "device_id", "failures"],
        rows: &["fred@alpine.example|198.51.100.13|pc-boreas|3", "bob@hudson.example|198.51.100.81|pc-nyc|3"],
    },
    Detections {
        question: "R04",
        columns: &["severity", "standing", "peer_email", "peer_ip", "device_id"],
        rows: &[
            "medium|not on the roster|mallory@evil.example|192.0.2.77|pc-atlas",
            "medium|not on the roster|=HYPERLINK(\"http://evil.example/\")|192.0.2.79|pc-boreas",
            "medium|not on the roster|guess0@evil.example|192.0.2.99|pc-atlas",
            "medium|not on the roster|guess1@evil.example|192.0.2.99|pc-boreas",
            "medium|not on the roster|guess2@evil.example|192.0.2.99|pc-castor",
            "medium|not on the roster|guess3@evil.example|192.0.2.99|pc-gulf",
            "medium|not on the roster|guess4@evil.example|192.0.2.99|pc-hydra",
            "medium|no email|null|192.0.2.78|pc-boreas",
            "medium|no email|null|192.0.2.98|pc-atlas",
            "medium|no email|null|192.0.2.98|pc-boreas",
            "medium|no email|null|192.0.2.98|pc-castor",
            "medium|no email|null|192.0.2.98|pc-gulf",
            "medium|no email|null|203.0.113.101|pc-echo",
            "medium|no email|null|203.0.113.102|pc-echo",
            "medium|no email|null|203.0.113.103|pc-echo",
            "medium|no email|null|203.0.113.104|pc-echo",
            "medium|no email|null|203.0.113.105|pc-echo",
        ],
    },
    Detections {
        question: "R05",
        columns: &["severity", "user_id", "sessions_after", "changes_after", "residual_grants", "residual_groups"],
        rows: &["critical|usr-dora|1|1|1|0"],
    },
    Detections {
        question: "R06",
        columns: &["severity", "standing", "user_id", "change"],
        rows: &[
            "medium|no event|usr-emil|left",
            "medium|no event|usr-gina|left group",
            "medium|no event|usr-jana|joined",
            "low|no change seen|null|joined",
            "low|no change seen|usr-bert|changed",
        ],
    },
    Detections { question: "R09", columns: &["severity", "user_id", "second_factor"], rows: &["high|usr-bert|FAIL"] },
    Detections {
        question: "R10",
        columns: &["severity", "user_id", "verdict", "turned_off_local"],
        rows: &[
            "high|usr-bert|FAIL|null",
            "high|usr-mona|FAIL|2026-11-02T04:00:00",
            "medium|usr-ivan|FAIL|null",
            "medium|usr-jana|FAIL|null",
            "medium|usr-karl|FAIL|null",
        ],
    },
    Detections {
        question: "R11",
        columns: &["severity", "user_id", "state", "days_unused"],
        rows: &["medium|usr-gina|dormant|130", "low|usr-lena|soon dormant|64"],
    },
    Detections {
        question: "R12",
        columns: &["severity", "device_id", "state"],
        rows: &["low|pc-delta|never online", "low|pc-echo|long offline", "info|pc-fox|no grants"],
    },
    Detections {
        question: "R13",
        columns: &["severity", "user_id", "title", "state"],
        rows: &[
            "medium|usr-anna|ci export|endless",
            "medium|usr-bert|old laptop|stale",
            "medium|usr-dora|old script|owner left",
            "info|usr-cleo|last year|expired",
            "low|usr-fred|<b>soon</b>|expiring",
        ],
    },
    Detections {
        question: "R14",
        columns: &["peer_email", "start_local", "why"],
        rows: &[
            "cleo@alpine.example|2026-10-25T02:30:00|no working day",
            "cleo@alpine.example|2026-10-25T02:30:00|no working day",
            "anna@alpine.example|2026-10-26T06:30:00|outside hours",
            "bert@alpine.example|2026-11-09T00:00:00|outside hours",
        ],
    },
    Detections {
        question: "R14.vienna-spring",
        columns: &["start_local", "start_at"],
        rows: &["2026-03-27T06:30:00|2026-03-27T05:30:00", "2026-03-30T06:30:00|2026-03-30T04:30:00"],
    },
    Detections {
        question: "R14.new-york",
        columns: &["start_local", "start_at"],
        rows: &["2026-11-02T06:30:00|2026-11-02T11:30:00"],
    },
    Detections {
        question: "R14.new-york-spring",
        columns: &["start_local", "start_at"],
        rows: &["2026-03-06T06:30:00|2026-03-06T11:30:00", "2026-03-09T06:30:00|2026-03-09T10:30:00"],
    },
    Detections {
        question: "R15",
        columns: &["severity", "what", "peer_email", "peer_ip", "device_id"],
        rows: &[
            "low|new network|anna@alpine.example|192.0.2.66|pc-atlas",
            "low|new peer|mallory@evil.example|192.0.2.77|pc-atlas",
            "low|new peer|=HYPERLINK(\"http://evil.example/\")|192.0.2.79|pc-boreas",
            "low|new peer|amy@hudson.example|198.51.100.80|pc-nyc",
            "low|new peer|guess0@evil.example|192.0.2.99|pc-atlas",
            "low|new peer|guess1@evil.example|192.0.2.99|pc-boreas",
            "low|new peer|guess2@evil.example|192.0.2.99|pc-castor",
            "low|new peer|guess3@evil.example|192.0.2.99|pc-gulf",
            "low|new peer|guess4@evil.example|192.0.2.99|pc-hydra",
            "low|new address|cleo@alpine.example|198.51.100.200|pc-boreas",
            "low|new network|anna@alpine.example|203.0.113.77|pc-atlas",
            "low|new peer|ivan@alpine.example|198.51.100.18|pc-boreas",
            "low|new address|mona@alpine.example|198.51.100.212|pc-boreas",
            "medium|two addresses at once|mona@alpine.example|198.51.100.212|pc-boreas",
            "low|new computer|anna@alpine.example|198.51.100.10|pc-boreas",
            "low|new peer|bob@hudson.example|192.0.2.10|pc-nyc",
            "low|new network|bob@hudson.example|198.51.100.81|pc-nyc",
            "low|new computer|anna@alpine.example|198.51.100.10|pc-castor",
            "low|new computer|nora@alpine.example|198.51.100.17|pc-gulf",
            "low|new computer|karl@printfix.example|203.0.113.50|pc-atlas",
        ],
    },
    Detections {
        question: "R16",
        columns: &["severity", "source_type", "tunnel_id", "device_id", "is_new"],
        rows: &[
            "medium|directip|fluid|pc-castor|true",
            "medium|cloud|vnc|pc-atlas|true",
            "medium|unknown|unknown|pc-gulf|true",
            "info|cloud|rdp|pc-atlas|false",
        ],
    },
    Detections {
        question: "R17",
        columns: &["what", "identity", "shared_by_count"],
        rows: &[
            "one account of several peers|render on BOREAS|3",
            "one peer at several addresses|mona@alpine.example|2",
        ],
    },
    Detections {
        question: "R18",
        columns: &["severity", "state", "peer_email", "start_at"],
        rows: &[
            "low|longer than the limit|fred@alpine.example|2026-11-02T06:00:00",
            "low|never closed|cleo@alpine.example|2026-11-03T09:00:00",
        ],
    },
    Detections { question: "R19", columns: &["peer_email"], rows: &[] },
    Detections {
        question: "R19.window",
        columns: &["severity", "domain", "peer_email", "sessions", "outside_window"],
        rows: &[
            "medium|null|=hyperlink(\"http://evil.example/\")|1|1",
            "medium|printfix.example|karl@printfix.example|2|1",
        ],
    },
    Detections {
        question: "R22",
        columns: &["severity", "event_type", "payment", "delta"],
        rows: &[
            "low|paymentFailedEvent|recovered|null",
            "medium|userCountUpdatedEvent|null|-1",
            "medium|paymentFailedEvent|not recovered|null",
            "high|subscriptionCanceledEvent|null|null",
        ],
    },
    Detections {
        question: "R23",
        columns: &["severity", "team_id", "source", "day_utc", "state", "gaps"],
        rows: &[
            "medium|alpine|connections|2026-10-12T00:00:00|read whole|0",
            "medium|alpine|connections|2026-10-13T00:00:00|read whole|0",
            "critical|alpine|connections|2026-10-28T00:00:00|read whole|1",
            "low|alpine|connections|2026-10-30T00:00:00|read whole|0",
            "high|alpine|connections|2026-10-31T00:00:00|not read|0",
            "critical|alpine|connections|2026-11-07T00:00:00|read whole|1",
            "info|alpine|activity|2026-11-01T00:00:00|read whole|0",
            "medium|hudson|activity|2026-10-24T00:00:00|read whole|0",
        ],
    },
    Detections { question: "R24", columns: &["team_id"], rows: &[] },
    Detections {
        question: "R25",
        columns: &["severity", "team_id", "class", "state"],
        rows: &[
            "info|alpine|activity|short",
            "info|alpine|billing|short",
            "info|alpine|connections|short",
            "info|hudson|activity|short",
            "info|hudson|billing|short",
            "info|hudson|connections|short",
        ],
    },
    Detections {
        question: "R25.policy",
        columns: &["severity", "team_id", "class", "days_overdue"],
        rows: &[
            "info|alpine|activity|null",
            "info|alpine|billing|null",
            "medium|alpine|connections|26",
            "medium|alpine|sessions|26",
            "medium|alpine|inventory_computers|54",
            "medium|alpine|inventory_grants|54",
            "medium|alpine|inventory_groups|54",
            "medium|alpine|inventory_memberships|54",
            "medium|alpine|inventory_sign_in|54",
            "medium|alpine|inventory_sso_users|54",
            "medium|alpine|inventory_team|54",
            "medium|alpine|inventory_tokens|54",
            "medium|alpine|inventory_users|54",
            "info|hudson|activity|null",
            "info|hudson|billing|null",
            "medium|hudson|connections|47",
            "medium|hudson|sessions|47",
        ],
    },
    Detections {
        question: "R26",
        columns: &["severity", "team_id", "from_local", "to_local", "hours_overdue"],
        rows: &[
            "medium|alpine|2026-10-15T10:00:00|2026-11-09T01:00:00|592.0",
            "medium|hudson|2026-10-13T02:00:00|2026-11-09T01:00:00|648.0",
        ],
    },
];

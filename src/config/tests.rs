use crate::api::RetryPolicy;

use super::*;

fn load(text: &str, overrides: Overrides) -> Result<Config, String> {
    let path = PathBuf::from("/etc/annals/annals.toml");
    File::parse(&path, text).and_then(|file| Config::merge(Some(path), file, overrides)).map_err(|e| e.to_string())
}

fn refused(text: &str) -> String {
    load(text, Overrides::default()).expect_err(text)
}

#[test]
fn an_empty_file_gives_the_documented_defaults() {
    let config = load("", Overrides::default()).unwrap();
    assert_eq!(config.archive, Location::Local("/etc/annals/archive".into()));
    assert_eq!(config.requests_per_second, Some(5.0));
    assert_eq!(config.concurrency.get(), 4);
    assert_eq!((config.deadline, config.retry_for), (crate::api::REQUEST_DEADLINE, RetryPolicy::default().total_max));
    assert_eq!(config.windows.length, Duration::from_secs(86_400));
    assert_eq!(config.windows.lag, Duration::from_secs(900));
    assert_eq!(config.windows.rescan, [3_600, 86_400, 259_200].map(Duration::from_secs));
    assert_eq!(config.windows.partition, Partition::Month);
    assert_eq!(config.schedule.activity.as_str(), "*/5 * * * *");
    assert_eq!(config.http.listen.to_string(), "127.0.0.1:9464");
    assert_eq!(config.http.team_metrics, TeamMetrics::Auto);
    assert_eq!(config.shard, Shard::WHOLE);
    assert!(config.teams.is_empty() && config.warnings.is_empty());
    assert!(matches!(config.base_url(), Err(ConfigError::NoBaseUrl)));
    assert!(matches!(config.token_source(), Err(ConfigError::NoToken)));
}

#[test]
fn the_documented_file_is_accepted() {
    let config = load(
        r#"
            archive = "./archive"
            [api]
            base_url = "https://service.example/api/"
            token_file = "/run/credentials/annals/token"
            teams = ["t1"]
            plan_span = "30d"
            requests_per_second = 5
            concurrency = 4
            [windows]
            length = "1h"
            lag = "15m"
            rescan = ["1h", "24h", "72h"]
            partition = "month"
            [schedule]
            connections = "* * * * *"
            activity = "*/5 * * * *"
            billing = "*/15 * * * *"
            inventory = "0 3 * * *"
            [http]
            listen = "127.0.0.1:9464"
            [sql]
            memory = "512MiB"
            threads = 2
            temp_directory = "spill"
        "#,
        Overrides::default(),
    )
    .unwrap();
    assert_eq!(config.base_url().unwrap().as_str(), "https://service.example/api");
    assert_eq!(config.teams, [TeamId::from("t1")]);
    assert_eq!(config.plan_span, Some(Duration::from_secs(30 * 86_400)));
    let TokenSource::File(path) = config.token_source().unwrap() else { panic!("the token comes from a file") };
    assert_eq!(path, Path::new("/run/credentials/annals/token"));
    let spill = Some(PathBuf::from("/etc/annals/spill"));
    assert_eq!(config.sql, SqlLimits { memory_mib: Some(512), threads: Some(2), temp_directory: spill });
}

#[test]
fn flags_override_the_file() {
    let overrides = Overrides {
        archive: Some("elsewhere".into()),
        base_url: Some("http://127.0.0.1:8080".into()),
        requests_per_second: Some(0.0),
        token: Some(TokenSource::File("other".into())),
        ..Overrides::default()
    };
    let text = "archive = \"a\"\n[api]\nbase_url = \"https://x.example\"\ntoken_file = \"t\"\nrequests_per_second = 9";
    let config = load(text, overrides).unwrap();
    assert_eq!(config.archive, Location::Local("elsewhere".into()));
    assert_eq!(config.base_url().unwrap().host_str(), Some("127.0.0.1"));
    assert_eq!(config.requests_per_second, None);
    assert!(matches!(config.token_source(), Ok(TokenSource::File(path)) if path == Path::new("other")));
}

#[test]
fn the_ledger_belongs_to_the_archive_of_its_file() {
    let over = |archive: Option<&str>, ledger: Option<&str>| Overrides {
        archive: archive.map(Into::into),
        ledger: ledger.map(Into::into),
        ..Overrides::default()
    };
    let both = "archive = \"a\"\n[store]\nledger = \"l\"";
    let alone = "[store]\nledger = \"s3://b/l\"";
    for (text, archive, ledger, expected, is_warned) in [
        (both, None, None, Some("/etc/annals/l"), false),
        (both, Some("/etc/annals/a"), None, Some("/etc/annals/l"), false),
        (both, Some("other"), None, None, true),
        (both, Some("other"), Some("m"), Some("m"), false),
        (both, None, Some("gs://b/m"), Some("gs://b/m"), false),
        (alone, Some("s3://b/a"), None, Some("s3://b/l"), false),
        ("", None, None, None, false),
        ("", Some("s3://b/a"), Some("m"), Some("m"), false),
    ] {
        let config = load(text, over(archive, ledger)).unwrap();
        let found = config.ledger.as_ref().map(ToString::to_string);
        assert_eq!(
            (found.as_deref(), !config.warnings.is_empty()),
            (expected, is_warned),
            "{text} {archive:?} {ledger:?}"
        );
    }
    for (archive, ledger) in [
        ("s3://b/a", "s3://b/a"),
        ("s3://b/a", "s3://b/a/l"),
        ("s3://b/a/b", "s3://b/a"),
        ("s3://b/a", "s3://b"),
        ("/srv/a", "/srv/a"),
        ("/srv/a", "/srv/a/l"),
        ("/srv/a", "/srv"),
        ("/srv/a", ""),
        ("/srv/a", "ftp://x/y"),
    ] {
        let message = load("", over(Some(archive), Some(ledger))).unwrap_err();
        assert!(message.starts_with("--ledger or ANNALS_LEDGER: ") && !message.contains('\n'), "{ledger}: {message}");
    }
    let message = refused("archive = \"a\"\n[store]\nledger = \"a/b\"");
    assert!(message.starts_with("/etc/annals/annals.toml: store.ledger: "), "{message}");
    let inside = refused("archive = \"a\"\n[store]\nledger = \"l\"\n[signing]\nkey_file = \"l/key\"");
    assert!(inside.contains("is inside the archive"), "{inside}");
}

#[test]
fn a_variable_that_overrides_another_archive_of_the_file_causes_a_warning() {
    let over = |archive: &str, is_archive_of_environment| Overrides {
        archive: Some(archive.into()),
        is_archive_of_environment,
        ..Overrides::default()
    };
    let file = "archive = \"s3://audit/annals\"";
    for (text, archive, is_of_environment, is_warned) in [
        (file, "/var/lib/annals/archive", true, true),
        (file, "/var/lib/annals/archive", false, false),
        (file, "s3://audit/annals", true, false),
        ("", "/var/lib/annals/archive", true, false),
    ] {
        let config = load(text, over(archive, is_of_environment)).unwrap();
        assert_eq!(config.archive.to_string(), archive);
        let is_named = |warning: &String| warning.contains("s3://audit/annals") && warning.contains("ANNALS_ARCHIVE");
        assert_eq!(config.warnings.iter().any(is_named), is_warned, "{text} {archive}: {:?}", config.warnings);
    }
}

#[test]
fn a_relative_program_is_beside_the_file() {
    let command =
        |words: &str| load(&format!("[alerts]\ncommand = {words}"), Overrides::default()).unwrap().alerts.command;
    assert_eq!(command("[\"./hook\", \"./x\"]"), ["/etc/annals/./hook", "./x"]);
    assert_eq!(command("[\"/usr/bin/hook\"]"), ["/usr/bin/hook"]);
    assert_eq!(command("[\"hook\"]"), ["hook"]);
}

#[test]
fn a_relative_file_of_the_public_key_is_beside_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, key) = (folder.path().join("annals.toml"), folder.path().join("key.pub"));
    std::fs::File::create(&key).unwrap();
    for (given, expected) in [("key.pub", key.to_str().unwrap()), ("example.com/annals+00000000+AAAA", "")] {
        let config = Config::of_text(&path, &format!("[signing]\npublic_key = \"{given}\"")).unwrap();
        let expected = if expected.is_empty() { given } else { expected };
        assert_eq!(config.signing.public_key.as_deref(), Some(expected));
    }
}

#[test]
fn an_unknown_key_is_named_with_file_and_line() {
    let message = refused("archive = \"a\"\n[api]\ntoken = \"hunter2\"\n");
    assert!(message.starts_with("/etc/annals/annals.toml: line 3: unknown key `token`"), "{message}");
    assert!(!message.contains("hunter2"), "{message}");
    assert!(refused("archvie = \"a\"").contains("unknown key `archvie`"));
    assert!(refused("[windows]\nlenght = \"1d\"").contains("unknown key `lenght`"));
    assert!(refused("[retention.teams.t1]\nrows = \"1y\"").contains("unknown key `rows`"));
}

#[test]
fn an_invalid_value_is_named_with_its_key() {
    for (text, key, part) in [
        ("[windows]\nlength = \"7h\"", "windows.length", "7h"),
        ("[windows]\nlength = \"0s\"", "windows.length", "0s"),
        ("[windows]\nlength = \"10m\"", "windows.length", "at least 15m"),
        ("[windows]\nlength = \"36h\"", "windows.length", "36h"),
        ("[windows]\nlength = \"29d\"", "windows.length", "28"),
        ("[windows]\nlag = \"8d\"", "windows.lag", "8d"),
        ("[windows]\nlag = \"soon\"", "windows.lag", "soon"),
        ("[windows]\nrescan = [\"2h\", \"1h\"]", "windows.rescan", "ascending"),
        ("[api]\nconcurrency = 0", "api.concurrency", "0"),
        ("[api]\ndeadline = \"0s\"", "api.deadline", "1s"),
        ("[api]\ndeadline = \"11m\"", "api.deadline", "1s to 10m"),
        ("[api]\nretry_for = \"2h\"", "api.retry_for", "0s to 1h"),
        ("[api]\nplan_span = \"1m\"", "api.plan_span", "1h to 3660d"),
        ("[api]\nbase_url = \"ftp://x\"", "api.base_url", "https://"),
        ("[api]\nbase_url = \"https://u:p@x.example\"", "api.base_url", "password"),
        ("[api]\nbase_url = \"https://x.example?a=b\"", "api.base_url", "query"),
        ("[api]\nteams = [\"\"]", "api.teams", "empty"),
        ("archive = \"ftp://bucket/x\"", "archive", "ftp://"),
        ("archive = \"s3:/bucket/x\"", "archive", "looks like an address"),
        ("archive = \"s3://key:secret@bucket\"", "archive", "credentials"),
        ("archive = \"\"", "archive", "empty"),
        ("[schedule]\nbilling = \"* * *\"", "schedule.billing", "3 fields"),
        ("[schedule]\nbilling = \"hourly\"", "schedule.billing", "has 1 field,"),
        ("[http]\nlisten = \"localhost:9464\"", "http.listen", "give an IP address"),
        ("[http]\nsql_time = \"1h\"", "http.sql_time", "10m"),
        ("[http]\nteam_metrics = \"some\"", "http.team_metrics", "must be \"auto\", true or false"),
        ("[http]\nteam_metrics = 7", "http.team_metrics", "7 must be"),
        ("[fleet]\nshard = \"9/8\"", "fleet.shard", "\"9/8\" is not a shard: expected K/N"),
        ("[fleet]\nshard = \"1/1025\"", "fleet.shard", "N is 1 to 1024 and K is 1 to N"),
        ("[fleet]\nshard = 2", "line 2: fleet.shard", "expected a text in quotes"),
        ("[api]\nrequests_per_second = -1", "api.requests_per_second", "-1"),
        ("[api]\nrequests_per_second = nan", "api.requests_per_second", "NaN"),
        ("[api]\nconcurrency = -1", "line 2: api.concurrency", "expected a whole number that is not negative"),
        ("[api]\nconcurrency = \"a\"", "line 2: api.concurrency", "expected a whole number that is not negative"),
        ("[api]\nteams = \"a\"", "line 2: api.teams", "expected a list in square brackets"),
        ("[api]\nteams = [\n1,\n]", "line 3", "expected a text in quotes"),
        ("[api]\nrequests_per_second = \"5\"", "line 2: api.requests_per_second", "expected a number"),
        ("[store]\ngroup_readable = 1", "line 2: store.group_readable", "expected true or false"),
        ("[store]\ngrace = \"1h\"", "store.grace", "1h is not in the range 2h to 366d"),
        ("queries = 7", "line 1: queries", "expected a text in quotes"),
        ("schedule = 7", "line 1: schedule", "expected a table"),
        ("[windows]\npartition = \"week\"", "line 2: windows.partition", "unknown value `week`"),
        ("[api]\nbase_url = \"https://x.example/v1/\"", "api.base_url", "leave out /v1"),
        ("[windows]\npartition = \"day\"\nlength = \"2d\"", "windows.partition", "windows of 2d are longer"),
    ] {
        let message = refused(text);
        assert!(message.contains(key) && message.contains(part), "{text}: {message}");
    }
}

#[test]
fn plain_http_to_another_machine_causes_a_warning() {
    for (address, warned) in [
        ("http://service.example", true),
        ("https://service.example", false),
        ("http://localhost:1", false),
        ("http://127.0.0.1:1", false),
        ("http://[::1]:1", false),
    ] {
        let config = load("", Overrides { base_url: Some(address.into()), ..Overrides::default() }).unwrap();
        assert_eq!(!config.warnings.is_empty(), warned, "{address}");
    }
}

#[test]
fn a_missing_named_file_is_an_error() {
    let overrides = Overrides { config: Some("/nowhere/annals.toml".into()), ..Overrides::default() };
    assert!(matches!(Config::load(overrides), Err(ConfigError::Unreadable { .. })));
}

/// The keys that a table accepts, from the parser's message; the path is empty for the top.
fn known_keys(table: &str) -> Vec<String> {
    let header = if table.is_empty() { String::new() } else { format!("[{table}]\n") };
    let message = File::parse(Path::new("annals.toml"), &format!("{header}unheard_of = 1")).unwrap_err().to_string();
    let list = message.split_once("expected").expect("it lists what it expects").1;
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

const EXAMPLE: &str = include_str!("../../deploy/annals.toml");

/// The example, with every key uncommented.
fn whole_example() -> String {
    let is_key = |line: &str| {
        let name = line.strip_prefix('#').and_then(|rest| rest.split_once(" = ")).map_or("", |(name, _)| name);
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    EXAMPLE.lines().map(|line| format!("{}\n", if is_key(line) { &line[1..] } else { line })).collect()
}

#[test]
fn the_example_file_explains_exactly_the_existing_keys() {
    let example: toml::Table = toml::from_str(&whole_example()).unwrap();
    let mut shown: Vec<String> = example.keys().cloned().collect();
    let mut known = known_keys("");
    assert!(known.len() >= 8, "{known:?}");
    for (section, value) in example.iter().filter_map(|(key, value)| Some((key, value.as_table()?))) {
        shown.extend(value.keys().map(|key| format!("{section}.{key}")));
        known.extend(known_keys(section).into_iter().map(|key| format!("{section}.{key}")));
    }
    shown.sort();
    known.sort();
    assert_eq!(shown, known);
    let lines: Vec<&str> = EXAMPLE.lines().collect();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.contains(" = ") && !line.starts_with("# ")) {
        let before = lines[..at].iter().rev().find(|line| !line.contains(" = ") || line.starts_with("# "));
        assert!(before.is_some_and(|line| line.starts_with("# ") || line.starts_with('[')), "{line} is not explained");
    }
}

#[test]
fn the_example_file_shows_the_defaults_and_is_valid_with_every_key_in_force() {
    let defaults = load("[api]\nbase_url = \"https://service.example/api\"", Overrides::default()).unwrap();
    let example = load(EXAMPLE, Overrides::default()).unwrap();
    assert_eq!(format!("{example:?}"), format!("{defaults:?}"));
    load(&whole_example(), Overrides::default()).unwrap();
}

#[test]
fn metrics_of_each_team_follow_the_setting_and_auto_means_up_to_a_hundred() {
    let of =
        |value: &str| load(&format!("[http]\nteam_metrics = {value}"), Overrides::default()).unwrap().http.team_metrics;
    for (value, at_100, at_101) in [("\"auto\"", true, false), ("true", true, true), ("false", false, false)] {
        assert_eq!((of(value).shows(100), of(value).shows(101)), (at_100, at_101), "{value}");
    }
}

#[test]
fn the_environment_and_the_flag_override_the_shard_of_the_file() {
    let file = "[fleet]\nshard = \"2/8\"";
    assert_eq!(load(file, Overrides::default()).unwrap().shard.to_string(), "2/8");
    let over = Overrides { shard: "3/4".parse().ok(), ..Overrides::default() };
    assert_eq!(load(file, over).unwrap().shard.to_string(), "3/4");
}

#[test]
fn retention_is_by_dataset_and_a_team_may_differ() {
    use crate::model::{Retained, TeamId};
    let config = load(
        "[retention]\nconnections = \"7y\"\nactivity = \"90d\"\n\
         [retention.teams.\"t1\"]\nconnections = \"forever\"\nbilling = \"18mo\"\n",
        Overrides::default(),
    )
    .unwrap();
    let of = |team: &str, of| config.retention.of(&TeamId::from(team)).policy(of).map(|policy| policy.to_string());
    assert_eq!(of("t2", Retained::Connections).as_deref(), Some("connections = 7y"));
    assert_eq!((of("t1", Retained::Connections), of("t2", Retained::Billing)), (None, None));
    assert_eq!(of("t1", Retained::Activity).as_deref(), Some("activity = 90d"));
    assert_eq!(of("t1", Retained::Billing).as_deref(), Some("billing = 18mo"));
    assert!(load("", Overrides::default()).unwrap().retention.is_empty());
    assert!(refused("[retention]\nactivity = \"7 parsecs\"").contains("retention.activity: \"7 parsecs\""));
    assert!(refused("[retention]\nactivity = \"forever and a day\"").contains("retention.activity"));
    assert!(refused("[retention.teams.\" \"]\nactivity = \"1y\"").contains("empty"));
}

#[test]
fn places_are_compared_by_their_real_paths() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("arch")).unwrap();
    std::os::unix::fs::symlink("arch", home.path().join("link")).unwrap();
    let at = |name: &str| Location::Local(home.path().join(name));
    for (one, two, is_overlap) in [
        ("arch", "arch/../backup", false),
        ("arch/../backup", "arch/.", false),
        ("new", "new/../ledger", false),
        ("arch", "archive", false),
        ("arch", "backup/../arch", true),
        ("new", "none/../new/ledger", true),
        ("arch", "link/ledger", true),
        ("link", "arch/new/ledger", true),
        ("link/..", "arch", true),
    ] {
        assert_eq!(
            (overlaps(&at(one), &at(two)), overlaps(&at(two), &at(one))),
            (is_overlap, is_overlap),
            "{one} {two}"
        );
    }
}

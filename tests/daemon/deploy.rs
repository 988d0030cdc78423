//! `deploy/` names only existing metrics, files and paths, and the usual tools accept it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use annals::config::{Config, Overrides};
use annals::web::metric_names as names;
use serde_json::{Value, json};
use yaml_rust2::{Yaml, YamlLoader};

use super::port::names_in;
use super::program::{Scene, put, wait_for};
use crate::common::third_party::missing;

fn deploy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(name)
}

pub fn text(name: &str) -> String {
    std::fs::read_to_string(deploy(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// YAML as JSON, one value for each document.
pub fn documents(text: &str) -> Vec<Value> {
    fn value(yaml: &Yaml) -> Value {
        match yaml {
            Yaml::Hash(members) => {
                members.iter().map(|(key, of)| (key.as_str().unwrap().to_owned(), value(of))).collect()
            }
            Yaml::Array(items) => items.iter().map(value).collect(),
            Yaml::String(text) => json!(text),
            Yaml::Integer(number) => json!(number),
            Yaml::Boolean(is_true) => json!(is_true),
            Yaml::Real(text) => json!(text.parse::<f64>().unwrap()),
            Yaml::Null => Value::Null,
            other => panic!("{other:?}"),
        }
    }
    YamlLoader::load_from_str(text).unwrap().iter().map(value).collect()
}

/// Every string under one of `keys`, at any depth.
fn strings_under(value: &Value, keys: &[&str], found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                match member.as_str().filter(|_| keys.contains(&key.as_str())) {
                    Some(text) => found.push(text.to_owned()),
                    None => strings_under(member, keys, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| strings_under(item, keys, found)),
        _ => {}
    }
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut at = 0;
    text.split(move |c| !is_word(c)).map(move |word| {
        let begin = at;
        at += word.len() + 1;
        (begin, word)
    })
}

/// The metrics of a query, with the labels of their selectors.
fn asked(query: &str) -> Vec<(String, Vec<String>)> {
    let metrics = words(query).filter(|(_, word)| word.starts_with("annals_"));
    metrics
        .map(|(at, word)| {
            let selector = query[at + word.len()..].strip_prefix('{').and_then(|rest| rest.split('}').next());
            let labels = selector.unwrap_or_default().split(',').filter_map(|pair| pair.split(['=', '!']).next());
            (word.to_owned(), labels.filter(|label| !label.is_empty()).map(str::to_owned).collect())
        })
        .collect()
}

/// The metrics of a daemon with one team after every task has run.
fn scraped(variables: &[(&str, &str)]) -> String {
    let scene = Scene::new(1);
    scene.configure(&format!("{}verify = \"*/3 * * * * *\"\nreports = \"*/3 * * * * *\"\n", super::program::POLLS));
    let daemon = scene.start_with(variables);
    wait_for("readiness", || daemon.is_ready().then_some(()));
    wait_for("a check of the archive", || daemon.metric(names::VERIFY_AT.name));
    wait_for("a run of the reports", || daemon.metric(names::REPORTS_AT.name));
    let text = daemon.get("/metrics").1;
    daemon.stop();
    text
}

/// Every query of the rules, and of the dashboard.
fn queries() -> [Vec<String>; 2] {
    let (mut rules, mut dashboard) = (Vec::new(), Vec::new());
    strings_under(&documents(&text("prometheus/annals.rules.yml"))[0], &["expr"], &mut rules);
    assert!(rules.len() >= 10);
    let panels: Value = serde_json::from_str(&text("grafana/annals.json")).unwrap();
    strings_under(&panels, &["expr"], &mut dashboard);
    assert!(dashboard.len() >= 20);
    [rules, dashboard]
}

/// The metric's name without a histogram's suffix.
fn base_name<'a>(metric: &'a str, there: &BTreeSet<String>) -> &'a str {
    let histogram = ["_bucket", "_sum", "_count"].iter().find_map(|ending| metric.strip_suffix(ending));
    histogram.filter(|name| there.contains(*name)).unwrap_or(metric)
}

#[test]
fn rules_and_dashboard_use_only_existing_metrics_and_labels() {
    let there = names_in(&scraped(&[]));
    let mut drawn = BTreeSet::new();
    let variable = "label_values(annals_team_ledger_seq, team)".to_owned();
    assert!(text("grafana/annals.json").contains(&variable));
    for query in queries().concat().iter().chain([&variable]) {
        for (metric, labels) in asked(query) {
            let name = base_name(&metric, &there);
            assert!(there.contains(name), "{name} is not scraped: {query}");
            let known = names::ALL.iter().find(|known| known.name == name).unwrap();
            let is_known = |label: &String| known.labels.contains(&label.as_str());
            assert!(labels.iter().all(is_known), "{labels:?} of {name}, which has {:?}", known.labels);
            drawn.insert(name.to_owned());
        }
    }
    assert!(drawn.len() >= 20, "{drawn:?}");
}

#[test]
fn rules_and_dashboard_work_without_series_of_each_team() {
    let text = scraped(&[("ANNALS_TEAM_METRICS", "false")]);
    assert!(!text.contains("team=\""), "{text}");
    let there = names_in(&text);
    for query in queries().concat() {
        let names: Vec<String> = asked(&query).into_iter().map(|(metric, _)| metric).collect();
        let totals: Vec<&String> = names.iter().filter(|name| !name.starts_with("annals_team_")).collect();
        assert!(!totals.is_empty() || names.is_empty(), "{query} shows nothing");
        for name in totals {
            assert!(there.contains(base_name(name, &there)), "{name} is not scraped: {query}");
        }
    }
}

#[test]
fn series_of_one_instance_s_teams_hide_no_totals_of_another_instance() {
    for query in queries().concat() {
        for (_, rest) in query.match_indices("unless on(").map(|(at, found)| query.split_at(at + found.len())) {
            assert!(rest.starts_with("instance)"), "{query}");
        }
    }
}

#[test]
fn every_alert_has_its_place_in_the_operator_s_guide() {
    let rules = documents(&text("prometheus/annals.rules.yml")).remove(0);
    let mut alerts = Vec::new();
    strings_under(&rules, &["alert"], &mut alerts);
    let guide = text("../docs/operating.md");
    for alert in &alerts {
        assert!(guide.contains(&format!("`{alert}`")), "{alert} is not explained in docs/operating.md");
    }
    let named = words(&guide).map(|(_, word)| word).filter(|word| {
        word.strip_prefix("Annals").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
    });
    for word in named {
        assert!(alerts.iter().any(|alert| alert == word), "docs/operating.md explains {word}, which is no alert");
    }
}

/// Runs a tool. `None`: the tool is not installed.
fn tool(program: &str, arguments: &[&str], directory: &Path) -> Option<(bool, String)> {
    match Command::new(program).args(arguments).current_dir(directory).output() {
        Ok(output) => {
            let said = [output.stdout, output.stderr].concat();
            Some((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{program}: {error}"),
    }
}

#[test]
fn promtool_finds_nothing_wrong_and_the_rules_fire_when_they_should() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/promtool.sh");
    let (is_there, path) = tool(script.to_str().unwrap(), &["find"], Path::new(".")).unwrap();
    if !is_there {
        return missing("promtool", "deploy/prometheus", "promtool is not here: run scripts/promtool.sh install");
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["annals.rules.yml", "annals.rules.test.yml", "annals.days.test.yml", "prometheus.yml"] {
        let text = text(&format!("prometheus/{name}")).replace("/run/secrets/annals_port_token", "token");
        put(&folder.path().join(name), &text);
    }
    put(&folder.path().join("token"), "token");
    for arguments in [
        ["check", "rules", "annals.rules.yml"],
        ["test", "rules", "annals.rules.test.yml"],
        ["test", "rules", "annals.days.test.yml"],
        ["check", "config", "prometheus.yml"],
    ] {
        let (is_fine, said) = tool(path.trim(), &arguments, folder.path()).unwrap();
        assert!(is_fine, "{arguments:?}: {said}");
    }
}

#[test]
fn systemd_finds_nothing_wrong_with_the_units_and_little_exposed() {
    let folder = tempfile::tempdir().unwrap();
    let units = ["annals.service", "annals-sync.service", "annals-sync.timer"];
    for name in units {
        let text = text(&format!("systemd/{name}")).replace("/usr/local/bin/annals", env!("CARGO_BIN_EXE_annals"));
        assert!(
            name.ends_with(".timer") || text.contains("\nLimitNOFILE="),
            "{name} says how many descriptors it may have"
        );
        // The variable would override the key `archive`.
        assert!(!text.contains("ANNALS_ARCHIVE"), "{name}");
        // A user with a name can own keys and tokens, and administrators can run commands as this user.
        assert!(name.ends_with(".timer") || text.contains("\nUser=annals\n"), "{name}");
        put(&folder.path().join(name), &text);
    }
    for name in units {
        let path = format!("./{name}");
        let arguments = ["verify", "--man=no", "--recursive-errors=no", &path];
        let Some((is_fine, said)) = tool("systemd-analyze", &arguments, folder.path()) else {
            return missing("systemd", "deploy/systemd", "systemd-analyze is not here: install systemd");
        };
        assert!(is_fine && said.trim().is_empty(), "{name}: {said}");
        if name.ends_with(".service") {
            // The score is in tenths; most services of a distribution have more than 90.
            let arguments = ["security", "--offline=true", "--threshold=15", &path];
            let (is_fine, said) = tool("systemd-analyze", &arguments, folder.path()).unwrap();
            assert!(is_fine, "{name}: {said}");
        }
    }
}

/// Checks a configuration of `deploy/` with the program's own rules.
pub fn config_of(text: &str) -> Config {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("annals.toml");
    put(&path, text);
    Config::load(Overrides { config: Some(path), ..Overrides::default() }).unwrap()
}

#[test]
fn the_example_configuration_starts_the_daemon() {
    let scene = Scene::new(1);
    let example = text("annals.toml");
    let base_url = scene.sandbox.base_url.clone();
    let ours = example
        .replace("https://service.example/api", &base_url)
        .replace("127.0.0.1:9464", "127.0.0.1:0")
        .replace("#token_file = \"token\"", "token_file = \"token\"");
    assert!(ours.contains(&base_url) && ours.contains("\ntoken_file = \"token\"\n"));
    put(&scene.path("annals.toml"), &ours);
    let daemon = scene.start();
    wait_for("the backfill", || (daemon.metric("annals_teams") == Some(1.0)).then_some(()));
    assert_eq!(daemon.get("/healthz").0, 200);
    daemon.stop();
}

/// Whether an image is named by its digest, because a tag may change.
fn is_pinned(image: &str) -> bool {
    let digest = image.split(' ').next().and_then(|name| name.split_once("@sha256:"));
    digest.is_some_and(|(_, digest)| digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[test]
fn compose_names_only_existing_files_and_secrets() {
    let compose = documents(&text("docker/compose.yaml")).remove(0);
    let config = config_of(&text("docker/annals.toml"));
    let place = |name: &str| deploy("docker").join(name);
    let mut used = BTreeSet::new();
    for (name, service) in compose["services"].as_object().unwrap() {
        assert!(service["build"].is_object() || is_pinned(service["image"].as_str().unwrap()), "{name}");
        for volume in service["volumes"].as_array().unwrap() {
            let source = volume.as_str().unwrap().split(':').next().unwrap();
            let is_there = if source.starts_with('.') {
                place(source).try_exists().unwrap()
            } else {
                compose["volumes"].get(source).is_some()
            };
            assert!(is_there, "{name}: {source}");
        }
        used.extend(service["secrets"].as_array().unwrap().iter().map(|secret| secret.as_str().unwrap().to_owned()));
        for port in service["ports"].as_array().into_iter().flatten() {
            assert!(port.as_str().unwrap().starts_with("127.0.0.1:"), "{name}: {port} would be open to others");
        }
    }
    let declared: BTreeSet<String> = compose["secrets"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(used, declared);
    let dockerfile = compose["services"]["annals"]["build"]["dockerfile"].as_str().unwrap();
    let dockerfile = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(dockerfile)).unwrap();
    let images: Vec<&str> = dockerfile.lines().filter_map(|line| line.strip_prefix("FROM ")).collect();
    assert!(images.len() == 2 && images.iter().all(|image| is_pinned(image)), "{images:?}");
    assert!(!dockerfile.contains("# syntax="), "a frontend is an image too");
    // The variable would override the key `archive`, also in Kubernetes.
    assert!(!dockerfile.contains("ANNALS_ARCHIVE"));
    let volume = dockerfile.lines().find_map(|line| line.strip_prefix("VOLUME ")).unwrap();
    assert!(config.archive.directory().unwrap().starts_with(volume), "{} is on no volume", config.archive);
    let user = dockerfile.lines().find_map(|line| line.strip_prefix("USER ")).unwrap();
    assert!(!user.starts_with('0') && !user.starts_with("root"), "{user}");
    let prometheus = documents(&text("prometheus/prometheus.yml")).remove(0);
    let job = &prometheus["scrape_configs"][0];
    assert_eq!(job["static_configs"][0]["targets"][0], format!("annals:{}", config.http.listen.port()));
    assert_eq!(
        job["authorization"]["credentials_file"].as_str(),
        config.http.token_file.as_deref().and_then(Path::to_str)
    );
    let mounted = compose["services"]["grafana"]["volumes"][1].as_str().unwrap().split(':').nth(1).unwrap();
    let provider = documents(&text("grafana/provisioning/dashboards/annals.yaml")).remove(0);
    assert_eq!(
        provider["providers"][0]["options"]["path"].as_str(),
        Path::new(mounted).parent().and_then(Path::to_str)
    );
}

//! `deploy/`: that it names metrics, files and paths that are there, and that tools find nothing wrong with it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use annals::config::{Config, Overrides};
use annals::model::Shard;
use annals::web::names;
use serde_json::{Value, json};
use yaml_rust2::{Yaml, YamlLoader};

use super::port::names_in;
use super::program::{Scene, get, put, wait_for};

fn deploy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(deploy(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// YAML as JSON, one value a document.
fn documents(text: &str) -> Vec<Value> {
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

/// What a query asks for: each of our metrics, with the labels that its selector names.
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

/// What a daemon of one team lets be scraped once everything has run.
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

/// The metric's name without the ending of a histogram.
fn base_name<'a>(metric: &'a str, there: &BTreeSet<String>) -> &'a str {
    let histogram = ["_bucket", "_sum", "_count"].iter().find_map(|ending| metric.strip_suffix(ending));
    histogram.filter(|name| there.contains(*name)).unwrap_or(metric)
}

#[test]
fn rules_and_dashboard_ask_for_metrics_and_labels_that_the_program_has() {
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

/// Runs a tool; without it the test says that it was skipped.
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
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["annals.rules.yml", "annals.rules.test.yml", "prometheus.yml"] {
        let text = text(&format!("prometheus/{name}")).replace("/run/secrets/annals_port_token", "token");
        put(&folder.path().join(name), &text);
    }
    put(&folder.path().join("token"), "token");
    for arguments in [
        ["check", "rules", "annals.rules.yml"],
        ["test", "rules", "annals.rules.test.yml"],
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
        put(&folder.path().join(name), &text);
    }
    for name in units {
        let path = format!("./{name}");
        let arguments = ["verify", "--man=no", "--recursive-errors=no", &path];
        let Some((is_fine, said)) = tool("systemd-analyze", &arguments, folder.path()) else { return };
        assert!(is_fine && said.trim().is_empty(), "{name}: {said}");
        if name.ends_with(".service") {
            // In tenths; most services of a distribution lie above 90.
            let arguments = ["security", "--offline=true", "--threshold=15", &path];
            let (is_fine, said) = tool("systemd-analyze", &arguments, folder.path()).unwrap();
            assert!(is_fine, "{name}: {said}");
        }
    }
}

/// A configuration of `deploy/`, as it is, checked by the program's own rules.
fn config_of(text: &str) -> Config {
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
    wait_for("the first reading", || (daemon.metric("annals_teams") == Some(1.0)).then_some(()));
    assert_eq!(daemon.get("/healthz").0, 200);
    daemon.stop();
}

/// Whether an image is named by its digest, whatever its tag comes to mean.
fn is_pinned(image: &str) -> bool {
    let digest = image.split(' ').next().and_then(|name| name.split_once("@sha256:"));
    digest.is_some_and(|(_, digest)| digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[test]
fn compose_names_files_and_secrets_that_are_there() {
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

#[test]
fn the_kubernetes_manifests_fit_together_and_the_program() {
    let all = documents(&text("kubernetes/annals.yaml"));
    let of_kind = |kind: &str| all.iter().find(|document| document["kind"] == kind).unwrap_or_else(|| panic!("{kind}"));
    for (kind, version) in [
        ("ConfigMap", "v1"),
        ("ServiceAccount", "v1"),
        ("Service", "v1"),
        ("StatefulSet", "apps/v1"),
        ("NetworkPolicy", "networking.k8s.io/v1"),
    ] {
        assert_eq!(
            (&of_kind(kind)["apiVersion"], &of_kind(kind)["metadata"]["name"]),
            (&json!(version), &json!("annals"))
        );
    }
    let (set, service, policy) =
        (&of_kind("StatefulSet")["spec"], &of_kind("Service")["spec"], &of_kind("NetworkPolicy")["spec"]);
    let labels = &set["template"]["metadata"]["labels"];
    for selector in [&set["selector"]["matchLabels"], &service["selector"], &policy["podSelector"]["matchLabels"]] {
        assert_eq!(selector, labels);
    }
    let pod = &set["template"]["spec"];
    let container = &pod["containers"][0];
    let names = |list: &Value| -> BTreeSet<String> {
        list.as_array().unwrap().iter().map(|of| of["name"].as_str().unwrap().to_owned()).collect()
    };
    let mut volumes = names(&pod["volumes"]);
    volumes.extend(
        set["volumeClaimTemplates"]
            .as_array()
            .unwrap()
            .iter()
            .map(|claim| claim["metadata"]["name"].as_str().unwrap().to_owned()),
    );
    assert_eq!(names(&container["volumeMounts"]), volumes);
    assert_eq!((&set["replicas"], &set["serviceName"]), (&json!(1), &json!("annals")));
    assert_eq!(
        (&pod["securityContext"]["runAsNonRoot"], &container["securityContext"]["readOnlyRootFilesystem"]),
        (&json!(true), &json!(true))
    );
    let config = config_of(of_kind("ConfigMap")["data"]["annals.toml"].as_str().unwrap());
    assert_eq!(container["ports"][0]["containerPort"], config.http.listen.port());
    let mounts: Vec<&str> =
        container["volumeMounts"].as_array().unwrap().iter().filter_map(|of| of["mountPath"].as_str()).collect();
    let token_file = config.http.token_file.clone().unwrap();
    for place in [config.archive.directory().expect("a directory"), token_file.as_path()] {
        assert!(mounts.iter().any(|mount| place.starts_with(mount)), "{} is on no volume", place.display());
    }
    // The probes ask without a token, off loopback.
    let scene = Scene::new(1);
    put(&scene.path("port-token"), "a-token-for-the-port\n");
    scene.configure(&format!("{}[http]\nlisten = \"0.0.0.0:0\"\ntoken_file = \"port-token\"\n", super::program::POLLS));
    let daemon = scene.start();
    let address = daemon.address.replace("0.0.0.0", "127.0.0.1");
    let probes: BTreeMap<&str, &Value> = ["startupProbe", "livenessProbe", "readinessProbe"]
        .map(|probe| (probe, &container[probe]["httpGet"]["path"]))
        .into();
    for (probe, path) in probes {
        wait_for(probe, || (get(&address, path.as_str().unwrap(), None).0 == 200).then_some(()));
    }
    daemon.stop();
}

#[test]
fn the_kubernetes_shards_are_all_there_once() {
    let kustomization = documents(&text("kubernetes/kustomization.yaml")).remove(0);
    assert_eq!(kustomization["resources"], json!(["annals.yaml"]));
    assert_eq!(kustomization["patches"], json!([{"path": "shards.yaml"}]));
    let whole = documents(&text("kubernetes/annals.yaml")).into_iter().find(|of| of["kind"] == "StatefulSet").unwrap();
    let set = documents(&text("kubernetes/shards.yaml")).remove(0);
    for key in ["apiVersion", "kind"] {
        assert_eq!(set[key], whole[key]);
    }
    assert_eq!(set["metadata"]["name"], whole["metadata"]["name"]);
    let container = |set: &Value| set["spec"]["template"]["spec"]["containers"][0].clone();
    assert_eq!(container(&set)["name"], container(&whole)["name"]);
    // The kubelet replaces a variable that stands before the one that names it.
    let variables = container(&set)["env"].as_array().unwrap().clone();
    let [number, shard] = &variables[..] else { panic!("two variables") };
    let label = "metadata.labels['apps.kubernetes.io/pod-index']";
    assert_eq!(number["valueFrom"]["fieldRef"]["fieldPath"], label);
    assert_eq!(shard["name"], "ANNALS_SHARD");
    let named = format!("$({})", number["name"].as_str().unwrap());
    let (replicas, start) =
        (set["spec"]["replicas"].as_u64().unwrap(), set["spec"]["ordinals"]["start"].as_u64().unwrap());
    let pods = (start..start + replicas).map(|pod| shard["value"].as_str().unwrap().replace(&named, &pod.to_string()));
    let shards: Vec<Shard> = pods.map(|text| text.parse().unwrap()).collect();
    let all: Vec<Shard> = (1..=4).map(|number| Shard::new(number, 4).unwrap()).collect();
    assert_eq!(shards, all);
}

/// The same pods, which write one archive in a bucket.
#[test]
fn the_kubernetes_bucket_changes_the_place_of_the_archive_alone() {
    let kustomization = documents(&text("kubernetes-bucket/kustomization.yaml")).remove(0);
    assert_eq!(kustomization["resources"], json!(["../kubernetes"]));
    assert_eq!(kustomization["patches"], json!([{"path": "bucket.yaml"}]));
    let (whole, patches) =
        (documents(&text("kubernetes/annals.yaml")), documents(&text("kubernetes-bucket/bucket.yaml")));
    let of_kind = |all: &[Value], kind: &str| all.iter().find(|document| document["kind"] == kind).unwrap().clone();
    for patch in &patches {
        let patched = of_kind(&whole, patch["kind"].as_str().unwrap());
        assert_eq!(
            (&patch["apiVersion"], &patch["metadata"]["name"]),
            (&patched["apiVersion"], &patched["metadata"]["name"])
        );
    }
    let toml = |all: &[Value]| of_kind(all, "ConfigMap")["data"]["annals.toml"].as_str().unwrap().to_owned();
    let (local, bucket) = (config_of(&toml(&whole)), config_of(&toml(&patches)));
    assert!(local.archive.directory().is_some() && bucket.archive.directory().is_none());
    assert!(bucket.cache.directory.starts_with(local.archive.directory().unwrap().parent().unwrap()), "on the volume");
    assert_eq!((local.base_url().unwrap(), &local.http), (bucket.base_url().unwrap(), &bucket.http));
    let container = |set: &Value| set["spec"]["template"]["spec"]["containers"][0].clone();
    let (of_whole, of_patch) =
        (container(&of_kind(&whole, "StatefulSet")), container(&of_kind(&patches, "StatefulSet")));
    assert_eq!(of_patch["name"], of_whole["name"]);
    assert_eq!(of_patch["envFrom"], json!([{"secretRef": {"name": "annals-bucket"}}]));
}

//! `annals doctor` and `annals init` against a sandbox, and without one.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

/// A sandbox in its own process. It stops with the test.
struct Service {
    child: Child,
    base_url: String,
    token: String,
}

impl Service {
    fn start() -> Self {
        let mut child =
            program().args(["sandbox", "--days", "1", "--json"]).stdout(Stdio::piped()).spawn().expect("started");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("its output is ours");
        BufReader::new(stdout).read_line(&mut line).expect("one line when ready");
        let ready: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
        Self { child, base_url: text(&ready["base_url"]), token: text(&ready["tokens"]["read_only"]) }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.child.kill().expect("it can be stopped");
        self.child.wait().expect("it ends");
    }
}

fn program() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("annals"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ANNALS_")) {
        command.env_remove(name);
    }
    command
}

/// The result of each check by name, and the exit code.
fn doctor(environment: &[(&str, &str)]) -> (Vec<(String, String)>, i32) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut command = program();
    command.args(["doctor", "--format", "ndjson"]).envs(environment.iter().copied()).current_dir(directory.path());
    let output = command.output().expect("the program runs");
    let stdout = String::from_utf8(output.stdout).expect("text");
    let said = format!("{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!said.contains("hunter2"), "{said}");
    let checks = stdout.lines().map(|line| {
        let check: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let text = |key: &str| check[key].as_str().expect("text").to_owned();
        (text("check"), text("result"))
    });
    (checks.collect(), output.status.code().expect("not killed"))
}

fn result<'a>(checks: &'a [(String, String)], name: &str) -> Option<&'a str> {
    checks.iter().find(|(check, _)| check == name).map(|(_, result)| result.as_str())
}

#[test]
fn doctor_checks_everything_against_a_service() {
    let service = Service::start();
    let (checks, code) = doctor(&[("ANNALS_BASE_URL", &service.base_url), ("ANNALS_TOKEN", &service.token)]);
    let names: Vec<&str> = checks.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["configuration", "token", "reach", "clock", "disk", "archive", "modes"]);
    assert_eq!(code, 0, "{checks:?}");
    for name in ["configuration", "token", "reach", "clock", "archive"] {
        assert_eq!(result(&checks, name), Some("ok"), "{checks:?}");
    }
    let (checks, code) = doctor(&[("ANNALS_BASE_URL", &service.base_url), ("ANNALS_TOKEN", "hunter2")]);
    assert_eq!((result(&checks, "reach"), code), (Some("failed"), 1), "{checks:?}");
}

#[test]
fn doctor_names_a_missing_part_and_checks_the_rest() {
    let (checks, code) = doctor(&[]);
    assert_eq!((result(&checks, "token"), result(&checks, "archive"), code), (Some("failed"), Some("ok"), 1));
    let (checks, code) = doctor(&[("ANNALS_BASE_URL", "http://127.0.0.1:9"), ("ANNALS_TOKEN", "hunter2")]);
    assert_eq!((result(&checks, "token"), result(&checks, "reach"), code), (Some("ok"), Some("failed"), 1));
    let file = tempfile::NamedTempFile::new().expect("a file");
    file.as_file().set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("its mode");
    file.as_file().write_all(b"hunter2").expect("a token");
    let path = file.path().to_str().expect("text");
    let (checks, _) = doctor(&[("ANNALS_BASE_URL", "http://127.0.0.1:9"), ("ANNALS_TOKEN_FILE", path)]);
    assert_eq!(result(&checks, "token"), Some("warning"), "{checks:?}");
    let (checks, _) = doctor(&[("ANNALS_QUERIES", "/nosuch")]);
    assert_eq!(result(&checks, "reports"), Some("failed"), "{checks:?}");
    let (checks, code) = doctor(&[("ANNALS_BASE_URL", "http://127.0.0.1:9"), ("ANNALS_TOKEN", "hunter2\nx")]);
    assert_eq!((result(&checks, "token"), code), (Some("failed"), 1), "{checks:?}");
}

#[test]
fn doctor_refuses_a_place_that_a_first_sync_refuses_and_advises_no_change_of_its_modes() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    std::fs::create_dir_all(at("lost/tables")).expect("a directory");
    std::fs::create_dir(at("other")).expect("a directory");
    for file in ["file", "other/passwd", "lost/tables/rows.parquet"] {
        std::fs::File::create(at(file)).expect("a file");
    }
    for (name, said) in [("other", "passwd"), ("file", "this is a file"), ("lost", "archive.json is missing")] {
        let place = at(name).to_str().expect("text").to_owned();
        let output =
            program().args(["doctor", "--format", "ndjson", "--archive", &place]).output().expect("the program runs");
        let stdout = String::from_utf8(output.stdout).expect("text");
        assert!(stdout.contains(said) && !stdout.contains("chmod"), "{name}: {stdout}");
        let output = program().args(["status", "--archive", &place]).output().expect("the program runs");
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert!(stderr.contains(said) && !stderr.contains("annals sync"), "{name}: {stderr}");
        let (checks, _) = doctor(&[("ANNALS_ARCHIVE", &place)]);
        assert_eq!(result(&checks, "archive"), Some("failed"), "{name}: {checks:?}");
    }
}

#[test]
fn doctor_fails_where_a_sync_a_query_or_the_daemon_refuses_to_start() {
    for (text, name) in [
        ("[signing]\nkey_file = \"none\"\n", "signing"),
        ("[signing]\npublic_key = \"none\"\n", "signing"),
        ("[signing]\nprevious_key_file = \"none\"\n", "signing"),
        ("[alerts]\ncommand = [\"/nonexistent/page-me\"]\n", "alerts"),
        ("[alerts]\ncommand = [\"no-such-program-of-annals\"]\n", "alerts"),
        ("[alerts]\ncommand = [\"/etc/passwd\"]\n", "alerts"),
        ("[http]\nlisten = \"0.0.0.0:9464\"\n", "port"),
        ("[http]\ntoken_file = \"none\"\n", "port"),
        ("[sql]\ntemp_directory = \"/nonexistent/place\"\n", "spill"),
    ] {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().write_all(text.as_bytes()).expect("a configuration");
        let (checks, code) = doctor(&[("ANNALS_CONFIG", file.path().to_str().expect("text"))]);
        assert_eq!((result(&checks, name), code), (Some("failed"), 1), "{text}: {checks:?}");
    }
    let file = tempfile::NamedTempFile::new().expect("a file");
    file.as_file().write_all(b"[alerts]\ncommand = [\"sh\", \"-c\", \"cat\"]\n").expect("a configuration");
    let (checks, _) = doctor(&[("ANNALS_CONFIG", file.path().to_str().expect("text"))]);
    assert_eq!(result(&checks, "alerts"), None, "{checks:?}");
    let (checks, _) = doctor(&[]);
    assert!(["signing", "alerts", "port", "spill"].iter().all(|name| result(&checks, name).is_none()), "{checks:?}");
}

/// A previous key alone signs nothing, although the administrator expects signatures.
#[test]
fn a_previous_key_without_its_successor_is_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = |arguments: &[&str]| {
        let mut command = program();
        command.args(arguments).current_dir(directory.path()).env("ANNALS_TOKEN", "hunter2");
        let output = command.output().expect("the program runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    assert_eq!(run(&["anchor", "--keygen", "old.key"]).0, Some(0));
    let configuration = b"[api]\nbase_url = \"http://127.0.0.1:9\"\n[signing]\nprevious_key_file = \"old.key\"\n";
    let mut file = std::fs::File::create(directory.path().join("annals.toml")).expect("a file");
    file.write_all(configuration).expect("a configuration");
    let said = "signing.previous_key_file: this key only hands over to the key of signing.key_file, which is missing";
    let (code, shown, _) = run(&["doctor", "--format", "csv"]);
    assert!(code == Some(1) && shown.contains(&format!("signing,failed,\"{said}")), "{code:?} {shown}");
    let (code, _, stderr) = run(&["sync"]);
    assert!(code == Some(2) && stderr.contains(said), "{code:?} {stderr}");
}

/// The exit code, standard output and standard error of `annals init` in a directory, with these answers.
fn init(directory: &std::path::Path, environment: &[(&str, &str)], answers: &str) -> (Option<i32>, String, String) {
    let mut command = program();
    command.arg("init").envs(environment.iter().copied()).current_dir(directory);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program runs");
    child.stdin.take().expect("ours").write_all(answers.as_bytes()).expect("it listens");
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn init_asks_checks_lists_the_teams_and_writes_a_file_that_works() {
    use std::os::unix::fs::PermissionsExt;
    let service = Service::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    let answers = format!("{}\n{}\n", service.base_url, service.token);
    let (code, listed, said) = init(directory.path(), &[], &answers);
    assert_eq!(code, Some(0), "{said}");
    assert!(!listed.trim().is_empty() && !said.contains(&service.token), "{listed} {said}");
    let mode = std::fs::metadata(at("annals.token")).expect("the token's file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = std::fs::read_to_string(at("annals.toml")).expect("the configuration");
    assert!(!text.contains(&service.token), "{text}");
    let doctor = program().arg("doctor").current_dir(directory.path()).output().expect("the program runs");
    assert_eq!(doctor.status.code(), Some(0), "{}", String::from_utf8_lossy(&doctor.stdout));
    let (code, _, said) = init(directory.path(), &[], &answers);
    assert!(code == Some(2) && said.contains("exists already"), "{said}");
    assert_eq!(std::fs::read_to_string(at("annals.toml")).expect("the configuration"), text);
}

#[test]
fn init_names_a_token_file_that_is_there_and_a_link_that_leads_nowhere() {
    let service = Service::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    std::os::unix::fs::symlink("nowhere", at("annals.toml")).expect("a link");
    let answers = format!("{}\n{}\n", service.base_url, service.token);
    let (code, _, said) = init(directory.path(), &[], &answers);
    assert!(code == Some(2) && said.contains("annals.toml exists already"), "{said}");
    assert_eq!(std::fs::read_dir(directory.path()).expect("it is there").count(), 1, "no token stays");
    std::fs::File::create(at("annals.token")).expect("a token");
    let (code, _, said) = init(directory.path(), &[("ANNALS_CONFIG", "two.toml")], &answers);
    assert!(code == Some(2) && said.contains("annals.token exists already"), "{said}");
    assert!(said.contains("give the token by ANNALS_TOKEN_FILE"), "{said}");
    let given = [("ANNALS_CONFIG", "two three.toml"), ("ANNALS_TOKEN", service.token.as_str())];
    let (code, _, said) =
        init(directory.path(), &[&given[..], &[("ANNALS_BASE_URL", service.base_url.as_str())]].concat(), "");
    assert!(code == Some(0) && said.contains("annals plan --config 'two three.toml'"), "{said}");
}

#[test]
fn init_writes_the_places_the_shard_and_the_rate_that_flags_and_variables_give() {
    use annals::config::{Config, Overrides};
    let service = Service::start();
    let common = [("ANNALS_BASE_URL", service.base_url.as_str()), ("ANNALS_TOKEN", service.token.as_str())];
    let config = |more: &[(&str, &str)]| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (code, _, said) = init(directory.path(), &[&common[..], more].concat(), "");
        assert_eq!(code, Some(0), "{said}");
        let file = Some(directory.path().join("annals.toml"));
        Config::load(Overrides { config: file, ..Overrides::default() }).expect("the file works")
    };
    let bucket = config(&[
        ("ANNALS_ARCHIVE", "s3://audit/annals"),
        ("ANNALS_LEDGER", "gs://ledgers/annals"),
        ("ANNALS_SHARD", "2/8"),
        ("ANNALS_REQUESTS_PER_SECOND", "7"),
        ("ANNALS_GROUP_READABLE", "true"),
    ]);
    assert_eq!(bucket.archive.to_string(), "s3://audit/annals");
    assert_eq!(bucket.ledger.map(|ledger| ledger.to_string()).as_deref(), Some("gs://ledgers/annals"));
    assert_eq!((bucket.shard.to_string().as_str(), bucket.requests_per_second), ("2/8", Some(7.0)));
    assert!(bucket.group_readable);
    let local = config(&[("ANNALS_ARCHIVE", "here")]);
    let place = local.archive.directory().expect("a directory");
    assert!(place.is_absolute() && place.ends_with("here"), "{}", place.display());
    let (code, _, said) = init(
        tempfile::tempdir().expect("a temporary directory").path(),
        &[&common[..], &[("ANNALS_ARCHIVE", "s3:/audit/annals")]].concat(),
        "",
    );
    assert!(code == Some(2) && said.contains("--archive or ANNALS_ARCHIVE: "), "{code:?} {said}");
}

#[test]
fn init_writes_nothing_before_the_service_accepts_the_token() {
    let service = Service::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let refused = format!("{}\nhunter2\n", service.base_url);
    for (environment, answers, expected) in [
        (vec![], refused.as_str(), 1),
        (vec![("ANNALS_BASE_URL", "ftp://service"), ("ANNALS_TOKEN", "hunter2")], "", 2),
        (vec![("ANNALS_BASE_URL", service.base_url.as_str())], "", 2),
        (vec![("ANNALS_BASE_URL", service.base_url.as_str()), ("ANNALS_TOKEN_FILE", "nowhere")], "", 2),
    ] {
        let (code, listed, said) = init(directory.path(), &environment, answers);
        assert!(code == Some(expected) && listed.is_empty() && !said.contains("hunter2"), "{code:?} {said}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).expect("it is there").count(), 0);
    std::fs::File::create(directory.path().join("secret"))
        .and_then(|mut file| file.write_all(service.token.as_bytes()))
        .expect("it can be written");
    let given = [("ANNALS_BASE_URL", service.base_url.as_str()), ("ANNALS_TOKEN_FILE", "secret")];
    let (code, _, said) = init(directory.path(), &given, "");
    assert_eq!(code, Some(0), "{said}");
    assert!(!directory.path().join("annals.token").try_exists().expect("it can be looked at"), "the token stays");
    let doctor = program().arg("doctor").current_dir(directory.path()).output().expect("the program runs");
    assert_eq!(doctor.status.code(), Some(0), "{}", String::from_utf8_lossy(&doctor.stdout));
}

//! The modes of the program's files under the usual umask: runs the program, and checks each of its files.

use std::fs::{self, File, Permissions, symlink_metadata};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// A working directory, and the program under umask 022.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "umask 022 && exec \"$@\"", "sh"]).arg(assert_cmd::cargo::cargo_bin!("annals"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ANNALS_")) {
            command.env_remove(name);
        }
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        let output = self.command(arguments).envs(environment.iter().copied()).output().unwrap();
        let code = output.status.code().unwrap();
        // 3: done, but with less than requested.
        assert!(matches!(code, 0 | 3), "{arguments:?}: {code}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// The result and the detail of one check of `doctor`.
    fn modes_check(&self, environment: &[(&str, &str)]) -> (String, String) {
        let output =
            self.command(&["doctor", "--format", "ndjson"]).envs(environment.iter().copied()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let checks = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let check = checks.into_iter().find(|check| check["check"] == "modes").unwrap_or_else(|| panic!("{text}"));
        (check["result"].as_str().unwrap().to_owned(), check["detail"].as_str().unwrap().to_owned())
    }
}

/// A sandbox in its own process. It stops with the test.
struct Service {
    child: Child,
    base_url: String,
    token: String,
}

impl Service {
    fn start(place: &Place, more: &[&str]) -> Self {
        let mut command =
            place.command(&[&["sandbox", "--days", "2", "--sessions-per-day", "20", "--json"], more].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        Self { child, base_url: text(&ready["base_url"]), token: text(&ready["tokens"]["read_only"]) }
    }

    fn environment(&self) -> [(&str, &str); 3] {
        [("ANNALS_BASE_URL", &self.base_url), ("ANNALS_TOKEN", &self.token), ("ANNALS_REQUESTS_PER_SECOND", "0")]
    }

    /// Stops the process with SIGTERM and waits for its end.
    fn stop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn mode(path: &Path) -> u32 {
    symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

/// Asserts that everything at or under a path has these modes, and returns the number of entries.
fn assert_modes(path: &Path, directories: u32, files: u32) -> usize {
    let (mut seen, mut waiting) = (0, vec![path.to_owned()]);
    while let Some(path) = waiting.pop() {
        seen += 1;
        let expected = if path.is_dir() { directories } else { files };
        assert_eq!(format!("{:o}", mode(&path)), format!("{expected:o}"), "{}", path.display());
        if path.is_dir() {
            waiting.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    seen
}

fn write(path: &Path, text: &str) {
    File::create(path).and_then(|mut file| file.write_all(text.as_bytes())).unwrap();
}

const PERIOD: [&str; 4] = ["--from", "2000-01-01", "--to", "2099-01-01"];

/// Runs every verb that writes: makes an archive with signed heads and a review, packs and exports.
fn write_all(place: &Place, environment: &[(&str, &str)]) {
    place.run(&["anchor", "--keygen", "key"], environment);
    write(&place.path("annals.toml"), "[signing]\nkey_file = \"key\"\n");
    place.run(&["sync"], environment);
    let pack = |output: &str| place.run(&[&["report", "pack", "-o", output][..], &PERIOD].concat(), environment);
    pack("packs/out");
    pack("out.zip");
    let sign = ["review", "sign", "--pack", "packs/out", "--reviewer", "R. Viewer", "--outcome", "accepted"];
    place.run(&sign, environment);
    place.run(&["anchor", "-o", "heads"], environment);
    for name in ["rows.csv", "rows.parquet"] {
        place.run(&["sql", "from connections", "-o", name], environment);
    }
    let page = [&["report", "run", "R02", "-o", "page.html"][..], &PERIOD].concat();
    place.run(&page, environment);
    // The SQL engine makes these files.
    place.run(&["sql", "copy (from connections) to 'copied.parquet'"], environment);
    place.run(&["connect", "-o", "views.sql"], environment);
}

const WRITTEN: [&str; 8] =
    ["packs", "out.zip", "heads", "rows.csv", "rows.parquet", "page.html", "copied.parquet", "views.sql"];

#[test]
fn every_file_is_private_to_its_owner() {
    let place = Place::new();
    let service = Service::start(&place, &[]);
    write_all(&place, &service.environment());
    assert!(assert_modes(&place.path("archive"), 0o700, 0o600) > 20);
    for name in WRITTEN {
        assert_modes(&place.path(name), 0o700, 0o600);
    }
    assert_eq!(mode(&place.path("key")), 0o600);
    // Also over an existing file that others could read.
    write(&place.path("wide.csv"), "before");
    fs::set_permissions(place.path("wide.csv"), Permissions::from_mode(0o644)).unwrap();
    place.run(&["sql", "from connections", "-o", "wide.csv"], &[]);
    assert_eq!(mode(&place.path("wide.csv")), 0o600);
}

#[test]
fn group_readable_lets_the_group_read_everything_but_keys() {
    for environment in [true, false] {
        let place = Place::new();
        let service = Service::start(&place, &[]);
        let mut variables = service.environment().to_vec();
        if environment {
            variables.push(("ANNALS_GROUP_READABLE", "true"));
            write_all(&place, &variables);
        } else {
            write(&place.path("annals.toml"), "[store]\ngroup_readable = true\n");
            place.run(&["sync"], &variables);
        }
        assert!(assert_modes(&place.path("archive"), 0o750, 0o640) > 20);
        for name in WRITTEN.iter().filter(|_| environment) {
            assert_modes(&place.path(name), 0o750, 0o640);
        }
        if environment {
            assert_eq!(mode(&place.path("key")), 0o600);
        }
        assert_eq!(place.modes_check(&variables).0, "ok");
        // The environment and a flag override the file.
        variables.push(("ANNALS_GROUP_READABLE", "false"));
        let (result, detail) = place.modes_check(&variables);
        assert_eq!(result, "warning", "{detail}");
        assert!(detail.contains("chmod -R go= "), "{detail}");
    }
}

#[test]
fn init_makes_a_private_token_file_and_a_readable_configuration() {
    let place = Place::new();
    let service = Service::start(&place, &[]);
    let mut command = place.command(&["init"]);
    command.env("ANNALS_BASE_URL", &service.base_url).env("ANNALS_GROUP_READABLE", "true").stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{}\n", service.token).as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!((mode(&place.path("annals.token")), mode(&place.path("annals.toml"))), (0o600, 0o644));
}

#[test]
fn files_of_demo_and_sandbox_are_private() {
    let place = Place::new();
    place.run(&["demo"], &[]);
    assert!(assert_modes(&place.path("annals-demo"), 0o700, 0o600) > 20);
    let mut service = Service::start(&place, &["--save", "saved.json"]);
    service.stop();
    assert_modes(&place.path("saved.json"), 0o700, 0o600);
}

#[test]
fn manual_pages_are_readable_for_everybody() {
    let place = Place::new();
    fs::create_dir(place.path("man")).unwrap();
    fs::set_permissions(place.path("man"), Permissions::from_mode(0o755)).unwrap();
    place.run(&["man", "-o", "man"], &[("ANNALS_GROUP_READABLE", "false")]);
    assert_modes(&place.path("man"), 0o755, 0o644);
}

#[test]
fn doctor_warns_of_wider_modes_and_its_command_corrects_them() {
    let place = Place::new();
    let service = Service::start(&place, &[]);
    let variables = service.environment();
    let with_place = |archive: &'static str| [&variables[..], &[("ANNALS_ARCHIVE", archive)]].concat();
    let variables = with_place("an archive's place");
    place.run(&["sync"], &variables);
    assert_eq!(place.modes_check(&variables).0, "ok");
    let root = place.path("an archive's place");
    let ledger = root.join("ledger");
    fs::set_permissions(&ledger, Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(root.join("archive.json"), Permissions::from_mode(0o604)).unwrap();
    let (result, detail) = place.modes_check(&variables);
    assert_eq!(result, "warning", "{detail}");
    assert!(detail.starts_with("2 of "), "{detail}");
    let line = &detail[detail.find("chmod -R ").unwrap()..];
    assert!(Command::new("sh").args(["-c", line]).status().unwrap().success(), "{line}");
    assert_modes(&root, 0o700, 0o600);
    assert_eq!(place.modes_check(&variables).0, "ok");
}

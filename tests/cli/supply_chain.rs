//! The scripts that download: they stop if a registry or a mirror serves other bytes.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

const PLATFORMS: [&str; 4] =
    ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "x86_64-apple-darwin", "aarch64-apple-darwin"];
/// The system programs that the scripts need.
const TOOLS: [&str; 24] = [
    "awk",
    "bash",
    "cat",
    "chmod",
    "cp",
    "cut",
    "dirname",
    "env",
    "find",
    "grep",
    "gzip",
    "head",
    "mkdir",
    "mktemp",
    "mv",
    "paste",
    "rm",
    "sed",
    "sha256sum",
    "sha512sum",
    "shasum",
    "tail",
    "tar",
    "touch",
];

/// A minimal system with an empty cache and an attacker's programs.
struct Scene(TempDir);

impl Scene {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let bin = place.path().join("bin");
        fs::create_dir(&bin).unwrap();
        let search = std::env::var_os("PATH").unwrap();
        for tool in TOOLS {
            let found = std::env::split_paths(&search).map(|path| path.join(tool)).find(|path| path.is_file());
            // Some systems have shasum instead of sha256sum.
            if let Some(found) = found {
                symlink(found, bin.join(tool)).unwrap();
            }
        }
        Self(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn with(self, name: &str, script: &str) -> Self {
        let path = self.path("bin").join(name);
        write(&path, &format!("#!/usr/bin/env bash\n{script}\n"));
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn on(self, platform: &str) -> Self {
        self.with("rustc", &format!("echo 'host: {platform}'"))
    }

    fn run(&self, script: &str, arguments: &[&str]) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(script);
        let mut command = Command::new(script);
        command.args(arguments).env_clear().env("PATH", self.path("bin")).env("HOME", self.0.path());
        command.env("XDG_CACHE_HOME", self.path("cache")).env("LOG", self.path("log")).current_dir(self.0.path());
        command.env("ANNALS_CHROMIUM", "/nowhere/chromium").output().unwrap()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Every file in the cache.
    fn kept(&self) -> Vec<PathBuf> {
        let (mut found, mut waiting) = (Vec::new(), vec![self.path("cache")]);
        while let Some(directory) = waiting.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() { waiting.push(path) } else { found.push(path) }
            }
        }
        found
    }
}

fn write(path: &Path, text: &str) {
    fs::File::create(path).and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes())).unwrap();
}

fn output_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A package of the correct form, with an attacker's library.
const FORGED: &str = "mkdir -p package && echo forged >package/libduckdb.so && echo forged >package/libduckdb.dylib";

fn assert_stopped(scene: &Scene, case: &str) {
    let output = scene.run("duckdb-lib.sh", &["touch", "built"]);
    assert_eq!(output.status.code(), Some(1), "{case}: {}", output_text(&output));
    assert!(
        output_text(&output).contains("does not have the pinned hash: stopped"),
        "{case}: {}",
        output_text(&output)
    );
    assert!(!scene.path("built").try_exists().unwrap(), "{case}: the build went on");
    assert!(scene.kept().is_empty(), "{case}: {:?}", scene.kept());
}

#[test]
fn a_package_with_another_hash_stops_the_build_on_every_platform() {
    for platform in PLATFORMS {
        let npm = format!("{FORGED} && tar -czf duckdb.tgz package");
        assert_stopped(&Scene::new().on(platform).with("npm", &npm), platform);
        // Without npm, or after its failure, curl downloads the same package.
        let curl = format!(
            "out=; for word; do [ \"$out\" = next ] && out=$word; [ \"$word\" = -o ] && out=next; done
             cd \"$(dirname \"$out\")\" && {FORGED} && tar -czf \"$out\" package"
        );
        assert_stopped(&Scene::new().on(platform).with("npm", "exit 1").with("curl", &curl), platform);
    }
}

#[test]
fn without_a_network_the_pinned_source_is_built_and_nothing_unchecked_is_used() {
    for (case, scene) in [
        ("no network", Scene::new().on(PLATFORMS[0]).with("npm", "exit 1").with("curl", "exit 6")),
        (
            "a platform without a package",
            Scene::new().on("riscv64gc-unknown-linux-gnu").with("npm", "echo $* >>\"$LOG\""),
        ),
    ] {
        let scene = scene.with("cargo", "echo \"$* DOWNLOAD=$DUCKDB_DOWNLOAD_LIB\" >>\"$LOG\"");
        let output = scene.run("duckdb-lib.sh", &["cargo", "build", "--release"]);
        assert!(output.status.success(), "{case}: {}", output_text(&output));
        assert_eq!(scene.log(), "build --features bundled --release DOWNLOAD=0\n", "{case}");
    }
}

#[test]
fn a_library_in_the_cache_that_was_changed_is_not_used() {
    let scene =
        Scene::new().on(PLATFORMS[0]).with("npm", "exit 1").with("curl", "exit 6").with("cargo", "env >>\"$LOG\"");
    let cache = scene.path("cache/annals/duckdb-1.5.6-linux-x64");
    fs::create_dir_all(&cache).unwrap();
    write(&cache.join("libduckdb.so"), "changed");
    let output = scene.run("duckdb-lib.sh", &["cargo", "build"]);
    assert!(output.status.success() && !scene.log().contains("DUCKDB_LIB_DIR"), "{}", output_text(&output));
}

#[test]
fn no_browser_is_downloaded_unchecked() {
    let module = "mkdir -p node_modules/playwright-core && touch node_modules/playwright-core/index.mjs";
    let scene = Scene::new().with("npm", module).with("node", "echo \"$*\" >>\"$LOG\"").with("id", "echo 1000");
    let output = scene.run("browser.sh", &["install"]);
    assert!(output.status.success(), "{}", output_text(&output));
    assert!(output_text(&output).contains("from the packages of your system"), "{}", output_text(&output));
    assert_eq!(scene.log(), "", "playwright was asked for a browser");
}

#[test]
fn a_promtool_with_another_hash_than_the_signed_list_says_is_not_used() {
    let fetch = "echo \"$*\" >>\"$LOG\"; echo forged >prometheus_1_amd64.deb";
    let list = format!("echo 'SHA256: {}'", "0".repeat(64));
    let unpack = "[ $1 = -f ] && printf 'Package: prometheus\\nVersion: 1\\n' && exit
        mkdir -p \"$3/usr/bin\" && touch \"$3/usr/bin/promtool\"";
    let scene = Scene::new().with("apt-get", fetch).with("apt-cache", &list).with("dpkg-deb", unpack);
    let output = scene.run("promtool.sh", &["install"]);
    assert_eq!(output.status.code(), Some(1), "{}", output_text(&output));
    assert!(output_text(&output).contains("does not have the hash of the signed list"), "{}", output_text(&output));
    assert!(scene.log().contains("AllowUnauthenticated=false"), "{}", scene.log());
    assert!(scene.kept().is_empty(), "{:?}", scene.kept());
}

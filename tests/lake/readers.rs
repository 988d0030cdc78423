//! Independent engines, in one Python process that answers one job per line.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::common::demanded::missing;

pub struct Readers {
    process: Child,
    asked: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Readers {
    /// Without the engines, the test of `untested` fails, or is skipped (`None`).
    pub fn start(untested: &str) -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let found = Command::new(root.join("scripts/lake-readers.sh")).arg("python").output().unwrap();
        if !found.status.success() {
            let why = String::from_utf8_lossy(&found.stderr);
            missing("readers", untested, &why);
            return None;
        }
        let python = String::from_utf8(found.stdout).unwrap();
        let mut process = Command::new(python.trim())
            .arg(root.join("tests/lake/readers.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (asked, answers) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        Some(Self { process, asked, answers })
    }

    pub fn ask(&mut self, job: &Value) -> Value {
        writeln!(self.asked, "{job}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("the readers ended: {line:?}"))
    }

    /// Asserts that every engine of the job sees the rows of the job's files.
    #[track_caller]
    pub fn agree(&mut self, job: &Value, when: &str) {
        let found = self.ask(job);
        for reader in job["readers"].as_array().unwrap() {
            let reader = reader.as_str().unwrap();
            assert_eq!(found[reader], found["expected"], "{when}, by {reader}: {job}");
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs another test of this program where no part is installed.
#[test]
fn a_test_without_its_engines_fails_unless_it_is_skipped() {
    let cache = tempfile::tempdir().unwrap();
    let run = |without: &str| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "catalog::engines_attached_to_the_catalog_read_exactly_the_rows_of_the_ledgers"]);
        let output = command.env("XDG_CACHE_HOME", cache.path()).env("ANNALS_WITHOUT", without).output().unwrap();
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert!(said.contains("running 1 test"), "{said}");
        (output.status.success(), said)
    };
    for without in ["", "browser,engines"] {
        let (has_passed, said) = run(without);
        assert!(
            !has_passed && said.contains("readers is missing") && said.contains("scripts/lake-readers.sh install"),
            "{said}"
        );
    }
    let (has_passed, said) = run("browser, readers");
    assert!(has_passed && said.contains("MISSING readers, not tested: other engines on the catalog: "), "{said}");
}

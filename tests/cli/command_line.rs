//! The command line without an archive.

use assert_cmd::Command;
use tempfile::TempDir;

struct Outcome {
    code: i32,
    stdout: String,
    stderr: String,
}

/// Runs `annals` in an empty directory, without the caller's settings.
fn annals(arguments: &[&str], environment: &[(&str, &str)]) -> Outcome {
    let directory = tempfile::tempdir().expect("a temporary directory");
    annals_in(&directory, arguments, environment)
}

fn annals_in(directory: &TempDir, arguments: &[&str], environment: &[(&str, &str)]) -> Outcome {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("annals"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ANNALS_")) {
        command.env_remove(name);
    }
    let output = command.args(arguments).envs(environment.iter().copied()).current_dir(directory).output();
    let output = output.expect("the program can be run");
    Outcome {
        code: output.status.code().expect("the program was not killed"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

#[test]
fn help_and_version_go_to_standard_output() {
    for arguments in [&["--help"][..], &["-h"], &["help"], &["sandbox", "--help"]] {
        let outcome = annals(arguments, &[]);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{arguments:?}");
        assert!(outcome.stdout.contains("Usage: annals"), "{arguments:?}: {}", outcome.stdout);
    }
    let outcome = annals(&["--version"], &[]);
    assert_eq!(outcome.stdout, format!("annals {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_use_is_code_2_and_nothing_on_standard_output() {
    for arguments in [&[][..], &["nonsense"], &["sandbox", "--days", "x"], &["completions", "tcl"], &["man", "--nope"]]
    {
        let outcome = annals(arguments, &[]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(outcome.stderr.contains("--help"), "{arguments:?}: {}", outcome.stderr);
    }
}

#[test]
fn every_shell_has_its_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let outcome = annals(&["completions", shell], &[]);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{shell}");
        assert!(outcome.stdout.contains("annals") && outcome.stdout.contains("sandbox"), "{shell}");
    }
}

#[test]
fn the_manual_is_one_page_or_one_page_a_verb() {
    let outcome = annals(&["man"], &[]);
    assert_eq!(outcome.code, 0);
    assert!(outcome.stdout.contains(".TH annals"), "{}", outcome.stdout);
    let directory = tempfile::tempdir().expect("a temporary directory");
    assert_eq!(annals_in(&directory, &["man", "-o", "."], &[]).code, 0);
    let pages = std::fs::read_dir(directory.path()).expect("the directory").count();
    assert!(pages >= 4, "{pages} pages");
}

#[test]
fn the_token_is_not_a_flag() {
    let outcome = annals(&["sandbox", "--token", "hunter2"], &[]);
    assert_eq!(outcome.code, 2);
    assert!(!annals(&["--help"], &[("ANNALS_TOKEN", "hunter2")]).stdout.contains("hunter2"));
}

#[test]
fn a_closed_pipe_is_not_a_panic() {
    let program = assert_cmd::cargo::cargo_bin!("annals");
    let script = format!("'{}' completions bash | true", program.display());
    let output = std::process::Command::new("sh").args(["-c", &script]).output().expect("a shell");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn an_invalid_variable_is_named_and_an_empty_filter_is_no_filter() {
    for (name, value) in [
        ("ANNALS_SHARD", "9/8"),
        ("ANNALS_CONFIG", ""),
        ("ANNALS_ARCHIVE", ""),
        ("ANNALS_LEDGER", ""),
        ("ANNALS_REQUESTS_PER_SECOND", "many"),
        ("ANNALS_GROUP_READABLE", "perhaps"),
        ("ANNALS_LOG", "annals=loud"),
        ("ANNALS_LOG", "inof"),
    ] {
        let outcome = annals(&["status"], &[(name, value)]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{name}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(name) && !outcome.stderr.contains(" for '--"), "{name}: {}", outcome.stderr);
    }
    for (arguments, name) in [
        (&["report", "list"][..], "ANNALS_QUERIES"),
        (&["sql", "select 1"], "ANNALS_SQL_THREADS"),
        (&["report", "pack", "-o", "pack"], "ANNALS_MADE_AT"),
    ] {
        let outcome = annals(arguments, &[(name, "")]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{name}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(name) && !outcome.stderr.contains(" for '--"), "{name}: {}", outcome.stderr);
    }
    let outcome = annals(&["status", "--shard", "9/8"], &[("ANNALS_SHARD", "1/8")]);
    assert!(outcome.code == 2 && outcome.stderr.contains("--shard"), "{}", outcome.stderr);
    assert_eq!(annals(&["completions", "bash"], &[("ANNALS_LOG", "")]).code, 0);
}

#[test]
fn a_flag_overrides_an_empty_or_invalid_variable() {
    for (arguments, name, value) in [
        (&["status", "--archive", "nowhere"][..], "ANNALS_ARCHIVE", ""),
        (&["--archive=nowhere", "status"], "ANNALS_ARCHIVE", ""),
        (&["status", "--archive", "nowhere", "--shard", "1/8"], "ANNALS_SHARD", "9/8"),
        (&["sql", "select 1", "--archive", "nowhere", "--threads", "2"], "ANNALS_SQL_THREADS", ""),
    ] {
        let outcome = annals(arguments, &[(name, value)]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{arguments:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("nowhere: no archive exists here"), "{arguments:?}: {}", outcome.stderr);
    }
    // A variable that no flag overrides still counts.
    let outcome = annals(&["status", "--archive", "nowhere"], &[("ANNALS_SHARD", "9/8")]);
    assert!(outcome.code == 2 && outcome.stderr.contains("ANNALS_SHARD"), "{}", outcome.stderr);
}

#[test]
fn an_output_that_cannot_be_written_is_wrong_use_in_every_verb() {
    for arguments in
        [&["sql", "select 1", "-o", "/nosuch/x"][..], &["connect", "-o", "/nosuch/x"], &["man", "-o", "/dev/null/x"]]
    {
        let outcome = annals(arguments, &[]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{arguments:?}: {}", outcome.stderr);
        let place = arguments.last().expect("a place");
        assert!(outcome.stderr.contains(place), "{arguments:?}: {}", outcome.stderr);
    }
}

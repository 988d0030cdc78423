//! The shell of `annals sql` through a terminal, like a person uses it.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use pty_process::blocking::{Command, Pty};

use crate::common;

use common::query_archive::Place;
use common::wait::PATIENCE;

const PROMPT: &str = "annals> ";
/// The end of bracketed paste: the shell has taken a line.
const TAKEN: &str = "\u{1b}[?2004l";
/// How long to wait for a line that the shell may not have read.
const HEARD_MAX: Duration = Duration::from_secs(10);

/// The shell in a terminal of 100 columns and 24 lines.
struct Terminal {
    keys: Pty,
    screen: Receiver<Vec<u8>>,
    child: Child,
}

impl Terminal {
    fn open(place: &Place, environment: &[(&str, &str)]) -> Self {
        let (keys, terminal) = pty_process::blocking::open().expect("a terminal");
        keys.resize(pty_process::Size::new(24, 100)).expect("resized");
        let (state, directory) = (place.directory.path().join("state"), place.directory.path());
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("annals")).arg("sql").current_dir(directory);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ANNALS_")) {
            command = command.env_remove(name);
        }
        command = command.env("ANNALS_ARCHIVE", place.archive()).env("XDG_STATE_HOME", state);
        command = command.env("TERM", "xterm").env("ANNALS_PAGER", "cat").env_remove("NO_COLOR");
        let child = command.envs(environment.iter().copied()).spawn(terminal).expect("the program runs");
        let (sender, screen) = channel();
        let mut reader = std::fs::File::from(std::os::fd::AsFd::as_fd(&keys).try_clone_to_owned().expect("cloned"));
        std::thread::spawn(move || {
            let (mut bytes, mut shown) = ([0; 4096], Vec::new());
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                shown.extend_from_slice(&bytes[..count]);
                // A read can end within a character: its first bytes wait for the others.
                let cut = shown.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len());
                if sender.send(shown.drain(..shown.len() - cut).collect()).is_err() {
                    break;
                }
            }
        });
        Self { keys, screen, child }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the terminal takes it");
    }

    /// The shown text, up to and with `text`.
    fn until(&mut self, text: &str) -> String {
        self.within(PATIENCE, text).unwrap_or_else(|shown| panic!("{text:?} was not shown, but {shown:?}"))
    }

    /// The shown text, up to and with `text`; after `silence`, the text that was shown instead.
    fn within(&mut self, silence: Duration, text: &str) -> Result<String, String> {
        self.beyond("", silence, text)
    }

    /// The same, after `before` was shown.
    fn beyond(&mut self, before: &str, silence: Duration, text: &str) -> Result<String, String> {
        if before.contains(text) {
            return Ok(before.to_owned());
        }
        let mut shown = before.as_bytes().to_vec();
        while let Ok(bytes) = self.screen.recv_timeout(silence) {
            shown.extend(bytes);
            let so_far = String::from_utf8_lossy(&shown);
            if so_far.contains(text) {
                return Ok(so_far.into_owned());
            }
        }
        Err(String::from_utf8_lossy(&shown).into_owned())
    }

    /// Waits for each of `texts` in order, after `shown`. Returns the text after the last one.
    fn in_order(&mut self, shown: &str, texts: &[&str]) -> String {
        let mut shown = shown.to_owned();
        for text in texts {
            let all = self.beyond(&shown, PATIENCE, text);
            let all = all.unwrap_or_else(|shown| panic!("{text:?} was not shown, but {shown:?}"));
            shown = all[all.find(text).expect("shown") + text.len()..].to_owned();
        }
        shown
    }

    /// Types a line, and waits until the shell takes it, then for the answer and the next prompt. The shell also
    /// draws the prompt with each letter of the line.
    fn ask(&mut self, line: &str, answer: &str) -> String {
        self.press(line);
        self.press("\r");
        let typed = self.until(TAKEN);
        let behind = &typed[typed.find(TAKEN).expect("shown") + TAKEN.len()..];
        let shown = self.beyond(behind, PATIENCE, answer);
        let shown = shown.unwrap_or_else(|shown| panic!("{answer:?} was not shown, but {shown:?}"));
        self.prompted(&shown, answer);
        shown
    }

    /// Waits for the prompt after `text`, unless `shown` already has it.
    fn prompted(&mut self, shown: &str, text: &str) {
        if !shown[shown.rfind(text).unwrap_or(0)..].contains(PROMPT) {
            self.until(PROMPT);
        }
    }

    /// Asks until the shell answers: a late interrupt makes a new prompt, and a new prompt drops the typed text.
    fn ask_after_interrupts(&mut self) {
        for number in 1000..1006 {
            // Only the answer shows the sum; the typed text shows its parts.
            self.press(&format!("\u{15}select {number} + 5000 as heard;\r"));
            let answer = (number + 5000).to_string();
            if let Ok(shown) = self.within(HEARD_MAX, &answer) {
                return self.prompted(&shown, &answer);
            }
        }
        panic!("the shell does not answer any more");
    }

    /// Drops the typed text, and waits for the next prompt, because earlier text may be lost.
    fn cancel(&mut self) {
        self.press("\u{3}");
        let shown = self.until("\n");
        self.prompted(&shown, "\n");
    }

    fn leave(mut self) -> i32 {
        self.press("\u{4}");
        self.child.wait().expect("it ends").code().expect("not killed")
    }
}

#[test]
fn a_query_at_the_prompt_is_answered() {
    let place = Place::new();
    let mut terminal = Terminal::open(&place, &[]);
    assert!(terminal.until(PROMPT).contains(".help"));
    let shown = terminal.ask("select count(*) as events from connections;", "(1 row, ");
    assert!(shown.contains("12") && shown.contains('│'), "{shown}");
    terminal.press("select 41 +\r");
    let shown = terminal.ask("1 as sum;", "(1 row, ");
    assert!(shown.contains("42"), "{shown}");
    assert!(terminal.ask(".tables", "quarantine").contains("coverage"));
    let shown = terminal.ask("select nothing from connections;", "cannot be answered");
    assert!(shown.contains("nothing"), "{shown}");
    terminal.ask(".timer off", PROMPT);
    assert!(terminal.ask(".timer", "the timer is off").contains("off"));
    assert_eq!(terminal.leave(), 0);
}

#[test]
fn tab_completes_what_the_archive_has() {
    let place = Place::new();
    let mut terminal = Terminal::open(&place, &[("NO_COLOR", "1")]);
    terminal.until(PROMPT);
    terminal.press("select count(*) as n from conn\t");
    terminal.until("connections");
    terminal.press(" where computer_h\t");
    terminal.until("computer_host_name");
    let shown = terminal.ask(" is not null;", "(1 row, ");
    assert!(shown.contains("12"), "{shown}");
    terminal.ask("create table my_notes as select 1 as note_text;", "(");
    terminal.press("select note\t");
    terminal.until("note_text");
    terminal.cancel();
    assert_eq!(terminal.leave(), 0);
}

#[test]
fn text_typed_during_a_query_runs_next() {
    let place = Place::new();
    let mut terminal = Terminal::open(&place, &[("NO_COLOR", "1")]);
    terminal.until(PROMPT);
    // Sent at once: the later lines arrive before the shell takes the first one.
    terminal.press("select 10 + 1 as a;\rselect 20 + 2 as b;\r.timer off\rselect 30 +\r 3 as c;\r");
    let mut shown = terminal.in_order("", &[" 11 ", " 22 ", " 33 "]);
    // The terminal keeps lines, and a partial line, while a query runs.
    for _ in 0..5 {
        terminal.press("select count(*) + 4444 as slow from range(3000000) a where a.range % 7 = 3;\r");
        shown = terminal.in_order(&shown, &[TAKEN]);
        terminal.press("select 50 + 5 as d;\rselect 60");
        shown = terminal.in_order(&shown, &[" 55 "]);
        terminal.press(" + 6 as e;\r");
        shown = terminal.in_order(&shown, &[" 66 "]);
    }
    terminal.in_order(&shown, &[PROMPT]);
    assert_eq!(terminal.leave(), 0);
}

#[test]
fn an_interrupt_stops_the_query_and_not_the_shell() {
    let place = Place::new();
    let mut terminal = Terminal::open(&place, &[]);
    terminal.until(PROMPT);
    for _ in 0..2 {
        terminal
            .press("select count(*) from range(100000000000) a, range(1000000) b where a.range % 7 = b.range % 5;\r");
        // Silence means that the shell has read the line. Send one interrupt at a time: an interrupt before the query
        // has no effect, and each waiting interrupt drops the text typed after it.
        let silence = Duration::from_millis(200);
        let _ = terminal.within(silence, "the query was stopped");
        for _ in 0..300 {
            terminal.press("\u{3}");
            if terminal.within(silence, "the query was stopped").is_ok() {
                break;
            }
        }
        terminal.ask_after_interrupts();
    }
    // At the prompt, Ctrl-C drops the typed text.
    terminal.press("select 'never asked'");
    terminal.until("asked'");
    terminal.cancel();
    assert!(!terminal.ask("select 5 as five;", "(1 row, ").contains("│ never asked"));
    assert_eq!(terminal.leave(), 0);
}

#[test]
fn the_history_outlives_the_shell_and_is_private() {
    let place = Place::new();
    let mut terminal = Terminal::open(&place, &[]);
    terminal.until(PROMPT);
    terminal.ask("select 11 * 11 as asked_before;", "(1 row, ");
    terminal.ask(" select 'secret' as with_a_space_before;", "(1 row, ");
    assert_eq!(terminal.leave(), 0);
    let history = place.directory.path().join("state/annals/sql_history");
    let mode = std::fs::metadata(&history).expect("a history").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    assert!(!std::fs::read_to_string(&history).expect("text").contains("secret"));
    let mut terminal = Terminal::open(&place, &[]);
    terminal.until(PROMPT);
    terminal.press("\u{1b}[A");
    terminal.until("asked_before");
    let shown = terminal.ask("", "(1 row, ");
    assert!(shown.contains("121"), "{shown}");
    assert_eq!(terminal.leave(), 0);
}

#[test]
fn a_wide_answer_fits_and_a_stranger_s_text_cannot_control_the_terminal() {
    let place = Place::new();
    let mut terminal = Terminal::open(&place, &[("NO_COLOR", "1")]);
    terminal.until(PROMPT);
    let shown = terminal.ask("from connections limit 2;", "(2 rows, ");
    let widest =
        shown.lines().filter(|line| line.starts_with(['│', '┌'])).map(|line| line.trim_end().chars().count()).max();
    assert!(widest.is_some_and(|width| width <= 100), "{widest:?}");
    for format in ["table", "csv", "json", "ndjson", "markdown"] {
        terminal.ask(&format!(".format {format}"), PROMPT);
        let sql = "select chr(27) || '[2J' || chr(7) || 'bell' || chr(155) || '31m' as text;";
        let answer = terminal.ask(sql, "(1 row, ");
        assert!(
            answer.contains("bell") && !answer.contains("\u{1b}[2J") && !answer.contains("\u{7}bell"),
            "{answer:?}"
        );
        assert!(!answer.contains('\u{9b}'), "{answer:?}");
    }
    assert_eq!(terminal.leave(), 0);
}

#[test]
fn a_long_answer_goes_through_the_pager() {
    let place = Place::new();
    let mut terminal = Terminal::open(&place, &[("ANNALS_PAGER", "sed s/^/paged:/")]);
    terminal.until(PROMPT);
    let shown = terminal.ask("select range as n from range(100);", "(100 rows, ");
    assert_eq!(shown.matches("paged:│").count(), 101, "{shown}");
    assert!(!terminal.ask("select 1 as one;", "(1 row, ").contains("paged:"));
    terminal.ask(".pager off", PROMPT);
    assert!(!terminal.ask("select range as n from range(100);", "(100 rows, ").contains("paged:"));
    assert_eq!(terminal.leave(), 0);
}

#[test]
fn new_commits_are_seen_after_a_refresh() {
    let place = Place::new();
    let mut terminal = Terminal::open(&place, &[]);
    terminal.until(PROMPT);
    terminal.ask("create table kept as select 1 as x;", "(");
    assert!(terminal.ask("select count(*) as n from connections;", "(1 row, ").contains("12"));
    place.commit_another_day();
    terminal.ask(".refresh", PROMPT);
    assert!(terminal.ask("select count(*) as n from connections;", "(1 row, ").contains("15"));
    assert!(terminal.ask("select count(*) + 90 as n from kept;", "(1 row, ").contains("91"));
    assert_eq!(terminal.leave(), 0);
}

#[test]
fn without_colours_the_prompt_is_plain() {
    let place = Place::new();
    let styled = Terminal::open(&place, &[]).until(PROMPT);
    assert!(styled.contains("\u{1b}[1mannals> "), "{styled:?}");
    let plain = Terminal::open(&place, &[("NO_COLOR", "1")]).until(PROMPT);
    assert!(!plain.contains("\u{1b}[1m"), "{plain:?}");
}

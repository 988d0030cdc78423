//! Waits on other processes and threads, with one time limit for all tests.

use std::cell::RefCell;
use std::time::{Duration, Instant};

/// The time limit of every wait. Only a test that fails reaches it, so it suits the busiest machine.
pub const PATIENCE: Duration = Duration::from_secs(600);
const TICK: Duration = Duration::from_millis(50);
/// How many answers a failed wait prints, and how much of each.
const NOTES_MAX: usize = 3;
const NOTE_CHARS_MAX: usize = 3_000;

thread_local! {
    /// The last answers to different questions, the newest last.
    static NOTES: RefCell<Vec<(String, String)>> = const { RefCell::new(Vec::new()) };
}

/// Keeps an answer of another process for the message of a wait that fails.
pub fn note(question: &str, answer: &str) {
    NOTES.with_borrow_mut(|notes| {
        notes.retain(|(noted, _)| noted != question);
        if notes.len() == NOTES_MAX {
            notes.remove(0);
        }
        notes.push((question.to_owned(), answer.chars().take(NOTE_CHARS_MAX).collect()));
    });
}

fn noted() -> String {
    NOTES.with_borrow(|notes| notes.iter().map(|(question, answer)| format!("{question}: {answer}\n")).collect())
}

#[expect(clippy::disallowed_methods, reason = "a test of another process waits in real time")]
pub fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "a test of another process waits in real time")]
pub fn pause(span: Duration) {
    std::thread::sleep(span);
}

/// Repeats a question until it has an answer.
#[track_caller]
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = now() + PATIENCE;
    loop {
        // This process may sleep past the limit, so it asks once more after the limit.
        let is_last = now() >= end;
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(!is_last, "{what} never came within {PATIENCE:?}. The last answers:\n{}", noted());
        pause(TICK);
    }
}

//! Work on several threads.

use std::panic::resume_unwind;
use std::thread::scope;

/// Does both, at once if `at_once`.
pub fn both<A, B: Send>(at_once: bool, first: impl FnOnce() -> A, second: impl FnOnce() -> B + Send) -> (A, B) {
    if !at_once {
        return (first(), second());
    }
    scope(|scope| {
        let second = scope.spawn(second);
        let first = first();
        (first, second.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Applies `act` to each item, on up to `threads` threads at once, and returns the results in order. Work that waits for a disk
/// or a network needs more threads than there are processors.
///
/// # Errors
/// The first error of `act`; then no further items are begun.
pub fn each<T: Send, R: Send, E: Send>(
    items: impl IntoIterator<Item = T>,
    threads: usize,
    act: impl Fn(T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let mut items = items.into_iter();
    if threads <= 1 {
        return items.map(act).collect();
    }
    let mut done = Vec::new();
    loop {
        let some: Vec<T> = items.by_ref().take(threads).collect();
        if some.is_empty() {
            return Ok(done);
        }
        let made = scope(|scope| {
            let begun: Vec<_> = some.into_iter().map(|item| scope.spawn(|| act(item))).collect();
            begun.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        });
        let made: Result<Vec<R>, E> = made;
        done.extend(made?);
    }
}

//! Work on several threads.

use std::panic::resume_unwind;
use std::sync::LazyLock;
use std::thread::{available_parallelism, scope};

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};

/// The most heavy tasks of all teams at once. More would not finish sooner, and each takes memory.
static AT_ONCE: LazyLock<Semaphore> = LazyLock::new(|| {
    let processors = available_parallelism().map_or(1, usize::from);
    Semaphore::new((processors + 1).clamp(3, 8))
});

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workers {
    /// On the runtime's threads for blocking work.
    Threads,
    /// On the caller's thread: the simulation has one thread.
    Inline,
}

impl Workers {
    /// Runs heavy work. A panic in it is a panic here.
    pub async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> T {
        if self == Workers::Inline {
            return work();
        }
        // A task takes the place, and the work gives it back: a caller that is polled late must not keep a place from others.
        let heavy = async {
            let place = AT_ONCE.acquire().await.expect("BUG: the semaphore is never closed");
            let work = move || {
                let _place = place;
                work()
            };
            returned(tokio::task::spawn_blocking(work).await).await
        };
        self.spawn(heavy).await
    }

    /// Runs a future on any thread of the runtime, so that several of them run at once. A panic in it is a panic here. If the
    /// caller is dropped, the future is dropped, too.
    pub async fn spawn<T: Send + 'static>(self, work: impl Future<Output = T> + Send + 'static) -> T {
        if self == Workers::Inline {
            return work.await;
        }
        let mut task = JoinSet::new();
        task.spawn(work);
        returned(task.join_next().await.expect("BUG: the set has one task")).await
    }
}

/// The result of a task.
async fn returned<T>(result: Result<T, JoinError>) -> T {
    match result {
        Ok(done) => done,
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        // The runtime shuts down: the result has no reader.
        Err(_) => std::future::pending().await,
    }
}

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
/// An error of `act`; then no further items are begun.
pub fn each<T: Send, R: Send, E: Send>(
    items: impl IntoIterator<Item = T>,
    threads: usize,
    act: impl Fn(T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    if threads <= 1 {
        return items.into_iter().map(act).collect();
    }
    let items: Vec<T> = items.into_iter().collect();
    let threads = threads.min(items.len());
    let queue = Mutex::new(items.into_iter().enumerate());
    let next = || queue.lock().next();
    let work = || {
        let mut done = Vec::new();
        while let Some((at, item)) = next() {
            let result = act(item);
            if result.is_err() {
                queue.lock().by_ref().for_each(drop);
            }
            done.push((at, result));
        }
        done
    };
    let mut done: Vec<_> = scope(|scope| {
        let begun: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        begun.into_iter().flat_map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use futures::FutureExt;

    use super::{Workers, each};

    /// A round does not poll its readings while it waits for the commit stage, which needs a place, too.
    #[tokio::test(flavor = "multi_thread")]
    async fn callers_that_are_not_polled_keep_no_place_from_others() {
        let mut late: Vec<_> = (0..20).map(|n| Box::pin(Workers::Threads.run(move || n))).collect();
        for caller in &mut late {
            let _ = caller.now_or_never();
        }
        let (done, is_done) = channel();
        tokio::spawn(Workers::Threads.run(move || done.send(())));
        assert_eq!(is_done.recv_timeout(Duration::from_secs(60)), Ok(()));
        drop(late);
    }

    #[test]
    fn results_come_in_the_order_of_the_items() {
        for threads in [0, 1, 2, 7, 100] {
            let doubled = each(0..50, threads, |item| Ok::<_, ()>(item * 2));
            assert_eq!(doubled, Ok((0..50).map(|item| item * 2).collect::<Vec<_>>()), "{threads} threads");
        }
        assert_eq!(each(Vec::<u8>::new(), 4, Ok::<_, ()>), Ok(vec![]));
    }

    #[test]
    fn an_error_ends_the_work() {
        for threads in [1, 4] {
            let begun = AtomicUsize::new(0);
            let act = |item: usize| {
                begun.fetch_add(1, Ordering::Relaxed);
                if item == 3 { Err(item) } else { Ok(()) }
            };
            assert_eq!(each(0..1_000, threads, act), Err(3), "{threads} threads");
            assert!(threads > 1 || begun.into_inner() == 4, "no item is begun after the error");
        }
    }
}

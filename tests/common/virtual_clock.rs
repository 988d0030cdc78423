//! A clock that advances only when every task waits, so a run of hours takes only as long as its work.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use annals::clock::Clock;
use annals::model::Instant;
use futures::future::BoxFuture;

pub struct VirtualClock {
    start: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    now: Duration,
    sleepers: BTreeMap<(Duration, u64), Waker>,
    count: u64,
    random: u64,
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl VirtualClock {
    pub fn at(start: Instant) -> Arc<Self> {
        Arc::new(Self { start, state: Mutex::new(State { random: 0x9E37_79B9_7F4A_7C15, ..State::default() }) })
    }

    /// Runs `work` to its end, and advances the clock whenever it waits.
    pub fn run<T>(&self, work: impl Future<Output = T>) -> T {
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(flag.clone());
        let mut work = pin!(work);
        loop {
            while flag.0.swap(false, Ordering::SeqCst) {
                if let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
                    return done;
                }
            }
            let next = {
                let mut state = self.state.lock().unwrap();
                let ((due, _), sleeper) =
                    state.sleepers.pop_first().expect("the work waits for an event that never comes");
                state.now = state.now.max(due);
                sleeper
            };
            next.wake();
        }
    }
}

struct Sleep<'a> {
    clock: &'a VirtualClock,
    span: Duration,
    key: Option<(Duration, u64)>,
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.clock.state.lock().unwrap();
        let key = match self.key {
            Some(key) => key,
            None => {
                state.count += 1;
                (state.now + self.span, state.count)
            }
        };
        if key.0 <= state.now {
            state.sleepers.remove(&key);
            return Poll::Ready(());
        }
        state.sleepers.insert(key, cx.waker().clone());
        drop(state);
        self.key = Some(key);
        Poll::Pending
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.clock.state.lock().unwrap().sleepers.remove(&key);
        }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Instant {
        self.start.plus(self.monotonic())
    }

    fn monotonic(&self) -> Duration {
        self.state.lock().unwrap().now
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'_, ()> {
        Box::pin(Sleep { clock: self, span, key: None })
    }

    /// xorshift: the same numbers in every run.
    fn random(&self) -> u64 {
        let mut state = self.state.lock().unwrap();
        state.random ^= state.random << 13;
        state.random ^= state.random >> 7;
        state.random ^= state.random << 17;
        state.random
    }
}

//! A clock that never waits: a sleep only advances it.

use std::sync::Mutex;
use std::time::Duration;

use annals::clock::Clock;
use annals::model::Instant;
use futures::future::BoxFuture;

pub struct QuickClock {
    start: Instant,
    state: Mutex<State>,
}

struct State {
    slept: Vec<Duration>,
    random: u64,
}

impl QuickClock {
    pub fn at(start: Instant) -> Self {
        Self { start, state: Mutex::new(State { slept: Vec::new(), random: 0x9E37_79B9_7F4A_7C15 }) }
    }

    /// Every sleep so far, in order.
    pub fn slept(&self) -> Vec<Duration> {
        self.state.lock().unwrap().slept.clone()
    }
}

impl Clock for QuickClock {
    fn now(&self) -> Instant {
        self.start.plus(self.monotonic())
    }

    fn monotonic(&self) -> Duration {
        self.state.lock().unwrap().slept.iter().sum()
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'_, ()> {
        self.state.lock().unwrap().slept.push(span);
        Box::pin(std::future::ready(()))
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

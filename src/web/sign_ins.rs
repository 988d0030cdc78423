//! The browsers that are signed in, and the limit of sign-in attempts.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use parking_lot::Mutex;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::model::{Digest, Instant};

/// Maximum number of signed-in browsers: a further sign-in ends the one that would expire first.
const SIGN_INS_MAX: usize = 1_000;
/// Maximum number of wrong tokens from one machine, and from all machines, in one span of time.
const FAILURES_MAX: u32 = 10;
const FAILURES_OF_ALL_MAX: u32 = 200;
const SPAN: Duration = Duration::from_secs(5 * 60);

/// Sign-ins are kept in memory: after a restart, browsers sign in again.
#[derive(Default)]
pub struct SignIns {
    open: Mutex<BTreeMap<Digest, SignIn>>,
    tries: Mutex<Attempts>,
}

/// One browser's sign-in. It is valid only while its token is in use.
#[derive(Clone, Copy)]
struct SignIn {
    token: Digest,
    until: Instant,
}

#[derive(Default)]
struct Attempts {
    all: Window,
    by_machine: BTreeMap<IpAddr, Window>,
}

/// Attempts since a moment, on the monotonic clock.
#[derive(Clone, Copy, Default)]
struct Window {
    since: Duration,
    count: u32,
}

impl SignIns {
    /// Signs in a browser whose user has shown the token. Returns the cookie, a random secret.
    ///
    /// # Errors
    /// When the system's random source fails.
    pub fn open(&self, token: Digest, until: Instant) -> Result<String, ring::error::Unspecified> {
        let mut secret = [0; 32];
        SystemRandom::new().fill(&mut secret)?;
        let cookie = hex::encode(secret);
        let mut open = self.open.lock();
        if open.len() >= SIGN_INS_MAX
            && let Some(first) = open.iter().min_by_key(|(_, sign_in)| sign_in.until).map(|(id, _)| *id)
        {
            open.remove(&first);
        }
        open.insert(id_of(&cookie), SignIn { token, until });
        Ok(cookie)
    }

    /// The sign-in of a cookie, if it is still valid.
    pub fn find(&self, token: Digest, cookie: &str, now: Instant) -> Option<Digest> {
        let id = id_of(cookie);
        let sign_in = *self.open.lock().get(&id)?;
        (sign_in.token == token && now <= sign_in.until).then_some(id)
    }

    /// Ends the sign-in of a cookie.
    pub fn close(&self, cookie: &str) {
        self.open.lock().remove(&id_of(cookie));
    }

    /// Counts an attempt of `peer`.
    ///
    /// # Errors
    /// After too many attempts: the time until the next one is allowed.
    pub fn try_once(&self, peer: SocketAddr, now: Duration) -> Result<(), Duration> {
        let mut tries = self.tries.lock();
        let Attempts { all, by_machine } = &mut *tries;
        all.restart_if_over(now);
        by_machine.retain(|_, window| now < window.since + SPAN);
        let own = by_machine.entry(machine(peer)).or_insert(Window { since: now, count: 0 });
        for (window, max) in [(&*own, FAILURES_MAX), (&*all, FAILURES_OF_ALL_MAX)] {
            if window.count >= max {
                return Err((window.since + SPAN).saturating_sub(now));
            }
        }
        own.count += 1;
        all.count += 1;
        Ok(())
    }

    /// Resets the count after a correct token.
    pub fn succeed(&self, peer: SocketAddr) {
        let mut tries = self.tries.lock();
        tries.all.count = tries.all.count.saturating_sub(1);
        if let Some(own) = tries.by_machine.get_mut(&machine(peer)) {
            own.count = own.count.saturating_sub(1);
        }
    }
}

impl Window {
    fn restart_if_over(&mut self, now: Duration) {
        if now >= self.since + SPAN {
            *self = Self { since: now, count: 0 };
        }
    }
}

/// The owner of an IPv6 network has all its addresses, so the whole network counts as one machine.
pub fn machine(peer: SocketAddr) -> IpAddr {
    match peer.ip().to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        address => address,
    }
}

/// The map holds digests, not the secrets.
fn id_of(cookie: &str) -> Digest {
    Digest::with_domain("annals port session\n", &[cookie.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Instant {
        Instant::from_seconds(1_800_000_000 + seconds)
    }

    fn peer(text: &str) -> SocketAddr {
        SocketAddr::new(text.parse().unwrap(), 1)
    }

    #[test]
    fn a_sign_in_ends_by_time_token_or_sign_out() {
        let (sign_ins, token, other) = (SignIns::default(), Digest::of(b"a"), Digest::of(b"b"));
        let cookie = sign_ins.open(token, at(0)).unwrap();
        let second = sign_ins.open(token, at(0)).unwrap();
        assert!(sign_ins.find(token, &cookie, at(0)).is_some() && cookie != second);
        assert_eq!(sign_ins.find(token, &cookie, at(1)), None, "its time is over");
        assert_eq!(sign_ins.find(other, &cookie, at(0)), None, "another token is in force");
        for forged in ["", &cookie[1..], &format!("{cookie}0")] {
            assert_eq!(sign_ins.find(token, forged, at(0)), None, "{forged}");
        }
        sign_ins.close(&cookie);
        assert_eq!(sign_ins.find(token, &cookie, at(0)), None, "it was closed");
        assert!(sign_ins.find(token, &second, at(0)).is_some());
    }

    #[test]
    fn the_number_of_sign_ins_is_limited() {
        let (sign_ins, token) = (SignIns::default(), Digest::of(b"a"));
        let first = sign_ins.open(token, at(0)).unwrap();
        let others: Vec<_> = (1..=SIGN_INS_MAX).map(|_| sign_ins.open(token, at(10)).unwrap()).collect();
        assert_eq!(sign_ins.find(token, &first, at(0)), None);
        assert!(others.iter().all(|cookie| sign_ins.find(token, cookie, at(0)).is_some()));
    }

    #[test]
    fn wrong_tokens_are_counted_by_machine_and_in_total() {
        let (sign_ins, now) = (SignIns::default(), Duration::from_secs(1_000));
        for _ in 0..FAILURES_MAX {
            sign_ins.try_once(peer("192.0.2.1"), now).unwrap();
        }
        let later = now + Duration::from_secs(100);
        assert_eq!(sign_ins.try_once(peer("192.0.2.1"), later), Err(Duration::from_secs(200)));
        assert!(sign_ins.try_once(peer("::ffff:192.0.2.1"), later).is_err(), "it is the same machine");
        assert!(sign_ins.try_once(peer("192.0.2.2"), later).is_ok());
        assert!(sign_ins.try_once(peer("192.0.2.1"), now + SPAN).is_ok(), "later it may try again");
        // A network counts as one machine, and too many machines exceed the common limit.
        let count = |host: u128| sign_ins.try_once(peer(&Ipv6Addr::from_bits(host).to_string()), later + SPAN);
        assert_eq!((1..=20_u128).filter(|low| count((0x2001_0db8 << 96) + low).is_ok()).count(), 10);
        assert_eq!((1..=300_u128).filter(|high| count((0x2001_0db9 << 96) + (high << 64)).is_ok()).count(), 189);
    }

    #[test]
    fn correct_tokens_are_not_limited() {
        let sign_ins = SignIns::default();
        for _ in 0..10 * FAILURES_OF_ALL_MAX {
            sign_ins.try_once(peer("192.0.2.1"), Duration::ZERO).unwrap();
            sign_ins.succeed(peer("192.0.2.1"));
        }
    }
}

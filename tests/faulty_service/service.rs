//! The service on a loopback port: one thread for each connection, a record of every request, and a hook before every
//! answer.

use std::collections::HashSet;
use std::io::BufReader;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

use super::behaviour::Dates;
use super::http::{self, Answer, Request};
use super::serve;
use super::world::World;
use crate::common::wait::wait_for;

/// The reaction to one request.
#[derive(Debug, Clone)]
pub enum Action {
    /// The documented answer.
    Serve,
    /// The documented answer, after a pause.
    Slow(Duration),
    /// The documented answer, once the gate is open.
    Behind(Gate),
    /// This answer instead.
    Answer(Answer),
    /// The documented answer's head, this many bytes of its body, then the end.
    Cut(usize),
    /// The connection ends without an answer.
    Reset,
}

/// Holds answers back until it is opened.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<(Mutex<AtGate>, Condvar)>);

#[derive(Debug, Default)]
struct AtGate {
    is_open: bool,
    waiting: usize,
}

impl Gate {
    pub fn open(&self) {
        self.0.0.lock().unwrap().is_open = true;
        self.0.1.notify_all();
    }

    /// Waits until an answer is held back.
    pub fn wait_for_answer(&self) {
        wait_for("an answer that is held back", || (self.0.0.lock().unwrap().waiting > 0).then_some(()));
    }

    fn pass(&self) {
        let mut at = self.0.0.lock().unwrap();
        at.waiting += 1;
        drop(self.0.1.wait_while(at, |at| !at.is_open).unwrap());
    }
}

/// Gets a request, its number from 1, and the world before the answer.
pub type Hook = Box<dyn FnMut(usize, &Request, &mut World) -> Action + Send>;

struct Shared {
    world: Mutex<World>,
    hook: Mutex<Option<Hook>>,
    requests: Mutex<Vec<Request>>,
    over: AtomicBool,
    /// Connections of an earlier generation belong to a killed run, which cannot read their answers.
    generation: AtomicU64,
    ended: Mutex<bool>,
    bell: Condvar,
}

pub struct Service {
    address: SocketAddr,
    shared: Arc<Shared>,
    pub token: String,
}

impl Service {
    /// Starts with one team, no events and the clock at the second `now`.
    pub fn at(now: i64) -> Self {
        let token = format!("{}-token-{now}", serve::SECRET);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            world: Mutex::new(World::new(now, &token)),
            hook: Mutex::new(None),
            requests: Mutex::default(),
            over: AtomicBool::new(false),
            generation: AtomicU64::new(0),
            ended: Mutex::new(false),
            bell: Condvar::new(),
        });
        let theirs = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if theirs.over.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(stream), theirs) = (stream, Arc::clone(&theirs)) else { continue };
                let generation = theirs.generation.load(Ordering::SeqCst);
                std::thread::spawn(move || theirs.serve(stream, generation));
            }
        });
        Self { address, shared, token }
    }

    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.shared.world.lock().unwrap()
    }

    pub fn set_clock(&self, now: i64) {
        self.world().now = now;
    }

    pub fn on_request(&self, hook: impl FnMut(usize, &Request, &mut World) -> Action + Send + 'static) {
        *self.shared.hook.lock().unwrap() = Some(Box::new(hook));
    }

    /// Removes all faults.
    pub fn calm(&self) {
        *self.shared.hook.lock().unwrap() = None;
    }

    /// Forgets a killed run's answers: the run may not have committed them, so only earlier answers count.
    pub fn forget_killed_run(&self, served_before: &HashSet<u64>) {
        let mut world = self.world();
        self.shared.generation.fetch_add(1, Ordering::SeqCst);
        world.recall_served(served_before);
    }

    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    pub fn requests_count(&self) -> usize {
        self.shared.requests.lock().unwrap().len()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        *self.shared.ended.lock().unwrap() = true;
        self.shared.bell.notify_all();
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    /// A closed peer ends the connection, not the test.
    fn serve(&self, stream: TcpStream, generation: u64) {
        let _ = stream.set_nodelay(true);
        let Ok(mut writer) = stream.try_clone() else { return };
        let mut reader = BufReader::new(stream);
        while let Some(request) = http::read(&mut reader) {
            if !self.respond(&mut writer, &request, generation) {
                return;
            }
        }
    }

    /// False when the connection is over.
    fn respond(&self, stream: &mut TcpStream, request: &Request, generation: u64) -> bool {
        let number = {
            let mut requests = self.requests.lock().unwrap();
            requests.push(request.clone());
            requests.len()
        };
        let (action, date, answer) = {
            let mut world = self.world.lock().unwrap();
            if generation != self.generation.load(Ordering::SeqCst) {
                return false;
            }
            let action =
                self.hook.lock().unwrap().as_mut().map_or(Action::Serve, |hook| hook(number, request, &mut world));
            let (answer, shown) = serve::answer(&world, request);
            if matches!(action, Action::Serve | Action::Slow(_) | Action::Behind(_)) {
                for shown in shown {
                    let event = world.event(shown);
                    (event.served, event.served_by) = (true, Some(number));
                }
            }
            (action, date(&world), answer)
        };
        let date = date.as_deref();
        match action {
            Action::Serve => http::write(stream, &answer.bytes(date, None)),
            Action::Slow(pause) => {
                self.pause(pause);
                http::write(stream, &answer.bytes(date, None))
            }
            Action::Behind(gate) => {
                gate.pass();
                http::write(stream, &answer.bytes(date, None))
            }
            Action::Answer(answer) => http::write(stream, &answer.bytes(date, None)),
            Action::Cut(length) => {
                http::write(stream, &answer.bytes(date, Some(length)));
                false
            }
            Action::Reset => false,
        }
    }

    /// Waits, but at most until the service ends.
    fn pause(&self, span: Duration) {
        let ended = self.ended.lock().unwrap();
        drop(self.bell.wait_timeout_while(ended, span, |ended| !*ended).unwrap());
    }
}

fn date(world: &World) -> Option<String> {
    let seconds = match world.behaviour.dates {
        Dates::Absent => return None,
        Dates::Garbage => return Some("a while ago".to_owned()),
        Dates::Clock => world.now,
        Dates::Off(seconds) => world.now + seconds,
    };
    Some(httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap())))
}

//! Progress bars, where standard error is a terminal.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;

use crate::archive::FetchProgress;
use crate::model::{Range, Stream, TeamId};
use crate::pipeline::{NoProgress, Progress};
use crate::report::{clean_name, printable};

/// One bar for each team and stream: the part of the planned event time that is read, the events, the time left.
pub struct Bars {
    all: MultiProgress,
    bars: Mutex<HashMap<(TeamId, Stream), Bar>>,
    names: Mutex<HashMap<TeamId, String>>,
}

struct Bar {
    bar: ProgressBar,
    events: u64,
    windows: u64,
}

/// Bars if standard error is a terminal; else nothing.
pub fn for_stderr() -> Arc<dyn Progress> {
    let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
    if all.is_hidden() {
        Arc::new(NoProgress)
    } else {
        Arc::new(Bars { all, bars: Mutex::default(), names: Mutex::default() })
    }
}

/// A bar for bytes, if standard error is a terminal.
pub fn of_bytes(verb: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr()).with_prefix(verb);
    let style = ProgressStyle::with_template("{prefix} [{bar:30}] {bytes} of {total_bytes}  {eta} left");
    bar.with_style(style.expect("BUG: the template is well-formed").progress_chars("=> "))
}

/// A bar for the files that the cache fetches from a bucket, if standard error is a terminal.
pub fn fetching() -> FetchProgress {
    let bar = of_bytes("fetching");
    Arc::new(move |fetched, needed| {
        bar.set_length(needed);
        bar.inc(fetched);
        if bar.position() >= needed {
            bar.finish_and_clear();
            bar.reset();
        }
    })
}

impl Bars {
    fn with(&self, team: &TeamId, stream: Stream, act: impl FnOnce(&mut Bar)) {
        let mut bars = self.bars.lock();
        let bar = bars.entry((team.clone(), stream)).or_insert_with(|| self.start(team, stream));
        act(bar);
        bar.bar.set_message(format!("{} events, {} parts", bar.events, bar.windows));
    }

    fn start(&self, team: &TeamId, stream: Stream) -> Bar {
        let style = ProgressStyle::with_template("{prefix:30} [{bar:30}] {percent:>3}%  {msg}  {eta} left");
        let bar = self.all.add(ProgressBar::new(0));
        bar.set_style(style.expect("BUG: the template is well-formed").progress_chars("=> "));
        let names = self.names.lock();
        let label = names.get(team).map_or(team.as_str(), String::as_str);
        let name: String = printable(label).chars().take(17).collect();
        bar.set_prefix(format!("{name} {stream}"));
        bar.enable_steady_tick(Duration::from_millis(250));
        Bar { bar, events: 0, windows: 0 }
    }
}

impl Progress for Bars {
    fn named(&self, team: &TeamId, name: &str) {
        if let Some(name) = clean_name(name) {
            self.names.lock().insert(team.clone(), name);
        }
    }

    fn planned(&self, team: &TeamId, stream: Stream, seconds: u64) {
        self.with(team, stream, |bar| bar.bar.inc_length(seconds));
    }

    fn read(&self, team: &TeamId, stream: Stream, part: Range, events: u64, planned: bool) {
        self.with(team, stream, |bar| {
            bar.events += events;
            bar.windows += 1;
            if planned {
                bar.bar.inc(part.length().as_secs());
            }
        });
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        for bar in self.bars.lock().values() {
            bar.bar.finish_and_clear();
        }
    }
}

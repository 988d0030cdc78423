//! `annals init`: makes a working `annals.toml` from an address and a token.

use std::io::{IsTerminal, Write, stderr, stdin};
use std::path::{Path, PathBuf};

use clap::Args;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use secrecy::{ExposeSecret, SecretString};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;

use crate::api::{HttpOptions, TokenSource};
use crate::config::{Config, ConfigError, DEFAULT_ARCHIVE, DEFAULT_FILE};
use crate::error::{Error, Exit};
use crate::model::{Location, TeamId};
use crate::report::printable;

use super::{Global, block_on, global, output, query, reading};

/// The token's file, in the directory of the configuration.
const TOKEN_FILE: &str = "annals.token";

/// Ask for address and token, check them, list the teams, and write annals.toml
#[derive(Debug, Args)]
#[command(after_help = "\
The address comes from --base-url or ANNALS_BASE_URL, the token from ANNALS_TOKEN_FILE or ANNALS_TOKEN. The command asks for each \
that is missing. It does not show the token that you type, and keeps it in annals.token, which only you can read. annals.toml also \
gets the archive, ledger, shard, rate and group_readable that flags or variables give. The command writes \
nothing before the service accepts the token, and never replaces a file.")]
pub struct InitArgs {}

pub fn run(global: &Global, _: &InitArgs) -> Result<Exit, Error> {
    let path = global.config.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_FILE));
    refuse_to_replace(&path, "name another with --config")?;
    let token_path = path.with_file_name(TOKEN_FILE);
    let base_url = match &global.base_url {
        Some(given) => given.clone(),
        None => ask("Address of the service: ")?,
    };
    let (token, typed) = match global::token_source_of_environment()? {
        Some(given) => (given, None),
        None => {
            refuse_to_replace(&token_path, "give the token by ANNALS_TOKEN_FILE")?;
            let typed = SecretString::from(ask_without_echo("Token (it is not shown): ")?);
            (TokenSource::Fixed(typed.clone()), Some(typed))
        }
    };
    let text = configuration(global, &base_url, &token, typed.is_some())?;
    let config = Config::of_text(&path, &text).map_err(|error| match error {
        // The file does not exist yet: the address is a flag, a variable or an answer.
        ConfigError::Invalid { place, message } if place.ends_with("api.base_url") => {
            ConfigError::Invalid { place: "the service's address".to_owned(), message }
        }
        other => other,
    })?;
    for warning in &config.warnings {
        output::say(&format!("annals: {warning}"));
    }
    let teams = teams(HttpOptions::new(config.base_url()?.as_str(), token.clone()))?;
    if let Some(typed) = &typed {
        write_new(&token_path, typed.expose_secret(), 0o600)?;
    }
    write_new(&path, &text, 0o644).inspect_err(|_| {
        // The next init must not meet the token of this one.
        if typed.is_some() {
            let _ = std::fs::remove_file(&token_path);
        }
    })?;
    let listed: String = teams.iter().map(|team| format!("{}\n", printable(team.as_str()))).collect();
    output::print(listed.as_bytes())?;
    print_next_steps(&path, teams.len(), &token, typed.is_some());
    Ok(Exit::Done)
}

/// A link that leads nowhere exists, too.
fn refuse_to_replace(path: &Path, otherwise: &str) -> Result<(), Error> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Ok(_) => Err(Error::Usage(format!(
            "{} exists already, and init never replaces a file: remove it, or {otherwise}",
            path.display()
        ))),
        Err(source) => Err(Error::io(format!("cannot check whether {} exists", path.display()), source)),
    }
}

/// The teams that the token sees. This request shows whether address and token are right.
fn teams(options: HttpOptions) -> Result<Vec<TeamId>, Error> {
    let source = reading::source(options, &reading::clock())?;
    let served = block_on(async { Ok(source.teams().await?) })?;
    if served.body.is_empty() {
        output::say("annals: the service accepts the token, but the token sees no team yet");
    }
    Ok(served.body)
}

fn configuration(global: &Global, base_url: &str, token: &TokenSource, is_typed: bool) -> Result<String, Error> {
    let archive = match &global.archive {
        Some(given) => place("--archive or ANNALS_ARCHIVE", given)?,
        None => quoted(DEFAULT_ARCHIVE),
    };
    let token = match token {
        TokenSource::File(file) => format!("token_file = {}\n", named(&Location::Local(file.clone()))?),
        TokenSource::Fixed(_) if is_typed => format!("token_file = {}\n", quoted(TOKEN_FILE)),
        TokenSource::Fixed(_) => {
            "# Annals takes the token from ANNALS_TOKEN.\n#token_file = \"annals.token\"\n".to_owned()
        }
    };
    let base_url = quoted(base_url.trim());
    let rate = global.requests_per_second.map(|rate| format!("requests_per_second = {}\n", toml::Value::from(rate)));
    let ledger = global.ledger.as_ref().map(|given| place("--ledger or ANNALS_LEDGER", given)).transpose()?;
    let ledger = ledger.map(|ledger| format!("ledger = {ledger}\n"));
    let group_readable = global.group_readable.map(|is_readable| format!("group_readable = {is_readable}\n"));
    let shard = global.shard.map(|shard| format!("shard = {}\n", quoted(&shard.to_string())));
    Ok(format!(
        "\
# Made by `annals init`. deploy/annals.toml explains every key. A key that is missing here has its default.
archive = {archive}

[api]
base_url = {base_url}
{token}# An empty list: Annals reads all teams that the token sees.
teams = []
{}{}{}",
        rate.unwrap_or_default(),
        section("store", [ledger, group_readable]),
        section("fleet", [shard, None]),
    ))
}

/// A table of the file with its keys; nothing if it has none.
fn section(name: &str, keys: [Option<String>; 2]) -> String {
    let keys: String = keys.into_iter().flatten().collect();
    if keys.is_empty() { keys } else { format!("\n[{name}]\n{keys}") }
}

fn place(flag: &str, given: &Path) -> Result<String, Error> {
    let location = Location::of_path(given).map_err(|error| Error::Usage(format!("{flag}: {error}")))?;
    named(&location)
}

/// The place as the file names it: the file's paths are relative to the file, and a flag's to the working directory.
fn named(location: &Location) -> Result<String, Error> {
    match query::absolute(location)? {
        Location::Local(path) => path
            .to_str()
            .map(quoted)
            .ok_or_else(|| Error::Usage(format!("{}: the path is not valid UTF-8", path.display()))),
        bucket @ Location::Bucket(_) => Ok(quoted(&bucket.to_string())),
    }
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn print_next_steps(path: &Path, teams: usize, token: &TokenSource, is_typed: bool) {
    let with =
        if path == Path::new(DEFAULT_FILE) { String::new() } else { format!(" --config {}", output::shell_word(path)) };
    output::say(&format!("wrote {}; the token sees {}", path.display(), output::counted(teams as u64, "team")));
    if matches!(token, TokenSource::Fixed(_)) && !is_typed {
        output::say(
            "the token is not saved: set ANNALS_TOKEN for every command, or set api.token_file to a file that holds the token",
        );
    }
    output::say(&format!(
        "next: `annals plan{with}` estimates the first sync, `annals sync{with}` runs it, `annals run{with}` keeps the archive current"
    ));
}

fn write_new(path: &Path, text: &str, mode: u32) -> Result<(), Error> {
    let failed = |source| Error::io(format!("cannot write {}", path.display()), source);
    output::write_new(path, text, mode).map_err(failed)
}

/// Reads one line of standard input.
fn ask(question: &str) -> Result<String, Error> {
    let _ = write!(stderr(), "{question}").and_then(|()| stderr().flush());
    let mut line = String::new();
    let read = stdin().read_line(&mut line).map_err(|source| Error::io("cannot read the answer", source))?;
    match line.trim() {
        "" if read == 0 => Err(Error::Usage(
            "standard input is closed, so init cannot ask: give --base-url, and the token by ANNALS_TOKEN_FILE or ANNALS_TOKEN".to_owned(),
        )),
        "" => Err(Error::Usage("the answer is empty, so init wrote nothing: run it again".to_owned())),
        answer => Ok(answer.to_owned()),
    }
}

/// Like [`ask`], but the terminal does not show the typed text.
fn ask_without_echo(question: &str) -> Result<String, Error> {
    let _unseen = stdin().is_terminal().then(EchoOff::begin).flatten();
    let answer = ask(question);
    if stdin().is_terminal() {
        output::say("");
    }
    answer
}

/// Turns the terminal's echo off until it is dropped. A signal that ends the program turns the echo on again first.
struct EchoOff {
    before: Termios,
    signals: Handle,
}

impl EchoOff {
    fn begin() -> Option<Self> {
        let before = tcgetattr(stdin()).ok()?;
        let mut unseen = before.clone();
        unseen.local_modes.remove(LocalModes::ECHO);
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).ok()?;
        let handle = signals.handle();
        let shown = before.clone();
        std::thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                let _ = tcsetattr(stdin(), OptionalActions::Now, &shown);
                let _ = emulate_default_handler(signal);
            }
        });
        tcsetattr(stdin(), OptionalActions::Flush, &unseen).ok()?;
        Some(Self { before, signals: handle })
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        self.signals.close();
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}

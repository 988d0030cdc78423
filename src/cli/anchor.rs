//! `annals anchor`: the ledgers' heads, for keeping elsewhere; and the key that signs them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use reqwest::Client;
use url::Url;

use crate::archive::{Head, SecretKey, Signer, TeamKey};
use crate::config::{Config, is_inside_archive};
use crate::error::{Error, Exit};
use crate::report::printable;

use super::{Global, block_on, look, output, reading, teams};

const POST_DEADLINE: Duration = Duration::from_secs(30);

/// Print or post the ledgers' heads, signed where a key is configured, for keeping where the archive cannot be written from
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct AnchorArgs {
    /// Only this team, by id or name; may be given more than once
    #[arg(long, value_name = "TEAM")]
    team: Vec<String>,
    /// Write into this file, which appears whole or not at all; not inside the archive
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Send the heads to this address by POST, as text; no token goes along, and no redirect is followed
    #[arg(long, value_name = "URL")]
    post: Option<String>,
    /// Make a new signing key, in a file that only you can read, and print its public key; nothing else is done
    #[arg(long, value_name = "FILE", conflicts_with_all = ["team", "output", "post"])]
    keygen: Option<PathBuf>,
    /// The name that the new key signs by [default: annals- and 8 digits]
    #[arg(long, value_name = "NAME", requires = "keygen")]
    name: Option<String>,
}

const AFTER: &str = "\
A head is three lines: which ledger, the number of its last line, its hash in base64; behind an empty line stand the \
signatures (the text of a checkpoint in the form of a signed note, c2sp.org). `annals verify --head FILE` says whether the \
archive still holds it: whether anything before it was taken away or written anew.
A key: `annals anchor --keygen FILE`, then `[signing] key_file` in annals.toml: each commit is signed from then on. Give the \
public key to whoever verifies: `annals verify --key KEY`. A new key takes over from the old one that \
`[signing] previous_key_file` names.
Exit codes: 0 done; 1 the heads could not be posted or written; 2 wrong use.";

pub fn run(global: &Global, args: &AnchorArgs) -> Result<Exit, Error> {
    let config = global.load()?;
    if let Some(path) = &args.keygen {
        return keygen(&config, path, args.name.as_deref());
    }
    if let Some(path) = args.output.as_deref().filter(|path| is_inside_archive(path, &config.archive)) {
        return Err(inside(path, "a head"));
    }
    let address = args.post.as_deref().map(check_address).transpose()?;
    let heads = heads(&config, &args.team)?;
    if args.output.is_some() || address.is_none() {
        output::to(args.output.as_deref(), |out| out.write_all(heads.as_bytes()).map_err(Error::output))?;
    }
    if let Some(address) = &address {
        block_on(post(address, heads))?;
    }
    Ok(Exit::Done)
}

fn inside(path: &Path, what: &str) -> Error {
    let path = printable(&path.display().to_string());
    Error::Usage(format!("{path}: lies inside the archive: {what} beside the data proves nothing, keep it elsewhere"))
}

fn keygen(config: &Config, path: &Path, name: Option<&str>) -> Result<Exit, Error> {
    if is_inside_archive(path, &config.archive) {
        return Err(inside(path, "a key"));
    }
    let key = SecretKey::generate(name).map_err(|e| Error::Usage(format!("--name: {e}")))?;
    write_key(path, &key.to_file())?;
    output::say(&format!(
        "the private key is in {}: put it into annals.toml as",
        printable(&path.display().to_string())
    ));
    output::say("[signing] key_file; its public key, for those who verify, is");
    output::print(format!("{}\n", key.public()).as_bytes())?;
    Ok(Exit::Done)
}

/// Never over something that is there, and never readable by others, not even for a moment.
fn write_key(path: &Path, text: &str) -> Result<(), Error> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Error::Usage(format!("{}: is there already, and a key is never overwritten", path.display()))
        }
        _ => Error::io(format!("cannot write {}", path.display()), e),
    })
}

/// The heads of the teams, one after another with an empty line between them.
fn heads(config: &Config, asked: &[String]) -> Result<String, Error> {
    let signer = reading::signer(config)?;
    let archive = look::open(config)?;
    let mut notes = Vec::new();
    for team in &teams::in_archive(&archive, asked)? {
        let reader = archive.read(team)?;
        let state = reader.state();
        if state.seq.0 > 0 {
            let head = Head::new(archive.id(), &TeamKey::of(team), state.seq, state.head);
            notes.push(sign(head, signer.as_deref()).note());
        }
    }
    match notes.is_empty() {
        true => Err(Error::Usage("the archive holds no commit yet: there is no head to keep".to_owned())),
        false => Ok(notes.join("\n")),
    }
}

fn sign(head: Head, signer: Option<&Signer>) -> Head {
    match signer {
        Some(Signer { key, .. }) => head.signed(key),
        None => head,
    }
}

fn check_address(text: &str) -> Result<Url, Error> {
    let bad = |what: &str| Error::Usage(format!("--post: {what}"));
    let url = Url::parse(text).map_err(|e| bad(&format!("not a URL: {e}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(bad("the address must begin with https:// or http:// and a host"));
    }
    Ok(url)
}

/// The address is never repeated: it may be a secret in itself.
async fn post(address: &Url, heads: String) -> Result<(), Error> {
    let failed = |why: String| Error::Refused(format!("cannot post the heads: {why}; nothing was changed, try again"));
    // A second installation finds the first and changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder().redirect(reqwest::redirect::Policy::none()).referer(false);
    if address.scheme() == "http" {
        builder = builder.tls_certs_only([]);
    }
    let client = builder.build().map_err(|_| failed("no HTTP client can be made".to_owned()))?;
    let request = client.post(address.clone()).header("content-type", "text/plain; charset=utf-8").body(heads);
    let clock = reading::clock();
    let answer = tokio::select! {
        answer = request.send() => answer.map_err(|e| {
            failed(if e.is_connect() { "no connection" } else { "the connection broke" }.to_owned())
        })?,
        () = clock.sleep(POST_DEADLINE) => {
            return Err(failed(format!("no answer within {} s", POST_DEADLINE.as_secs())));
        }
    };
    match answer.status().is_success() {
        true => Ok(()),
        false => Err(failed(format!("the address answered with status {}", answer.status().as_u16()))),
    }
}

//! `annals anchor`: prints the heads of the ledgers, so that the user keeps them elsewhere; makes the signing key; signs lines that
//! have no signature.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use reqwest::Client;
use url::Url;

use crate::archive::{Archive, HEADS_BYTES_MAX, Head, SecretKey, Signer, lost_heads};
use crate::config::{Config, is_inside_archive};
use crate::error::{Error, Exit};
use crate::files::{self, Irregular, Links};
use crate::http_client;
use crate::model::TeamKey;
use crate::report::printable;

use super::{Global, block_on, output, query, reading, teams};

const POST_DEADLINE: Duration = Duration::from_secs(30);

/// Print or post the head of each ledger; keep the heads in a place that the writer of the archive cannot change
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct AnchorArgs {
    /// Only this team, by id or name; repeatable [default: all teams of the archive]
    #[arg(long, value_name = "TEAM")]
    team: Vec<String>,
    /// Write into this file, outside the archive; the file appears whole or not at all. Annals replaces only an empty file, and older
    /// heads of the same teams that the archive still holds
    #[arg(long, short, value_name = "FILE", value_parser = output::outside_archives())]
    output: Option<PathBuf>,
    /// Send the heads to this address as text by POST, without a token; redirects are not followed
    #[arg(long, value_name = "URL")]
    post: Option<String>,
    /// Stop `annals run`, then sign every line that has no signature, with the key of `[signing] key_file`: you vouch for these lines
    #[arg(long)]
    sign: bool,
    /// Only make a new signing key, in a file that only you can read, and print its public key
    #[arg(long, value_name = "FILE", conflicts_with_all = ["team", "output", "post", "sign"])]
    keygen: Option<PathBuf>,
    /// The name of the new key [default: annals- and 8 digits]
    #[arg(long, value_name = "NAME", requires = "keygen")]
    name: Option<String>,
}

const AFTER: &str = "\
A head has three lines: the name of the ledger, the number of its last line, and the hash of that line in base64. An empty line \
and the signatures follow, if a signing key is configured. The format is a checkpoint in a signed note (c2sp.org). \
`annals verify --head FILE` checks that the archive still holds this line and every line before it, unchanged.
To sign: run `annals anchor --keygen FILE`, then set `[signing] key_file` in annals.toml. Annals then signs each commit. Give the \
public key to each person who verifies: `annals verify --key KEY`. To replace a key, name the old key's file in \
`[signing] previous_key_file`.
An interruption leaves one line without a signature, and Annals signs it later. If more lines have none, Annals signs no line of \
this ledger before you run `annals anchor --sign`: the archive is older than the key, or somebody wrote without the key.
Exit codes: 0 done; 1 the heads could not be signed, posted or written, or FILE holds something else than heads of this archive; \
2 wrong use.";

pub fn run(global: &Global, args: &AnchorArgs) -> Result<Exit, Error> {
    let config = global.load()?;
    if let Some(path) = &args.keygen {
        return keygen(&config, path, args.name.as_deref());
    }
    let address = args.post.as_deref().map(check_address).transpose()?;
    let archive = query::open(&config)?;
    if let Some(path) = &args.output {
        check_replaced(&archive, path, &args.team)?;
    }
    if args.sign {
        sign_lines(&config, &args.team)?;
    }
    let heads = heads(&config, &archive, &args.team)?;
    if args.output.is_some() || address.is_none() {
        output::to(args.output.as_deref(), |out| out.write_all(heads.as_bytes()).map_err(Error::output))?;
    }
    if let Some(address) = &address {
        block_on(post(address, heads))?;
    }
    Ok(Exit::Done)
}

fn keygen(config: &Config, path: &Path, name: Option<&str>) -> Result<Exit, Error> {
    if [Some(&config.archive), config.ledger.as_ref()].into_iter().flatten().any(|at| is_inside_archive(path, at)) {
        let path = printable(&path.display().to_string());
        return Err(Error::Usage(format!(
            "{path}: this place is inside the archive: a key beside the data proves nothing, choose a place outside"
        )));
    }
    let key = SecretKey::generate(name).map_err(|e| Error::Usage(format!("--name: {e}")))?;
    write_key(path, &key.to_file())?;
    output::say(&format!(
        "the private key is in {}: set [signing] key_file in annals.toml to this path",
        printable(&path.display().to_string())
    ));
    output::say("if the archive has lines already, then stop `annals run`, and run `annals anchor --sign` once");
    output::say("give the public key to each person who verifies:");
    output::print(format!("{}\n", key.public()).as_bytes())?;
    Ok(Exit::Done)
}

/// Never overwrites a file. The file is readable by its owner alone from the start.
fn write_key(path: &Path, text: &str) -> Result<(), Error> {
    output::write_new(path, text, 0o600).map_err(|e| match e.kind() {
        ErrorKind::AlreadyExists => Error::Usage(format!(
            "{}: the file exists already, and a key file is never overwritten: choose another name",
            path.display()
        )),
        _ => Error::io(format!("cannot write {}", path.display()), e),
    })
}

/// Opening a team with such a signer signs its lines.
fn sign_lines(config: &Config, asked: &[String]) -> Result<(), Error> {
    let signer = reading::signer_of(config, true)?;
    if signer.is_none() {
        return Err(Error::Usage("--sign: no key is configured: name its file in signing.key_file".to_owned()));
    }
    let archive = query::open(config)?.with_signer(signer);
    teams::in_archive(&archive, asked)?.iter().try_for_each(|team| Ok(archive.writer(team).map(drop)?))
}

/// The heads of the teams, with an empty line between two heads.
fn heads(config: &Config, archive: &Archive, asked: &[String]) -> Result<String, Error> {
    let signer = reading::signer(config)?;
    let mut notes = Vec::new();
    for team in &teams::in_archive(archive, asked)? {
        let reader = archive.read(team)?;
        let state = reader.state();
        if state.seq.0 > 0 {
            let head = Head::new(archive.id(), &TeamKey::of(team), state.seq, state.head);
            notes.push(sign(head, signer.as_deref()).note());
        }
    }
    match notes.is_empty() {
        true => Err(Error::Usage("the archive holds no commit yet, so no ledger has a head".to_owned())),
        false => Ok(notes.join("\n")),
    }
}

/// Checks that new heads replace only an empty file, or older heads of the same ledgers, which the archive still holds. After the
/// end of a ledger was cut off, only the older heads prove it.
fn check_replaced(archive: &Archive, path: &Path, asked: &[String]) -> Result<(), Error> {
    let shown = path.display();
    let refused = |why: String| {
        Err(Error::Refused(printable(&format!(
            "{shown}: {why}; the file is unchanged: move it away, or choose another file"
        ))))
    };
    let text = match files::read_text(path, Links::Follow, HEADS_BYTES_MAX as u64) {
        Ok(text) if text.is_empty() => return Ok(()),
        Ok(text) => text,
        // Nothing is replaced at a new name, nor in a pipe or a device.
        Err(error) if error.kind() == ErrorKind::NotFound || Irregular::in_error(&error).is_some() => return Ok(()),
        Err(error) => return refused(format!("cannot read this file, which can hold older heads: {error}")),
    };
    let older = match Head::parse_all(&text) {
        Ok(older) => older,
        Err(why) => return refused(format!("this file holds something else than heads: {why}")),
    };
    let named: Vec<TeamKey> = older.iter().map(|head| head.team.clone()).collect();
    if let Some(lost) = lost_heads(archive.store().as_ref(), older)?.into_iter().next() {
        return refused(format!(
            "the archive does not hold a head of this file: {}: {}: run `annals verify --head {shown}`",
            lost.object, lost.detail
        ));
    }
    let replaced: Vec<TeamKey> = teams::in_archive(archive, asked)?.iter().map(TeamKey::of).collect();
    match named.iter().find(|team| !replaced.contains(team)) {
        None => Ok(()),
        Some(team) => refused(format!("this file also holds a head of team={team}, which --team does not name")),
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

/// No message repeats the address: it can contain a secret.
async fn post(address: &Url, heads: String) -> Result<(), Error> {
    let failed =
        |why: String| Error::Refused(format!("cannot post the heads: {why}; the archive is unchanged, try again"));
    let client = http_client::start(Client::builder(), address.as_str())
        .map_err(|why| failed(format!("the HTTP client cannot start: {why}")))?;
    let request = client.post(address.clone()).header("content-type", "text/plain; charset=utf-8").body(heads);
    let clock = reading::clock();
    let answer = tokio::select! {
        answer = request.send() => answer.map_err(|e| {
            failed(if e.is_connect() { "cannot connect to the address" } else { "the connection broke" }.to_owned())
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

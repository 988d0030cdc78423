//! `annals report pack`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::clock::system_random;
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::files::WorkFolder;
use crate::model::Instant;
use crate::report::{
    Catalog, Engine, Manifest, Needs, ParamDefault, Report, ReportError, ReportInput, Tree, View, ViewData, check_pack,
    gaps_recorded, printable, write_pack, zip_pack,
};

use super::super::limits::LimitArgs;
use super::super::{limits, query, reading, signals};
use super::output;
use super::run::{PeriodArgs, param};

/// Write an evidence pack: reports as HTML, CSV and Parquet, their SQL, coverage, the result of verify, and every hash
#[derive(Debug, Args)]
#[command(after_help = AFTER, allow_negative_numbers = true)]
pub struct PackArgs {
    #[command(flatten)]
    period: PeriodArgs,
    /// The new folder, or a file that ends in .zip; it appears whole or not at all
    #[arg(long, short, value_name = "DIR|FILE.zip", value_parser = output::outside_archives())]
    output: PathBuf,
    /// Only these reports, by id or name, with commas between [default: all reports that need no parameter]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    reports: Vec<String>,
    /// A parameter of one report, such as R02.burst_count=5; repeatable
    #[arg(long, value_name = "REPORT.NAME=VALUE", value_parser = report_param)]
    param: Vec<(String, String, String)>,
    /// The creation time that the pack states; the same time gives the same bytes [default: now]
    #[arg(long, value_name = "TIME", env = "ANNALS_MADE_AT")]
    made_at: Option<Instant>,
    /// Replace people, computers and addresses by pseudonyms, the same in the whole pack; nobody keeps the key
    #[arg(long)]
    pseudonymise: bool,
    #[command(flatten)]
    limits: LimitArgs,
    /// Replace an existing pack, unless somebody changed it
    #[arg(long)]
    force: bool,
}

const AFTER: &str = "\
The same archive, arguments and --made-at (or SOURCE_DATE_EPOCH) make the same bytes, except with --pseudonymise, whose key is \
random. Check a pack with `sha256sum -c \
SHA256SUMS`, and record its review with `annals review sign`.
Exit codes: 0 done; 1 verify found faults (the pack is written, and states them), or the pack cannot be written; 2 wrong use, dates \
or parameters; 3 done, but a gap is recorded inside the period. If 1 and 3 both apply, the code is 1.";

fn report_param(text: &str) -> Result<(String, String, String), String> {
    let wrong = || "expected REPORT.NAME=VALUE, such as R02.burst_count=5".to_owned();
    let (report, rest) = text.split_once('.').filter(|(report, _)| !report.is_empty()).ok_or_else(wrong)?;
    let (name, value) = param(rest).map_err(|_| wrong())?;
    Ok((report.to_owned(), name, value))
}

pub fn run(config: &Config, mut catalog: Catalog, args: &PackArgs) -> Result<Exit, Error> {
    let now = made_at(args)?;
    let target = Target::of(&args.output, args.force)?;
    let (reports, left_out) = chosen(&mut catalog, args)?;
    let period = args.period.resolve(now)?;
    let zone = args.period.tz.clone();
    let values = values(&reports, args, now)?;
    let work = target.work()?;
    let mut config = config.clone();
    args.limits.apply(&mut config);
    let data = query::evidence_view_data(&config)?;
    let team = args.period.team(&data)?;
    let asked = reports.iter().zip(&values).map(|(report, values)| {
        let (team, zone, values) = (team.clone(), zone.clone(), values.clone());
        (report.clone(), ReportInput { period, team, zone, as_of: period.end, now, values })
    });
    let (manifest, tree) = fill(&config, data, &asked.collect::<Vec<_>>(), (left_out, args.pseudonymise), work.path())?;
    target.publish(work, &tree, &manifest)?;
    print_summary(args, &manifest);
    Ok(match (manifest.faults, manifest.gaps) {
        (0, 0) => Exit::Done,
        (0, _) => Exit::Weaker,
        _ => Exit::Fault,
    })
}

fn fill(
    config: &Config,
    data: ViewData,
    reports: &[(Report, ReportInput)],
    (left_out, is_pseudonymised): (BTreeMap<String, String>, bool),
    work: &Path,
) -> Result<(Manifest, Tree), Error> {
    let root = work.join("pack");
    let failed = |source| Error::io(format!("cannot write {}", root.display()), source);
    fs::create_dir(&root).map_err(failed)?;
    let mut tree = Tree::new(&root);
    let guard = signals::guard()?;
    let limits = limits::limits(config);
    let all = reports.iter().map(|(report, _)| report);
    let mut engine = match is_pseudonymised {
        false => Engine::open_for_reports(data, all, &limits)?,
        // Identifiers are in all views.
        true => Engine::open_needed(&data, &Needs::views(&View::ALL), &limits)?,
    }
    .confined()?;
    if is_pseudonymised {
        engine.pseudonymise(random_key())?;
    }
    let _running = guard.running(engine.interrupter());
    let manifest = write_pack(&mut engine, reports, left_out, &mut tree).map_err(|error| match error {
        ReportError::Output(source) => failed(source),
        other => other.into(),
    })?;
    Ok((manifest, tree))
}

/// The key of a pack's pseudonyms. Annals does not keep it.
fn random_key() -> [u8; 32] {
    let mut key = [0; 32];
    key.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&system_random().to_le_bytes()));
    key
}

fn made_at(args: &PackArgs) -> Result<Instant, Error> {
    match (args.made_at, std::env::var("SOURCE_DATE_EPOCH")) {
        (Some(at), _) => Ok(at),
        (None, Ok(text)) => match text.parse::<u32>() {
            Ok(seconds) => Ok(Instant::from_seconds(i64::from(seconds))),
            Err(_) => Err(Error::Usage(format!("SOURCE_DATE_EPOCH is {text:?}: expected seconds since 1970"))),
        },
        (None, Err(_)) => Ok(reading::clock().now()),
    }
}

/// The reports of the pack, in the order of the catalog, and those that cannot be in it with the reason.
fn chosen(catalog: &mut Catalog, args: &PackArgs) -> Result<(Vec<Report>, BTreeMap<String, String>), Error> {
    let mut named = Vec::new();
    for name in args.reports.iter().map(|name| name.trim()) {
        named.push(catalog.find(name)?.id.clone());
    }
    for (report, ..) in &args.param {
        catalog.find(report)?;
    }
    for fault in catalog.faults() {
        tracing::warn!("{fault}");
    }
    let is_given =
        |report: &Report, name: &str| args.param.iter().any(|(of, param, _)| report.is_called(of) && param == name);
    let (mut reports, mut left_out) = (Vec::new(), BTreeMap::new());
    for report in catalog.reports() {
        let needed = report
            .params
            .iter()
            .find(|param| matches!(param.default, ParamDefault::Required) && !is_given(report, &param.name));
        match needed {
            _ if !named.is_empty() && !named.contains(&report.id) => {}
            Some(param) if named.is_empty() => {
                left_out.insert(
                    report.id.clone(),
                    format!("its parameter {} has no default: give it with --param", param.name),
                );
            }
            _ => reports.push(report.clone()),
        }
    }
    if let Some((report, ..)) = args.param.iter().find(|(of, ..)| !reports.iter().any(|report| report.is_called(of))) {
        return Err(Error::Usage(format!("--param names report {report}, which is not in the pack")));
    }
    if reports.is_empty() {
        return Err(Error::Usage("the pack would hold no report: see `annals report list`".into()));
    }
    Ok((reports, left_out))
}

type Values = BTreeMap<String, crate::report::ParamValue>;

fn values(reports: &[Report], args: &PackArgs, now: Instant) -> Result<Vec<Values>, Error> {
    let of = |report: &Report| {
        let given = args.param.iter().filter(|(of, ..)| report.is_called(of));
        let given: Vec<(String, String)> = given.map(|(_, name, value)| (name.clone(), value.clone())).collect();
        Ok(report.values(&given, now, args.period.tz.rules())?)
    };
    reports.iter().map(of).collect()
}

fn print_summary(args: &PackArgs, manifest: &Manifest) {
    let reports = output::counted(manifest.reports.len() as u64, "report");
    let findings = output::counted(manifest.findings(), "finding");
    let files = output::counted(manifest.files.len() as u64 + 2, "file");
    output::say(&printable(&format!(
        "{}: {reports}, {findings}, {files}; the archive is {}",
        args.output.display(),
        manifest.verdict
    )));
    for (report, reason) in &manifest.left_out {
        output::say(&printable(&format!("annals: the pack leaves out report {report}: {reason}")));
    }
    if manifest.gaps > 0 {
        output::say(&format!("annals: {}: see the coverage in the pack", gaps_recorded(manifest.gaps)));
    }
    if manifest.faults > 0 {
        output::say(&format!(
            "annals: verify found {}: the pack lists them",
            output::counted(manifest.faults, "fault")
        ));
    }
}

/// The beginning of the name of an unfinished pack's folder.
const WORK_PREFIX: &str = ".annals-pack-";

/// The place of the pack.
struct Target {
    place: PathBuf,
    /// The parent folder.
    above: PathBuf,
    is_zip: bool,
}

impl Target {
    fn of(place: &Path, force: bool) -> Result<Self, Error> {
        let place = std::path::absolute(place)
            .map_err(|e| Error::io(format!("cannot make an absolute path of {}", place.display()), e))?;
        let above = place
            .parent()
            .ok_or_else(|| Error::Usage(format!("{}: a pack needs a name inside a folder", place.display())))?;
        let is_zip = place.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("zip"));
        let target = Self { above: above.to_owned(), is_zip, place };
        target.check(force)?;
        Ok(target)
    }

    /// Refuses to replace anything but a pack, and a pack without `force`.
    fn check(&self, force: bool) -> Result<(), Error> {
        let shown = self.place.display();
        let failed = |source| Error::io(format!("cannot check {shown}"), source);
        let held = match fs::metadata(&self.place) {
            // The pack could not replace the link.
            Err(error) if error.kind() == ErrorKind::NotFound && fs::symlink_metadata(&self.place).is_ok() => {
                return Err(Error::Usage(format!("{shown}: this link leads to nothing: choose another name")));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            other => other.map_err(failed)?,
        };
        if self.is_zip != held.is_file() {
            let kind = if held.is_dir() { "a folder" } else { "a file" };
            return Err(Error::Usage(format!(
                "{shown}: {kind} exists here, and a pack of this form cannot replace it: choose another name"
            )));
        }
        if held.is_dir() && fs::read_dir(&self.place).map_err(failed)?.next().is_none() {
            return Ok(());
        }
        if !force {
            return Err(Error::Usage(format!("{shown}: exists already: --force replaces a pack")));
        }
        // A folder of another program can also hold a manifest.json, and a pack can hold somebody's notes.
        let unfit = check_pack(&fs::canonicalize(&self.place).map_err(failed)?).err();
        match unfit.map(|error| Error::from(error).render(false)) {
            Some(why) => Err(Error::Usage(format!(
                "{shown}: exists and is not an unchanged pack, so it is not replaced: choose another name ({why})"
            ))),
            None => Ok(()),
        }
    }

    /// A temporary folder in the parent folder, so that a rename publishes the pack as a whole. Removes the folders that killed
    /// processes left there.
    fn work(&self) -> Result<WorkFolder, Error> {
        let failed = |source| Error::io(format!("cannot write in {}", self.above.display()), source);
        fs::create_dir_all(&self.above).map_err(failed)?;
        WorkFolder::make(&self.above, WORK_PREFIX).map_err(failed)
    }

    fn publish(&self, work: WorkFolder, tree: &Tree, manifest: &Manifest) -> Result<(), Error> {
        let failed = |source| Error::io(format!("cannot write {}", self.place.display()), source);
        let root = work.path().join("pack");
        if self.is_zip {
            let zip = work.path().join("pack.zip");
            let mut file = File::create_new(&zip).map_err(failed)?;
            zip_pack(&root, tree, manifest, &mut file).map_err(failed)?;
            file.sync_all().map_err(failed)?;
            fs::rename(&zip, &self.place).map_err(failed)?;
        } else {
            tree.sync().map_err(failed)?;
            // A rename replaces only an empty folder: move the old pack into the temporary folder, which is removed later.
            if self.place.try_exists().map_err(failed)? {
                fs::rename(&self.place, work.path().join("before")).map_err(failed)?;
            }
            fs::rename(&root, &self.place).map_err(failed)?;
        }
        if let Ok(above) = File::open(&self.above) {
            // Some systems cannot sync directories, and need no sync.
            let _ = above.sync_all();
        }
        Ok(())
    }
}

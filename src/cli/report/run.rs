//! `annals report run`.

use clap::Args;

use crate::config::Config;
use crate::error::{Error, Exit};
use crate::model::{Instant, Range, TeamId, When, period};
use crate::report::{
    About, Catalog, Engine, Needs, Report, ReportInput, Severity, ViewData, Zone, gaps_recorded, write_report,
};

use super::super::limits::LimitArgs;
use super::super::output::{OutputArgs, UnreadWriter, counted};
use super::super::{limits, query, reading, signals, teams};
use super::output;

/// Run a report over a period
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct RunArgs {
    /// The report's name or id, such as session-register or R01
    name: String,
    #[command(flatten)]
    period: PeriodArgs,
    /// The time whose people and computers the report shows [default: the end of the period]
    #[arg(long, value_name = "DATE", allow_hyphen_values = true)]
    as_of: Option<When>,
    /// A parameter of the report; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = param)]
    param: Vec<(String, String)>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    limits: LimitArgs,
    /// Exit with code 1 if a row has this severity or a higher one: info, low, medium, high, critical
    #[arg(long, value_name = "SEVERITY")]
    fail_on: Option<Severity>,
    /// Print only the rows to the output, and the statement about the report to standard error
    #[arg(long)]
    bare: bool,
}

const EXIT_CODES: &str = "\
The period is half-open: --to is not part of it. A date without a time is the first moment of that day in the zone of --tz.
Exit codes: 0 done; 1 --fail-on found a row, or the archive cannot be read; 2 wrong use, parameters, dates or SQL; \
3 done, but a gap is recorded inside the period. If 1 and 3 both apply, the code is 1.";

/// The period, team and time zone of a report; every verb that runs reports accepts them.
#[derive(Debug, Clone, Args)]
pub struct PeriodArgs {
    /// Start of the period: 2026-11-20, RFC 3339, or -90d [default: 30 days before --to]
    #[arg(long, value_name = "DATE", allow_hyphen_values = true)]
    pub from: Option<When>,
    /// End of the period, not included, in the same forms [default: now]
    #[arg(long, value_name = "DATE", allow_hyphen_values = true)]
    pub to: Option<When>,
    /// Only this team, by id or name [default: all]
    #[arg(long, value_name = "TEAM")]
    pub team: Option<String>,
    /// The time zone of days and hours, by its name in the time-zone database
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub tz: Zone,
}

impl PeriodArgs {
    /// The period, relative to `now`.
    pub fn resolve(&self, now: Instant) -> Result<Range, Error> {
        period(self.from, self.to, now, self.tz.rules()).map_err(Error::Usage)
    }

    /// The team that the user named, which the archive must hold. `data` has the names.
    pub fn team(&self, data: &ViewData) -> Result<Option<TeamId>, Error> {
        let found = self.team.as_ref().map(|asked| data.names.resolve(asked).cloned());
        found.transpose().map_err(teams::name_error)
    }
}

pub fn param(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

pub fn run(config: &Config, mut catalog: Catalog, args: &RunArgs) -> Result<Exit, Error> {
    let now = reading::clock().now();
    let report = catalog.find(&args.name)?.clone();
    for fault in catalog.faults() {
        tracing::warn!("{fault}");
    }
    let values = report.values(&args.param, now, args.period.tz.rules())?;
    let period = args.period.resolve(now)?;
    let as_of = args.as_of.map_or(period.end, |at| at.resolve_in(now, args.period.tz.rules()));
    if args.fail_on.is_some() && report.severity.is_none() {
        return Err(Error::Usage(format!(
            "report {} gives its rows no severity, so --fail-on cannot apply to it",
            report.id
        )));
    }
    let mut config = config.clone();
    args.limits.apply(&mut config);
    let data = query::report_view_data(&config, args.period.team.as_deref())?;
    let team = args.period.team(&data)?;
    let asked = ReportInput { period, team, zone: args.period.tz.clone(), as_of, now, values };
    let about = answer(&config, &data, &report, &asked, args)?;
    if args.bare {
        about.lines().iter().for_each(|line| output::say(line));
    }
    Ok(verdict(&about, args.fail_on))
}

fn answer(
    config: &Config,
    data: &ViewData,
    report: &Report,
    asked: &ReportInput,
    args: &RunArgs,
) -> Result<About, Error> {
    let guard = signals::guard()?;
    let mut engine = Engine::open_needed(data, &Needs::of_report(report), &limits::limits(config))?.confined()?;
    let _running = guard.running(engine.interrupter());
    let run = engine.run(report, asked)?;
    args.output.rows(|out, medium| {
        let mut unread = UnreadWriter::new(out);
        Ok(write_report(&run, args.output.format(), &mut unread, medium, args.bare)?)
    })?;
    Ok(run.about().clone())
}

/// Chooses the exit code, and prints the reason to standard error.
fn verdict(about: &About, fail_on: Option<Severity>) -> Exit {
    let gaps = about.gaps();
    if gaps > 0 {
        output::say(&format!("annals: {}: see the statement about the report", gaps_recorded(gaps as u64)));
    }
    let found = fail_on.map_or(0, |severity| about.detected(severity));
    if let Some(severity) = fail_on.filter(|_| found > 0) {
        let rows = counted(found, "row");
        output::say(&format!("annals: report {} found {rows} of severity {severity} or higher", about.report));
    }
    match (found > 0, gaps > 0) {
        (true, _) => Exit::Fault,
        (false, true) => Exit::Weaker,
        (false, false) => Exit::Done,
    }
}

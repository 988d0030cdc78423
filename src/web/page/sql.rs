//! The SQL page, if the configuration allows it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use url::form_urlencoded;

use crate::report::{Cell, ColumnHead, View, counted, plural, printable};

use super::super::AppState;
use super::super::answer::sql::{PAGE_ROWS_MAX, check_allowed, page};
use super::super::input::Input;
use super::super::problem::Problem;
use super::page_request::{Frame, PageRequest};
use super::{Page, shown_as, shown_page, visitor};

/// The example query.
const EXAMPLE: &str = "SELECT computer_host_name, outcome, count(*) AS sessions\nFROM sessions\nGROUP BY ALL\nORDER BY sessions DESC\nLIMIT 20";

struct Table {
    columns: Vec<ColumnHead>,
    rows: Vec<Vec<Cell>>,
    shown: String,
    took: String,
}

#[derive(Template)]
#[template(path = "web/sql.html")]
struct Sql {
    frame: Frame,
    query: String,
    problem: Option<String>,
    table: Option<Table>,
    views: Vec<(&'static str, String)>,
    rows_max: String,
    seconds: u64,
}

impl Sql {
    fn new(frame: Frame, query: &str, time: Duration) -> Self {
        let columns = |view: &View| view.columns().iter().map(|column| column.name).collect::<Vec<_>>().join(", ");
        Self {
            frame,
            query: query.to_owned(),
            problem: None,
            table: None,
            views: View::ALL.iter().map(|view| (view.as_str(), columns(view))).collect(),
            rows_max: counted(PAGE_ROWS_MAX as u64),
            seconds: time.as_secs(),
        }
    }
}

pub async fn form(State(state): State<Arc<AppState>>, request: PageRequest) -> Page {
    check_allowed(&state, &HeaderMap::new())?;
    request.input.only(&["team"])?;
    shown_page(&Sql::new(request.frame, EXAMPLE, state.settings().sql_time))
}

pub async fn answer(
    State(state): State<Arc<AppState>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    input: Input,
    body: String,
) -> Page {
    check_allowed(&state, &headers)?;
    input.only(&[])?;
    let field = |name: &str| {
        let mut pairs = form_urlencoded::parse(body.as_bytes());
        pairs.find(|(held, _)| held == name).map(|(_, value)| value.into_owned()).unwrap_or_default()
    };
    let query = field("query");
    let other = form_urlencoded::parse(body.as_bytes()).find(|(name, _)| !["query", "team"].contains(&name.as_ref()));
    if let Some((name, _)) = other {
        let message = format!("unknown parameter {:?}: expected query or team", printable(&name));
        return Err(Problem::bad(message));
    }
    // The form has the team, not the address.
    let about = form_urlencoded::Serializer::new(String::new()).append_pair("team", &field("team")).finish();
    let asked: Uri = format!("/sql?{about}").parse().map_err(|_| Problem::bad("team: the value is not a team"))?;
    let request = PageRequest::of(&state, &headers, &asked).await?;
    let (teams, mut frame) = (request.teams, request.frame);
    frame.here = "/sql".to_owned();
    let mut document = Sql::new(frame, &query, state.settings().sql_time);
    let begun = state.clock.monotonic();
    let found = page(&state, teams, query, visitor(&state, &headers, peer)).await;
    let mut status = StatusCode::OK;
    match found {
        Ok(rows) => {
            let took = state.clock.monotonic().saturating_sub(begun);
            let held = rows.rows.len();
            document.table = Some(Table {
                shown: match rows.total > held as u64 {
                    true => format!("The first {}; the result has more.", plural(held as u64, "row")),
                    false => format!("{}.", plural(held as u64, "row")),
                },
                took: format!("{:.2} s", took.as_secs_f64()),
                columns: rows.columns,
                rows: rows.rows,
            });
        }
        Err(problem) => (status, document.problem) = (problem.status, Some(problem.message)),
    }
    shown_as(status, &document)
}

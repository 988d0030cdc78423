//! What a visitor's query may use: the views, and the tables that the query defines. The engine's own tables and functions are
//! refused: they show details of this machine, and some change the engine.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::report::views::columns::View;

/// Table functions that make their rows from their arguments alone.
const TABLE_FUNCTIONS: [&str; 7] =
    ["generate_series", "json_each", "json_tree", "range", "repeat", "repeat_row", "unnest"];
/// Functions that show the engine's settings, files or catalog, or change something.
const REFUSED_FUNCTIONS: [&str; 11] = [
    "current_setting",
    "currval",
    "get_block_size",
    "getenv",
    "getvariable",
    "json_serialize_plan",
    "nextval",
    "setseed",
    "sleep_ms",
    "stats",
    "write_log",
];
/// Prefixes of the engine's own tables and functions.
const ENGINE_PREFIXES: [&str; 4] = ["duckdb_", "pg_", "pragma_", "sqlite_"];
/// Functions with such a prefix that show only their arguments.
const HARMLESS: [&str; 2] = ["pg_size_pretty", "pg_typeof"];

/// The first forbidden part of a query, if any. `query` is the engine's serialized form (`json_serialize_sql`).
pub fn find_refused(query: &Value) -> Option<String> {
    let mut named = View::ALL.iter().map(|view| view.as_str().to_owned()).collect();
    name_tables(query, &mut named);
    find(query, &named)
}

/// The names of tables that the query defines.
fn name_tables(node: &Value, named: &mut BTreeSet<String>) {
    let tables = node["cte_map"]["map"].as_array().into_iter().flatten().filter_map(|table| table["key"].as_str());
    named.extend(tables.chain(node["cte_name"].as_str()).map(str::to_lowercase));
    children(node).for_each(|child| name_tables(child, named));
}

fn find(node: &Value, named: &BTreeSet<String>) -> Option<String> {
    let text = |member: &str| node[member].as_str().unwrap_or_default().to_lowercase();
    let refused = match (text("type").as_str(), text("class").as_str()) {
        ("base_table", _) => {
            let (name, place) = (text("table_name"), (text("catalog_name"), text("schema_name")));
            let is_ours = matches!((place.0.as_str(), place.1.as_str()), ("" | "memory", "" | "main"));
            (!is_ours || is_of_engine(&name) || !named.contains(&name)).then(|| format!("table {name} is not a view"))
        }
        ("table_function", _) => {
            let name = node["function"]["function_name"].as_str().unwrap_or_default().to_lowercase();
            (!TABLE_FUNCTIONS.contains(&name.as_str())).then(|| format!("table function {name}() is not allowed"))
        }
        ("show_ref", _) => {
            let is_of_query =
                matches!(text("show_type").as_str(), "describe" | "summary") && text("table_name").is_empty();
            (!is_of_query).then(|| "SHOW is not allowed".to_owned())
        }
        (_, "function" | "window") => {
            let name = text("function_name");
            let is_refused =
                REFUSED_FUNCTIONS.contains(&name.as_str()) || is_of_engine(&name) && !HARMLESS.contains(&name.as_str());
            is_refused.then(|| format!("function {name}() is not allowed"))
        }
        _ => None,
    };
    refused.or_else(|| children(node).find_map(|child| find(child, named)))
}

fn is_of_engine(name: &str) -> bool {
    ENGINE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn children(node: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match node {
        Value::Array(children) => Box::new(children.iter()),
        Value::Object(children) => Box::new(children.values()),
        _ => Box::new(std::iter::empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::run::serialized;
    use duckdb::Connection;

    fn refused(connection: &Connection, sql: &str) -> Option<String> {
        find_refused(&serialized(connection, sql).unwrap_or_else(|error| panic!("{sql}: {error:?}")))
    }

    #[test]
    fn a_query_may_use_the_views_and_its_own_tables() {
        let connection = Connection::open_in_memory().unwrap();
        for sql in [
            "SELECT count(*), upper(email) FROM sessions WHERE started_at > now() - INTERVAL 1 DAY GROUP BY ALL",
            "FROM main.sessions",
            "FROM \"Sessions\"",
            "DESCRIBE sessions",
            "SUMMARIZE sessions",
            "WITH a AS (FROM ledger), b AS (FROM a) SELECT * FROM b, (WITH c AS (FROM b) FROM c)",
            "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 9) FROM r",
            "SELECT unnest([1, 2]), list_transform([1], lambda x: x + 1), row_number() OVER () FROM range(10) t(i)",
            "SELECT pg_typeof(1), sum(i) FILTER (i > 2) FROM generate_series(1, 5) t(i)",
            "SELECT * FROM sessions s JOIN connections c USING (connection_id) ORDER BY (SELECT max(seq) FROM ledger)",
            "SELECT j.key FROM activity, json_each(raw) j",
            "VALUES (1), (2)",
        ] {
            assert_eq!(refused(&connection, sql), None, "{sql}");
        }
    }

    #[test]
    fn functions_about_the_machine_or_the_engine_are_refused_everywhere() {
        let connection = Connection::open_in_memory().unwrap();
        for part in [
            "FROM duckdb_settings()",
            "FROM system.main.duckdb_settings()",
            "FROM \"Duckdb_Settings\"()",
            "FROM enable_logging()",
            "FROM duckdb_views",
            "FROM pragma_database_list",
            "FROM sqlite_master",
            "FROM pg_catalog.pg_settings",
            "FROM information_schema.tables",
            "FROM system.main.sessions",
            "FROM query('SELECT 1')",
            "FROM query_table('sessions')",
            "FROM histogram('sessions', 1)",
            "FROM json_execute_serialized_sql('x')",
            "FROM glob('*')",
            "FROM 'x.parquet'",
            "SELECT current_setting('temp_directory')",
            "SELECT system.main.\"CURRENT_SETTING\"('temp_directory')",
            "SELECT pg_get_viewdef(1)",
            "SELECT json_serialize_plan('FROM sessions')",
            "SELECT list_transform(['temp_directory'], lambda x: current_setting(x))",
            "SELECT write_log('x')",
        ] {
            for sql in [
                part.to_owned(),
                format!("SELECT ({part})"),
                format!("WITH a AS ({part}) SELECT 1"),
                format!("SELECT 1 FROM sessions ORDER BY EXISTS ({part})"),
                format!("SELECT 1 FROM sessions LIMIT (SELECT count(*) FROM ({part}))"),
                format!("SELECT 1 UNION ALL {part}"),
                format!("SELECT 1 FROM sessions JOIN ({part}) ON EXISTS ({part})"),
                format!("DESCRIBE {part}"),
            ] {
                assert!(refused(&connection, &sql).is_some(), "{sql}");
            }
        }
        // A query's own name must not give access to the engine's table.
        let hidden = "SELECT * FROM duckdb_views, (WITH duckdb_views AS (SELECT 1) FROM duckdb_views)";
        assert!(refused(&connection, hidden).is_some());
        assert!(refused(&connection, "SHOW TABLES").is_some() && refused(&connection, "SHOW DATABASES").is_some());
    }

    /// A new engine version can have new functions: a developer must check each.
    #[test]
    fn every_function_with_side_effects_is_listed() {
        const KNOWN: [&str; 13] = [
            "current_connection_id",
            "current_query",
            "current_query_id",
            "current_transaction_id",
            "error",
            "gen_random_uuid",
            "random",
            "txid_current",
            "uuid",
            "uuidv4",
            "uuidv7",
            "vector_type",
            "version",
        ];
        let connection = Connection::open_in_memory().unwrap();
        let sql = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type IN ('scalar', 'aggregate') \
                   AND (has_side_effects OR stability = 'VOLATILE')";
        let mut statement = connection.prepare(sql).unwrap();
        let names = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        for name in names.map(Result::unwrap) {
            assert!(KNOWN.contains(&name.as_str()) || REFUSED_FUNCTIONS.contains(&name.as_str()), "{name}");
        }
        // Tables of the engine's schema that a query can name without the schema.
        let sql = "SELECT view_name FROM duckdb_views() WHERE internal AND schema_name = 'main'";
        let mut statement = connection.prepare(sql).unwrap();
        let names = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        assert!(names.map(Result::unwrap).all(|name| is_of_engine(&name)));
    }
}

//! A tester that knows only the sandbox's OpenAPI description checks the sandbox.

use crate::common;

use common::python::schemathesis;
use common::sandbox_client::{SandboxClient, small};
use serde_json::{Value, json};

/// Checks: no server error, and the described statuses, content types, headers and bodies.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,\
                      response_schema_conformance";

/// The paths about teams. Requests that change the tested service itself (faults, switches, clock) have their own
/// tests.
const PATHS: &str = "^/(v1/|sandbox/team/|openapi)";
/// The sandbox's description.
const OWN_PATHS: &str = "^/sandbox/(clock|choices|faults|state)";

async fn tested(client: &SandboxClient, examples: u32, paths: &str, but: &[&str]) {
    let Some(program) = schemathesis("the sandbox against its description") else { return };
    // Use existing ids, so requests reach the rules.
    let team = client.team();
    let devices = client.sandbox.handle.devices(team);
    let place = tempfile::tempdir().unwrap();
    let parameters = format!("[parameters]\n\"path.teamID\" = \"{team}\"\n\"path.deviceID\" = \"{}\"\n", devices[0]);
    let config = place.path().join("schemathesis.toml");
    std::io::Write::write_all(&mut std::fs::File::create(&config).unwrap(), parameters.as_bytes()).unwrap();
    let mut command = std::process::Command::new(program);
    command.arg("--config-file").arg(&config).arg("run").arg(format!("{}/openapi.json", client.sandbox.base_url));
    command.args(["--header", &format!("Authorization: Bearer {}", client.sandbox.admin_token)]);
    command.args(["--checks", CHECKS, "--include-path-regex", paths, "--phases", "examples,coverage,fuzzing"]);
    command.args(["--max-examples", &examples.to_string(), "--seed", "7", "--generation-deterministic"]);
    command.args(["--suppress-health-check", "all", "--no-color", "--request-timeout", "300"]);
    for method in but {
        command.args(["--exclude-method", method]);
    }
    command.current_dir(place.path());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sandbox_matches_its_description() {
    let client = SandboxClient::of(small()).await;
    tested(&client, 8, PATHS, &[]).await;
    let requests = client.sandbox.handle.requests();
    assert!(requests == 0 || requests > 300, "{requests} requests");
    // Switches, faults and the whole state still match the description afterwards.
    let rules = json!({"rules": [{"path": "/x", "method": "GET", "every": 2, "times": 3, "fault": "html"},
        {"path": "/y", "fault": {"latency_ms": 1}}, {"path": "/z", "fault": {"status": {"status": 503, "retry_after": "1"}}}]});
    client.own("PUT", "/faults", &rules).await.with(200);
    tested(&client, 2, OWN_PATHS, &["POST", "PUT", "PATCH"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sandbox_matches_its_description_with_other_switches() {
    let client = SandboxClient::of(small()).await;
    let readings = json!({"error_shape": "problem", "created_body": "object", "rule_status": 422, "invalid_status": 422,
        "forbidden_status": 404, "refuse_unknown_fields": true, "has_more": "missing", "limit_max": 50, "empty_lists": true});
    client.own("PATCH", "/choices", &readings).await.with(200);
    tested(&client, 2, PATHS, &[]).await;
}

/// Asserts that every reference has a target, and that every row has a schema.
#[tokio::test]
async fn the_description_is_complete() {
    let client = SandboxClient::of(small()).await;
    let described = client.get_as("", "/openapi.json").await.json();
    fn follow(whole: &Value, part: &Value) {
        match part {
            Value::Object(fields) => fields.iter().for_each(|(key, value)| match value {
                Value::String(to) if key == "$ref" => {
                    assert!(whole.pointer(to.trim_start_matches('#')).is_some(), "{to}");
                }
                _ => follow(whole, value),
            }),
            Value::Array(items) => items.iter().for_each(|item| follow(whole, item)),
            _ => {}
        }
    }
    follow(&described, &described);
    assert_eq!(described["openapi"], "3.1.0");
    assert!(described["paths"].as_object().unwrap().len() > 40);
}

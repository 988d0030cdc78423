//! Who may ask, and the security headers of every answer.

use super::http::{ask, get};
use super::world::Lonely;

const TOKEN: &str = "a-token-for-the-port";

#[test]
fn every_answer_has_security_headers() {
    let world = Lonely::new("sql = true\n");
    let address = &world.daemon.address;
    for path in [
        "/",
        "/coverage",
        "/sessions",
        "/reports",
        "/findings",
        "/quarantine",
        "/sql",
        "/nowhere",
        "/api/status",
        "/api/nowhere",
        "/metrics",
        "/healthz",
        "/sign-in",
    ] {
        let answer = get(address, path);
        let policy = answer.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; style-src 'self'; script-src 'self';"), "{path}: {policy}");
        assert!(policy.contains("frame-ancestors 'none'") && policy.contains("base-uri 'none'"), "{path}: {policy}");
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{path}: {policy}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("x-frame-options"), "DENY", "{path}");
        assert_eq!(answer.header("referrer-policy"), "same-origin", "{path}");
        assert_eq!(answer.header("cross-origin-opener-policy"), "same-origin", "{path}");
        assert_eq!(answer.header("cache-control"), "no-store", "{path}");
    }
    let page = world.page("/");
    assert!(!page.contains("<style") && !page.contains(" style=") && !page.contains("<script>"), "{page}");
    let assets: Vec<&str> = page.split('"').filter(|part| part.starts_with("/assets/")).collect();
    assert_eq!(assets.len(), 3, "{assets:?}");
    for asset in assets {
        let answer = get(address, asset);
        assert_eq!(answer.status, 200, "{asset}");
        assert_eq!(answer.header("cache-control"), "public, max-age=31536000, immutable");
        assert!(!answer.body.contains("http://") || asset.ends_with(".svg"), "{asset} names another place");
    }
    assert_eq!(get(address, "/assets/other.css").status, 404);
    assert_eq!(ask(address, "POST", "/api/status", &[], "").refusal(), "method_not_allowed");
    assert_eq!(ask(address, "DELETE", "/sessions", &[], "").status, 405);
    world.daemon.stop();
}

#[test]
fn on_loopback_the_port_answers_only_the_machine_s_own_names() {
    let world = Lonely::new("");
    let address = &world.daemon.address;
    let port = address.rsplit_once(':').unwrap().1;
    for (host, status) in [
        (format!("localhost:{port}"), 200),
        (format!("127.0.0.1:{port}"), 200),
        (format!("rebound.example:{port}"), 403),
        ("192.0.2.7".to_owned(), 403),
    ] {
        for path in ["/", "/api/status", "/metrics"] {
            assert_eq!(ask(address, "GET", path, &[("Host", &host)], "").status, status, "{host} {path}");
        }
        assert_eq!(ask(address, "GET", "/healthz", &[("Host", &host)], "").status, 200, "probes are open");
    }
    // Refuse an ambiguous host and two hosts.
    let (own, evil) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{port}@evil"));
    for hosts in [&[("Host", evil.as_str())][..], &[("Host", &own), ("Host", &own)], &[("Host", &own), ("Host", "x")]] {
        for path in ["/", "/api/status", "/metrics", "/healthz"] {
            assert_eq!(ask(address, "GET", path, hosts, "").status, 400, "{hosts:?} {path}");
        }
    }
    let elsewhere = ask(address, "GET", "http://evil.example/api/status", &[("Host", own.as_str())], "");
    assert_eq!(elsewhere.status, 400, "{elsewhere:?}");
    // A stranger's page cannot submit our forms.
    for headers in [
        [("Sec-Fetch-Site", "cross-site"), ("Origin", "http://127.0.0.1")],
        [("Origin", "https://evil.example"), ("X", "y")],
    ] {
        let answer = ask(address, "POST", "/zone", &headers, "tz=UTC&back=/");
        assert_eq!(answer.status, 403, "{headers:?}");
        assert!(answer.headers("set-cookie").is_empty());
    }
    world.daemon.stop();
}

#[test]
fn off_loopback_a_browser_signs_in_once() {
    let http = "listen = \"0.0.0.0:0\"\ntoken_file = \"port-token\"\n";
    let place = crate::reporting::Place::month_with_a_gap();
    crate::program::put(&place.path().join("port-token"), TOKEN);
    let world = Lonely::over(place, http);
    let address = world.daemon.address.replace("0.0.0.0", "127.0.0.1");
    let html = ("Accept", "text/html,application/xhtml+xml");
    let sent = ask(&address, "GET", "/sessions?user=a%20b", &[html], "");
    assert_eq!(sent.status, 303);
    assert_eq!(sent.header("location"), "/sign-in?back=%2Fsessions%3Fuser%3Da%2520b");
    let refused = ask(&address, "GET", "/api/status", &[html], "");
    assert_eq!((refused.status, refused.refusal().as_str()), (401, "unauthorized"));
    assert_eq!(refused.header("www-authenticate"), "Bearer realm=\"annals\"");
    assert_eq!(get(&address, "/").status, 401, "a request that does not accept HTML gets 401, and no redirect");
    let form = get(&address, "/sign-in?back=/sessions");
    assert!(form.status == 200 && form.body.contains("value=\"/sessions\"") && !form.body.contains("O'Brien"));
    let asset = form.body.split('"').find(|part| part.ends_with(".css")).unwrap().to_owned();
    assert_eq!(get(&address, &asset).status, 200, "the form has its styles");
    let signing =
        |token: &str, back: &str| ask(&address, "POST", "/sign-in", &[], &format!("token={token}&back={back}"));
    let wrong = signing("a-token-for-the-porx", "/");
    assert!(wrong.status == 401 && wrong.headers("set-cookie").is_empty(), "{wrong:?}");
    let signed = signing(TOKEN, "/sessions");
    assert_eq!((signed.status, signed.header("location")), (303, "/sessions"));
    assert_eq!(signing(TOKEN, "//evil.example").header("location"), "/", "no request is redirected");
    let cookie = signed.header("set-cookie").to_owned();
    assert!(cookie.contains("; HttpOnly; SameSite=Strict") && !cookie.contains(TOKEN), "{cookie}");
    let session = cookie.split(';').next().unwrap();
    for path in ["/", "/sessions", "/api/status", "/metrics"] {
        assert_eq!(ask(&address, "GET", path, &[("Cookie", session)], "").status, 200, "{path}");
        let bearer = format!("Bearer {TOKEN}");
        assert_eq!(ask(&address, "GET", path, &[("Authorization", &bearer)], "").status, 200, "{path}");
        let forged = format!("{}0", &session[..session.len() - 2]);
        assert_eq!(ask(&address, "GET", path, &[("Cookie", &forged)], "").status, 401, "{path}");
    }
    let other = signing(TOKEN, "/").header("set-cookie").split(';').next().unwrap().to_owned();
    let out = ask(&address, "POST", "/sign-out", &[("Cookie", session)], "");
    assert!(out.header("set-cookie").contains("Max-Age=0"), "{out:?}");
    for path in ["/", "/sessions", "/api/status", "/metrics"] {
        assert_eq!(ask(&address, "GET", path, &[("Cookie", session)], "").status, 401, "{path}: it has signed out");
        assert_eq!(
            ask(&address, "GET", path, &[("Cookie", &other)], "").status,
            200,
            "{path}: another browser has not"
        );
    }
    world.daemon.stop();
}

#[test]
fn wrong_tokens_are_limited() {
    let place = crate::reporting::Place::month_with_a_gap();
    crate::program::put(&place.path().join("port-token"), TOKEN);
    let world = Lonely::over(place, "token_file = \"port-token\"\n");
    let address = &world.daemon.address;
    let signing = |token: &str, forwarded: &str| {
        ask(address, "POST", "/sign-in", &[("X-Forwarded-For", forwarded)], &format!("token={token}&back=/"))
    };
    let bearer = format!("Bearer {TOKEN}");
    for number in 0..10 {
        assert_eq!(signing(&format!("a-token-for-the-po{number}x"), "192.0.2.1").status, 401);
        let known = signing(TOKEN, "192.0.2.1").status;
        assert_eq!(known, if number < 9 { 303 } else { 429 }, "the token is valid until then");
    }
    for (token, forwarded) in [("a-token-for-the-porx", "192.0.2.1"), ("another", "192.0.2.2"), (TOKEN, "192.0.2.3")] {
        let refused = signing(token, forwarded);
        assert_eq!(refused.status, 429, "{refused:?}");
        assert!(refused.header("retry-after").parse::<u64>().is_ok_and(|seconds| (1..=300).contains(&seconds)));
        assert!(refused.headers("set-cookie").is_empty());
    }
    assert_eq!(
        ask(address, "GET", "/metrics", &[("Authorization", &bearer)], "").status,
        200,
        "programs with the token are not limited"
    );
    world.daemon.stop();
}

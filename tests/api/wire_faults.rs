//! The program reads through a proxy that damages the connection. It explains each fault in its own words, leaves no
//! half-written file, and archives everything once the proxy stops.
#![allow(clippy::print_stdout, reason = "a failed test shows the scenario")]

use crate::common::is_linux;
use crate::common::wait::wait_for;
use crate::faulty_service;
use crate::wire;

use faulty_service::{DAY, HOUR, Program, SINCE, Service, hold};
use wire::{ALL, Fault, Part, Proxy, tls};

/// Nothing listens there: no system gives this port to a program that asks for any free port.
const NOBODY: &str = "127.0.0.1:1";
const NOON: i64 = DAY + 84 * HOUR;
/// Whether the client repeats a failed request.
const ONCE: &str = "[api]\nretry_for = \"0s\"\n";
const PATIENT: &str = "[api]\nretry_for = \"75s\"\n";
const AGAIN: &str = "[api]\nretry_for = \"300s\"\n";
/// The time limit for faults that never end by themselves. All others get the usual minute, for a busy machine.
const HASTE: &str = "deadline = \"1s\"\n";
/// Why a test needs Linux.
const KEYCHAIN: &str = "macOS asks its keychain, and reads no such variable";
/// How many requests pass before a fault in the middle of a reading.
const BEFORE: usize = 5;
/// How many scenarios run at once: they mostly wait.
const AT_ONCE: usize = 5;

fn scene() -> (Service, Proxy, Program) {
    let service = Service::at(NOON);
    service.world().fill(DAY, 0..3);
    let proxy = Proxy::to(&service.base_url());
    let program = Program::through(&service, format!("http://{}", proxy.address()));
    (service, proxy, program)
}

/// Each fault, and the expected message. The whole answer may arrive before its reset.
fn faults() -> Vec<(Fault, &'static str)> {
    let (broke, off) = ("broke: ", "broke off or cannot be decoded: ");
    let (late, odd) = ("no whole answer from http://127.0.0.1:", "does not have the documented form: ");
    vec![
        (Fault::ResetOnConnect, broke),
        (Fault::Reset(Part::Nothing), broke),
        (Fault::Reset(Part::HalfOfTheHead), broke),
        (Fault::Reset(Part::HalfOfTheBody), off),
        (Fault::Reset(Part::All), ""),
        (Fault::HalfClose(Part::Nothing), broke),
        (Fault::HalfClose(Part::HalfOfTheHead), broke),
        (Fault::HalfClose(Part::HalfOfTheBody), off),
        (Fault::HalfClose(Part::All), ""),
        (Fault::Stall(Part::Nothing), late),
        (Fault::Stall(Part::HalfOfTheHead), late),
        (Fault::Stall(Part::HalfOfTheBody), late),
        (Fault::Drip, late),
        (Fault::Late(200), ""),
        (Fault::LengthTooLarge, off),
        (Fault::LengthTooSmall, odd),
        (Fault::NotGzip, off),
        (Fault::GzipCut, off),
        (Fault::GzipChecksum, off),
        (Fault::Bomb, "the body is longer than 67108864 bytes"),
    ]
}

/// From the first request on, from the middle on, and once in the middle.
fn is_survived(fault: Fault, said: &str) {
    println!("{fault:?}");
    let (service, proxy, program) = scene();
    let haste = if matches!(fault, Fault::Stall(_) | Fault::Drip) { HASTE } else { "" };
    program.configure(&format!("{ONCE}{haste}"));
    for which in [ALL, BEFORE..usize::MAX] {
        proxy.spoil(fault, which.clone());
        // On a busy machine, an honest answer can also come too late.
        let run = wait_for("a run that meets the fault", || {
            let run = program.sync(&SINCE);
            (proxy.spoiled() > 0).then_some(run)
        });
        if said.is_empty() {
            assert!(matches!(run.code, Some(0 | 1)), "{fault:?}: {run:?}");
        } else {
            run.ended(1).says(&[said, "GET /v1/"]);
        }
        if program.archive().join("archive.json").is_file() {
            program.run(&["verify"]).ended(0);
        }
    }
    program.configure(&format!("{AGAIN}{haste}"));
    service.world().connection(NOON - HOUR, 1);
    proxy.spoil(fault, 2..3);
    program.sync(&SINCE).ended(0);
    assert_eq!(proxy.spoiled(), 1, "{fault:?}");
    proxy.be_honest();
    program.configure(AGAIN);
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
}

/// Runs scenarios in parallel, and names the one that failed.
fn side_by_side<T: Sync + std::fmt::Debug>(cases: &[T], run: impl Fn(&T) + Sync) {
    let run = &run;
    for some in cases.chunks(AT_ONCE) {
        std::thread::scope(|scope| {
            let all: Vec<_> = some.iter().map(|case| (case, scope.spawn(move || run(case)))).collect();
            for (case, one) in all {
                assert!(one.join().is_ok(), "{case:?}");
            }
        });
    }
}

#[test]
fn each_fault_on_the_wire_is_reported_and_repaired() {
    side_by_side(&faults(), |(fault, said)| is_survived(*fault, said));
}

#[test]
fn an_untrusted_certificate_is_reported_with_its_fault() {
    if !is_linux("certificates of SSL_CERT_FILE", KEYCHAIN) {
        return;
    }
    let cases = [
        ("expired", "its certificate has expired"),
        ("elsewhere", "its certificate is for another host"),
        ("unknown", "its certificate is signed by an authority that this machine does not trust"),
    ];
    side_by_side(&cases, |(certificate, said)| {
        println!("{certificate}");
        let service = Service::at(NOON);
        service.world().fill(DAY, 0..3);
        let proxy = Proxy::to(&service.base_url());
        let program = Program::through(&service, format!("https://{}", proxy.address()))
            .with_variable("SSL_CERT_FILE", tls::place("authority.pem"));
        program.configure(ONCE);
        proxy.show(certificate);
        let secure = format!("no secure connection to https://{}: {said}", proxy.address());
        let run = program.sync(&SINCE).ended(1).says(&[&secure]);
        assert_eq!(run.stderr.lines().count(), 1, "{certificate}: reported once: {run:?}");
        assert_eq!(service.requests_count(), 0, "{certificate}: the token reached the untrusted peer");
        program.run(&["doctor"]).ended(1).says(&[said]);
        proxy.show("honest");
        program.sync(&SINCE).ended(0);
        hold(&service, &program, &SINCE);
    });
}

/// The library's own words name neither the variable nor the file.
#[test]
fn a_variable_without_certificates_is_named_with_its_file() {
    if !is_linux("certificates of SSL_CERT_FILE", KEYCHAIN) {
        return;
    }
    let service = Service::at(NOON);
    let absent = std::path::PathBuf::from("absent.pem");
    let cases = [
        (absent, "SSL_CERT_FILE: absent.pem: cannot read this file: No such file or directory"),
        ("annals.toml".into(), "SSL_CERT_FILE: annals.toml: it holds no valid certificate in PEM form"),
    ];
    for (file, said) in cases {
        let program = Program::through(&service, format!("https://{NOBODY}"));
        // The directory is empty: the machine can name its own.
        let program = program.with_variable("SSL_CERT_FILE", file).with_variable("SSL_CERT_DIR", "".into());
        program.configure("[alerts]\nwebhook = \"https://alerts.invalid/\"\n");
        for arguments in [&["sync"][..], &["plan"], &["alerts", "test"]] {
            let run = program.run(arguments).ended(2);
            assert!(
                run.stderr.contains(said) && run.stderr.contains("or unset the variable"),
                "{arguments:?}: {run:?}"
            );
        }
        let run = program.run(&["doctor"]).ended(1);
        assert!(run.stdout.contains("SSL_CERT_FILE: "), "{run:?}");
        let keys = [("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "hunter2"), ("AWS_REGION", "x")];
        let program =
            keys.into_iter().fold(program, |program, (name, value)| program.with_variable(name, value.into()));
        program.run(&["status", "--archive", "s3://bucket/archive"]).ended(1).says(&[said]);
    }
}

/// The certificate is renewed during a retry, as behind a load balancer with one old host.
#[test]
fn a_certificate_that_is_renewed_during_a_retry_is_accepted() {
    if !is_linux("certificates of SSL_CERT_FILE", KEYCHAIN) {
        return;
    }
    let service = Service::at(NOON);
    service.world().fill(DAY, 0..3);
    let proxy = Proxy::to(&service.base_url());
    let program = Program::through(&service, format!("https://{}", proxy.address()))
        .with_variable("SSL_CERT_FILE", tls::place("authority.pem"));
    program.configure(AGAIN);
    proxy.show("expired");
    let running = program.start_sync(&SINCE);
    proxy.wait_for_connections(2);
    proxy.show("honest");
    running.wait().ended(0);
    hold(&service, &program, &SINCE);
}

#[test]
fn a_service_without_tls_or_without_a_listener_is_reported() {
    let service = Service::at(NOON);
    service.world().fill(DAY, 0..3);
    let plain = service.base_url().replace("http:", "https:");
    let program = Program::of(&service).with_variable("SSL_CERT_FILE", tls::place("authority.pem"));
    program.configure(ONCE);
    for (address, said) in [
        (plain.clone(), format!("no secure connection to {plain}: the server ended the connection in the handshake")),
        (format!("http://{NOBODY}"), format!("http://{NOBODY} refused the connection: nothing listens there")),
        (
            "http://no-such-host.invalid".to_owned(),
            "the host of http://no-such-host.invalid cannot be found".to_owned(),
        ),
    ] {
        let run = program.sync(&[&SINCE[..], &["--base-url", &address]].concat());
        run.ended(1).says(&[&said]);
    }
    let proxied = Program::of(&service).with_variable("HTTP_PROXY", format!("http://{NOBODY}").into());
    proxied.configure(ONCE);
    let run = proxied.sync(&[&SINCE[..], &["--base-url", "http://no-such-host.invalid"]].concat());
    run.ended(1).says(&["http://no-such-host.invalid, or the proxy of HTTP_PROXY, refused the connection"]);
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
}

/// With a wrong address, a command of a person ends soon and explains why.
#[test]
fn an_address_without_a_listener_is_reported_before_the_retry() {
    let service = Service::at(NOON);
    let commands: [&[&str]; 4] = [&["sync"], &["plan"], &["sync", "--team", "team-one"], &["init"]];
    side_by_side(&commands, |arguments| {
        let program = Program::through(&service, format!("http://{NOBODY}"));
        program.configure(PATIENT);
        let fresh = program.home().join("fresh.toml");
        let config = if *arguments == ["init"] { vec!["--config", fresh.to_str().unwrap()] } else { Vec::new() };
        let run = program.run(&[*arguments, &config].concat());
        let run = run.ended(1).says(&["refused the connection: nothing listens there; trying again for up to 10 s"]);
        let lines: Vec<&str> = run.stderr.lines().collect();
        let retry_at = lines.iter().position(|line| line.contains("trying again")).unwrap();
        let retries = lines.iter().filter(|line| line.contains("trying again")).count();
        let failed = lines.iter().rposition(|line| line.contains("refused the connection")).unwrap();
        assert!(retry_at < failed && retries == 1, "{arguments:?}: {run:?}");
    });
    let program = Program::through(&service, format!("http://{NOBODY}"));
    let run = program.run(&["doctor"]).ended(1);
    assert!(!run.stderr.contains("trying again"), "it asks once: {run:?}");
}

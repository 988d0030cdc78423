//! The sandbox's histories over HTTP: paging, ranges, order, new events, removal, and the truth.

use crate::common;

use std::collections::HashMap;
use std::time::Duration;

use annals::model::{Instant, Stream, TeamId};
use annals::sandbox::{Bounds, Choices, HasMore, InsertedEvent, Lateness, NextOffset, Order, SandboxConfig};
use serde_json::Value;

use common::sandbox_client::{SandboxClient, small};

fn truth(client: &SandboxClient, stream: Stream) -> Vec<String> {
    let events = client.sandbox.handle.truth(client.team(), stream);
    events.map(|event| String::from_utf8(event.raw.to_vec()).unwrap()).collect()
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort_unstable();
    texts
}

fn time_of(text: &str) -> i64 {
    let event: Value = serde_json::from_str(text).unwrap();
    match event["header"]["eventTimestampUnixNano"].as_i64() {
        Some(nanos) => nanos,
        None => event["timestamp"].as_i64().unwrap() * 1_000_000,
    }
}

#[tokio::test]
async fn reading_all_pages_gives_the_truth_in_order() {
    let client = SandboxClient::of(small()).await;
    for (path, stream, limit) in [
        ("/history?desc=false", Stream::Activity, 37),
        ("/history?desc=false", Stream::Activity, 1001),
        ("/history/devices?desc=false", Stream::Connections, 41),
        ("/history/devices?desc=false", Stream::Connections, 1001),
    ] {
        let expected = truth(&client, stream);
        assert!(expected.len() > 300, "{stream}: {}", expected.len());
        let read = client.walk(path, limit).await;
        assert!(read == expected, "{path} limit {limit}: {} read, {} true", read.len(), expected.len());
        assert!(read.is_sorted_by_key(|text| time_of(text)));
        let mut newest_first = client.walk(&path.replace("false", "true"), limit).await;
        newest_first.reverse();
        assert!(newest_first == expected, "{path} backwards");
        assert_eq!(client.sandbox.handle.visible(client.team(), stream), expected.len() as u64);
    }
}

#[tokio::test]
async fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let all = async |config: SandboxConfig| {
        let client = SandboxClient::of(config).await;
        let mut texts = client.walk("/history?desc=false", 1001).await;
        texts.extend(client.walk("/history/devices?desc=false", 1001).await);
        for path in ["", "/devices", "/users", "/billing/events"] {
            texts.push(String::from_utf8(client.get(path).await.body).unwrap());
        }
        (client.sandbox.teams.clone(), client.sandbox.admin_token.clone(), texts)
    };
    let first = all(small()).await;
    assert!(first == all(small()).await);
    let other = all(SandboxConfig { seed: 8, ..small() }).await;
    assert!(first.0 != other.0 && first.1 != other.1 && first.2 != other.2);
}

#[tokio::test]
async fn two_sandboxes_of_one_seed_agree_on_the_days_that_both_have() {
    let later = small().now.unwrap().plus(Duration::from_secs(2 * 86_400));
    let (one, two) =
        (SandboxClient::of(small()).await, SandboxClient::of(SandboxConfig { now: Some(later), ..small() }).await);
    let day = |text: &str| Instant::from_seconds(text.parse::<Instant>().unwrap().seconds());
    let range = (day("2026-11-18T00:00:00Z").seconds(), day("2026-11-19T00:00:00Z").seconds() - 1);
    let path = format!("/history?desc=false&startTime={}&stopTime={}", range.0, range.1);
    let (first, second) = (one.walk(&path, 1001).await, two.walk(&path, 1001).await);
    assert!(!first.is_empty() && first == second);
}

#[tokio::test]
async fn a_range_is_inclusive_in_whole_seconds_unless_the_switch_says_otherwise() {
    let client = SandboxClient::of(small()).await;
    let all = truth(&client, Stream::Connections);
    let millis: Vec<i64> = all.iter().map(|text| time_of(text) / 1_000_000).collect();
    let (start, stop) = (millis[50] / 1000, millis[200] / 1000);
    assert!(millis[200] % 1000 != 0);
    let path = format!("/history/devices?desc=false&startTime={start}&stopTime={stop}");
    let expected = |last_ms: i64| -> Vec<String> {
        let inside = |at: i64| at >= start * 1000 && at <= last_ms;
        all.iter().zip(&millis).filter(|(_, at)| inside(**at)).map(|(text, _)| text.clone()).collect()
    };
    assert_eq!(client.walk(&path, 7).await, expected(stop * 1000 + 999));
    assert_eq!(client.walk(&path.replace("desc=false", "desc=true"), 7).await.len(), expected(stop * 1000 + 999).len());
    client.sandbox.handle.set_choices(Choices { bounds: Bounds::EXACT, ..Choices::default() });
    assert_eq!(client.walk(&path, 7).await, expected(stop * 1000));
    let backwards = format!("/history/devices?startTime={stop}&stopTime={start}");
    assert_eq!(client.get(&backwards).await.page().events, [] as [&str; 0]);
}

#[tokio::test]
async fn defaults_of_limit_and_desc_are_those_of_the_table() {
    let client = SandboxClient::of(small()).await;
    for (path, stream) in [("/history", Stream::Activity), ("/history/devices", Stream::Connections)] {
        let mut newest = truth(&client, stream);
        newest.reverse();
        let page = client.get(path).await.page();
        assert_eq!(page.events, newest[..100]);
        assert_eq!((page.more, page.next), (Some(true), Some(100)));
        let end = client.get(&format!("{path}?offset={}", newest.len() - 1)).await.page();
        assert_eq!((end.events.len(), end.more, end.next), (1, Some(false), None));
        let past = client.get(&format!("{path}?offset={}", u64::MAX)).await.page();
        assert_eq!((past.events.len(), past.more), (0, Some(false)));
    }
}

#[tokio::test]
async fn repeated_ids_choose_computers_and_page_as_everything_does() {
    let client = SandboxClient::of(small()).await;
    let mut of_device: HashMap<String, Vec<String>> = HashMap::new();
    for event in client.sandbox.handle.truth(client.team(), Stream::Connections) {
        let text = String::from_utf8(event.raw.to_vec()).unwrap();
        of_device.entry(event.device.unwrap().to_string()).or_default().push(text);
    }
    let chosen: Vec<&String> = of_device.keys().take(3).collect();
    let query: String = chosen.iter().map(|id| format!("&ids={id}")).collect();
    let read = client.walk(&format!("/history/devices?desc=false{query}&ids=unknown&ids={}", chosen[0]), 9).await;
    assert!(read.is_sorted_by_key(|text| time_of(text)));
    let expected: Vec<String> = chosen.iter().flat_map(|id| of_device[*id].clone()).collect();
    assert_eq!(sorted(read), sorted(expected));
    assert!(client.walk("/history/devices?ids=unknown", 9).await.is_empty());
    let one = client.walk(&format!("/history/devices?desc=false&ids={}", chosen[1]), 13).await;
    assert_eq!(&one, &of_device[chosen[1]]);
}

#[tokio::test]
async fn the_deprecated_history_has_no_paging_fields_and_no_device_id() {
    let client = SandboxClient::of(small()).await;
    let device = client.sandbox.handle.devices(client.team())[0].clone();
    let page = client.get(&format!("/device/{device}/history?limit=5")).await.page();
    assert_eq!((page.events.len(), page.more, page.next), (5, None, None));
    let old = client.walk(&format!("/device/{device}/history"), 20).await;
    let new = client.walk(&format!("/history/devices?desc=false&ids={device}"), 1001).await;
    let without = |text: &String| text.replace(&format!(",\"deviceID\":\"{device}\""), "");
    assert!(old.len() > 20 && old.iter().all(|text| !text.contains("deviceID")));
    assert_eq!(old, new.iter().map(without).collect::<Vec<_>>());
}

#[tokio::test]
async fn future_events_appear_when_the_clock_reaches_them() {
    let client = SandboxClient::of(SandboxConfig { days_ahead: 3, ..small() }).await;
    let mut before = client.walk("/history/devices?desc=false", 1001).await;
    let now = client.sandbox.handle.now();
    assert!(before.iter().all(|text| time_of(text) <= now.nanos()));
    client.sandbox.handle.advance(Duration::from_secs(36 * 3600));
    let after = client.walk("/history/devices?desc=false", 1001).await;
    assert!(after.len() > before.len() + 100 && after[..before.len()] == before);
    before = after;
    client.sandbox.handle.set_now(now);
    assert!(client.walk("/history/devices?desc=false", 1001).await.len() < before.len());
    let settled = SandboxClient::of(small()).await;
    let held = settled.walk("/history?desc=false", 1001).await.len();
    settled.sandbox.handle.advance(Duration::from_secs(36 * 3600));
    assert_eq!(settled.walk("/history?desc=false", 1001).await.len(), held);
}

#[tokio::test]
async fn late_events_appear_at_their_place_in_time() {
    let lateness = Lateness { per_million: 200_000, longest: Duration::from_secs(5 * 86_400) };
    let client = SandboxClient::of(SandboxConfig { lateness, ..small() }).await;
    let punctual = SandboxClient::of(small()).await;
    for (path, stream) in [("/history", Stream::Activity), ("/history/devices", Stream::Connections)] {
        let path = format!("{path}?desc=false");
        let seen = client.walk(&path, 1001).await;
        let now = client.sandbox.handle.now();
        let whole = punctual.walk(&path, 1001).await;
        assert!(seen.len() < whole.len() && seen == truth(&client, stream));
        client.sandbox.handle.advance(lateness.longest);
        assert_eq!(client.walk(&path, 1001).await, whole);
        let events = client.sandbox.handle.truth(client.team(), stream);
        assert_eq!(events.filter(|event| event.visible_from > now).count(), whole.len() - seen.len());
        client.sandbox.handle.set_now(now);
    }
}

#[tokio::test]
async fn removing_a_computer_deletes_its_history_and_adds_activity() {
    let lateness = Lateness { per_million: 100_000, longest: Duration::from_secs(86_400) };
    let client = SandboxClient::of(SandboxConfig { days_ahead: 2, lateness, ..small() }).await;
    let handle = &client.sandbox.handle;
    let device = handle.devices(client.team())[1].clone();
    let before = client.walk("/history/devices?desc=false", 1001).await;
    let removed_at = handle.now();
    assert!(handle.remove_device(client.team(), &device));
    assert!(!handle.remove_device(client.team(), &device) && !handle.remove_device(client.team(), &"x".into()));
    let is_its = |text: &String| text.contains(device.as_str());
    let after = client.walk("/history/devices?desc=false", 50).await;
    assert!(after.len() < before.len());
    assert_eq!(after, before.iter().filter(|text| !is_its(text)).cloned().collect::<Vec<_>>());
    assert!(client.walk(&format!("/history/devices?ids={device}"), 10).await.is_empty());
    for path in ["", "/history"] {
        assert_eq!(client.get(&format!("/device/{device}{path}")).await.status, 404);
    }
    assert_eq!(client.get("/devices").await.json()["devices"].as_array().unwrap().len(), 39);
    let newest: Value = serde_json::from_str(&client.get("/history?desc=true&limit=1").await.page().events[0]).unwrap();
    assert_eq!(newest["teamDeviceRemovedEvent"]["deviceID"], device.as_str());
    assert_eq!(newest["header"]["eventTimestampUnixNano"], removed_at.nanos());
    handle.advance(Duration::from_secs(86_400));
    assert!(!client.walk("/history/devices", 1001).await.iter().any(is_its));
    let its: Vec<_> = handle
        .truth(client.team(), Stream::Connections)
        .filter(|event| event.device.as_ref() == Some(&device))
        .collect();
    assert_eq!(its.len(), before.iter().filter(|text| is_its(text)).count());
    assert!(its.iter().all(|event| event.visible_until == Some(removed_at)));
}

#[tokio::test]
async fn events_can_be_inserted_and_deleted() {
    let client = SandboxClient::of(small()).await;
    let (handle, team) = (&client.sandbox.handle, client.team());
    let all = truth(&client, Stream::Connections);
    let at = |place: usize| Instant::from_nanos(time_of(&all[place]));
    let device = handle.devices(team)[0].clone();
    let odd = |text: &'static str, at: Instant, visible_from| InsertedEvent {
        raw: text.into(),
        at,
        device: Some(device.clone()),
        visible_from,
    };
    let hour = Duration::from_secs(3600);
    assert!(handle.insert(team, Stream::Connections, odd("{\"odd\":1}", at(300), None)));
    assert!(handle.insert(team, Stream::Connections, odd("{\"odd\":2}", at(0).minus(hour), None)));
    assert!(handle.insert(team, Stream::Connections, odd("{\"odd\":3}", handle.now().plus(hour), None)));
    assert!(handle.insert(team, Stream::Connections, odd("{\"odd\":4}", at(9), Some(handle.now().plus(hour)))));
    assert!(!handle.insert(&TeamId::from("x"), Stream::Billing, odd("{}", at(0), None)));
    for limit in [1, 13, 1001] {
        let read = client.walk("/history/devices?desc=false", limit).await;
        assert_eq!(read.len(), all.len() + 3);
        assert_eq!((read[0].as_str(), read[read.len() - 1].as_str()), ("{\"odd\":2}", "{\"odd\":3}"));
        let place = read.iter().position(|text| text == "{\"odd\":1}").unwrap();
        assert!(time_of(&read[place - 1]) <= at(300).nanos() && time_of(&read[place + 1]) > at(300).nanos());
        if limit == 1 {
            client.sandbox.handle.set_choices(Choices { page_cap: Some(200), ..Choices::default() });
        }
    }
    let taken = handle.withdraw(team, Stream::Connections, at(100), at(301).plus(hour));
    assert!(taken > 200);
    let left = client.walk("/history/devices?desc=false", 100).await;
    assert_eq!(left.len() as u64, all.len() as u64 + 3 - taken);
    let gone = handle.truth(team, Stream::Connections).filter(|event| event.visible_until.is_some());
    assert_eq!(gone.count() as u64, taken);
}

#[tokio::test]
async fn the_paging_fields_can_be_false_and_the_list_unsorted() {
    let client = SandboxClient::of(small()).await;
    let honest = Choices::default();
    let fields = async |choices: Choices| {
        client.sandbox.handle.set_choices(choices);
        let page = client.get("/history?desc=false&limit=10&offset=40").await.page();
        (page.events.len(), page.more, page.next)
    };
    assert_eq!(fields(honest).await, (10, Some(true), Some(50)));
    assert_eq!(fields(Choices { has_more: HasMore::AlwaysFalse, ..honest }).await, (10, Some(false), None));
    assert_eq!(fields(Choices { has_more: HasMore::Missing, ..honest }).await, (10, None, None));
    assert_eq!(fields(Choices { next_offset: NextOffset::Zero, ..honest }).await, (10, Some(true), Some(0)));
    assert_eq!(fields(Choices { next_offset: NextOffset::Stuck, ..honest }).await, (10, Some(true), Some(40)));
    assert_eq!(fields(Choices { next_offset: NextOffset::Backwards, ..honest }).await, (10, Some(true), Some(20)));
    assert_eq!(fields(Choices { next_offset: NextOffset::Missing, ..honest }).await, (10, Some(true), None));
    assert_eq!(fields(Choices { page_cap: Some(4), ..honest }).await, (4, Some(true), Some(44)));
    client.sandbox.handle.set_choices(Choices { order: Order::NeighboursSwapped, ..honest });
    let swapped = client.walk("/history/devices?desc=false", 7).await;
    let mut expected = truth(&client, Stream::Connections);
    expected.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
    assert_eq!(swapped, expected);
}

#[tokio::test]
async fn the_truth_can_be_read_over_http_by_the_admin() {
    let client = SandboxClient::of(small()).await;
    for stream in Stream::ALL {
        let path = format!("/sandbox/truth/{}/{stream}", client.team());
        let reply = client.get_as(&client.sandbox.admin_token, &path).await;
        let lines = reply.body.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let lines: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
        let events: Vec<_> = client.sandbox.handle.truth(client.team(), stream).collect();
        assert_eq!(lines.len(), events.len());
        for (line, event) in lines.iter().zip(&events) {
            assert_eq!(line["raw"].as_str().unwrap().as_bytes(), &event.raw[..]);
            assert_eq!(line["time_ns"], event.at.nanos());
            assert_eq!(line["device"].as_str(), event.device.as_ref().map(annals::model::DeviceId::as_str));
        }
        let refused = client.get_as(&client.sandbox.read_only_token, &path).await;
        assert_eq!(refused.refusal(), (403, "forbidden".to_owned()));
    }
}

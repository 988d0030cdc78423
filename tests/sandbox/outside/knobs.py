"""The switches for open points of the document, time, faults, and the whole state as a file."""

import http.client
import json
import time

from client import NANO, Service, kind_of


def switches(s, j):
    honest = s.knob("GET", "/choices").body
    back = lambda *names: s.choose(**{name: honest[name] for name in names})
    for shape, read in (("detail", lambda b: b["code"] and b["detail"]), ("message", lambda b: b["code"] and b["message"]),
                        ("nested", lambda b: b["error"]["code"] and b["error"]["message"]), ("code", lambda b: b["code"]),
                        ("errors", lambda b: b["errors"][0]["code"] and b["errors"][0]["status"] == 404),
                        ("problem", lambda b: b["code"] and b["status"] == 404 and b["type"])):
        s.choose(error_shape=shape)
        j.check(f"error_shape {shape}", read(s.get("/device/none").body))
    back("error_shape")
    group = s.v1("POST", "/group", {"name": "switched"}).body["id"]
    for body, raw in (("empty", b""), ("text", b"Created"), ("object", b"{}")):
        s.choose(created_body=body)
        j.equal(f"created_body {body}", s.v1("POST", f"/group/{group}/members", {}).raw, raw)
    back("created_body")
    for name, answer in (("unauthorized_status", lambda: s.get("", token="wrong")), ("forbidden_status", lambda: s.v1("POST", "/group", {"name": "x"}, token=s.reader)),
                         ("invalid_status", lambda: s.v1("POST", "/group", {})), ("rule_status", lambda: s.v1("POST", "/invite/user", {}) and too_many(s))):
        s.choose(**{name: 418})
        j.equal(name, answer().status, 418)
        back(name)
    s.choose(default_limit=3, default_desc=False, limit_max=50, device_limit_max=7)
    page = s.get("/history").body["events"]
    j.equal("default_limit, default_desc", page, s.get("/history?desc=false&limit=3").body["events"])
    j.equal("limit_max", (s.get("/history?limit=50").status, s.get("/history?limit=51").status), (200, 400))
    back("default_limit", "default_desc", "limit_max", "device_limit_max")
    lies(s, j, back)
    bounds(s, j, back)
    device = s.computer("alone-1")["id"]
    lists = lambda: [s.get(f"/device/{device}").body.get(name) for name in ("users", "groups", "annotations")]
    omitted = lists()
    s.choose(empty_lists=True)
    j.equal("empty_lists", (omitted, lists()), ([None] * 3, [[]] * 3))
    back("empty_lists")
    s.choose(refuse_unknown_fields=True)
    j.equal("refuse_unknown_fields", s.v1("POST", "/group", {"name": "x", "colour": 1}).status, 400)
    back("refuse_unknown_fields")
    s.choose(require_content_type=False)
    j.equal("require_content_type", s.v1("POST", "/group", raw=b'{"name": "bare"}').status, 201)
    back("require_content_type")
    s.choose(invite_days=2)
    invite = s.v1("POST", "/invite/user", {}).body
    j.equal("invite_days", invite["expiresAt"] - invite["createdAt"], 2 * 86_400)
    s.advance(2 * 86_400)
    j.equal("an invite expires", s.own("POST", "/join", {"secret": invite["secret"], "email": "x@y.example"}).status, 404)
    listed = lambda: invite["secret"] in s.get("").raw.decode()
    gone = listed()
    s.choose(list_expired=True)
    j.equal("list_expired", (gone, listed()), (False, True))
    back("invite_days", "list_expired")
    member = s.token_of(next(user for user in s.get("/users").body["users"] if user["role"] == "user")["id"])
    reads = lambda: [s.get(path, token=member).status for path in ("", "/users", "/history")]
    free = reads()
    s.choose(members_read=False)
    j.equal("members_read", (free, reads()), ([200, 200, 200], [200, 403, 403]))
    back("members_read")
    s.choose(event_delay_ms=5_000)
    s.v1("POST", "/group", {"name": "late"})
    before = kind_of(s.told()[0]) == "teamGroupCreatedEvent" and s.told()[0]["teamGroupCreatedEvent"].get("name") == "late"
    s.advance(5)
    j.equal("event_delay_ms: late events", (before, s.told()[0].get("teamGroupCreatedEvent", {}).get("name")), (False, "late"))
    back("event_delay_ms")
    s.choose(enforce_plan_span=True)
    then = s.knob("GET", "/clock").body["now"]
    s.advance(200 * 86_400)
    hidden = s.get("/history/devices").body["deviceEvents"]
    back("enforce_plan_span")
    shown = s.get("/history/devices").body["deviceEvents"]
    s.knob("POST", "/clock", {"now": then})
    j.check("enforce_plan_span", hidden == [] and shown != [], (hidden, len(shown)))
    s.choose(requests_per_minute=2)
    answers = [s.get("/devices?name=x") for _ in range(3)]
    j.equal("requests_per_minute", ([answer.status for answer in answers], "retry-after" in answers[2].headers), ([200, 200, 429], True))
    back("requests_per_minute")
    for wrong in ({"limit_max": 0}, {"rule_status": 500}, {"order": "none"}, {"nothing": 1}, {"page_cap": 0}):
        j.equal(f"no switch: {wrong}", s.choose(**wrong).status, 400)
    j.equal("all as before", s.knob("GET", "/choices").body, honest)


def bounds(s, j, back):
    """Which part of the last second a range includes."""
    page = s.get("/history/devices?desc=false&limit=1001").body["deviceEvents"]
    event = next(event for event in page if 500 < event["timestamp"] % 1000)
    second = event["timestamp"] // 1000
    held = lambda start, stop: event in s.get(f"/history/devices?limit=1001&startTime={start}&stopTime={stop}").body["deviceEvents"]
    seen = [held(second, second), held(second + 1, second + 1)]
    for rounding in ("exact", "up", "nearest"):
        s.choose(bounds={"rounding": rounding, "start_open": False, "stop_open": False})
        seen += [held(second, second), held(second + 1, second + 1)]
    s.choose(bounds={"rounding": "down", "start_open": False, "stop_open": True})
    seen.append(held(second - 1, second))
    j.equal("bounds: whole second, exact, up, nearest, open", seen, [True, False, False, False, False, True, False, True, False])
    back("bounds")


def too_many(s):
    s.own("PATCH", "/plan", {"groups": 0})
    answer = s.v1("POST", "/group", {"name": "x"})
    s.own("PATCH", "/plan", {"groups": 100})
    return answer


def lies(s, j, back):
    path = "/history?desc=false&limit=5"
    true = s.get(path).body
    for has_more, seen in (("always_false", False), ("always_true", True), ("missing", None)):
        s.choose(has_more=has_more)
        j.equal(f"has_more {has_more}", s.get("/history?offset=99999999").body.get("hasMoreEvents") if seen else s.get(path).body.get("hasMoreEvents"), seen)
    back("has_more")
    for name, seen in (("missing", None), ("zero", 0), ("stuck", 20), ("backwards", 10)):
        s.choose(next_offset=name)
        j.equal(f"next_offset {name}", s.get(f"{path}&offset=20").body.get("nextOffset"), seen)
    back("next_offset")
    s.choose(page_cap=2)
    j.equal("page_cap", s.get(path).body["events"], true["events"][:2])
    back("page_cap")
    s.choose(order="neighbours_swapped")
    j.equal("order", s.get("/history?desc=false&limit=2").body["events"], true["events"][:2][::-1])
    back("order")


def clock(program, s, j):
    now = s.knob("GET", "/clock").body
    j.equal("fixed: it stands", (now["speed"], s.knob("GET", "/clock").body), (0, now))
    s.advance(90)
    j.equal("moved", s.seconds() - now["unixNano"] // NANO, 90)
    set_to = s.knob("POST", "/clock", {"now": "2030-01-01T00:00:00Z"}).body
    j.equal("set", set_to["unixNano"] // NANO, 1_893_456_000)
    j.equal("Date tells it", s.get("").headers["date"], "Tue, 01 Jan 2030 00:00:00 GMT")
    s.knob("POST", "/clock", {"now": now["now"]})
    fast = Service(program, "--days", "2", "--sessions-per-day", "20", "--now", "2026-11-20T13:00:00Z", "--speed", "3600")
    first = fast.seconds()
    time.sleep(0.2)
    j.check("sped up", fast.seconds() - first >= 600, fast.seconds() - first)
    fast.stop()
    real = Service(program, "--days", "1", "--sessions-per-day", "20")
    j.check("real", abs(real.seconds() - time.time()) < 60, real.seconds())
    j.equal("SIGTERM ends it well", real.stop(), 0)


def faults(program, s, j):
    def rules(*rules):
        return s.knob("PUT", "/faults", {"rules": list(rules)})

    j.equal("a rule", rules({"path": "/devices", "times": 1, "fault": {"status": {"status": 503, "retry_after": "7"}}}).status, 200)
    first, second = s.get("/devices"), s.get("/devices")
    j.equal("errors", (first.status, first.headers.get("retry-after"), second.status), (503, "7", 200))
    rules({"method": "get", "every": 2, "fault": "html"})
    j.equal("every second", [s.get("/devices").headers["content-type"] for _ in range(4)], ["application/json", "text/html"] * 2)
    rules({"fault": {"latency_ms": 300}})
    began = time.monotonic()
    s.get("/devices")
    j.check("latency", time.monotonic() - began >= 0.3)
    for kind in ("reset", "cut_short"):
        rules({"fault": kind})
        try:
            s.get("/devices")
            j.check(kind, False, "answered")
        except (ConnectionError, http.client.HTTPException):
            j.check(kind, True)
    rules({"fault": "truncate"})
    j.equal("truncate", (s.get("/devices").status, s.get("/devices").body), (200, None))
    j.equal("the sandbox's own requests are spared", s.knob("GET", "/faults").status, 200)
    for wrong in ({"fault": "flood"}, {"fault": {"status": {"status": 200}}}, {"every": 0, "fault": "html"}, {}):
        j.equal(f"no rule: {wrong}", rules(wrong).status, 400)
    rules()
    told = Service(program, "--days", "2", "--sessions-per-day", "20", "--choice", "has_more=always_true", "--choice", "error_shape=nested",
                   "--late-per-million", "500000", "--late-up-to", "86400", "--now", "2026-11-20T13:00:00Z",
                   "--fault", json.dumps({"path": "/users", "fault": {"status": {"status": 500}}}))
    j.equal("options of the command", (told.get("/users").status, told.get("/history?offset=9999999").body["hasMoreEvents"], list(told.get("/device/x").body)),
            (500, True, ["error"]))
    recent = lambda: len(told.get("/history/devices?limit=1001&startTime=1795000000&stopTime=1795179600").body["deviceEvents"])
    before = recent()
    told.advance(86_400)
    j.check("late events come later", recent() > before, (before, recent()))
    told.stop()
    for odd in ((), ("--odd-events",)):
        other = Service(program, "--days", "5", "--now", "2026-11-20T13:00:00Z", "--plan-days", "3", "--choice", "enforce_plan_span=true", *odd)
        events = other.get("/history/devices?desc=false&limit=1001").body["deviceEvents"]
        j.equal(f"odd events: {odd}", any("computerHostName" not in event for event in events), bool(odd))
        span = other.get("").body["planFeatures"]["deviceEventsMaxRetrievalDuration"]
        j.check("the plan's span", span == 3 * 86_400 and other.seconds() - events[0]["timestamp"] // 1000 <= span, (span, events[0]))
        other.stop()


def seen(s):
    """All answers about every team."""
    paths = ("", "/devices", "/users", "/saml/users", "/billing/events", "/history?limit=1001", "/history/devices?limit=1001")
    served = [s.get(path, team=team).body for team in s.teams for path in paths]
    return served + [s.own("GET", "/mail").body, s.knob("GET", "/choices").body, s.knob("GET", "/faults").body, s.knob("GET", "/clock").body]


def counted(saved):
    """The number of the admin token's requests in the saved minute."""
    return max(saved["minute"]["requests"].values(), default=0)


def state(program, s, place, j):
    """Saves the state at the stop, loads it in a new process, and continues."""
    person = s.newcomer("kept@people.example", totpEnabled=True)["id"]
    device = s.computer("kept-1", users=[person])["id"]
    s.v1("DELETE", f"/device/{s.get('/devices').body['devices'][5]['id']}")
    s.v1("POST", f"/user/{person}/removetotp")
    s.own("PUT", "/deletion", {"inSeconds": 99})
    s.own("PUT", f"/user/{person}/migration", {"devices": ["old"]})
    leaver = s.newcomer("leaver@people.example")["id"]
    s.v1("DELETE", f"/user/{leaver}")
    token = s.token_of(person)
    session = s.own("POST", f"/device/{device}/connect", {"userID": person, "open": True}).body["connectionID"]
    link = s.own("GET", "/mail").body["mail"]
    link = next(mail["secret"] for mail in link[::-1] if mail["kind"] == "totp-removal")
    s.choose(default_limit=9, requests_per_minute=10**6)
    s.knob("PUT", "/faults", {"rules": [{"path": "/annotations", "times": 1, "fault": {"status": {"status": 500}}}]})
    j.equal("the fault comes true", s.get(f"/device/{device}/annotations").status, 500)
    before, served = seen(s), s.knob("GET", "/state").body
    j.check("the counters of the rate limit are saved", counted(served) > len(before) / 2, served["minute"])
    j.equal("it stops and is saved", s.stop(), 0)
    with open(place, encoding="utf-8") as file:
        saved = json.load(file)
    j.equal("one JSON file, as GET /sandbox/state", saved, served)
    again = Service(program, "--load", place, "--save", place)
    j.equal("all that is served is as before", seen(again), before)
    j.equal("a saved fault rule keeps its counter", again.get(f"/device/{device}/annotations").status, 200)
    j.equal("a token stays valid", sorted(again.get("", token=token).body), ["avatarURL", "id", "name"])
    again.knob("PUT", "/faults", {"rules": []})
    again.choose(requests_per_minute=counted(again.knob("GET", "/state").body) + 1)
    j.equal("the rate limit's minute continues", [again.get("/devices?name=x").status for _ in range(2)], [200, 429])
    again.choose(requests_per_minute=10**6)
    j.equal("an open connection stays open", again.own("POST", f"/connection/{session}/close").status, 200)
    j.equal("a link stays valid", (again.own("POST", "/confirm", {"secret": link}).status, again.get(f"/user/{person}/info").body["totp"]["enabled"]), (200, False))
    j.equal("an account stays", again.newcomer("leaver@people.example")["id"], leaver)
    made = again.v1("POST", "/group", {"name": "new"}).body["id"]
    j.check("new ids are new", made not in json.dumps(before))
    j.equal("back to a state by request", (again.knob("PUT", "/state", saved).status, seen(again)), (200, before))
    wrong = json.loads(json.dumps(saved))
    wrong["made_of"]["seed"] += 1
    j.equal("another sandbox's state is refused", again.knob("PUT", "/state", wrong).status, 400)
    newer = again.knob("PUT", "/state", {"format": 99, "saved_by": "9.9.9"})
    j.check("a later version's state is refused with what to do", newer.status == 400 and "9.9.9" in newer.body["detail"], newer)
    j.equal("it stops", again.stop(), 0)

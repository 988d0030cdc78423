"""History and billing: the three streams of records, their order, ranges, limits and pages."""

from client import CONNECTION_KINDS, LEDGER, MILLI, NANO


def history(s, j):
    page = j.status("GET history: 200", s.get("/history?desc=false&limit=5&offset=2"), 200)
    j.equal("{events, hasMoreEvents, nextOffset}", (sorted(page), page["nextOffset"], len(page["events"])), (["events", "hasMoreEvents", "nextOffset"], 7, 5))
    for path, name in (("/history", "events"), ("/history/devices", "deviceEvents")):
        walked, offset = [], 0
        while True:
            page = s.get(f"{path}?desc=false&limit=1001&offset={offset}").body
            walked += page[name]
            if not page["hasMoreEvents"]:
                break
            offset = page["nextOffset"]
        j.check(f"{path}: the whole, and no nextOffset at its end", len(walked) > 1_000 and "nextOffset" not in page, len(walked))
        time = (lambda event: event["header"]["eventTimestampUnixNano"]) if name == "events" else lambda event: event["timestamp"]
        unit = NANO if name == "events" else MILLI
        times = [time(event) for event in walked]
        j.check(f"{path}: desc false is oldest first", times == sorted(times))
        newest = s.get(f"{path}?desc=true&limit=7").body[name]
        j.equal(f"{path}: desc true is newest first", newest, walked[::-1][:7])
        for spelt in ("True", "TRUE", "1"):
            j.equal(f"{path}: desc={spelt}", s.get(f"{path}?desc={spelt}&limit=7").body[name], newest)
        second = times[-1] // unit
        ranged = s.get(f"{path}?desc=false&limit=1001&startTime={second}&stopTime={second}").body[name]
        j.equal(f"{path}: startTime and stopTime inclusive, in seconds", ranged, [event for event in walked if time(event) // unit == second])
        j.equal(f"{path}: nothing found", s.get(f"{path}?stopTime=5").body[name], [])
        j.equal(f"{path}: an offset past the end", s.get(f"{path}?offset=99999999").body[name], [])
        j.equal(f"{path}: limit up to 1001", (s.get(f"{path}?limit=1001").status, s.get(f"{path}?limit=1002").status), (200, 400))
    connections(s, j, walked)
    events = s.get("/history?limit=1001").body["events"]
    wrong = [event for event in events if len(event) != 2 or "header" not in event]
    j.equal("activity: header and exactly one further field", wrong, [])
    ledger = j.status("GET billing/events: 200", s.get("/billing/events"), 200)
    j.shape("billing ledger", LEDGER, ledger)
    times = [entry["timestamp"] for entry in ledger["events"]]
    j.check("the 10 most recent, newest first, in seconds", len(times) == 10 and times == sorted(times)[::-1] and times[0] < 10**10, times)
    j.check("event: one field naming the type; teamid", all(len(entry["event"]) == 1 and entry["teamid"] == s.team for entry in ledger["events"]))


def connections(s, j, walked):
    one, two = sorted({event["deviceID"] for event in walked})[:2]
    of = lambda ids: [event for event in walked if event["deviceID"] in ids]
    wrong = {"connection details": [], "reason only on authFailedEvent": [],
             "authentication is of fluid": [], "id, timestamp, deviceID, computerHostName and exactly one of the event fields": []}
    for event in walked:
        kinds = [kind for kind in CONNECTION_KINDS if kind in event]
        if set(event) - set(CONNECTION_KINDS) != {"id", "timestamp", "deviceID", "computerHostName"} or len(kinds) != 1:
            wrong["id, timestamp, deviceID, computerHostName and exactly one of the event fields"].append(event)
            continue
        kind = kinds[0]
        inner = event[kind] if kind.startswith("incoming") else event[kind]["associatedIncomingConnectionEvent"]
        is_right = (inner["tunnelID"] in ("fluid", "rdp", "vnc", "unknown") and "connectionID" in inner
                    and inner["sourceType"] in ("cloud", "directip", "unknown") and set(inner["peerInfo"]) == {"email", "ipAddress"},
                    ("reason" in event[kind]) == (kind == "authFailedEvent"), not kind.startswith("auth") or inner["tunnelID"] == "fluid")
        for row, right in zip(list(wrong), is_right):
            wrong[row] += [] if right else [event]
    for row, events in wrong.items():
        j.equal(row, events, [])
    both = s.get(f"/history/devices?desc=false&limit=1001&ids={one}&ids={two}").body["deviceEvents"]
    j.equal("ids: once per computer", both, of({one, two})[:1001])
    j.equal("ids: unknown", s.get("/history/devices?ids=none").body["deviceEvents"], [])
    old, offset = [], 0
    while True:
        page = s.get(f"/device/{one}/history?limit=100&offset={offset}").body
        if list(page) != ["events"] or not page["events"]:
            break
        old += page["events"]
        offset += len(page["events"])
    j.equal("deprecated: {events}, walked until empty", page, {"events": []})
    bare = [{name: value for name, value in event.items() if name != "deviceID"} for event in of({one})]
    j.equal("deprecated: the same without deviceID, desc defaults to false", old, bare)
    j.equal("deprecated: limit up to 100", s.get(f"/device/{one}/history?limit=101").status, 400)

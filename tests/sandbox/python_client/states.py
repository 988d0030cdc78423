"""States and transitions, authentication, events, errors, and people on several teams."""

from client import DAY, connection_kind, kind_of


def error_bodies(s, j):
    for row, answer in (("404", s.get("/device/none")), ("400", s.v1("POST", "/group", {})), ("401", s.get("", token="wrong")),
                        ("403", s.v1("POST", "/group", {"name": "x"}, token=s.reader)), ("405", s.v1("PUT", "/devices", {})),
                        ("no path", s.ask("GET", "/v1/nothing")), ("no JSON", s.v1("POST", "/group", raw=b"{", headers={"Content-Type": "application/json"})),
                        ("no UTF-8", s.get("/device/%FF")), ("another media type", s.v1("POST", "/group", raw=b"name=x"))):
        j.check(f"any non-2xx response carries a body: {row}", answer.status >= 400 and isinstance(answer.code, str), answer)


def authentication(s, j):
    j.status("1: no token", s.ask("GET", "/v1/user/teams", headers={"Authorization": None}), 401)
    for wrong in ("Basic " + s.admin, s.admin, "Bearer", "Bearer  "):
        j.status(f"1: {wrong[:8]}", s.ask("GET", "/v1/user/teams", headers={"Authorization": wrong}), 401)
    users = s.get("/users").body["users"]
    of = lambda role: next(user["id"] for user in users if user["role"] == role)
    admin, auditor, plain = of("admin"), of("admin-read-only"), of("user")
    tokens = {"a read-only token": s.reader, "an admin's read-only token": s.token_of(admin, True), "an Admin (Read-Only) user": s.token_of(auditor)}
    for name, token in tokens.items():
        for path in ("", "/devices", "/users", "/history", "/history/devices", "/billing/events"):
            j.equal(f"3: {name} may GET {path}", s.get(path, token=token).status, 200)
        for method, path, body in (("POST", "/group", {"name": "x"}), ("PUT", "/device/x/members", {}), ("PATCH", "/device/x", {"name": "x"}),
                                   ("DELETE", "/device/x", None), ("PATCH", "/device/members", {})):
            j.equal(f"3: {name} may not {method}", s.v1(method, path, body, token=token).status, 403)
    member = s.token_of(plain)
    for token in (member, s.member):
        j.equal("4: limited view", sorted(s.get("", token=token).body), ["avatarURL", "id", "name"])
    j.equal("4: no change by a member", s.v1("POST", "/group", {"name": "x"}, token=member).status, 403)
    log = s.get(f"/user/{plain}/info").body["tokenLog"][-1]
    j.check("tokenLog: title, scopes, lastUsed, lastUsedIPAddress", log.get("lastUsed") == s.seconds() and log.get("lastUsedIPAddress") == "127.0.0.1", log)
    j.equal("5: SSO list by an Admin (Read-Only) user", s.get("/saml/users", token=tokens["an Admin (Read-Only) user"]).status, 403)
    secret = s.v1("POST", "/invite/user", {"sendTo": "pw@people.example"}).body["secret"]
    password = s.own("POST", "/join", {"secret": secret}).body["id"]
    s.v1("PATCH", f"/user/{password}", {"role": "admin"})
    token = s.token_of(password)
    j.equal("5: an admin who does not sign in with SSO", (s.get("/saml/users", token=token).status, s.v1("POST", "/users/x", token=token).status), (403, 403))
    j.equal("an admin's token may change", s.v1("POST", "/group", {"name": "by pw"}, token=token).status, 201)
    told = s.told()[0]
    j.equal("tokenInfo: who made the change", (told["header"]["tokenInfo"]["userID"], told["header"]["tokenInfo"]["email"]), (password, "pw@people.example"))
    j.equal("another team", s.get("", token=token, team=s.teams[1]).status, 403)
    s.v1("DELETE", f"/user/{password}")
    j.equal("of nobody on a team", s.get("", token=token).status, 401)


def remote_access(s, j):
    person = s.newcomer("moves@people.example")["id"]
    device = s.computer("moves-1", users=[person])["id"]
    path = f"/user/{person}"
    session = s.own("POST", f"/device/{device}/connect", {"userID": person, "open": True}).body
    off = s.v1("PATCH", path, {"remoteAccess": "disabled"})
    j.equal("enabled -> disabled", (off.status, off.body["remoteAccess"]), (201, "disabled"))
    last = s.get(f"/history/devices?desc=true&limit=1&ids={device}").body["deviceEvents"][0]
    closed = last.get("connectionClosedEvent", {}).get("associatedIncomingConnectionEvent", {})
    j.equal("the active sessions are disconnected", closed.get("connectionID"), session["connectionID"])
    j.equal("billing", list(s.billed()[0]["event"]), ["userCountUpdatedEvent"])
    j.equal("may not connect", s.own("POST", f"/device/{device}/connect", {"userID": person}).status, 403)
    enabled = sum(user["remoteAccess"] == "enabled" for user in s.get("/users").body["users"])
    s.own("PATCH", "/plan", {"licensedUsers": enabled})
    j.status("disabled -> enabled over the licence", s.v1("PATCH", path, {"remoteAccess": "enabled"}), 400, "active-users-exceed-licensed-quanity")
    s.own("PATCH", "/plan", {"licensedUsers": enabled + 1})
    j.equal("disabled -> enabled", s.v1("PATCH", path, {"remoteAccess": "enabled"}).body["remoteAccess"], "enabled")
    s.own("PATCH", "/plan", {"licensedUsers": 99})
    for role in ("admin", "admin-read-only", "user"):
        j.equal(f"role -> {role}", s.v1("PATCH", path, {"role": role}).body["role"], role)


def removal(s, j):
    person = s.newcomer("leaves@people.example")
    device = s.computer("leaves-1", users=[person["id"]])["id"]
    group = s.v1("POST", "/group", {"name": "left"}).body["id"]
    s.v1("POST", f"/group/{group}/members", {"users": [person["id"]]})
    session = s.own("POST", f"/device/{device}/connect", {"userID": person["id"], "open": True}).body
    s.v1("DELETE", f"/user/{person['id']}")
    j.check("all access lost, out of all groups", person["id"] not in s.get("").raw.decode())
    last = s.get(f"/history/devices?desc=true&limit=1&ids={device}").body["deviceEvents"][0]
    j.check("sessions disconnected", session["connectionID"] in str(last.get("connectionClosedEvent")), last)
    j.equal("told, and billed", (kind_of(s.told()[0]), list(s.billed()[0]["event"])), ("teamUserRemovedEvent", ["usersRemovedEvent"]))
    j.equal("the user's account is unaffected: the same person comes back", s.newcomer("LEAVES@people.example")["id"], person["id"])


def guards(s, j):
    """Removes the people of the last team."""
    team = s.teams[-1]
    users = s.get("/users", team=team).body["users"]
    admin = next(user for user in users if user["role"] == "admin" and user["remoteAccess"] == "enabled")["id"]
    for user in users:
        if user["id"] != admin:
            j.equal("members but the last", s.v1("DELETE", f"/user/{user['id']}", team=team).status, 200)
    path = f"/user/{admin}"
    j.status("DELETE of the last admin", s.v1("DELETE", path, team=team), 400, "team-requires-admin")
    for role in ("user", "admin-read-only"):
        j.status(f"the last admin to {role}", s.v1("PATCH", path, {"role": role}, team=team), 400, "team-requires-admin")
    j.status("the last active user", s.v1("PATCH", path, {"remoteAccess": "disabled"}, team=team), 400, "team-requires-active-user")
    other = s.newcomer("other@people.example", team=team)["id"]
    s.v1("PATCH", f"/user/{other}", {"role": "admin", "remoteAccess": "disabled"}, team=team)
    j.status("DELETE of the last with remote access on", s.v1("DELETE", path, team=team), 400, "team-requires-active-user")
    s.v1("PATCH", f"/user/{other}", {"remoteAccess": "enabled"}, team=team)
    j.equal("another is there", s.v1("DELETE", path, team=team).status, 200)
    off = lambda: s.v1("PATCH", f"/user/{other}", {"remoteAccess": "disabled"}, team=team).code
    first = off()
    s.choose(admin_needs_access="always")
    j.equal("admin_needs_access", (first, off()), ("team-requires-active-user", "team-requires-admin"))
    s.choose(admin_needs_access="when_changed")
    s.newcomer("third@people.example", team=team)
    j.equal("the last admin's remote access, while others have it", off(), "team-requires-admin")
    s.choose(admin_needs_access="never")
    j.equal("admin_needs_access never", off(), None)
    s.choose(admin_needs_access="when_changed")


def two_factor(s, j):
    person = s.newcomer("totp@people.example", totpEnabled=True)
    path, other = f"/user/{person['id']}", s.teams[1]
    j.equal("one account on two teams", s.newcomer("totp@people.example", team=other)["id"], person["id"])
    on = lambda team: s.get(f"{path}/info", team=team).body["totp"]["enabled"]
    s.own("PATCH", "/plan", {"enterprise": False})
    j.check("a Teams Enterprise feature", s.v1("POST", f"{path}/removetotp").status >= 400)
    s.own("PATCH", "/plan", {"enterprise": True})
    for follow_after, is_off in ((DAY, False), (DAY - 1, True)):
        j.equal("POST removetotp: 200 OK", s.v1("POST", f"{path}/removetotp").status, 200)
        j.equal("unchanged until the link is followed", (on(s.team), on(other)), (True, True))
        mail = s.own("GET", "/mail").body["mail"][-1]
        j.equal("it emails the user a link", (mail["to"], mail["expiresAt"] - mail["sentAt"]), ("totp@people.example", DAY))
        s.advance(follow_after)
        followed = s.own("POST", "/confirm", {"secret": mail["secret"]})
        j.equal(f"followed after {follow_after} s", followed.status, 200 if is_off else 404)
    j.equal("off for the user's whole account", (on(s.team), on(other)), (False, False))
    for team in (s.team, other):
        told = s.told(team=team)[0]
        j.equal("told on both teams, by the person", (kind_of(told), told["header"]["tokenInfo"]["userID"]), ("teamUserTotpRemovedEvent", person["id"]))
    j.status("totp-not-enabled: without 2FA", s.v1("POST", f"{path}/removetotp"), 400, "totp-not-enabled")
    s.own("POST", "/sso", {"email": "ssoonly@people.example", "totpEnabled": True})
    only = next(user for user in s.get("/saml/users").body if user["email"] == "ssoonly@people.example")["id"]
    s.v1("POST", f"/users/{only}")
    j.status("totp-not-enabled: SSO only", s.v1("POST", f"/user/{only}/removetotp"), 400, "totp-not-enabled")


def shared_sso(s, j):
    mine, owner = s.team, s.teams[1]
    far = s.own("POST", "/sso", {"email": "far@people.example"}, team=owner).body
    member = next(user for user in s.get("/saml/users", team=owner).body if user["id"] != far["id"])
    ids = lambda: {user["id"] for user in s.get("/saml/users").body}
    j.check("not shared", far["id"] not in ids() and s.v1("POST", f"/users/{far['id']}").status == 404)
    j.status("an owner that is no team", s.own("PATCH", "/plan", {"ssoOwner": "nowhere"}), 404)
    s.own("PATCH", "/plan", {"ssoOwner": owner})
    j.check("the team that owns the connection shares its people", {far["id"], member["id"]} <= ids(), ids())
    j.check("each once", len(ids()) == len(s.get("/saml/users").body))
    boss = next(user for user in s.get("/users").body["users"] if user["role"] == "admin" and "saml" in user["authProviders"])
    token = s.token_of(boss["id"])
    j.equal("5: admin of this team alone", s.get("/saml/users", token=token).status, 403)
    invite = s.v1("POST", "/invite/user", {"sendTo": boss["email"]}, team=owner).body
    j.equal("the same person there", s.own("POST", "/join", {"secret": invite["secret"]}, team=owner).body["id"], boss["id"])
    j.equal("5: member there", s.get("/saml/users", token=token).status, 403)
    j.equal("the limited view there", sorted(s.get("", token=token, team=owner).body), ["avatarURL", "id", "name"])
    s.v1("PATCH", f"/user/{boss['id']}", {"role": "admin"}, team=owner)
    j.equal("5: admin of both", s.get("/saml/users", token=token).status, 200)
    j.equal("GET /v1/user/teams: both", s.ask("GET", "/v1/user/teams", token=token).body, [mine, owner])
    for user in (far["id"], member["id"]):
        j.equal("SSO add by an admin of both", s.v1("POST", f"/users/{user}", token=token).status, 200)
    j.check("on both teams", member["id"] in s.get("").body["users"] and member["id"] in s.get("", team=owner).body["users"])
    s.v1("DELETE", f"/user/{member['id']}")
    j.check("other teams are unaffected", member["id"] in s.get("", team=owner).body["users"])
    s.own("PATCH", "/plan", {"ssoOwner": ""})


def computer_removed(s, j):
    person = s.newcomer("rem@people.example")["id"]
    seeded = s.get("/devices").body["devices"][6]["id"]
    for device in (s.computer("rem-1", users=[person])["id"], seeded):
        s.v1("POST", f"/device/{device}/members", {"users": [person]})
        s.own("POST", f"/device/{device}/connect", {"userID": person, "seconds": 5})
        events = s.get(f"/history/devices?desc=true&limit=5&ids={device}").body["deviceEvents"][::-1]
        five = ["incomingConnectionRequest", "incomingConnectionEvent", "authFailedEvent", "authSucceededEvent", "connectionClosedEvent"]
        j.equal("the five connection events", [connection_kind(event) for event in events], five)
        inner = [event[kind].get("associatedIncomingConnectionEvent", event[kind])["connectionID"] for event, kind in zip(events, five)]
        j.equal("connectionID ties them together", len(set(inner)), 1)
        j.check("host and computer", all(event["deviceID"] == device and "computerHostName" in event for event in events))
        s.v1("DELETE", f"/device/{device}")
        j.equal("its connection history is deleted", s.get(f"/history/devices?ids={device}").body["deviceEvents"], [])
        j.equal("told", kind_of(s.told()[0]), "teamDeviceRemovedEvent")


def every_change_makes_an_event(s, j):
    """Each change through the API makes exactly its activity event with its author; a change without cost makes no billing entry."""
    person = s.newcomer("told@people.example")["id"]
    device, group = s.computer("told-1")["id"], s.v1("POST", "/group", {"name": "told"}).body["id"]
    boss = next(user for user in s.get("/users").body["users"] if user["role"] == "admin")
    token = s.token_of(boss["id"])
    installer, invite = s.v1("POST", "/invite/device", {}).body, s.v1("POST", "/invite/user", {}).body
    note, keys = {"annotations": [{"key": "k", "value": "v"}]}, {"annotationKeys": ["k"]}
    d, u, g = f"/device/{device}", f"/user/{person}", f"/group/{group}"
    rows = [("PATCH", d, {"name": "n"}, 0), ("POST", f"{d}/annotations", note, 0), ("POST", f"{d}/annotations/delete", keys, 0),
            ("PUT", f"{d}/members", {"users": [person]}, 0), ("POST", f"{d}/members", {"groups": [group]}, 0),
            ("POST", f"{d}/members/delete", {"groups": [group]}, 0), ("PATCH", "/device/members", {"devices": [device], "groups": [group]}, 0),
            ("PATCH", "/device/members/delete", {"devices": [device], "groups": [group]}, 0), ("POST", "/invite/device", {}, 0),
            ("DELETE", f"/invite/device/{installer['id']}", None, 0), ("POST", "/invite/user", {}, 0),
            ("DELETE", f"/invite/user/{invite['secret']}", None, 0), ("PATCH", u, {"role": "admin-read-only"}, 0),
            ("PATCH", u, {"remoteAccess": "disabled"}, 1), ("PATCH", u, {"remoteAccess": "enabled"}, 1),
            ("POST", f"{u}/annotations", note, 0), ("POST", f"{u}/annotations/delete", keys, 0), ("POST", "/group", {"name": "more"}, 0),
            ("PATCH", g, {"name": "n"}, 0), ("POST", f"{g}/members", {"users": [person]}, 0), ("POST", f"{g}/members/delete", {"users": [person]}, 0),
            ("PATCH", "/group/members", {"groups": [group], "users": [person]}, 0),
            ("PATCH", "/group/members/remove", {"groups": [group], "users": [person]}, 0), ("POST", f"{g}/annotations", note, 0),
            ("POST", f"{g}/annotations/delete", keys, 0), ("DELETE", u, None, 1), ("DELETE", g, None, 0), ("DELETE", d, None, 0)]
    for method, path, body, bills in rows:
        s.advance(1)
        now, ledger = s.seconds(), [entry["id"] for entry in s.billed()]
        answer = s.v1(method, path, body, token=token)
        told = s.get(f"/history?startTime={now}&stopTime={now}").body["events"]
        j.check(f"{method} {path.replace(device, 'D').replace(person, 'U').replace(group, 'G')}: told once, by whom",
                answer.status < 300 and len(told) == 1 and told[0]["header"]["tokenInfo"]["email"] == boss["email"]
                and told[0]["header"]["eventTimestampUnixNano"] // 10**9 == now, (answer, told))
        j.equal(f"{method} {path[:12]}: billed", len([entry for entry in s.billed() if entry["id"] not in ledger]), bills)
    before = s.told()
    for method, path, body in (("PATCH", "/device/none", {"name": "x"}), ("POST", "/group", {}), ("GET", "/devices", None)):
        s.v1(method, path, body)
    j.equal("refused requests and reads make no event", s.told(), before)

"""Every row of the tables under "Endpoints" except the last, and the rules below them."""

from urllib.parse import quote, unquote

from client import ANNOTATION, AUTH_INFO, COMPUTER, GROUP, GROUP_IN_TEAM, INSTALLER, INVITE, SSO_USER, TEAM, URLS, USER, kind_of


def team(s, j):
    teams = s.ask("GET", "/v1/user/teams")
    j.check("GET /v1/user/teams: 200 array of team ID strings", teams.status == 200 and teams.body == s.teams, teams)
    seen = j.status("GET team: 200", s.get(""), 200)
    j.shape("Team fields", TEAM, seen)
    for name in ("id", "name", "avatarURL", "createdAt", "billing", "deviceInvites", "devices", "groups", "planFeatures",
                 "saml", "security", "userInvites", "users"):
        j.check(f"Team.{name} is there", name in seen)
    millis = next(iter(seen["createdAt"].values()))
    j.check("Team.createdAt in milliseconds", 10**12 < millis < 10**13, millis)
    for identifier, value in seen["devices"].items():
        j.shape("Team.devices: map of computers", COMPUTER, value)
        j.equal("Team.devices: key", value["id"], identifier)
    for identifier, value in seen["users"].items():
        j.shape("Team.users: map of users", USER, value)
        j.equal("Team.users: key", value["id"], identifier)
    for value in seen["groups"].values():
        j.shape("Team.groups: map", GROUP_IN_TEAM, value)
    span = seen["planFeatures"]["deviceEventsMaxRetrievalDuration"]
    j.check("planFeatures.deviceEventsMaxRetrievalDuration in seconds", type(span) is int and span % 86_400 == 0, span)
    j.check("User.avatarURL is there for some", any("avatarURL" in user for user in seen["users"].values()))
    j.check("and left out for others", not all("avatarURL" in user for user in seen["users"].values()))
    j.status("an unknown team", s.get("", team="nowhere"), 404)
    schedule = s.own("PUT", "/deletion", {"inSeconds": 3_600})
    j.check("Team.deleteSchedule", schedule.status == 200 and s.get("").body.get("deleteSchedule") == schedule.body, schedule)
    s.own("PUT", "/deletion", {})
    j.check("Team.deleteSchedule is left out when there is none", "deleteSchedule" not in s.get("").body)
    user = next(iter(seen["users"]))
    moving = s.own("PUT", f"/user/{user}/migration", {"devices": ["mine-1"]})
    after = s.get("").body
    j.check("Team.userDeviceMigrate", after.get("userDeviceMigrate") == [moving.body], after.get("userDeviceMigrate"))
    j.equal("User.userDeviceMigrate", after["users"][user].get("userDeviceMigrate"), moving.body)
    listed = [held for held in s.get("/saml/users").body if held["id"] == user]
    j.equal("SSO user.userDeviceMigrate", [held.get("userDeviceMigrate") for held in listed], [moving.body] * len(listed))
    s.own("PUT", f"/user/{user}/migration", {})
    j.check("and left out when over", "userDeviceMigrate" not in s.get("").body)


def computers(s, j):
    listed = j.status("GET devices: 200", s.get("/devices"), 200)
    j.shape("GET devices: {devices: [Computer]}", {"*devices": [COMPUTER]}, listed)
    j.equal("GET devices: empty array when none match", s.get("/devices?name=none%20of%20them").body, {"devices": []})
    one = listed["devices"][0]
    path = f"/device/{one['id']}"
    j.equal("GET device: 200 Computer", s.get(path).body, one)
    renamed = s.v1("PATCH", path, {"name": "Edit 7 & Ütz"})
    j.check("PATCH device: 200 {id, name}", renamed.status == 200 and renamed.body == {"id": one["id"], "name": "Edit 7 & Ütz"}, renamed)
    for form, text, found in (("exact", "edit 7 & ütz", True), ("exact, part", "Edit 7", False), ("prefix", "EDIT 7*", True),
                              ("prefix, middle", "7 &*", False), ("both ends", "*7 & ü*", True), ("both ends, else", "*zzz*", False)):
        names = [seen["id"] for seen in s.get(f"/devices?name={quote(text)}").body["devices"]]
        j.equal(f"name filter, {form}: {text}", one["id"] in names, found)
    j.equal("name up to 64 characters", s.v1("PATCH", path, {"name": "ü" * 64}).status, 200)
    j.equal("name of 65 characters", s.v1("PATCH", path, {"name": "u" * 65}).status, 400)
    j.equal("the only changeable field", (s.v1("PATCH", path, {"name": "n", "users": []}).status, s.get(path).body.get("users")),
            (200, one.get("users")))
    j.equal("PATCH without a name", s.v1("PATCH", path, {}).status, 400)
    urls = j.status("GET urls: 200", s.get(f"{path}/urls"), 200)
    j.shape("Launch URLs", URLS, urls)
    other = "Other + 7/ü & Co"
    s.v1("PATCH", path, {"name": other})
    again = s.get(f"{path}/urls").body
    for link in ("connect", "askScreenShare"):
        scheme = again[link].split(":")[0]
        j.check(f"{link}: a custom scheme", scheme not in ("http", "https"), again[link])
        j.check(f"{link}: the current name", other in unquote(again[link]) and "Other" not in urls[link], again[link])
    for method, body in (("GET", None), ("PATCH", {"name": "x"}), ("DELETE", None)):
        j.status(f"{method} of a computer not on the team", s.v1(method, "/device/none", body), 404)
    for suffix in ("/urls", "/annotations", "/history"):
        j.status(f"GET {suffix} of a computer not on the team", s.get(f"/device/none{suffix}"), 404)
    before = s.get(path).body.get("lastOnlineAt")
    s.advance(60)
    installed = s.computer("conn-1", users=[s.get("/users").body["users"][0]["id"]])
    s.advance(60)
    s.own("POST", f"/device/{installed['id']}/connect", {})
    j.equal("lastOnlineAt: not changed by a person who connects", s.get(f"/device/{installed['id']}").body["lastOnlineAt"],
            installed["lastOnlineAt"])
    s.own("POST", f"/device/{installed['id']}/online")
    j.equal("lastOnlineAt: changed when the computer connects to the cloud", s.get(f"/device/{installed['id']}").body["lastOnlineAt"],
            s.seconds())
    j.equal("lastOnlineAt of others stays", s.get(path).body.get("lastOnlineAt"), before)
    gone = s.v1("DELETE", path)
    j.check("DELETE device: 200 OK", gone.status == 200, gone)
    j.status("removal is immediate", s.get(path), 404)
    j.status("and once", s.v1("DELETE", path), 404)
    j.check("not in the list", one["id"] not in [seen["id"] for seen in s.get("/devices").body["devices"]])
    j.check("not in the team", one["id"] not in s.get("").raw.decode())


def annotations(s, j):
    device, user = s.get("/devices").body["devices"][1]["id"], s.get("/users").body["users"][2]["id"]
    group = s.v1("POST", "/group", {"name": "noted"}).body["id"]
    for what, path, done in (("computer", f"/device/{device}", 200), ("user", f"/user/{user}", 201), ("group", f"/group/{group}", 200)):
        notes = f"{path}/annotations"
        keys = [held["key"] for held in s.get(notes).body["annotations"]]
        s.v1("POST", f"{notes}/delete", {"annotationKeys": keys})
        j.equal(f"{what}: an empty list", s.get(notes).body, {"annotations": []})
        sent = {"annotations": [{"key": "tag", "value": "a,b"}, {"key": "k" * 64, "value": "v" * 2048}]}
        written = s.v1("POST", notes, sent)
        j.check(f"{what}: POST annotations: 201 {{annotations}}", written.status == 201 and written.body == sent, written)
        j.shape(f"{what}: annotation fields", {"*annotations": [ANNOTATION]}, written.body)
        j.equal(f"{what}: GET annotations: 200", (s.get(notes).status, s.get(notes).body), (200, sent))
        s.v1("POST", notes, {"annotations": [{"key": "tag", "value": "c"}]})
        held = {note["key"]: note["value"] for note in s.get(notes).body["annotations"]}
        j.equal(f"{what}: writing tag replaces all tags, other keys stay", held, {"tag": "c", "k" * 64: "v" * 2048})
        for wrong in ([{"key": "", "value": "x"}], [{"key": "k" * 65, "value": "x"}], [{"key": "k", "value": "v" * 2049}], [{"value": "x"}]):
            j.equal(f"{what}: lengths", s.v1("POST", notes, {"annotations": wrong}).status, 400)
        s.own("PATCH", "/plan", {"annotations": 3})
        j.equal(f"{what}: up to the limit", s.v1("POST", notes, {"annotations": [{"key": "third", "value": "3"}]}).status, 201)
        over = s.v1("POST", notes, {"annotations": [{"key": "fourth", "value": "4"}, {"key": "tag", "value": "z"}]})
        j.status(f"{what}: team-too-many-annotations", over, 400, "team-too-many-annotations")
        held = {note["key"]: note["value"] for note in s.get(notes).body["annotations"]}
        j.equal(f"{what}: refused whole", (held["tag"], len(held)), ("c", 3))
        j.equal(f"{what}: existing keys at the limit", s.v1("POST", notes, {"annotations": [{"key": "tag", "value": "y"}]}).status, 201)
        s.own("PATCH", "/plan", {"annotations": 50})
        gone = s.v1("POST", f"{notes}/delete", {"annotationKeys": ["tag", "third", "never"]})
        left = {"annotations": [{"key": "k" * 64, "value": "v" * 2048}]}
        j.equal(f"{what}: POST annotations/delete: {done}", gone.status, done)
        if what == "user":
            j.equal("user: delete answers {annotations}", gone.body, left)
        j.equal(f"{what}: the others stay", s.get(notes).body, left)
        j.status(f"{what}: unknown", s.get(notes.replace(path.split('/')[-1], 'none')), 404)


def access(s, j):
    one, two = [seen["id"] for seen in s.get("/devices").body["devices"][2:4]]
    ann, bob = [seen["id"] for seen in s.get("/users").body["users"][1:3]]
    group = s.v1("POST", "/group", {"name": "access"}).body["id"]
    path = f"/device/{one}/members"

    def held(device=one):
        seen = s.get(f"/device/{device}").body
        return seen.get("users", []), seen.get("groups", [])

    def sent(method, path, body, row, status):
        answer = s.v1(method, path, body)
        j.equal(row, answer.status, status)
        return answer.body

    sent("PUT", path, {"users": [ann], "groups": [group]}, "PUT members: 201", 201)
    j.equal("rule 1: exactly the lists sent", held(), ([ann], [group]))
    sent("PUT", path, {"groups": [group]}, "PUT with users omitted", 201)
    j.equal("rule 1: an omitted list removes everyone of that type", held(), ([], [group]))
    sent("PUT", path, {"users": [bob], "groups": []}, "PUT with an empty list", 201)
    j.equal("rule 1: an empty list too", held(), ([bob], []))
    sent("POST", path, {"users": [ann, ann]}, "POST members: 201", 201)
    j.equal("rule 2: adds without removing", held(), ([bob, ann], []))
    sent("POST", f"{path}/delete", {"users": [bob], "groups": [group]}, "POST members/delete: 201", 201)
    j.equal("rule 2: removes only the listed", held(), ([ann], []))
    sent("PUT", path, {}, "all are optional", 201)
    for method, tail in (("PUT", ""), ("POST", ""), ("POST", "/delete")):
        j.status(f"{method} members{tail}: unknown computer", s.v1(method, f"/device/none/members{tail}", {"users": [ann]}), 404)
        j.status(f"{method} members{tail}: unknown user", s.v1(method, f"{path}{tail}", {"users": [ann, "none"]}), 404)
    j.equal("nothing is done then", held(), ([], []))
    done = sent("PATCH", "/device/members", {"devices": [one, two], "users": [ann], "groups": [group]}, "PATCH device/members: 200", 200)
    j.equal("rule 3: errors is omitted when none failed", done, {"devices": [one, two], "users": [ann]})
    j.check("both have it", ann in held(one)[0] and ann in held(two)[0] and group in held(two)[1])
    done = sent("PATCH", "/device/members", {"devices": [one, "none"], "users": [bob]}, "rule 3: 200 even when some fail", 200)
    j.check("rule 3: errors lists each failed computer", len(done["errors"]) == 1 and "none" in str(done["errors"]) and bob in held()[0], done)
    done = sent("PATCH", "/device/members/delete", {"devices": [one, two], "users": [ann, bob], "groups": [group]},
                "PATCH device/members/delete: 200", 200)
    j.equal("PATCH device/members/delete", (done, held(), group in held(two)[1]), ({"devices": [one, two], "users": [ann, bob]}, ([], []), False))
    j.equal("of no computer", sent("PATCH", "/device/members", {}, "bulk: all lists are optional", 200), {})
    done = sent("PATCH", "/device/members/delete", {"devices": ["none"], "users": [ann]}, "all failed", 200)
    j.check("all failed: one error, no devices", len(done["errors"]) == 1 and not done.get("devices"), done)
    config = s.own("POST", "/config", {"name": "quiet", "groups": [group], "devices": [two]}).body
    assigned = lambda: next(held for held in s.get("").body["deviceConfigs"] if config["id"] in held.values()).get("devices")
    own = s.own("POST", "/config", {"name": "own", "devices": [one]}).body
    of_one = lambda: next(held for held in s.get("").body["deviceConfigs"] if own["id"] in held.values()).get("devices")
    j.equal("a configuration of a computer's own", (of_one(), assigned()), ([one], [two]))
    s.v1("POST", path, {"groups": [group]})
    j.equal("rule 4: a group with a configuration clears the computer's own", (of_one(), assigned()), (None, [two]))


def installers(s, j):
    ann, group = s.get("/users").body["users"][1]["id"], s.v1("POST", "/group", {"name": "installed"}).body["id"]
    body = {"name": "studio", "users": [ann], "groups": [group], "expirySecs": 600, "singleUse": True, "requireAuthentication": True}
    made = j.status("POST invite/device: 201", s.v1("POST", "/invite/device", body), 201)
    j.shape("Computer installer", INSTALLER, made)
    j.equal("as sent", [made[name] for name in ("name", "users", "groups", "requireAuthentication")], ["studio", [ann], [group], True])
    j.equal("connectDownloads", sorted(made["connectDownloads"]), ["macpkg", "winexe", "winmsi"])
    j.equal("expirySecs", made["expiresAt"] - made["createdAt"], 600)
    j.check("all installers of the team", made in s.get("").body["deviceInvites"])
    plain = j.status("all are optional", s.v1("POST", "/invite/device", {}), 201)
    j.check("omitted or 0: no expiry", "expiresAt" not in plain and "expiresAt" not in s.v1("POST", "/invite/device", {"expirySecs": 0}).body)
    for wrong in ({"name": "n" * 65}, {"expirySecs": -1}, {"expirySecs": "60"}, {"singleUse": "yes"}, {"users": ann}):
        j.equal(f"refused: {str(wrong)[:30]}", s.v1("POST", "/invite/device", wrong).status, 400)
    j.status("unknown group", s.v1("POST", "/invite/device", {"groups": ["none"]}), 404)
    run = {"secret": made["secret"], "name": "added-1"}
    j.equal("requireAuthentication: not unattended", s.own("POST", "/install", run).status, 403)
    added = s.own("POST", "/install", {**run, "userID": ann})
    j.equal("users and groups of each computer added", (added.body.get("users"), added.body.get("groups")), ([ann], [group]))
    j.equal("singleUse: adds only one computer", s.own("POST", "/install", {**run, "userID": ann}).status, 404)
    config = s.own("POST", "/config", {"name": "kiosk", "installers": [plain["id"]]}).body
    shown = next(held for held in s.get("").body["deviceInvites"] if held["id"] == plain["id"])
    j.check("deviceConfigID", config["id"] in shown.get("deviceConfigID", {}).values(), shown)
    j.shape("Computer installer with a configuration", INSTALLER, shown)
    with_config = s.own("POST", "/install", {"secret": plain["secret"], "name": "kiosk-1"}).body
    configured = next(held for held in s.get("").body["deviceConfigs"] if held.get("id") == config["id"])
    j.equal("deviceConfigID: applied to computers added with it", configured.get("devices"), [with_config["id"]])
    path = f"/invite/device/{plain['id']}"
    j.status("DELETE invite/device: 201", s.v1("DELETE", path), 201)
    j.status("unknown: 404 invite-not-found", s.v1("DELETE", path), 404, "invite-not-found")
    j.equal("connection code stops working", s.own("POST", "/install", {"secret": plain["secret"], "name": "x"}).status, 404)
    j.status("computers already added stay", s.get(f"/device/{with_config['id']}"), 200)
    count = len(s.get("").body["deviceInvites"])
    s.own("PATCH", "/plan", {"installers": count})
    j.status("invite-limit-reached: 400", s.v1("POST", "/invite/device", {}), 400, "invite-limit-reached")
    s.own("PATCH", "/plan", {"installers": count + 1})
    short = j.status("one below the limit", s.v1("POST", "/invite/device", {"expirySecs": 5}), 201)
    s.advance(5)
    j.equal("expired", s.own("POST", "/install", {"secret": short["secret"], "name": "x"}).status, 404)
    j.check("no longer listed", short["secret"] not in s.get("").raw.decode())
    s.own("PATCH", "/plan", {"installers": 50})


def users(s, j):
    listed = j.status("GET users: 200", s.get("/users"), 200)
    j.shape("GET users: {users: [User]}", {"*users": [USER]}, listed)
    some = listed["users"][3]
    j.equal("email: the whole address", s.get(f"/users?email={quote(some['email'])}").body, {"users": [some]})
    j.equal("email: not part", s.get(f"/users?email={quote(some['email'][:-1])}").body, {"users": []})
    group, device = s.v1("POST", "/group", {"name": "invited"}).body["id"], s.get("/devices").body["devices"][4]["id"]
    body = {"sendTo": "new@people.example", "singleUse": True, "name": "hello", "groups": [group], "devices": [device]}
    made = j.status("POST invite/user: 201", s.v1("POST", "/invite/user", body), 201)
    j.shape("User invite", INVITE, made)
    j.equal("as sent", [made[name] for name in ("sentTo", "singleUse", "name", "groups", "devices")], list(body.values()))
    j.check("userInvites with secrets", made in s.get("").body["userInvites"])
    public = j.status("a public invite", s.v1("POST", "/invite/user", {}), 201)
    j.check("sentTo is empty for a public invite", not public.get("sentTo") and public["singleUse"] is False, public)
    j.equal("singleUse requires sendTo", s.v1("POST", "/invite/user", {"singleUse": True}).status, 400)
    j.equal("name up to 64", s.v1("POST", "/invite/user", {"name": "n" * 65}).status, 400)
    new = s.own("POST", "/join", {"secret": made["secret"], "firstName": "New"}).body
    j.shape("who joins is a User", USER, new)
    j.equal("new members join with role user", (new["role"], new["remoteAccess"]), ("user", "enabled"))
    j.check("groups and computers on accepting", new["id"] in s.get("").body["groups"][group]["users"]
            and new["id"] in s.get(f"/device/{device}").body["users"])
    j.equal("singleUse: once", s.own("POST", "/join", {"secret": made["secret"], "email": "b@x.example"}).status, 404)
    j.status("DELETE invite/user: 201", s.v1("DELETE", f"/invite/user/{public['secret']}"), 201)
    j.equal("the link stops working", s.own("POST", "/join", {"secret": public["secret"], "email": "c@x.example"}).status, 404)
    j.status("DELETE of an unknown invite", s.v1("DELETE", f"/invite/user/{public['secret']}"), 404, "invite-not-found")
    path = f"/user/{new['id']}"
    changed = j.status("PATCH user: 201", s.v1("PATCH", path, {"role": "admin-read-only"}), 201)
    j.equal("PATCH user answers the updated User", changed, s.get("/users?email=new@people.example").body["users"][0])
    j.equal("fields left out keep their value", (changed["role"], changed["remoteAccess"]), ("admin-read-only", "enabled"))
    for wrong in ({"role": "owner"}, {"remoteAccess": "on"}, {"role": 1}):
        j.equal(f"no value of it: {wrong}", s.v1("PATCH", path, wrong).status, 400)
    info = j.status("GET info: 200", s.get(f"{path}/info"), 200)
    j.shape("User authentication info", AUTH_INFO, info)
    text = str(s.get(f"/user/{some['id']}/info").body)
    j.check("masked, and no profile", some["email"] not in text and some.get("firstName", "?") not in text, text)
    j.check("authProviders: provider", all("provider" in held for held in info["authProviders"]), info)
    j.status("info of nobody", s.get("/user/none/info"), 404)
    j.status("PATCH of nobody", s.v1("PATCH", "/user/none", {"role": "user"}), 404)
    j.status("DELETE of nobody", s.v1("DELETE", "/user/none"), 404)
    gone = s.v1("DELETE", path)
    j.check("DELETE user: 200 OK", gone.status == 200 and new["id"] not in s.get("").raw.decode(), gone)


def groups(s, j):
    managed = s.own("POST", "/scim-group", {"name": "pushed"}).body["id"]
    ann, bob = [seen["id"] for seen in s.get("/users").body["users"][1:3]]
    one, two = [seen["id"] for seen in s.get("/devices").body["devices"][2:4]]
    made = j.status("POST group: 201", s.v1("POST", "/group", {"name": "g" * 64}), 201)
    j.shape("Access Group", GROUP, made)
    for wrong in ({}, {"name": ""}, {"name": "g" * 65}):
        j.equal(f"name: 1 to 64 characters, required: {wrong}", s.v1("POST", "/group", wrong).status, 400)
    group, path = made["id"], f"/group/{made['id']}"
    held = lambda which=group: s.get("").body["groups"][which]
    j.equal("rule 1: listed through the team", (held()["name"], held()["scimManaged"]), ("g" * 64, False))
    renamed = s.v1("PATCH", path, {"name": "cutters"})
    j.check("PATCH group: 200 {id, name}", renamed.status == 200 and renamed.body == {"id": group, "name": "cutters"}, renamed)
    j.equal("PATCH group: up to 64", s.v1("PATCH", path, {"name": "g" * 65}).status, 400)
    j.equal("POST members: 201", s.v1("POST", f"{path}/members", {"users": [ann], "devices": [one]}).status, 201)
    s.v1("POST", f"{path}/members", {"users": [bob]})
    s.v1("POST", f"{path}/members", {"devices": [two]})
    j.equal("rule 4: either may be omitted", (held()["users"], sorted(held()["devices"])), ([ann, bob], sorted([one, two])))
    j.check("and the computer says so", group in s.get(f"/device/{one}").body["groups"])
    j.equal("POST members/delete: 201", s.v1("POST", f"{path}/members/delete", {"users": [ann], "devices": [two]}).status, 201)
    j.equal("rule 4: not listed are unchanged", (held()["users"], held()["devices"]), ([bob], [one]))
    j.status("unknown group", s.v1("POST", "/group/none/members", {}), 404)
    j.status("unknown member", s.v1("POST", f"{path}/members", {"users": [ann, "none"]}), 404)
    j.equal("nothing is done then", held()["users"], [bob])
    scim_rules(s, j, managed, group, ann, bob, one, two)
    count = len(s.get("").body["groups"])
    s.own("PATCH", "/plan", {"groups": count})
    j.status("rule 2: team-too-many-groups", s.v1("POST", "/group", {"name": "x"}), 400, "team-too-many-groups")
    s.own("PATCH", "/plan", {"groups": 100})
    person = s.newcomer("group@people.example")["id"]
    s.v1("POST", f"{path}/members", {"users": [person], "devices": [two]})
    connect = {"userID": person}
    j.equal("through the group", s.own("POST", f"/device/{two}/connect", connect).status, 201)
    j.check("not listed as direct", person not in s.get(f"/device/{two}").body.get("users", []))
    j.equal("DELETE group: 200 OK", s.v1("DELETE", path).status, 200)
    j.equal("rule 3: the access it granted is gone", s.own("POST", f"/device/{two}/connect", connect).status, 403)
    j.check("rule 3: members stay", s.get(f"/device/{two}").status == 200 and person in s.get("").body["users"])
    j.check("and no computer lists it", group not in s.get("").raw.decode())


def scim_rules(s, j, managed, group, ann, bob, one, two):
    path = f"/group/{managed}"
    held = lambda: s.get("").body["groups"][managed]
    for row, method, tail, body in (("renaming", "PATCH", "", {"name": "x"}), ("deleting", "DELETE", "", None),
                                    ("adding users", "POST", "/members", {"users": [ann]}),
                                    ("removing users", "POST", "/members/delete", {"users": [ann]}),
                                    ("users with computers", "POST", "/members", {"users": [ann], "devices": [one]}),
                                    ("users with computers, out", "POST", "/members/delete", {"users": [ann], "devices": [one]})):
        j.status(f"rule 6: {row} is rejected", s.v1(method, path + tail, body), 400)
    j.check("rule 6: entirely, including its computers", not held().get("devices") and not held().get("users"), held())
    j.equal("rule 6: computers alone are allowed", s.v1("POST", f"{path}/members", {"devices": [one]}).status, 201)
    j.equal("rule 6: also out", (held()["devices"], s.v1("POST", f"{path}/members/delete", {"devices": [one], "users": []}).status), ([one], 201))
    done = s.v1("PATCH", "/group/members", {"groups": [managed, group, "none"], "users": [ann], "devices": [two]})
    j.equal("rule 5: 200 even when some groups fail", done.status, 200)
    errors = {error["groupID"]: error for error in done.body["errors"]}
    j.shape("rule 5: groupID, code, detail", [{"*groupID": str, "*code": str, "*detail": str}], done.body["errors"])
    j.equal("rule 6: error code group-scim-managed", (errors[managed]["code"], sorted(errors)), ("group-scim-managed", sorted([managed, "none"])))
    j.check("rule 5: every listed group", ann in s.get("").body["groups"][group]["users"] and held()["devices"] == [two] and not held().get("users"))
    j.equal("{devices, users}", (done.body["devices"], done.body["users"]), ([two], [ann]))
    done = s.v1("PATCH", "/group/members/remove", {"groups": [managed, group], "devices": [two]})
    j.check("PATCH group/members/remove: 200, no errors", done.status == 200 and "errors" not in done.body and not held().get("devices"), done)
    done = s.v1("PATCH", "/group/members/remove", {"groups": [managed, group], "users": [ann]})
    j.check("users skipped for that group alone", [error["groupID"] for error in done.body["errors"]] == [managed]
            and ann not in s.get("").body["groups"][group].get("users", []), done)
    j.equal("annotations of a managed group", s.v1("POST", f"{path}/annotations", {"annotations": []}).status, 201)


def sso(s, j):
    known = s.own("POST", "/sso", {"email": "sso@people.example", "firstName": "S", "lastName": "O", "scim": True, "avatarURL": "https://a.example/s"}).body
    listed = j.status("GET saml/users: 200", s.get("/saml/users"), 200)
    j.shape("array of SSO user", [SSO_USER], listed)
    j.check("scimUserInfo for SCIM-provisioned users", known in listed and "scimUserInfo" in known and known["avatarURL"].endswith("/s"), known)
    path = f"/users/{known['id']}"
    s.own("PATCH", "/plan", {"licensedUsers": sum(user["remoteAccess"] == "enabled" for user in s.get("/users").body["users"])})
    j.status("no licensed users left", s.v1("POST", path), 400, "active-users-exceed-licensed-quanity")
    s.own("PATCH", "/plan", {"licensedUsers": 99})
    mails = len(s.own("GET", "/mail").body["mail"])
    added = s.v1("POST", path)
    j.check("POST users/{userID}: 200 SSO user", added.status == 200 and added.body == known, added)
    j.equal("No email is sent", len(s.own("GET", "/mail").body["mail"]), mails)
    user = s.get("/users?email=sso@people.example").body["users"][0]
    j.equal("role user, remoteAccess enabled", (user["role"], user["remoteAccess"]), ("user", "enabled"))
    j.status("409 if already on the team", s.v1("POST", path), 409)
    j.status("who does not share the SSO", s.v1("POST", "/users/none"), 404)
    j.equal("told and billed", (kind_of(s.told()[0]), list(s.billed()[0]["event"])), ("teamUserAddedEvent", ["usersAddedEvent"]))

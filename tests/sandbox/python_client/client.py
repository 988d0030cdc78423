"""A client of the documented interface without our code: HTTP, JSON, and the document's tables of fields."""

import http.client
import json
import signal
import subprocess
import urllib.parse

NANO, MILLI, DAY = 1_000_000_000, 1_000, 86_400
# How many characters of the answer a deviation shows.
SEEN_MAX = 600

# The document's tables, field by field; `*` marks required fields.
ANNOTATION = {"*key": str, "value": str}
INSTALLER = {"*id": str, "name": str, "*secret": str, "*connectDownloads": dict, "users": [str], "groups": [str],
             "requireAuthentication": bool, "deviceConfigID": dict, "createdAt": int, "expiresAt": int}
INVITE = {"*secret": str, "name": str, "sentTo": str, "singleUse": bool, "groups": [str], "devices": [str],
          "createdAt": int, "expiresAt": int}
COMPUTER = {"*id": str, "name": str, "lastOnlineAt": int, "users": [str], "groups": [str], "annotations": [ANNOTATION],
            "clientInfo": dict}
USER = {"*id": str, "*email": str, "firstName": str, "lastName": str, "avatarURL": str,
        "*role": ("admin", "admin-read-only", "user"), "*remoteAccess": ("enabled", "disabled"), "totpEnabled": bool,
        "authProviders": [str], "annotations": [ANNOTATION], "joinedOn": dict, "lastUsedAt": int, "scimUserInfo": dict,
        "userDeviceMigrate": dict}
SSO_USER = {"*id": str, "*email": str, "firstName": str, "lastName": str, "avatarURL": str, "scimUserInfo": dict,
            "userDeviceMigrate": dict}
GROUP_IN_TEAM = {"*name": str, "users": [str], "devices": [str], "annotations": [ANNOTATION], "*scimManaged": bool}
GROUP = {"*id": str, **GROUP_IN_TEAM}
TEAM = {"*id": str, "*name": str, "avatarURL": str, "createdAt": dict, "billing": dict, "deleteSchedule": dict,
        "deviceConfigs": [dict], "deviceInvites": [INSTALLER], "devices": dict, "groups": dict, "planFeatures": dict,
        "saml": dict, "security": dict, "userDeviceMigrate": [dict], "userInvites": [INVITE], "users": dict}
AUTH_INFO = {"*totp": {"*enabled": bool}, "*authProviders": [dict],
             "*tokenLog": [{"*title": str, "scopes": [str], "lastUsed": int, "lastUsedIPAddress": str, "expiresAt": int}]}
URLS = {"*connect": str, "*askScreenShare": str, "*dashboard": str}
LEDGER = {"*events": [{"*id": str, "*teamid": str, "*timestamp": int, "*event": dict}]}
CONNECTION_KINDS = ("incomingConnectionRequest", "incomingConnectionEvent", "authSucceededEvent", "authFailedEvent",
                    "connectionClosedEvent")


def fault(shape, value, at="$"):
    """The fault of a value, or None."""
    if isinstance(shape, tuple):
        return None if value in shape else f"{at} is {value!r}"
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{at} is no array"
        return next(filter(None, (fault(shape[0], item, f"{at}[{n}]") for n, item in enumerate(value))), None)
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return f"{at} is no object"
        names = {name.lstrip("*"): kind for name, kind in shape.items()}
        for name in value:
            if name not in names:
                return f"{at}.{name} is not documented"
        for name in shape:
            if name.startswith("*") and name[1:] not in value:
                return f"{at}.{name[1:]} is missing"
        return next(filter(None, (fault(names[name], item, f"{at}.{name}") for name, item in value.items())), None)
    is_right = type(value) is shape
    return None if is_right else f"{at} is {value!r}, not {shape.__name__}"


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.raw = status, headers, body
        try:
            self.body = json.loads(body) if body else None
        except ValueError:
            self.body = None

    @property
    def code(self):
        return self.body.get("code") if isinstance(self.body, dict) else None

    def __repr__(self):
        return f"{self.status} {self.raw[:300]!r}"


class Service:
    """A sandbox in its own process, and the admin's requests to it."""

    def __init__(self, program, *options):
        self.process = subprocess.Popen([program, "sandbox", "--json", *options], stdout=subprocess.PIPE, text=True)
        ready = json.loads(self.process.stdout.readline())
        self.host = urllib.parse.urlparse(ready["base_url"]).netloc
        self.admin, self.reader = ready["tokens"]["admin"], ready["tokens"]["read_only"]
        self.member = ready["tokens"]["member"]
        self.teams = ready["teams"]
        self.team = self.teams[0]

    def ask(self, method, path, body=None, token=None, headers=None, raw=None):
        """Requests a whole path; sends a body as JSON, and `raw` unchanged."""
        sent = dict(headers or {})
        sent.setdefault("Authorization", f"Bearer {token or self.admin}")
        if body is not None:
            raw = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection(self.host, timeout=300)
        try:
            connection.request(method, path, raw, {name: value for name, value in sent.items() if value is not None})
            response = connection.getresponse()
            return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
        finally:
            connection.close()

    def v1(self, method, path, body=None, team=None, **more):
        return self.ask(method, f"/v1/team/{team or self.team}{path}", body, **more)

    def get(self, path, **more):
        return self.v1("GET", path, **more)

    def own(self, method, path, body=None, team=None):
        """One of the sandbox's own requests about a team."""
        return self.ask(method, f"/sandbox/team/{team or self.team}{path}", body)

    def knob(self, method, path, body=None):
        return self.ask(method, f"/sandbox{path}", body)

    def choose(self, **choices):
        return self.knob("PATCH", "/choices", choices)

    def advance(self, seconds):
        return self.knob("POST", "/clock", {"advanceSeconds": seconds})

    def seconds(self):
        return self.knob("GET", "/clock").body["unixNano"] // NANO

    def token_of(self, user, read_only=False, team=None):
        return self.own("POST", f"/user/{user}/token", {"readOnly": read_only}, team).body["token"]

    def told(self, count=1, team=None):
        """The newest activity events, newest first."""
        return self.get(f"/history?desc=true&limit={count}", team=team).body["events"]

    def billed(self, team=None):
        return self.get("/billing/events", team=team).body["events"]

    def newcomer(self, email, team=None, **more):
        """Invites a person, who joins."""
        invite = self.v1("POST", "/invite/user", {"sendTo": email}, team=team).body
        return self.own("POST", "/join", {"secret": invite["secret"], **more}, team).body

    def computer(self, name, team=None, **installer):
        made = self.v1("POST", "/invite/device", installer, team=team).body
        return self.own("POST", "/install", {"secret": made["secret"], "name": name}, team).body

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=300)


class Judge:
    """Counts rows, and keeps every deviation."""

    def __init__(self):
        self.rows, self.deviations, self.section = 0, [], ""

    def check(self, row, is_right, seen=None):
        self.rows += 1
        if not is_right:
            self.deviations.append(f"{self.section}: {row}: {repr(seen)[:SEEN_MAX]}")

    def equal(self, row, seen, expected):
        self.check(row, seen == expected, {"seen": seen, "expected": expected})

    def status(self, row, answer, status, code=None):
        self.check(row, answer.status == status and (code is None or answer.code == code), answer)
        return answer.body

    def shape(self, row, shape, value):
        wrong = fault(shape, value)
        self.check(row, wrong is None, wrong)


def kind_of(event):
    """The one field of an activity event beside its header."""
    return next(name for name in event if name != "header")


def connection_kind(event):
    return next((name for name in CONNECTION_KINDS if name in event), None)


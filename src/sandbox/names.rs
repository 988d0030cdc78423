//! The names of people, computers and failures. They come from many scripts, and some are hostile on purpose.

pub(super) const FIRST_NAMES: [&str; 24] = [
    "Ada",
    "Bruno",
    "Chloé",
    "Dmitri",
    "Elif",
    "Farid",
    "Grace",
    "Hiro",
    "Ines",
    "Jonas",
    "Kateřina",
    "Łukasz",
    "María",
    "Ngozi",
    "Omar",
    "Priya",
    "Quentin",
    "Rosa",
    "Søren",
    "Tomoko",
    "Uma",
    "Věra",
    "Wei",
    "Zoë",
];

pub(super) const LAST_NAMES: [&str; 24] = [
    "Abara",
    "Bergström",
    "Castillo",
    "Dvořák",
    "Eriksen",
    "Fischer",
    "García",
    "Haddad",
    "Ito",
    "Jansen",
    "Kowalski",
    "Lindqvist",
    "Møller",
    "Novák",
    "O'Brien",
    "Petrov",
    "Quiroga",
    "Rossi",
    "Schäfer",
    "Tanaka",
    "Ueda",
    "Vargas",
    "Wójcik",
    "Yılmaz",
];

pub(super) const TEAM_NAMES: [&str; 8] = [
    "Northwind Post",
    "Lighthouse VFX",
    "Harbour Clinic",
    "Sable & Sons <Audit>",
    "Aurora Estúdio",
    "Kiln Engineering",
    "Bureau des Élèves",
    "Meridian 設計",
];

pub(super) const GROUP_NAMES: [&str; 8] =
    ["Editors", "Finance", "On-call", "Contractors", "Lab", "Reception", "=SUM(A1:A9)", "Équipe de nuit"];

pub(super) const COMPUTER_KINDS: [&str; 10] =
    ["WS", "EDIT", "RENDER", "LAPTOP", "FRONTDESK", "CAD", "MAC-STUDIO", "BUILD", "LAB", "KIOSK"];

/// Zones as minutes east of UTC, from the American west coast to Japan.
pub(super) const ZONES_MINUTES: [i64; 7] = [-480, -300, 0, 60, 120, 330, 540];

pub(super) const FAILURE_REASONS: [&str; 8] = [
    "invalid_credentials",
    "user_cancelled",
    "timed_out",
    "account locked",
    "permission denied for \"Administrator\"",
    "mot de passe expiré",
    "'; DROP TABLE connections; --",
    "<img src=x onerror=alert(1)>",
];

pub(super) const CLIENT_SYSTEMS: [&str; 4] = ["windows", "macos", "linux", "windows-server"];

/// Names that break careless readers: markup, formulas, escape sequences, quotes, paths, odd Unicode.
pub(super) const HOSTILE_NAMES: [&str; 14] = [
    "<script>alert('annals')</script>",
    "=HYPERLINK(\"http://evil.example/\",\"click\")",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "東京-受付-１号機",
    "\u{1b}[31mred\u{1b}[0m\u{7}",
    "Robert'); DROP TABLE connections;--",
    "../../etc/passwd",
    "nul\u{0}byte",
    "line\r\nbreak\ttab",
    "\u{202e}gnp.exe",
    "أهلا بالعالم",
    "👩‍👩‍👧‍👦-desk",
    "a\u{301}\u{302}\u{303}\u{200b}zero\u{feff}width",
    "{{7*7}}${7*7}`id`$(id)",
];

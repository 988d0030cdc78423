//! Keys and region from a profile of the AWS command line, for users who keep their credentials there.

use std::io;
use std::path::{Path, PathBuf};

use crate::files::{self, Links};

/// Names and values, such as `AWS_REGION` and `eu-central-1`.
pub(super) type Settings = Vec<(String, String)>;

const FILE_BYTES_MAX: u64 = 1 << 20;
const DEFAULT: &str = "default";
/// The keys of a profile, and the environment variables with the same meaning.
const KNOWN: [(&str, &str); 5] = [
    ("aws_access_key_id", "AWS_ACCESS_KEY_ID"),
    ("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"),
    ("aws_session_token", "AWS_SESSION_TOKEN"),
    ("region", "AWS_REGION"),
    ("endpoint_url", "AWS_ENDPOINT_URL"),
];
/// If one of these is set, the environment gives the identity, and no default profile is needed.
const IDENTITIES: [&str; 4] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
];
/// The keys of a profile that gets its credentials from a program or another service.
const INDIRECT: [&str; 5] = ["sso_session", "sso_start_url", "credential_process", "role_arn", "login_session"];

/// The settings, completed by the user's profile. Environment variables override the profile.
///
/// # Errors
/// When `AWS_PROFILE` names a missing profile or one without keys; when a file cannot be read.
pub(super) fn with_profile(mut settings: Settings, home: Option<&Path>) -> io::Result<Settings> {
    let get = |name: &str| settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let asked = get("AWS_PROFILE").or_else(|| get("AWS_DEFAULT_PROFILE"));
    if asked.is_none() && IDENTITIES.iter().any(|name| get(name).is_some()) {
        return Ok(settings);
    }
    let place = |variable: &str, file: &str| {
        get(variable).map(PathBuf::from).or_else(|| home.map(|home| home.join(".aws").join(file)))
    };
    let profile = asked.as_deref().unwrap_or(DEFAULT);
    let of_config = if profile == DEFAULT { DEFAULT.to_owned() } else { format!("profile {profile}") };
    let mut of_files = values(&read(place("AWS_SHARED_CREDENTIALS_FILE", "credentials"))?, profile);
    of_files.extend(values(&read(place("AWS_CONFIG_FILE", "config"))?, &of_config));
    // Keys of the environment and of a profile belong to two identities.
    let has_own_keys = KNOWN[..2].iter().all(|(_, variable)| get(variable).is_some());
    let has = |key: &str| of_files.iter().any(|(known, _)| known == key);
    if asked.is_some() && !has_own_keys && !has("aws_access_key_id") {
        let indirect = INDIRECT.into_iter().find(|key| has(key));
        let why = indirect
            .map_or("holds no keys".to_owned(), |key| format!("gets its keys by {key}, which Annals does not support"));
        return Err(io::Error::other(format!(
            "the AWS profile {profile} {why}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, as \
             `aws configure export-credentials --profile {profile} --format env` prints them"
        )));
    }
    let has_own_region = get("AWS_DEFAULT_REGION").is_some();
    for (key, variable) in KNOWN {
        if (has_own_keys && key.starts_with("aws_")) || (has_own_region && key == "region") {
            continue;
        }
        let is_set = settings.iter().any(|(known, _)| known == variable);
        let found = of_files.iter().find(|(known, _)| known == key).filter(|_| !is_set);
        settings.extend(found.map(|(_, value)| (variable.to_owned(), value.clone())));
    }
    Ok(settings)
}

/// A missing file has no content.
fn read(path: Option<PathBuf>) -> io::Result<String> {
    let Some(path) = path else { return Ok(String::new()) };
    match files::read_text(&path, Links::Follow, FILE_BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
        text => text,
    }
}

fn values(text: &str, section: &str) -> Vec<(String, String)> {
    let mut is_inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        // An indented line belongs to the value above.
        if line.starts_with([' ', '\t', '#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            let name = name.split(']').next().unwrap_or_default();
            is_inside = name.split_whitespace().eq(section.split_whitespace());
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_inside) {
            found.push((key.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const CREDENTIALS: &str = "\
# a comment
[default]
aws_access_key_id = AKIADEFAULT
aws_secret_access_key=secret/default==
[work]
AWS_ACCESS_KEY_ID=AKIAWORK
aws_secret_access_key = secret-work
s3 =
  max_queue_size = 1
[role]
aws_access_key_id = AKIAROLE
aws_secret_access_key = secret-role
aws_session_token = token-role
[broken
";
    const CONFIG: &str = "\
[default]
region = eu-west-1
[profile work]
region = us-east-2
[profile people]
sso_session = ours
";

    fn home() -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".aws")).unwrap();
        for (name, text) in [("credentials", CREDENTIALS), ("config", CONFIG)] {
            let mut file = std::fs::File::create(home.path().join(".aws").join(name)).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }
        home
    }

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_profile_completes_the_environment() {
        let home = home();
        let with = |given: &[(&str, &str)]| {
            let mut all = with_profile(settings(given), Some(home.path())).unwrap();
            all.sort();
            all
        };
        let default = [
            ("AWS_ACCESS_KEY_ID", "AKIADEFAULT"),
            ("AWS_REGION", "eu-west-1"),
            ("AWS_SECRET_ACCESS_KEY", "secret/default=="),
        ];
        assert_eq!(with(&[]), settings(&default));
        let work = [
            ("AWS_ACCESS_KEY_ID", "AKIAWORK"),
            ("AWS_PROFILE", "work"),
            ("AWS_REGION", "elsewhere"),
            ("AWS_SECRET_ACCESS_KEY", "secret-work"),
        ];
        assert_eq!(with(&[("AWS_PROFILE", "work"), ("AWS_REGION", "elsewhere")]), settings(&work));
        let own = [("AWS_ACCESS_KEY_ID", "AKIAOWN"), ("AWS_SECRET_ACCESS_KEY", "x")];
        assert_eq!(with(&own), settings(&own), "keys in the environment turn the default profile off");
        assert_eq!(with_profile(Vec::new(), None).unwrap(), Vec::new(), "no home");
    }

    #[test]
    fn keys_and_region_of_the_environment_are_never_mixed_with_a_profile() {
        let home = home();
        let own = [("AWS_ACCESS_KEY_ID", "AKIAOWN"), ("AWS_SECRET_ACCESS_KEY", "x")];
        for (profile, more) in [("people", vec![]), ("work", vec![("AWS_DEFAULT_REGION", "us-west-2")])] {
            let mut given = settings(&[&own[..], &[("AWS_PROFILE", profile)], &more[..]].concat());
            let mut with = with_profile(given.clone(), Some(home.path())).unwrap();
            with.sort();
            given.sort();
            assert_eq!(with, given, "{profile}");
        }
        let session = settings(&[&own[..], &[("AWS_PROFILE", "role")]].concat());
        let with = with_profile(session, Some(home.path())).unwrap();
        assert!(!with.iter().any(|(name, _)| name == "AWS_SESSION_TOKEN"), "{with:?}");
    }

    #[test]
    fn a_profile_without_keys_is_refused_with_the_next_step() {
        let home = home();
        for (profile, why) in [("people", "gets its keys by sso_session"), ("nobody", "holds no keys")] {
            let refused = with_profile(settings(&[("AWS_PROFILE", profile)]), Some(home.path())).unwrap_err();
            assert!(refused.to_string().contains(why), "{refused}");
            assert!(refused.to_string().contains("aws configure export-credentials"), "{refused}");
        }
    }
}

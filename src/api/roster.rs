//! Checks the form of answers about people and computers. An answer without the documented form is an error to retry, never an
//! empty list.

use std::collections::BTreeSet;

use super::contract::UnfilteredJson;
use super::json::{self, Object};
use super::wire::{WireError, parse, utf8};

/// A longer id is invalid.
pub const ID_BYTES_MAX: usize = 256;

/// The fields of a user's authentication info.
const USER_INFO_FIELDS: [&str; 3] = ["totp", "authProviders", "tokenLog"];

/// `{users: [User]}`
///
/// # Errors
/// When the body is not an object with a list `users` of objects, each with its own id.
pub fn users(body: &[u8]) -> Result<UnfilteredJson, WireError> {
    let expected = "an object with a list `users`";
    let text = utf8(body)?;
    let answer: Object<'_> = parse(text, expected)?;
    let list = answer.get("users").ok_or_else(|| WireError("the list `users` is missing".into()))?;
    check_ids(&parse::<Vec<Object<'_>>>(list, expected)?, "a user")?;
    Ok(UnfilteredJson::new(text))
}

/// A list of SSO users.
///
/// # Errors
/// When the body is not a list of objects, each with its own id.
pub fn sso_users(body: &[u8]) -> Result<UnfilteredJson, WireError> {
    let text = utf8(body)?;
    check_ids(&parse::<Vec<Object<'_>>>(text, "a list of SSO users")?, "an SSO user")?;
    Ok(UnfilteredJson::new(text))
}

/// A user's authentication info.
///
/// # Errors
/// When the body is not an object with at least one documented field.
pub fn user_info(body: &[u8]) -> Result<UnfilteredJson, WireError> {
    let text = utf8(body)?;
    let info: Object<'_> = parse(text, "an object with authentication info")?;
    if !USER_INFO_FIELDS.iter().any(|field| info.get(field).is_some()) {
        return Err(WireError("none of `totp`, `authProviders` and `tokenLog` is there".into()));
    }
    Ok(UnfilteredJson::new(text))
}

/// Whether an id is valid.
pub fn is_usable_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= ID_BYTES_MAX
}

fn check_ids(entries: &[Object<'_>], what: &str) -> Result<(), WireError> {
    let mut seen = BTreeSet::new();
    for entry in entries {
        let id = entry.get("id").and_then(json::string);
        let Some(id) = id.filter(|id| is_usable_id(id)) else {
            return Err(WireError(format!("{what} without an id of 1 to {ID_BYTES_MAX} bytes")));
        };
        if !seen.insert(id) {
            return Err(WireError(format!("{what} occurs twice")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_people_needs_unique_ids() {
        assert!(users(br#"{"users":[]}"#).is_ok() && sso_users(b"[]").is_ok());
        assert!(users(br#"{"users":[{"id":"a"},{"id":"b"}]}"#).is_ok());
        let long = format!("[{{\"id\":\"{}\"}}]", "x".repeat(ID_BYTES_MAX + 1));
        for list in [
            "",
            "null",
            "{}",
            "\"a\"",
            "<html></html>",
            "[[]]",
            "[null]",
            "[{}]",
            r#"[{"id":""}]"#,
            r#"[{"id":7}]"#,
            r#"[{"id":"a"},{"id":"\u0061"}]"#,
            r#"[{"id":"a"}"#,
            &long,
        ] {
            assert!(sso_users(list.as_bytes()).is_err(), "{list}");
            let object = format!("{{\"users\":{list}}}");
            assert!(users(object.as_bytes()).is_err(), "{object}");
            assert!(users(list.as_bytes()).is_err(), "{list}");
        }
        let error = users(br#"{"users":[{"id":"planted"},{"id":"planted"}]}"#).unwrap_err();
        assert!(!error.to_string().contains("planted"));
    }

    #[test]
    fn authentication_info_needs_a_documented_field() {
        for text in [r#"{"totp":{}}"#, r#"{"authProviders":[]}"#, r#"{"tokenLog":[]}"#] {
            assert!(user_info(text.as_bytes()).is_ok(), "{text}");
        }
        for text in ["", "{}", "[]", "null", r#"{"totp":null}"#, r#"{"other":1}"#, "<html>"] {
            assert!(user_info(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(format!("{:?}", user_info(br#"{"totp":"planted"}"#).unwrap()), "UnfilteredJson(18 bytes)");
    }
}

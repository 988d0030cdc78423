//! Checks a request's authority: the signature of S3, version 4, or the token of Google Cloud Storage.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ring::{digest, hmac};

use crate::request_head::RequestHead;
use crate::{ACCESS_KEY, BEARER_TOKEN, REGION, SECRET_KEY};

const SCHEME: &str = "AWS4-HMAC-SHA256";
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";
const UNRESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A refusal: status, code and message.
pub(crate) type Refusal = (u16, &'static str, String);

pub(crate) fn check(head: &RequestHead, body: &[u8]) -> Result<(), Refusal> {
    let Some(header) = head.header("authorization") else {
        let no_signature = || (403, "AccessDenied", "no signature".to_owned());
        let of_address = |name| head.param(name).ok_or_else(no_signature);
        let (credential, signature) = (of_address("X-Amz-Credential")?, of_address("X-Amz-Signature")?);
        let (signed, date) = (of_address("X-Amz-SignedHeaders")?, of_address("X-Amz-Date")?);
        return check_signed(head, &Signed { credential, signed, signature, date, digest: UNSIGNED });
    };
    if let Some(token) = header.strip_prefix("Bearer ") {
        let refusal = (401, "AuthenticationRequired", "the token is not known".to_owned());
        return if token == BEARER_TOKEN { Ok(()) } else { Err(refusal) };
    }
    check_s3(head, header, body)
}

fn check_s3(head: &RequestHead, header: &str, body: &[u8]) -> Result<(), Refusal> {
    let malformed = || (400, "AuthorizationHeaderMalformed", "the authorization header is malformed".to_owned());
    let members: BTreeMap<&str, &str> = header
        .strip_prefix(SCHEME)
        .ok_or_else(malformed)?
        .split(',')
        .filter_map(|member| member.trim().split_once('='))
        .collect();
    let member = |name: &str| members.get(name).copied().ok_or_else(malformed);
    let digest = head.header("x-amz-content-sha256").ok_or_else(malformed)?;
    let is_wrong = digest != UNSIGNED && digest != hex(digest::digest(&digest::SHA256, body).as_ref());
    let date = head.header("x-amz-date").ok_or_else(malformed)?;
    let (credential, signed, signature) = (member("Credential")?, member("SignedHeaders")?, member("Signature")?);
    check_signed(head, &Signed { credential, signed, signature, date, digest })?;
    if is_wrong {
        return Err((400, "XAmzContentSHA256Mismatch", "the body is not what was signed".to_owned()));
    }
    Ok(())
}

/// The fields of a request's signature, from its head or its address.
struct Signed<'a> {
    credential: &'a str,
    signed: &'a str,
    signature: &'a str,
    date: &'a str,
    digest: &'a str,
}

fn check_signed(head: &RequestHead, said: &Signed<'_>) -> Result<(), Refusal> {
    let malformed = || (400, "AuthorizationHeaderMalformed", "the authorization is malformed".to_owned());
    let Signed { credential, signed, signature, date, digest } = said;
    let (key, scope) = credential.split_once('/').ok_or_else(malformed)?;
    if key != ACCESS_KEY {
        return Err((403, "InvalidAccessKeyId", "the access key is not known".to_owned()));
    }
    let [day, region, service, "aws4_request"] = scope.split('/').collect::<Vec<_>>()[..] else {
        return Err(malformed());
    };
    if region != REGION {
        let message = format!("the region '{region}' is wrong; expecting '{REGION}'");
        return Err((400, "AuthorizationHeaderMalformed", message));
    }
    let request = canonical(head, signed, digest).ok_or_else(malformed)?;
    let hashed = hex(digest::digest(&digest::SHA256, request.as_bytes()).as_ref());
    let text = format!("{SCHEME}\n{date}\n{scope}\n{hashed}");
    let mut secret = format!("AWS4{SECRET_KEY}").into_bytes();
    for step in [day, region, service, "aws4_request", &text] {
        secret = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret), step.as_bytes()).as_ref().to_vec();
    }
    if hex(&secret) == *signature {
        Ok(())
    } else {
        Err((403, "SignatureDoesNotMatch", "the signature is wrong".to_owned()))
    }
}

/// The text that the client signed.
fn canonical(head: &RequestHead, signed: &str, digest: &str) -> Option<String> {
    let encode = |text: &str| utf8_percent_encode(text, &UNRESERVED).to_string();
    let mut query: Vec<(String, String)> =
        head.query.iter().map(|(name, value)| (encode(name), encode(value))).collect();
    // The signature in an address is not part of the signed text.
    query.retain(|(name, _)| name != "X-Amz-Signature");
    query.sort();
    let query: Vec<String> = query.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut headers = String::new();
    for name in signed.split(';') {
        let values: Option<Vec<&str>> = head.headers.get_all(name).iter().map(|value| value.to_str().ok()).collect();
        let values: Vec<String> = values?.iter().map(|v| v.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        headers.push_str(&format!("{name}:{}\n", values.join(",")));
    }
    let (method, path) = (&head.method, head.uri.path());
    Some(format!("{method}\n{path}\n{}\n{headers}\n{signed}\n{digest}", query.join("&")))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

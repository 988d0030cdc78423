//! Handles one request from its head to its answer.

use std::sync::Arc;
use std::time::SystemTime;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::Incoming;
use md5::{Digest as _, Md5};
use quick_xml::escape::unescape;
use ring::digest;

use crate::answer::{self, Answer, Cut};
use crate::faults::Effect;
use crate::objects::{Late, ListRequest, UploadFault};
use crate::request_head::RequestHead;
use crate::{BUCKET, Inner, Kind, Shared, signature};

pub(crate) async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Answer, Cut> {
    let (parts, body) = request.into_parts();
    let now = shared.inner().now();
    let Some(head) = RequestHead::of(parts) else {
        return Ok(answer::error(405, now, "MethodNotAllowed", "the request is no known one"));
    };
    let effects = {
        let mut inner = shared.inner();
        *inner.counts.entry(head.kind).or_insert(0) += 1;
        inner.log.push(format!("{:?} {}", head.kind, head.subject()));
        inner.faults.effects(&head)
    };
    let answer = carry_out_with(&shared, &head, body, &effects, now).await;
    // A test that sees the number can rely on what the effects left.
    shared.inner().faults.count(effects.len());
    finish(answer, &effects, now).await
}

async fn carry_out_with(
    shared: &Shared,
    head: &RequestHead,
    mut body: Incoming,
    effects: &[Effect],
    now: SystemTime,
) -> Result<Answer, Cut> {
    for effect in effects {
        match effect {
            Effect::Slow(delay) => tokio::time::sleep(*delay).await,
            Effect::CutUpload(after) => {
                read(&mut body, *after).await?;
                return Err(Cut);
            }
            _ => {}
        }
    }
    let body = read(&mut body, usize::MAX).await?;
    if effects.contains(&Effect::Unanswered) {
        return Err(Cut);
    }
    if let Some(refused) = effects.iter().find_map(|effect| refusal(effect, now)) {
        return Ok(refused);
    }
    let mut inner = shared.inner();
    let checked = signature::check(head, &body).and_then(|()| check_digests(head, &body));
    Ok(match checked {
        Err((status, code, message)) => answer::error(status, now, code, &message),
        Ok(()) if head.bucket != BUCKET => {
            answer::error(404, now, "NoSuchBucket", "the specified bucket does not exist")
        }
        Ok(()) if is_locked(&inner, head) => refused_by_lock(head, now),
        Ok(()) if effects.contains(&Effect::Late) => {
            inner.late.push(Late { key: head.key.clone(), bytes: body, create: head.is_create() });
            return Err(Cut);
        }
        Ok(()) => carry_out(&mut inner, head, body, effects),
    })
}

async fn finish(answer: Result<Answer, Cut>, effects: &[Effect], now: SystemTime) -> Result<Answer, Cut> {
    if effects.iter().any(|effect| matches!(effect, Effect::Unanswered | Effect::AppliedUnanswered)) {
        return std::future::pending().await;
    }
    let mut answer = answer?;
    for effect in effects {
        match effect {
            Effect::AnswerLost => return Err(Cut),
            Effect::AppliedThenRefused(status) => {
                answer = answer::error(*status, now, "InternalError", "refused by a rule, and carried out");
            }
            Effect::CutDownload(after) => answer = answer::cut_after(answer, *after).await,
            _ => {}
        }
    }
    Ok(answer)
}

fn refusal(effect: &Effect, now: SystemTime) -> Option<Answer> {
    let Effect::Refused(status, retry_after) = effect else { return None };
    let code = match status {
        409 => "ConditionalRequestConflict",
        503 => "SlowDown",
        _ => "Refused",
    };
    let mut answer = answer::error(*status, now, code, "refused by a rule");
    if let Some(seconds) = retry_after {
        answer.headers_mut().insert("retry-after", (*seconds).into());
    }
    Some(answer)
}

async fn read(body: &mut Incoming, most: usize) -> Result<Bytes, Cut> {
    let mut read = BytesMut::new();
    while read.len() < most {
        let Some(frame) = body.frame().await else { break };
        if let Ok(data) = frame.map_err(|_| Cut)?.into_data() {
            read.extend_from_slice(&data);
        }
    }
    Ok(read.freeze())
}

fn check_digests(head: &RequestHead, body: &[u8]) -> Result<(), signature::Refusal> {
    let md5 = || BASE64_STANDARD.encode(Md5::digest(body));
    let sha256 = || BASE64_STANDARD.encode(digest::digest(&digest::SHA256, body));
    let is_wrong = head.header("content-md5").is_some_and(|said| said != md5())
        || head.header("x-amz-checksum-sha256").is_some_and(|said| said != sha256());
    if is_wrong {
        return Err((400, "BadDigest", "the body does not have the digest that was sent".to_owned()));
    }
    Ok(())
}

fn carry_out(inner: &mut Inner, head: &RequestHead, body: Bytes, effects: &[Effect]) -> Answer {
    let now = inner.now();
    match head.kind {
        Kind::Put => {
            let create = head.is_create() && !effects.contains(&Effect::ConditionIgnored);
            match inner.objects.put(&head.key, body, create, now) {
                Ok(object) => answer::with(answer::described(answer::begin(200, now), &object), ""),
                Err(_) => answer::error(412, now, "PreconditionFailed", "the object is there already"),
            }
        }
        Kind::Get | Kind::Head => get(inner, head, now),
        Kind::List => list(inner, head, effects, now),
        Kind::Delete => delete(inner, head, &body, now),
        Kind::Start => {
            let id = inner.objects.begin(&head.key, now);
            let text = format!("<UploadId>{id}</UploadId>");
            answer::xml(200, now, &format!("<InitiateMultipartUploadResult>{text}</InitiateMultipartUploadResult>"))
        }
        Kind::Part | Kind::Complete | Kind::Abort => upload(inner, head, body, now).unwrap_or_else(|fault| {
            let (status, code) = match fault {
                UploadFault::Unknown => (404, "NoSuchUpload"),
                UploadFault::InvalidPart => (400, "InvalidPart"),
                UploadFault::TooSmall => (400, "EntityTooSmall"),
            };
            answer::error(status, now, code, "the upload cannot continue")
        }),
    }
}

/// Whether an object lock forbids the request.
fn is_locked(inner: &Inner, head: &RequestHead) -> bool {
    let is_forbidden = match head.kind {
        Kind::Put => !["content-md5", "x-amz-checksum-sha256"].iter().any(|name| head.header(name).is_some()),
        Kind::Delete => head.param("versionId").is_some(),
        _ => false,
    };
    is_forbidden && inner.locked.as_ref().is_some_and(|prefix| head.key.starts_with(prefix))
}

fn refused_by_lock(head: &RequestHead, now: SystemTime) -> Answer {
    match head.kind {
        Kind::Put => {
            let message = "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters";
            answer::error(400, now, "InvalidRequest", message)
        }
        _ => answer::error(403, now, "AccessDenied", "the version is under an object lock"),
    }
}

fn get(inner: &Inner, head: &RequestHead, now: SystemTime) -> Answer {
    let Some(object) = inner.objects.get(&head.key) else {
        return answer::error(404, now, "NoSuchKey", "the specified key does not exist");
    };
    let length = object.bytes.len();
    let Some(range) = head.header("range") else {
        let begun = answer::described(answer::begin(200, now), object).header("content-length", length);
        return answer::with(begun, if head.kind == Kind::Head { Bytes::new() } else { object.bytes.clone() });
    };
    let Some((start, end)) = range_of(range, length) else {
        return answer::error(416, now, "InvalidRange", "the range is not of this object");
    };
    let begun = answer::described(answer::begin(206, now), object)
        .header("content-range", format!("bytes {start}-{}/{length}", end - 1));
    answer::with(begun, object.bytes.slice(start..end))
}

/// The start and the end of `bytes=2-5`, `bytes=2-` or `bytes=-4`.
fn range_of(text: &str, length: usize) -> Option<(usize, usize)> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let (start, end) = match (first, last) {
        ("", suffix) => (length.saturating_sub(suffix.parse().ok()?), length),
        (first, "") => (first.parse().ok()?, length),
        (first, last) => (first.parse().ok()?, length.min(last.parse::<usize>().ok()? + 1)),
    };
    (start < end).then_some((start, end))
}

fn list(inner: &Inner, head: &RequestHead, effects: &[Effect], now: SystemTime) -> Answer {
    let (mut max, mut behind) = (head.param("max-keys").and_then(|max| max.parse().ok()).unwrap_or(usize::MAX), 0);
    for effect in effects {
        match effect {
            Effect::ShortPages(keys) => max = max.min(*keys),
            Effect::Behind(writes) => behind = *writes,
            _ => {}
        }
    }
    let prefix = head.param("prefix").unwrap_or("");
    if head.param("uploads").is_some() {
        return answer::uploads(now, inner.objects.uploads(prefix));
    }
    if head.param("versions").is_some() {
        // A client continues with the number of seen versions as the version's id.
        let skipped = head.param("version-id-marker").and_then(|text| text.parse().ok()).unwrap_or(0);
        let (versions, is_truncated) = inner.objects.versions(prefix, skipped, max);
        // The next page shows the last version again, as MiniStack's does.
        let next = is_truncated.then(|| skipped + (versions.len() - 1).max(1));
        return answer::versions(now, &versions, next);
    }
    let after = head.param("continuation-token").or(head.param("start-after")).unwrap_or("");
    let delimiter = head.param("delimiter");
    let page = inner.objects.list(&ListRequest { prefix, delimiter, after, max, behind });
    answer::list(now, BUCKET, prefix, &page)
}

fn delete(inner: &mut Inner, head: &RequestHead, body: &[u8], now: SystemTime) -> Answer {
    if head.key.is_empty() {
        let keys = members(&String::from_utf8_lossy(body), "Key");
        keys.iter().for_each(|key| inner.objects.delete(key, now));
        let said: String = keys
            .iter()
            .map(|key| format!("<Deleted><Key>{}</Key></Deleted>", quick_xml::escape::escape(key)))
            .collect();
        return answer::xml(200, now, &format!("<DeleteResult>{said}</DeleteResult>"));
    }
    if head.is_google() && inner.objects.get(&head.key).is_none() {
        return answer::error(404, now, "NoSuchKey", "the specified key does not exist");
    }
    match head.param("versionId").and_then(|text| text.parse().ok()) {
        Some(version) => inner.objects.delete_version(&head.key, version),
        None => inner.objects.delete(&head.key, now),
    }
    answer::with(answer::begin(204, now), "")
}

fn upload(inner: &mut Inner, head: &RequestHead, body: Bytes, now: SystemTime) -> Result<Answer, UploadFault> {
    let id = head.param("uploadId").unwrap_or("");
    match head.kind {
        Kind::Part => {
            let number = head.param("partNumber").and_then(|n| n.parse().ok()).ok_or(UploadFault::InvalidPart)?;
            let etag = inner.objects.part(id, number, body)?;
            Ok(answer::with(answer::begin(200, now).header("etag", etag), ""))
        }
        Kind::Complete => {
            let text = String::from_utf8_lossy(&body);
            let numbers: Result<Vec<usize>, _> = members(&text, "PartNumber").iter().map(|n| n.parse()).collect();
            let numbers = numbers.map_err(|_| UploadFault::InvalidPart)?;
            let named: Vec<(usize, String)> = numbers.into_iter().zip(members(&text, "ETag")).collect();
            let object = inner.objects.complete(id, &head.key, &named, now)?;
            let etag = quick_xml::escape::escape(&object.etag).into_owned();
            let text = format!("<ETag>{etag}</ETag>");
            let said = format!("<CompleteMultipartUploadResult>{text}</CompleteMultipartUploadResult>");
            Ok(answer::xml(200, now, &said))
        }
        _ => inner.objects.abort(id).map(|()| answer::with(answer::begin(204, now), "")),
    }
}

/// The texts of every `<name>`.
fn members(text: &str, name: &str) -> Vec<String> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    text.split(&open)
        .skip(1)
        .filter_map(|rest| rest.split(&close).next())
        .map(|text| unescape(text).map_or_else(|_| text.to_owned(), |text| text.into_owned()))
        .collect()
}

//! Writes answers.

use std::convert::Infallible;
use std::fmt;
use std::time::SystemTime;

use bytes::Bytes;
use futures::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::http::response::Builder;
use hyper::{Response, StatusCode};
use quick_xml::escape::escape;

use crate::objects::{Kept, Object, Page, Upload};

/// The connection is cut.
#[derive(Debug)]
pub(crate) struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cut by a rule")
    }
}

impl std::error::Error for Cut {}

pub(crate) type Answer = Response<BoxBody<Bytes, Cut>>;

fn whole(bytes: Bytes) -> BoxBody<Bytes, Cut> {
    Full::new(bytes).map_err(|never: Infallible| match never {}).boxed()
}

/// The beginning of an answer, with the server's time.
pub(crate) fn begin(status: u16, now: SystemTime) -> Builder {
    let status = StatusCode::from_u16(status).expect("the status is one");
    Response::builder().status(status).header("date", httpdate::fmt_http_date(now)).header("x-amz-request-id", "0")
}

pub(crate) fn with(builder: Builder, bytes: impl Into<Bytes>) -> Answer {
    builder.body(whole(bytes.into())).expect("the answer is well formed")
}

pub(crate) fn xml(status: u16, now: SystemTime, text: &str) -> Answer {
    let text = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{text}");
    with(begin(status, now).header("content-type", "application/xml"), text)
}

pub(crate) fn error(status: u16, now: SystemTime, code: &str, message: &str) -> Answer {
    let message = escape(message);
    xml(status, now, &format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>"))
}

/// The headers of an object.
pub(crate) fn described(builder: Builder, object: &Object) -> Builder {
    builder
        .header("etag", &object.etag)
        .header("last-modified", httpdate::fmt_http_date(object.modified))
        .header("x-goog-generation", object.generation)
}

pub(crate) fn list(now: SystemTime, bucket: &str, prefix: &str, page: &Page) -> Answer {
    let mut text = format!("<ListBucketResult><Name>{bucket}</Name><Prefix>{}</Prefix>", escape(prefix));
    text.push_str(&format!("<KeyCount>{}</KeyCount>", page.objects.len() + page.prefixes.len()));
    text.push_str(&format!("<IsTruncated>{}</IsTruncated>", page.next.is_some()));
    if let Some(next) = &page.next {
        text.push_str(&format!("<NextContinuationToken>{}</NextContinuationToken>", escape(next)));
    }
    for (key, object) in &page.objects {
        let modified = jiff::Timestamp::try_from(object.modified).expect("the time is of this age");
        text.push_str(&format!(
            "<Contents><Key>{}</Key><LastModified>{modified:.3}</LastModified><ETag>{}</ETag><Size>{}</Size></Contents>",
            escape(key),
            escape(&object.etag),
            object.bytes.len()
        ));
    }
    for prefix in &page.prefixes {
        text.push_str(&format!("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", escape(prefix)));
    }
    text.push_str("</ListBucketResult>");
    xml(200, now, &text)
}

pub(crate) fn versions(now: SystemTime, versions: &[Kept], next: Option<usize>) -> Answer {
    let mut text = format!("<ListVersionsResult><IsTruncated>{}</IsTruncated>", next.is_some());
    if let (Some(next), Some(last)) = (next, versions.last()) {
        let key = escape(&last.key);
        text.push_str(&format!(
            "<NextKeyMarker>{key}</NextKeyMarker><NextVersionIdMarker>{next}</NextVersionIdMarker>"
        ));
    }
    for kept in versions {
        let number = kept.id;
        let modified = jiff::Timestamp::try_from(kept.modified).expect("the time is of this age");
        let name = if kept.is_marker { "DeleteMarker" } else { "Version" };
        text.push_str(&format!(
            "<{name}><Key>{}</Key><VersionId>{number}</VersionId><LastModified>{modified:.3}</LastModified></{name}>",
            escape(&kept.key)
        ));
    }
    text.push_str("</ListVersionsResult>");
    xml(200, now, &text)
}

pub(crate) fn uploads<'a>(now: SystemTime, uploads: impl Iterator<Item = (&'a String, &'a Upload)>) -> Answer {
    let mut text = "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>".to_owned();
    for (id, Upload { key, begun, .. }) in uploads {
        let begun = jiff::Timestamp::try_from(*begun).expect("the time is of this age");
        text.push_str(&format!(
            "<Upload><Key>{}</Key><UploadId>{id}</UploadId><Initiated>{begun:.3}</Initiated></Upload>",
            escape(key)
        ));
    }
    text.push_str("</ListMultipartUploadsResult>");
    xml(200, now, &text)
}

/// The answer, with a cut connection after this many bytes of its body.
pub(crate) async fn cut_after(answer: Answer, bytes: usize) -> Answer {
    let (mut parts, body) = answer.into_parts();
    let Ok(body) = body.collect().await else { return Response::from_parts(parts, whole(Bytes::new())) };
    let body = body.to_bytes();
    parts.headers.insert("content-length", body.len().into());
    let frames = [Ok(Frame::data(body.slice(..bytes.min(body.len())))), Err(Cut)];
    Response::from_parts(parts, StreamBody::new(stream::iter(frames)).boxed())
}

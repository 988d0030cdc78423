//! Requests to S3 that the client library does not know: it signs them, and this module sends them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::client::{HttpClient, HttpRequest, HttpRequestBody};
use object_store::path::Path;
use object_store::signer::{SignedUrlOptions, Signer};
use serde::de::DeserializeOwned;

/// Lifetime of a signed request.
const SIGNED_FOR: Duration = Duration::from_secs(300);
const NOT_IMPLEMENTED: u16 = 501;

/// Sends signed requests with the client of the bucket: by the same proxy, and with the same certificates.
#[derive(Clone)]
pub(super) struct SignedRequests {
    pub(super) signer: Arc<dyn Signer>,
    pub(super) client: HttpClient,
}

impl SignedRequests {
    pub(super) async fn ask(
        &self,
        method: &str,
        path: &Path,
        query: Vec<(String, String)>,
    ) -> Result<(u16, Bytes), String> {
        let options = SignedUrlOptions::default().with_query(query);
        let verb = || method.parse().expect("BUG: a method");
        let url = self.signer.signed_url_opts(verb(), path, SIGNED_FOR, &options).await.map_err(|e| e.to_string())?;
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.method_mut() = verb();
        *request.uri_mut() = url.as_str().parse().map_err(|_| "the address of the bucket is invalid".to_owned())?;
        // The address contains the signature, so no error may show it.
        let answer = self.client.execute(request).await.map_err(|_| "the store gave no answer".to_owned())?;
        let status = answer.status().as_u16();
        let body = answer.into_body().bytes().await.map_err(|_| "the answer broke off".to_owned())?;
        Ok((status, body))
    }

    /// A page of a list of the bucket; `None` if the store does not know such lists.
    pub(super) async fn page<T: DeserializeOwned>(&self, query: Vec<(String, String)>) -> Result<Option<T>, String> {
        let (status, body) = self.ask("GET", &Path::default(), query).await?;
        match status {
            200 => {
                let text = String::from_utf8_lossy(&body);
                quick_xml::de::from_str(&text).map(Some).map_err(|e| format!("the answer is not a list: {e}"))
            }
            NOT_IMPLEMENTED => Ok(None),
            other => Err(format!("the store answered {other}")),
        }
    }
}

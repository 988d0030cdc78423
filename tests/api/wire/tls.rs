//! The proxy's TLS, with the certificates of tests/certificates.

use std::io::Write;
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::{Passing, read_head};

pub fn place(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/certificates").join(name)
}

/// Does the TLS handshake with this certificate, and passes requests on until the peer closes.
pub fn serve(stream: TcpStream, certificate: &str, ask: impl Fn(&[u8]) -> Option<Passing>) {
    let chain = vec![CertificateDer::from_pem_file(place(&format!("{certificate}.pem"))).unwrap()];
    let key = PrivateKeyDer::from_pem_file(place("host.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(chain, key).unwrap();
    let mut stream = StreamOwned::new(ServerConnection::new(Arc::new(config)).unwrap(), stream);
    while let Some(request) = read_head(&mut stream) {
        let Some(answer) = ask(&request) else { return };
        let written = stream.write_all(&[answer.head, answer.body].concat()).and_then(|()| stream.flush());
        if written.is_err() {
            return;
        }
    }
}

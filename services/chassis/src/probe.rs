//! Asking a running service whether it is ready.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{Request, Uri};
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

/// Asks once: `http://host:port/path` is ready when it answers a GET with success (2xx), `/readyz` if it names no path; `grpc://host:port[/service]`
/// when its health service says that the service, or the server as a whole, is serving. The error says why not.
pub async fn probe(url: &str, limit: Duration) -> Result<(), String> {
    let uri: Uri = url.parse().map_err(|error| format!("{url:?} is no URL: {error}"))?;
    let asked = async {
        match uri.scheme_str() {
            Some("http") => http(&uri).await,
            Some("grpc") => grpc(&uri).await,
            _ => Err("must start with http:// or grpc://".to_owned()),
        }
    };
    match tokio::time::timeout(limit, asked).await {
        Ok(answer) => answer.map_err(|why| format!("{url}: {why}")),
        Err(_) => Err(format!("{url}: no answer within {limit:?}")),
    }
}

async fn http(uri: &Uri) -> Result<(), String> {
    let (host, port) = (uri.host().ok_or("must name a host")?, uri.port_u16().unwrap_or(80));
    // An IPv6 address stands in brackets in a URL only.
    let stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await.map_err(why)?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(why)?;
    let path =
        uri.path_and_query().map(|path| path.as_str()).filter(|path| *path != "/").unwrap_or("/readyz");
    let request = Request::get(path).header(HOST, format!("{host}:{port}")).body(Empty::<Bytes>::new());
    let request = request.map_err(why)?;
    let answer = tokio::select! {
        answer = sender.send_request(request) => answer.map_err(why)?,
        _ = connection => return Err("the connection was closed".to_owned()),
    };
    if answer.status().is_success() { Ok(()) } else { Err(format!("answered {}", answer.status())) }
}

async fn grpc(uri: &Uri) -> Result<(), String> {
    let (Some(host), Some(port)) = (uri.host(), uri.port_u16()) else {
        return Err("must name a host and a port".to_owned());
    };
    let endpoint = Endpoint::from_shared(format!("http://{host}:{port}")).map_err(why)?;
    let channel = endpoint.connect().await.map_err(why)?;
    let service = uri.path().trim_start_matches('/').to_owned();
    let answer = HealthClient::new(channel).check(HealthCheckRequest { service }).await;
    let answer = answer.map_err(|status| format!("{:?}: {}", status.code(), status.message()))?;
    match answer.into_inner().status() {
        ServingStatus::Serving => Ok(()),
        other => Err(format!("answered {}", other.as_str_name())),
    }
}

/// The cause under an error: the outermost says no more than that something failed.
fn why(error: impl Error + 'static) -> String {
    let mut cause: &dyn Error = &error;
    while let Some(under) = cause.source() {
        cause = under;
    }
    cause.to_string()
}

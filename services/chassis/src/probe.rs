//! Asking a running service whether it is ready.

use std::time::Duration;

use http::{Request, Uri};
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

/// Asks once: `http://host:port/path` is ready when it answers 200 to a GET, `grpc://host:port[/service]` when its
/// health service says that the service, or the server as a whole, is serving. The error says why not.
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
    let host = uri.host().ok_or("must name a host")?;
    let stream = TcpStream::connect((host.trim_matches(['[', ']']), uri.port_u16().unwrap_or(80))).await;
    let io = TokioIo::new(stream.map_err(|error| error.to_string())?);
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(io).await.map_err(|error| error.to_string())?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let authority = uri.authority().map_or(host, |authority| authority.as_str());
    let request = Request::get(path).header("host", authority).body(Empty::<bytes::Bytes>::new());
    let request = request.map_err(|error| error.to_string())?;
    let answer = tokio::select! {
        answer = sender.send_request(request) => answer.map_err(|error| error.to_string())?,
        _ = connection => return Err("the connection was closed".to_owned()),
    };
    if answer.status().is_success() { Ok(()) } else { Err(format!("answered {}", answer.status())) }
}

async fn grpc(uri: &Uri) -> Result<(), String> {
    let authority = uri.authority().ok_or("must name a host")?;
    let endpoint = Endpoint::from_shared(format!("http://{authority}")).map_err(|error| error.to_string())?;
    let channel = endpoint.connect().await.map_err(|error| error.to_string())?;
    let service = uri.path().trim_start_matches('/').to_owned();
    let answer = HealthClient::new(channel).check(HealthCheckRequest { service }).await;
    let answer = answer.map_err(|status| status.message().to_owned())?.into_inner();
    match answer.status() {
        ServingStatus::Serving => Ok(()),
        other => Err(format!("answered {}", other.as_str_name())),
    }
}

//! The network under an upstream: names become addresses, addresses become connections.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::time::Duration;

use http::Uri;
use http::uri::Authority;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tower::{Service, ServiceExt};

use super::body::Outgoing;

pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;
type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Resolve = Box<dyn Fn() -> BoxFuture<io::Result<Vec<SocketAddr>>> + Send + Sync>;
type Open = Box<dyn Fn(Uri) -> BoxFuture<Result<Opened, BoxError>> + Send + Sync>;

/// How long opening a connection may take, and looking up a name.
const PATIENCE: Duration = Duration::from_secs(2);

/// Looks up and connects: over TCP, or as a test says.
pub(super) struct Network {
    authority: Authority,
    resolve: Option<Resolve>,
    open: Open,
}

/// An open connection, and what drives it: it ends when the connection takes no more calls.
pub(super) struct Opened {
    pub(super) sender: SendRequest<Outgoing>,
    pub(super) driver: BoxFuture<()>,
}

impl Network {
    /// The machine's own.
    pub(super) fn tcp(address: &str) -> Result<Self, String> {
        let (host, port) = parts(address)?;
        let connector = tower::service_fn(async |to: Uri| {
            let address = to.authority().and_then(|authority| authority.as_str().parse::<SocketAddr>().ok());
            let stream = TcpStream::connect(address.ok_or(io::ErrorKind::InvalidInput)?).await?;
            stream.set_nodelay(true)?;
            Ok::<_, io::Error>(TokioIo::new(stream))
        });
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Self::simulated(&format!("http://{}", SocketAddr::new(ip, port)), connector);
        }
        let resolve = async |host: String, port| Ok(tokio::net::lookup_host((host, port)).await?.collect());
        Self::resolved(address, resolve, connector)
    }

    /// One where `connector` knows names.
    pub(super) fn simulated<C>(address: &str, connector: C) -> Result<Self, String>
    where
        C: Service<Uri> + Clone + Send + Sync + 'static,
        C::Response: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
        C::Error: Into<BoxError>,
        C::Future: Send,
    {
        parts(address)?;
        let authority = address.parse::<Uri>().ok().and_then(|uri| uri.authority().cloned());
        let authority = authority.ok_or_else(|| form(address))?;
        let open = Box::new(move |to| Box::pin(open(connector.clone(), to)) as BoxFuture<_>);
        Ok(Self { authority, resolve: None, open })
    }

    /// One where `resolve` knows names.
    pub(super) fn resolved<R, F, C>(address: &str, resolve: R, connector: C) -> Result<Self, String>
    where
        R: Fn(String, u16) -> F + Send + Sync + 'static,
        F: Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static,
        C: Service<Uri> + Clone + Send + Sync + 'static,
        C::Response: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
        C::Error: Into<BoxError>,
        C::Future: Send,
    {
        let (host, port) = parts(address)?;
        let resolve = Box::new(move || Box::pin(resolve(host.clone(), port)) as BoxFuture<_>);
        Ok(Self { resolve: Some(resolve), ..Self::simulated(address, connector)? })
    }

    /// What calls name as their authority.
    pub(super) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Where to connect to, if that can't change.
    pub(super) fn fixed(&self) -> Option<Uri> {
        match self.resolve {
            None => Some(to(self.authority.clone())),
            Some(_) => None,
        }
    }

    /// Where to connect to now.
    pub(super) async fn resolve(&self) -> io::Result<Vec<Uri>> {
        let Some(resolve) = &self.resolve else { return Ok(self.fixed().into_iter().collect()) };
        let found = tokio::time::timeout(PATIENCE, resolve()).await.map_err(io::Error::from)??;
        Ok(found.into_iter().filter_map(|at| at.to_string().parse().ok()).map(to).collect())
    }

    pub(super) async fn open(&self, to: Uri) -> Result<Opened, BoxError> {
        tokio::time::timeout(PATIENCE, (self.open)(to)).await?
    }
}

async fn open<C>(connector: C, to: Uri) -> Result<Opened, BoxError>
where
    C: Service<Uri>,
    C::Response: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    C::Error: Into<BoxError>,
{
    let io = connector.oneshot(to).await.map_err(Into::into)?;
    let (sender, connection) = Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(10))
        .keep_alive_timeout(Duration::from_secs(5))
        .keep_alive_while_idle(true)
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(4 << 20)
        // Callers leave in crowds, and what is on the way to them must not count as the service's fault.
        .max_concurrent_reset_streams(1024)
        .handshake(io)
        .await?;
    let driver = Box::pin(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a service broke");
        }
    });
    Ok(Opened { sender, driver })
}

fn to(authority: Authority) -> Uri {
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(http::uri::Scheme::HTTP);
    parts.authority = Some(authority);
    parts.path_and_query = Some(http::uri::PathAndQuery::from_static("/"));
    Uri::from_parts(parts).unwrap_or_default()
}

/// Host and port of `http://host:port`.
fn parts(address: &str) -> Result<(String, u16), String> {
    let uri = address.parse::<Uri>().map_err(|error| format!("{}: {error}", form(address)))?;
    match (uri.scheme_str(), uri.host(), uri.port_u16(), uri.path(), uri.query()) {
        (Some("http"), Some(host), Some(port), "/", None) if !host.is_empty() => {
            // An IPv6 address stands in brackets in a URL only.
            Ok((host.trim_matches(['[', ']']).to_owned(), port))
        }
        _ => Err(form(address)),
    }
}

fn form(address: &str) -> String {
    format!("{address:?} is no address of the form http://host:port")
}

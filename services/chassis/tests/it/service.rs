//! A service of the four kinds of method whose handlers the tests bring along, and a client for it. Messages are bytes.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::task::{Context, Poll};

use chassis::grpc::{CallLimits, Routes};
use chassis::{Listener, Server, ServerConfig, Shutdown};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use http::uri::PathAndQuery;
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use prost_types::method_options::IdempotencyLevel;
use prost_types::{
    FileDescriptorProto, FileDescriptorSet, MethodDescriptorProto, MethodOptions, ServiceDescriptorProto,
};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tonic::body::Body;
use tonic::client::{Grpc, GrpcService};
use tonic::server::NamedService;
use tonic::{IntoRequest, Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tonic_types::StatusExt;
use tower::service_fn;

pub(crate) type Bytes = Vec<u8>;
pub(crate) type Replies = BoxStream<'static, Result<Bytes, Status>>;
type Handler<M, R> = Arc<dyn Fn(Request<M>) -> BoxFuture<'static, Result<R, Status>> + Send + Sync>;

/// `test.Test`: each method says what it was asked until a test gives it something else to do.
#[derive(Clone)]
pub(crate) struct Test {
    unary: Handler<Bytes, Bytes>,
    down: Handler<Bytes, Replies>,
    up: Handler<Streaming<Bytes>, Bytes>,
    both: Handler<Streaming<Bytes>, Replies>,
}

/// The largest message that [`Test`] reads.
pub(crate) const LIMIT: usize = 1 << 20;

impl Test {
    pub(crate) fn new() -> Self {
        Self {
            unary: Arc::new(|request| Box::pin(async { Ok(request.into_inner()) })),
            down: Arc::new(|request| {
                Box::pin(async { Ok(stream::iter([Ok(request.into_inner())]).boxed()) })
            }),
            up: Arc::new(|request| {
                Box::pin(async {
                    let mut all = Vec::new();
                    let mut messages = request.into_inner();
                    while let Some(message) = messages.message().await? {
                        all.extend(message);
                    }
                    Ok(all)
                })
            }),
            both: Arc::new(|request| Box::pin(async { Ok(request.into_inner().boxed()) })),
        }
    }

    pub(crate) fn unary<F>(mut self, handler: impl Fn(Request<Bytes>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Bytes, Status>> + Send + 'static,
    {
        self.unary = Arc::new(move |request| Box::pin(handler(request)));
        self
    }

    pub(crate) fn down<S>(mut self, handler: impl Fn(Request<Bytes>) -> S + Send + Sync + 'static) -> Self
    where
        S: Stream<Item = Result<Bytes, Status>> + Send + 'static,
    {
        self.down = Arc::new(move |request| {
            let replies = handler(request).boxed();
            Box::pin(async { Ok(replies) })
        });
        self
    }

    /// Like [`Self::down`], for a handler that takes its time to begin.
    pub(crate) fn down_later<F>(
        mut self,
        handler: impl Fn(Request<Bytes>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Replies, Status>> + Send + 'static,
    {
        self.down = Arc::new(move |request| Box::pin(handler(request)));
        self
    }

    pub(crate) fn up<F>(
        mut self,
        handler: impl Fn(Request<Streaming<Bytes>>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Bytes, Status>> + Send + 'static,
    {
        self.up = Arc::new(move |request| Box::pin(handler(request)));
        self
    }
}

impl NamedService for Test {
    const NAME: &'static str = "test.Test";
}

impl tower::Service<http::Request<Body>> for Test {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let Self { unary, down, up, both } = self.clone();
        let codec = ProstCodec::<Bytes, Bytes>::default();
        let mut grpc = tonic::server::Grpc::new(codec).max_decoding_message_size(LIMIT);
        Box::pin(async move {
            let answer = match request.uri().path() {
                "/test.Test/Unary" => {
                    let unary = service_fn(|request| {
                        let reply = unary(request);
                        async { Ok::<_, Status>(Response::new(reply.await?)) }
                    });
                    grpc.unary(unary, request).await
                }
                "/test.Test/Down" => {
                    let down = service_fn(|request| {
                        let reply = down(request);
                        async { Ok::<_, Status>(Response::new(reply.await?)) }
                    });
                    grpc.server_streaming(down, request).await
                }
                "/test.Test/Up" => {
                    let up = service_fn(|request| {
                        let reply = up(request);
                        async { Ok::<_, Status>(Response::new(reply.await?)) }
                    });
                    grpc.client_streaming(up, request).await
                }
                "/test.Test/Both" => {
                    let both = service_fn(|request| {
                        let reply = both(request);
                        async { Ok::<_, Status>(Response::new(reply.await?)) }
                    });
                    grpc.streaming(both, request).await
                }
                _ => Status::unimplemented("").into_http(),
            };
            Ok(answer)
        })
    }
}

/// What a build would make of the `.proto` file of [`Test`].
pub(crate) fn descriptors() -> &'static [u8] {
    described(MethodOptions::default())
}

/// The same of a file that says that all methods can be called twice.
pub(crate) fn safe_descriptors() -> &'static [u8] {
    let level = Some(IdempotencyLevel::NoSideEffects.into());
    described(MethodOptions { idempotency_level: level, ..MethodOptions::default() })
}

fn described(options: MethodOptions) -> &'static [u8] {
    let method = |name: &str, up, down| MethodDescriptorProto {
        name: Some(name.to_owned()),
        input_type: Some(".google.protobuf.BytesValue".to_owned()),
        output_type: Some(".google.protobuf.BytesValue".to_owned()),
        client_streaming: Some(up),
        server_streaming: Some(down),
        options: Some(options.clone()),
    };
    let methods = vec![
        method("Unary", false, false),
        method("Down", false, true),
        method("Up", true, false),
        method("Both", true, true),
    ];
    let service =
        ServiceDescriptorProto { name: Some("Test".to_owned()), method: methods, ..Default::default() };
    let file = FileDescriptorProto {
        name: Some("test.proto".to_owned()),
        package: Some("test".to_owned()),
        service: vec![service],
        ..Default::default()
    };
    Vec::leak(FileDescriptorSet { file: vec![file] }.encode_to_vec())
}

pub(crate) fn routes(test: Test) -> Routes {
    limited(test, CallLimits::default())
}

pub(crate) fn limited(test: Test, limits: CallLimits) -> Routes {
    Routes::new(limits, descriptors()).service(test)
}

/// One thread, and times that no test lives to see.
pub(crate) fn config() -> ServerConfig {
    ServerConfig {
        threads: 1,
        grace_s: 3600.0,
        header_timeout_s: 3600.0,
        write_timeout_s: 3600.0,
        ..ServerConfig::default()
    }
}

/// A server on a free port of loopback.
pub(crate) struct Running {
    pub(crate) at: SocketAddr,
    pub(crate) shutdown: Shutdown,
    served: JoinHandle<io::Result<()>>,
}

impl Running {
    pub(crate) fn start(config: ServerConfig, add: impl FnOnce(Server, Listener) -> Server) -> Self {
        Self::on((Ipv4Addr::LOCALHOST, 0).into(), config, add)
    }

    pub(crate) fn on(
        at: SocketAddr,
        config: ServerConfig,
        add: impl FnOnce(Server, Listener) -> Server,
    ) -> Self {
        let listener = Listener::bind(at, NonZeroUsize::new(config.threads).unwrap()).unwrap();
        let (at, shutdown) = (listener.local_addr(), Shutdown::new());
        let server = add(Server::new(config, shutdown.clone()), listener);
        Self { at, shutdown, served: tokio::spawn(server.run()) }
    }

    pub(crate) fn grpc(test: Test) -> Self {
        Self::start(config(), |server, listener| server.grpc(listener, routes(test)))
    }

    /// Waits until the drain is over.
    pub(crate) async fn end(self) {
        assert!(self.shutdown.has_begun());
        self.served.await.unwrap().unwrap();
    }

    pub(crate) async fn stop(self) {
        self.shutdown.begin();
        self.end().await;
    }
}

/// A client of [`Test`].
#[derive(Clone)]
pub(crate) struct Client<T>(Grpc<T>);

impl Client<Plain> {
    pub(crate) async fn connect(at: SocketAddr) -> Self {
        Self::over(Plain::connect(at).await)
    }
}

impl<T: GrpcService<Body>> Client<T>
where
    T::ResponseBody: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    <T::ResponseBody as http_body::Body>::Error: Into<tonic::codegen::StdError>,
    T::Error: std::fmt::Debug,
{
    pub(crate) fn over(transport: T) -> Self {
        Self(Grpc::with_origin(transport, http::Uri::from_static("http://test")))
    }

    pub(crate) async fn unary(&mut self, request: impl IntoRequest<Bytes>) -> Result<Bytes, Status> {
        let path = PathAndQuery::from_static("/test.Test/Unary");
        Ok(self
            .0
            .unary(request.into_request(), path, ProstCodec::<Bytes, Bytes>::default())
            .await?
            .into_inner())
    }

    pub(crate) async fn down(
        &mut self,
        request: impl IntoRequest<Bytes>,
    ) -> Result<Streaming<Bytes>, Status> {
        let path = PathAndQuery::from_static("/test.Test/Down");
        let codec = ProstCodec::<Bytes, Bytes>::default();
        Ok(self.0.server_streaming(request.into_request(), path, codec).await?.into_inner())
    }

    pub(crate) async fn up(
        &mut self,
        messages: impl Stream<Item = Bytes> + Send + 'static,
    ) -> Result<Bytes, Status> {
        let path = PathAndQuery::from_static("/test.Test/Up");
        let codec = ProstCodec::<Bytes, Bytes>::default();
        Ok(self.0.client_streaming(Request::new(messages), path, codec).await?.into_inner())
    }

    pub(crate) async fn both(
        &mut self,
        messages: impl Stream<Item = Bytes> + Send + 'static,
    ) -> Result<Streaming<Bytes>, Status> {
        let path = PathAndQuery::from_static("/test.Test/Both");
        let codec = ProstCodec::<Bytes, Bytes>::default();
        Ok(self.0.streaming(Request::new(messages), path, codec).await?.into_inner())
    }
}

/// One HTTP/2 connection with no habits of its own: tonic's looks at `grpc-timeout` itself.
#[derive(Clone)]
pub(crate) struct Plain(SendRequest<Body>);

impl Plain {
    pub(crate) async fn connect(at: SocketAddr) -> Self {
        let stream = TcpStream::connect(at).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self::over(stream).await
    }

    pub(crate) async fn over<I>(io: I) -> Self
    where
        I: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let builder = http2::Builder::new(TokioExecutor::new());
        let (sender, connection) = builder.handshake(TokioIo::new(io)).await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }
}

impl tower::Service<http::Request<Body>> for Plain {
    type Response = http::Response<Incoming>;
    type Error = hyper::Error;
    type Future = BoxFuture<'static, hyper::Result<http::Response<Incoming>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

/// How a stream ends, whenever that is.
pub(crate) async fn end_of(replies: Result<Streaming<Bytes>, Status>) -> Status {
    let mut replies = match replies {
        Ok(replies) => replies,
        Err(status) => return status,
    };
    loop {
        match replies.message().await {
            Ok(reply) => assert_eq!(reply.unwrap(), b"a"),
            Err(status) => return status,
        }
    }
}

/// The reason that a refusal names.
pub(crate) fn reason(status: &Status) -> String {
    status.get_details_error_info().map(|info| info.reason).unwrap_or_default()
}

/// Tells when it is dropped.
pub(crate) struct Dropped(pub(crate) Arc<tokio::sync::Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

//! What every service of the suite needs and no business: listening, deadlines, shutdown, health, calls to other
//! services, telemetry.
//!
//! Nothing else in the tree touches a socket or a signal. The crate keeps no process-wide state: two suites with
//! different settings run in one process.

pub mod call;
pub mod grpc;
pub mod metrics;
pub mod origin;
pub mod page;
pub mod probe;
mod quota;
pub mod server;
pub mod shutdown;
pub mod telemetry;
pub mod upstream;
mod work;

pub use call::Deadline;
pub use quota::Quota;
pub use server::{Listener, Need, Server, ServerConfig};
pub use shutdown::Shutdown;
pub use upstream::Upstream;
pub use work::Work;

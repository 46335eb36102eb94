//! The binary of the suite: subcommands and wiring, nothing else.

mod apart;
mod banner;
mod compare;
mod metrics;
mod up;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use chassis::telemetry::LogFormat;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EXAMPLES: &str = "\
Examples:
  bookstore up                          the whole suite in one process, on http://127.0.0.1:5300
  bookstore up --port 8080              the same on another port
  bookstore inventory                   one service, on port 5312
  bookstore rest-facade                 the REST edge, calling the services on their ports
  bookstore compare                     what each API style costs here, in about three minutes
  bookstore health grpc://127.0.0.1:5312
  bookstore schema > schema.graphql
";

/// A bookstore with three API styles over one business: REST, GraphQL and gRPC
#[derive(Debug, Parser)]
#[command(version, before_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    /// What to log, as `level` or `target=level,...`
    #[arg(long, env = "BOOKSTORE_LOG", default_value = "info", global = true)]
    log: String,

    /// How to log
    #[arg(long, env = "BOOKSTORE_LOG_FORMAT", default_value = "text", global = true)]
    log_format: LogFormat,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the whole suite in this process, its data in memory
    Up(Box<up::Args>),
    /// Run catalog: books, authors, reviews
    Catalog(apart::CatalogArgs),
    /// Run inventory: stock and reservations
    Inventory(apart::InventoryArgs),
    /// Run ordering
    Ordering(apart::OrderingArgs),
    /// Run the GraphQL edge over running services
    GraphqlBff(apart::GraphqlArgs),
    /// Run the REST edge over running services
    RestFacade(apart::RestArgs),
    /// Measure what each API style costs on this machine, and write a report
    Compare(Box<bench::Args>),
    /// Exit 0 when the server at this URL is ready: http://host:port/readyz or grpc://host:port
    Health {
        /// Where to ask
        url: String,
        /// Seconds to wait for the answer
        #[arg(long, default_value_t = 2)]
        timeout_s: u16,
    },
    /// Print the OpenAPI document of the REST edge
    Openapi,
    /// Print the GraphQL schema
    Schema,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    if let Err(error) = chassis::telemetry::init(&cli.log, cli.log_format) {
        return fail(&anyhow::anyhow!(error), 2);
    }
    let Some(command) = cli.command else {
        return print(&Cli::command().render_help().to_string());
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into(), 1),
    };
    let result = runtime.block_on(async {
        match command {
            Command::Up(args) => up::run(*args).await,
            Command::Catalog(args) => args.run().await,
            Command::Inventory(args) => args.run().await,
            Command::Ordering(args) => args.run().await,
            Command::GraphqlBff(args) => args.run().await,
            Command::RestFacade(args) => args.run().await,
            Command::Compare(args) => return compare::run(*args).await,
            Command::Health { url, timeout_s } => {
                let limit = Duration::from_secs(timeout_s.into());
                chassis::probe::probe(&url, limit).await.map_err(anyhow::Error::msg)
            }
            Command::Openapi => {
                print(&rest_facade::openapi());
                Ok(())
            }
            Command::Schema => {
                print(&graphql_bff::sdl());
                Ok(())
            }
        }
        .map(|()| 0)
    });
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => fail(&error, 1),
    }
}

/// Prints the help that was asked for, or what is wrong with the command line; for an unknown flag, which there are.
fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    if error.kind() == ErrorKind::UnknownArgument {
        let commands = Cli::command();
        let named = std::env::args().skip(1).find_map(|word| commands.find_subcommand(word));
        let shown = named.unwrap_or(&commands).get_arguments().filter(|flag| !flag.is_hide_set());
        let flags: Vec<String> =
            shown.filter_map(|flag| flag.get_long()).map(|name| format!("--{name}")).collect();
        let _ = writeln!(std::io::stderr(), "\nFlags: {}", flags.join(", "));
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// A reader that has gone, as `| head` does, is no failure.
fn print(text: &str) -> ExitCode {
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn fail(error: &anyhow::Error, code: u8) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "bookstore: {error:#}");
    ExitCode::from(code)
}

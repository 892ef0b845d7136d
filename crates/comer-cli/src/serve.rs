//! `comer serve`: a web page to write on, and an HTTP API.

mod answer;
mod api;
mod batch;
mod body;
mod connection;
mod data_url;
mod guard;
mod key;
mod limits;
mod listen;
mod metrics;
mod middleware;
mod network;
mod origin;
mod page;
mod problem;
mod queue;
mod request;
mod state;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use axum::Router;
use axum::routing::{get, post};
use comer::Recognizer;
use tokio::net::TcpListener;

use crate::args::ModelArgs;
use crate::output::message;
use key::Keys;
use limits::Limits;
use state::State;

/// Serve a web page to write formulas on, and an HTTP API.
///
/// The page is part of the program and loads nothing from elsewhere; requests are not stored. Each request is logged to
/// stderr. SIGTERM and Ctrl-C stop the server after the requests in progress.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer serve                                # then open http://127.0.0.1:8765
  comer serve --listen 0.0.0.0:8765          # for a phone in the same network
  curl -F image=@photo.jpg http://127.0.0.1:8765/api/recognize
  curl -F image=@a.jpg -F image=@b.png http://127.0.0.1:8765/api/recognize/batch")]
pub struct Arguments {
    #[command(flatten)]
    model: ModelArgs,
    /// Port, or address and port, to listen on: 8765, localhost:8765, 0.0.0.0:8765. Port 0 picks a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8765", value_parser = listen::parse)]
    listen: SocketAddr,
    /// Formulas recognized at the same time, each on one core [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Requests that may wait for a core. Excess requests get 503 with Retry-After.
    #[arg(long, value_name = "N", default_value_t = Limits::default().queue)]
    queue: usize,
    /// Largest request body in MiB.
    #[arg(long, value_name = "N", default_value_t = Limits::default().body >> 20)]
    max_body: usize,
    /// Time limit of a request in seconds, waiting included.
    #[arg(long, value_name = "N", default_value_t = Limits::default().work_time.as_secs())]
    max_seconds: u64,
    /// Allow pages of this origin (such as https://example.org) to use the API; may be repeated.
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Accept requests for this host name (such as example.org), beside addresses and localhost; may be repeated.
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Require a key of this file (one per line) as Authorization: Bearer KEY, except for /api/health.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Do not log requests.
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = arguments.threads.unwrap_or(cores);
    if !(1..=1024).contains(&threads) {
        bail!("--threads {threads}: expected 1 to 1024");
    }
    let limits = Limits {
        queue: arguments.queue,
        body: arguments.max_body << 20,
        work_time: Duration::from_secs(arguments.max_seconds),
        ..Limits::default()
    };
    limits.validate()?;
    let origins = arguments.allow_origin.iter().map(|origin| origin::parse(origin)).collect::<Result<_>>()?;
    let hosts = arguments.allow_host.iter().map(|host| origin::parse_host(host)).collect::<Result<_>>()?;
    let recognizer = arguments.model.open()?;
    let mut state = State::new(recognizer, limits, threads, origins, hosts, !arguments.quiet);
    if let Some(path) = &arguments.key_file {
        state.keys = Keys::open(path)?;
    }
    let state = Arc::new(state);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.min(4))
        // Every running recognition has a thread.
        .max_blocking_threads(threads + 1)
        .enable_all()
        .build()
        .context("the threads could not be started")?;
    runtime.block_on(async {
        let listener = TcpListener::bind(arguments.listen)
            .await
            .with_context(|| format!("--listen {}: cannot listen there", arguments.listen))?;
        message(format_args!("listening on http://{} (Ctrl-C stops)", listener.local_addr()?));
        if let Some(lines) = network::describe(listener.local_addr()?) {
            message(lines);
        }
        connection::serve(listener, app(state.clone()), state.limits, stop_signal()?).await;
        message("stopped");
        Ok(ExitCode::SUCCESS)
    })
}

/// The routes without a socket, for fuzzing.
pub fn router(recognizer: Recognizer) -> Router {
    app(Arc::new(State::new(recognizer, Limits::default(), 1, Vec::new(), Vec::new(), false)))
}

/// The routes.
fn app(state: Arc<State>) -> Router {
    let page = page::FILES.iter().fold(Router::new(), |router, file| {
        router.route(file.path, get(move || std::future::ready(file.response())))
    });
    page.route("/api/recognize", post(api::recognize))
        .route("/api/recognize/batch", post(batch::recognize))
        .route("/api/mathml", post(api::mathml))
        .route("/api/health", get(api::health))
        .route("/api/model", get(api::model))
        .route("/api/openapi.json", get(api::openapi))
        .route("/metrics", get(api::metrics))
        .fallback(api::not_found)
        .method_not_allowed_fallback(api::not_allowed)
        .layer(axum::middleware::from_fn_with_state(state.clone(), middleware::handle))
        .with_state(state)
}

/// Completes on SIGTERM or Ctrl-C.
fn stop_signal() -> Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        Ok(async move {
            tokio::select! {
                _ = terminate.recv() => (),
                _ = interrupt.recv() => (),
            }
        })
    }
    #[cfg(not(unix))]
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}

//! `comer serve`: a page to write on, and the same over HTTP for programs.

mod answer;
mod api;
mod around;
mod body;
mod connection;
mod limits;
mod metrics;
mod page;
mod problem;
mod queue;
mod request;
mod state;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use axum::Router;
use axum::routing::{get, post};
use tokio::net::TcpListener;

use crate::common::ModelArgument;
use limits::Limits;
use state::State;

/// Write formulas on a page in the browser, and read them over HTTP.
///
/// The page is part of the program: nothing is loaded from elsewhere, and nothing that is sent here is kept. Talk (one
/// line a request) goes to stderr. SIGTERM and Ctrl-C end it when what it began is done.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer serve                                # then open http://127.0.0.1:8765
  comer serve --listen 0.0.0.0:8765          # for a phone in the same network
  curl -F image=@photo.jpg http://127.0.0.1:8765/api/recognize")]
pub struct Arguments {
    #[command(flatten)]
    model: ModelArgument,
    /// Address and port; only this machine unless told otherwise. Port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8765")]
    listen: SocketAddr,
    /// Formulas read at the same time, each on one core [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Requests that may wait for a core; more are told to come again.
    #[arg(long, value_name = "N", default_value_t = Limits::default().queue)]
    queue: usize,
    /// Most mebibytes of a request.
    #[arg(long, value_name = "N", default_value_t = Limits::default().body >> 20)]
    max_body: usize,
    /// Most seconds that a request may take, its waiting included.
    #[arg(long, value_name = "N", default_value_t = Limits::default().work_time.as_secs())]
    max_seconds: u64,
    /// Let pages of this origin (such as https://example.org) use the interface; may be given several times.
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Do not write a line for each request.
    #[arg(long)]
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
    let origins =
        arguments.allow_origin.iter().map(|origin| around::origin(origin)).collect::<Result<_>>()?;
    let recognizer = arguments.model.open()?;
    let state = Arc::new(State::new(recognizer, limits, threads, origins, !arguments.quiet));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.min(4))
        // Every recognition that may run has its thread at once.
        .max_blocking_threads(threads + 1)
        .enable_all()
        .build()
        .context("the threads could not be started")?;
    runtime.block_on(async {
        let listener = TcpListener::bind(arguments.listen)
            .await
            .with_context(|| format!("--listen {}: cannot listen there", arguments.listen))?;
        eprintln!("comer: write on http://{} (Ctrl-C ends)", listener.local_addr()?);
        connection::serve(listener, app(state.clone()), state.limits, stop_signal()?).await;
        eprintln!("comer: ended");
        Ok(ExitCode::SUCCESS)
    })
}

/// All that is served.
pub fn app(state: Arc<State>) -> Router {
    let page = page::FILES.iter().fold(Router::new(), |router, file| {
        router.route(file.path, get(move || std::future::ready(file.response())))
    });
    page.route("/api/recognize", post(api::recognize))
        .route("/api/mathml", post(api::mathml))
        .route("/api/health", get(api::health))
        .route("/api/model", get(api::model))
        .route("/api/openapi.json", get(api::openapi))
        .route("/metrics", get(api::metrics))
        .fallback(api::not_found)
        .method_not_allowed_fallback(api::not_allowed)
        .layer(axum::middleware::from_fn_with_state(state.clone(), around::around))
        .with_state(state)
}

/// Ends when the program is told to.
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

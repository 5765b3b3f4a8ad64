//! The local server: serves the pages of the book from memory, to this computer only or, at a given address, to a
//! classroom.
//!
//! Clients can request only the built files: a request is looked up among the pages and never becomes a path on disk.
//! Slow or malicious clients get bounded memory and time, and never delay other clients.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::http::uri::Authority;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use crate::clients::{Clients, Moved, Watched};
use crate::html;
use crate::publish::Missing;
use crate::room::Place;

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum number of open connections. Beyond it, the longest idle connection is closed.
    pub connections: usize,
    /// The maximum size of a request head, in bytes: at least 8192.
    pub head_bytes: usize,
    /// The maximum time for the head to arrive.
    pub head_time: Duration,
    /// The maximum lifetime of a connection. A client that has not read the answer by then no longer wants it.
    pub connection_time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 128,
            head_bytes: 16 << 10,
            head_time: Duration::from_secs(5),
            connection_time: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// Thirty browsers at once, each loading a page of about forty files, over a network slower than loopback.
    pub fn of_a_room() -> Limits {
        Limits { connections: 1024, connection_time: Duration::from_secs(120), ..Limits::default() }
    }
}

/// The size of the socket's send buffer, which holds the answer for a client that does not read.
const SEND_BUFFER: u32 = 256 << 10;

/// The maximum number of clients that the system queues until they are accepted.
const BACKLOG: u32 = 1024;

/// The path that every page polls each second: the book's version, and why there is no newer one.
const VERSION: &str = "/__version";

/// The path that pages without a module poll each second: JSON with the reason for each missing module.
const MISSING: &str = "/__missing";

/// Reloads the page after the book is rebuilt.
const RELOAD: &str = "<script src=\"/__reload.js\"></script>";

/// The path of that script. It is a file because the page's policy would have to name an inline script.
const RELOAD_PATH: &str = "/__reload.js";
const RELOAD_SCRIPT: &str = r#"(() => {
  const note = document.getElementById("mistakes") ?? document.createElement("pre");
  note.style = "position:fixed;inset:auto 0 0 0;margin:0;padding:1em;background:#b00020;color:#fff;white-space:pre-wrap";
  const ask = address => fetch(address).then(answer => answer.text()).catch(() => null);
  let first;
  setInterval(async () => {
    const answer = await ask("/__version");
    if (answer === null) return;
    const [version, mistakes] = answer.split(/\n(.*)/s);
    if (first !== undefined && first !== version) location.reload();
    first = version;
    note.textContent = mistakes;
    if (mistakes) document.body.append(note); else note.remove();
    await tellWhatIsMissing();
  }, 1000);

  // Why something does not run yet, where it will run. Once it does the page is loaded again, unless something has been run in it.
async function tellWhatIsMissing() {
    const places = document.querySelectorAll(".run-missing[data-module]");
    const answer = places.length > 0 ? await ask("/__missing") : null;
    if (answer === null) return;
    const missing = JSON.parse(answer), ready = [...places].filter(place => missing[place.dataset.module] === undefined);
    if (ready.length > 0 && !document.querySelector(".run-live:not([hidden]), [aria-busy=true]")) location.reload();
    for (const place of places) {
      const words = missing[place.dataset.module] ?? "It is compiled now: load this page again.";
      if (place.textContent !== words) place.textContent = words;
    }
  }
})();
"#;

pub struct BookServer {
    runtime: Runtime,
    listener: Arc<TcpListener>,
    place: Arc<Place>,
    limits: Limits,
    shown: Arc<Mutex<Shown>>,
    stopped: Notify,
}

struct Shown {
    /// Empty before the first build.
    pages: BTreeMap<String, Bytes>,
    version: u128,
    mistakes: String,
    missing: Missing,
}

impl BookServer {
    /// Starts listening, on this computer only. Port 0 picks any free port.
    pub fn start(port: u16, limits: Limits) -> Result<BookServer, String> {
        let cannot = |error| format!("port {port} cannot be used: {error}; try --port");
        BookServer::listening(Place::loopback(port), limits).map_err(cannot)
    }

    /// Starts listening at an address that others may reach.
    pub fn start_at(place: Place, limits: Limits) -> Result<BookServer, String> {
        let address = place.address;
        let cannot = |error| {
            format!(
                "--listen {address}: this cannot be used: {error}; expected an address of this computer, with a free port"
            )
        };
        BookServer::listening(place, limits).map_err(cannot)
    }

    fn listening(mut place: Place, limits: Limits) -> io::Result<BookServer> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let listener = runtime.block_on(async { listen(place.address) })?;
        place.address = listener.local_addr()?;
        // Differs from the version of any earlier server whose pages are still open in browsers.
        let version = UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_millis());
        let (pages, mistakes, missing) = (BTreeMap::new(), String::new(), Missing::default());
        let shown = Arc::new(Mutex::new(Shown { pages, version, mistakes, missing }));
        let (listener, stopped) = (Arc::new(listener), Notify::new());
        Ok(BookServer { runtime, listener, place: Arc::new(place), limits, shown, stopped })
    }

    pub fn address(&self) -> SocketAddr {
        self.place.address
    }

    /// Serves these pages from now on. Browsers reload automatically.
    pub fn show(&self, pages: BTreeMap<String, Vec<u8>>) {
        let mut shown = self.shown();
        (shown.pages, shown.mistakes) = (reloading(pages), String::new());
        shown.version += 1;
    }

    /// Serves pages that will not change and do not poll for newer ones.
    pub fn show_permanently(&self, pages: BTreeMap<String, Vec<u8>>) {
        self.shown().pages = pages.into_iter().map(|(path, bytes)| (path, Bytes::from(bytes))).collect();
    }

    /// Serves the same pages with another module. Only pages that wait for it reload.
    pub fn show_with_module(&self, pages: BTreeMap<String, Vec<u8>>) {
        self.shown().pages = reloading(pages);
    }

    /// Keeps serving the current pages, and shows in them why there are no newer ones.
    pub fn show_mistakes(&self, mistakes: &str) {
        self.shown().mistakes = mistakes.to_owned();
    }

    /// Shows in the pages why something does not run yet.
    pub fn show_missing(&self, missing: Missing) {
        self.shown().missing = missing;
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers requests, until [`stop`](BookServer::stop).
    pub fn serve(&self) {
        let (listener, shown) = (self.listener.clone(), self.shown.clone());
        let accepting = self.runtime.spawn(accept(listener, self.place.clone(), self.limits, shown));
        self.runtime.block_on(self.stopped.notified());
        accepting.abort();
    }

    pub fn stop(&self) {
        self.stopped.notify_one();
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv6() { TcpSocket::new_v6()? } else { TcpSocket::new_v4()? };
    // On Windows, this option would let other programs listen on the same address.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SEND_BUFFER)?; // Accepted sockets inherit it.
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn reloading(pages: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Bytes> {
    let with_script = |(path, mut bytes): (String, Vec<u8>)| {
        if path.ends_with(".html") {
            bytes.extend_from_slice(RELOAD.as_bytes());
        }
        (path, Bytes::from(bytes))
    };
    pages.into_iter().map(with_script).collect()
}

async fn accept(listener: Arc<TcpListener>, place: Arc<Place>, limits: Limits, shown: Arc<Mutex<Shown>>) {
    let mut clients = Clients::default();
    loop {
        let accepted = listener.accept().await;
        clients.make_room(limits.connections).await;
        let Ok((stream, _)) = accepted else {
            sleep(Duration::from_millis(100)).await; // Probably too many open files.
            continue;
        };
        let moved = Moved::now();
        let client = Watched { stream, moved: moved.clone() };
        // Ignores errors from clients that disconnect or are disconnected.
        let served =
            timeout(limits.connection_time, serve_client(client, place.clone(), limits, shown.clone()));
        clients.add(tokio::spawn(served).abort_handle(), moved);
        yield_now().await; // It may be able to answer at once.
    }
}

async fn serve_client(
    client: Watched,
    place: Arc<Place>,
    limits: Limits,
    shown: Arc<Mutex<Shown>>,
) -> Result<(), hyper::Error> {
    let answered = service_fn(|request| {
        let shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        ready(Ok::<_, Infallible>(answer(&request, &shown, &place)))
    });
    http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(limits.head_bytes)
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .serve_connection(TokioIo::new(client), answered)
        .await
}

fn answer(request: &Request<Incoming>, shown: &Shown, place: &Place) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET");
    }
    if !is_own_host(request, place) {
        return plain(StatusCode::FORBIDDEN, &format!("only http://{}", place.address));
    }
    let path = request.uri().path();
    if path == VERSION {
        return plain(StatusCode::OK, &format!("{}\n{}", shown.version, shown.mistakes));
    }
    if path == MISSING {
        return of_type("application/json", StatusCode::OK, shown.missing.to_json().into());
    }
    if path == RELOAD_PATH {
        return of_type(content_type(RELOAD_PATH), StatusCode::OK, RELOAD_SCRIPT.into());
    }
    if shown.pages.is_empty() {
        return not_built_yet(&shown.mistakes);
    }
    let Some(path) = path.strip_prefix('/') else { return plain(StatusCode::BAD_REQUEST, "no path") };
    let file =
        if path.is_empty() || path.ends_with('/') { format!("{path}index.html") } else { path.to_owned() };
    let (status, file) = match shown.pages.contains_key(&file) {
        true => (StatusCode::OK, file.as_str()),
        false => (StatusCode::NOT_FOUND, "404.html"),
    };
    match shown.pages.get(file) {
        Some(bytes) => of_type(content_type(file), status, bytes.clone()),
        None => plain(status, "no such page"),
    }
}

/// Whether the browser means this server. A foreign page whose host name resolves to this computer does not (DNS
/// rebinding).
fn is_own_host(request: &Request<Incoming>, place: &Place) -> bool {
    let ours =
        |host: &[u8]| Authority::try_from(host).is_ok_and(|host| place.matches(&host, place.address.port()));
    let mut hosts = request.headers().get_all(HOST).iter().map(HeaderValue::as_bytes);
    let named = request.uri().authority().map(|authority| authority.as_str().as_bytes());
    hosts.next().is_some_and(ours) && hosts.chain(named).all(ours)
}

/// The response before the first successful build: a page, so that it can reload.
fn not_built_yet(mistakes: &str) -> Response<Full<Bytes>> {
    let says = match mistakes {
        "" => "<h1>The book is being built</h1><p>This page shows it when it is ready: within a minute, if the computer has \
               nothing else to do.</p>"
            .to_owned(),
        _ => {
            format!(
                "<h1>The book cannot be built</h1><pre id=\"mistakes\" translate=\"no\">{}</pre>",
                html::escape(mistakes)
            )
        }
    };
    let page = format!("<!doctype html><html lang=\"en\"><title>To Device</title><body>{says}{RELOAD}");
    of_type("text/html; charset=utf-8", StatusCode::SERVICE_UNAVAILABLE, page.into())
}

fn plain(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    of_type("text/plain; charset=utf-8", status, text.to_owned().into())
}

fn of_type(content_type: &'static str, status: StatusCode, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers =
        [(CONTENT_TYPE, content_type), (CACHE_CONTROL, "no-store"), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    response.headers_mut().extend(headers.map(|(name, value)| (name, HeaderValue::from_static(value))));
    response
}

fn content_type(file: &str) -> &'static str {
    match file.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

//! The local server: the pages of the book, from memory, to this computer alone.
//!
//! What can be asked for is what was built: a request is looked up among the pages and never becomes a path on
//! the disk.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use tiny_http::{Header, Method, Request, Response, Server};

use crate::html;

/// Asked by every page, each second: which version of the book is served, and why there is no newer one.
const VERSION: &str = "/__version";

/// Loads the page again when the book has been built again.
const RELOAD: &str = r#"<script>
(() => {
  const note = document.getElementById("mistakes") ?? document.createElement("pre");
  note.style = "position:fixed;inset:auto 0 0 0;margin:0;padding:1em;background:#b00020;color:#fff;white-space:pre-wrap";
  let first;
  setInterval(async () => {
    const answer = await fetch("/__version").then(answer => answer.text()).catch(() => null);
    if (answer === null) return;
    const [version, mistakes] = answer.split(/\n(.*)/s);
    if (first !== undefined && first !== version) location.reload();
    first = version;
    note.textContent = mistakes;
    if (mistakes) document.body.append(note); else note.remove();
  }, 1000);
})();
</script>"#;

/// A server of the book.
pub struct BookServer {
    server: Server,
    address: SocketAddr,
    shown: Mutex<Shown>,
}

/// What it shows.
struct Shown {
    /// None before the first build.
    pages: BTreeMap<String, Vec<u8>>,
    version: u128,
    mistakes: String,
}

impl BookServer {
    /// Starts to listen, on this computer only. Port 0 is any that is free.
    pub fn start(port: u16) -> Result<BookServer, String> {
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let server = Server::http(wanted)
            .map_err(|error| format!("port {port} cannot be used: {error}; try --port"))?;
        let address = server.server_addr().to_ip().ok_or("no address of the network")?;
        // No version of a server that ran before, whose pages are still open in browsers.
        let version = UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_millis());
        let shown = Shown { pages: BTreeMap::new(), version, mistakes: String::new() };
        Ok(BookServer { server, address, shown: Mutex::new(shown) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shows these pages from now on; browsers load them by themselves.
    pub fn show(&self, pages: BTreeMap<String, Vec<u8>>) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        *shown = Shown { pages, version: shown.version + 1, mistakes: String::new() };
    }

    /// Goes on showing the pages it has, and says in them why there are no newer ones.
    pub fn show_mistakes(&self, mistakes: &str) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).mistakes = mistakes.to_owned();
    }

    /// Answers requests, until [`stop`](BookServer::stop).
    pub fn serve(&self) {
        for request in self.server.incoming_requests() {
            let answer = self.answer(&request);
            // A browser that went away is no trouble.
            let _ = request.respond(answer);
        }
    }

    /// Ends [`serve`](BookServer::serve).
    pub fn stop(&self) {
        self.server.unblock();
    }

    fn answer(&self, request: &Request) -> Response<Cursor<Vec<u8>>> {
        if !matches!(request.method(), Method::Get | Method::Head) {
            return plain(405, "only GET");
        }
        if !self.is_for_us(request) {
            return plain(403, "only this computer");
        }
        let path = request.url().split(['?', '#']).next().unwrap_or_default();
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if path == VERSION {
            return plain(200, &format!("{}\n{}", shown.version, shown.mistakes));
        }
        if shown.pages.is_empty() {
            return no_pages_yet(&shown.mistakes);
        }
        let Some(path) = path.strip_prefix('/') else { return plain(400, "no path") };
        let file = if path.is_empty() || path.ends_with('/') {
            format!("{path}index.html")
        } else {
            path.to_owned()
        };
        let (code, file) =
            if shown.pages.contains_key(&file) { (200, file) } else { (404, "404.html".to_owned()) };
        let Some(bytes) = shown.pages.get(&file) else {
            return plain(404, "no such page");
        };
        let mut bytes = bytes.clone();
        if file.ends_with(".html") {
            bytes.extend_from_slice(RELOAD.as_bytes());
        }
        with_type(Response::from_data(bytes).with_status_code(code), content_type(&file))
    }

    /// Whether the browser means this server. A page of others whose name leads to this computer does not.
    fn is_for_us(&self, request: &Request) -> bool {
        let host = request.headers().iter().find(|header| header.field.equiv("Host"));
        let port = self.address.port();
        host.is_some_and(|host| {
            [format!("localhost:{port}"), format!("127.0.0.1:{port}")]
                .iter()
                .any(|name| host.value == name.as_str())
        })
    }
}

/// Before the first build has ended, and after it has failed: a page, so that it can load itself again.
fn no_pages_yet(mistakes: &str) -> Response<Cursor<Vec<u8>>> {
    let says = match mistakes {
        "" => "<h1>The book is being built</h1>".to_owned(),
        _ => {
            format!("<h1>The book cannot be built</h1><pre id=\"mistakes\">{}</pre>", html::escape(mistakes))
        }
    };
    let page = format!("<!doctype html><html lang=\"en\"><title>To Device</title><body>{says}{RELOAD}");
    with_type(Response::from_data(page).with_status_code(503), "text/html; charset=utf-8")
}

fn plain(code: u16, text: &str) -> Response<Cursor<Vec<u8>>> {
    with_type(Response::from_data(text).with_status_code(code), "text/plain; charset=utf-8")
}

fn with_type(response: Response<Cursor<Vec<u8>>>, content_type: &str) -> Response<Cursor<Vec<u8>>> {
    let headers = [
        ("Content-Type", content_type),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
    ];
    headers
        .iter()
        .filter_map(|(name, value)| Header::from_bytes(*name, *value).ok())
        .fold(response, Response::with_header)
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

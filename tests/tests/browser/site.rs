//! The book as its readers get it: built like in the publishing workflow, and served from a subfolder of a site, where
//! root-relative links are broken.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::{fs, thread};

use tiny_http::{Header, Response, Server};

/// The subfolder of the site.
const AT: &str = "/to-device/";

/// Pages on a local server.
pub struct Site {
    pub folder: PathBuf,
    url: String,
}

/// The book, built and served on first use.
pub static BOOK: LazyLock<Site> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    let build = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--locked", "--bin", "book", "--", "build", "--dest-dir"])
        .arg(&folder)
        .env("MDBOOK_OUTPUT__HTML__SITE_URL", AT)
        // From the root: Cargo would select other features for a single package, and recompile everything.
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .unwrap();
    assert!(build.status.success(), "the book does not build:\n{}", String::from_utf8_lossy(&build.stderr));
    Site::serve(folder)
});

impl Site {
    /// Serves a folder until the tests end.
    pub fn serve(folder: PathBuf) -> Site {
        let server = Server::http((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}{AT}", server.server_addr());
        let served = folder.clone();
        thread::spawn(move || {
            for request in server.incoming_requests() {
                let (code, file) = match file(&served, request.url()) {
                    Some(file) => (200, file),
                    // As GitHub Pages does.
                    None => (404, served.join("404.html")),
                };
                let kind = Header::from_bytes("Content-Type", content_type(&file)).expect("a header");
                let bytes = fs::read(&file).unwrap_or_default();
                // Ignore browsers that have disconnected.
                let _ = request.respond(Response::from_data(bytes).with_status_code(code).with_header(kind));
            }
        });
        Site { folder, url }
    }

    /// The URL of a page, such as `labs/lab-03.html`.
    pub fn url(&self, page: &str) -> String {
        format!("{}{page}", self.url)
    }

    /// All pages, in order. Generated pages of one kind, from the table of errors or from the plan, are represented by
    /// a sample.
    pub fn pages(&self) -> Vec<String> {
        let mut pages = Vec::new();
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "html") && !leads_on(&path) {
                    let page = path.strip_prefix(&self.folder).unwrap();
                    let page = page.to_str().expect("a name in UTF-8").replace('\\', "/");
                    let id = page.strip_prefix("errors/").and_then(|page| page.strip_suffix(".html"));
                    let is_made = errors::KINDS.iter().any(|kind| Some(kind.id) == id && kind.code.is_none());
                    let of_guide =
                        ["teaching/sheet-", "teaching/session-"].iter().any(|begin| page.starts_with(begin));
                    let stands_for_all =
                        ["teaching/sheet-03.html", "teaching/session-2.html"].contains(&page.as_str());
                    let is_left_out = is_made || of_guide && !stands_for_all;
                    if !is_left_out || matches!(id, Some("device-assert" | "scalar-type")) {
                        pages.push(page);
                    }
                }
            }
        }
        pages.sort();
        pages
    }
}

/// A server that can go away, as a network does: it keeps no connection open.
pub struct ClosingSite {
    url: String,
    is_open: Arc<AtomicBool>,
    address: SocketAddr,
}

impl ClosingSite {
    pub fn serve(folder: PathBuf) -> ClosingSite {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let is_open = Arc::new(AtomicBool::new(true));
        let goes_on = is_open.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                if !goes_on.load(Ordering::SeqCst) {
                    break;
                }
                let folder = folder.clone();
                // Ignore browsers that have disconnected.
                thread::spawn(move || client.and_then(|client| answer(client, &folder)));
            }
        });
        ClosingSite { url: format!("http://{address}{AT}"), is_open, address }
    }

    /// The URL of a page.
    pub fn url(&self, page: &str) -> String {
        format!("{}{page}", self.url)
    }

    /// Stops the server.
    pub fn close(&self) {
        self.is_open.store(false, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address); // Wake it up.
        while TcpStream::connect(self.address).is_ok() {
            thread::yield_now();
        }
    }
}

fn answer(mut client: TcpStream, folder: &Path) -> io::Result<()> {
    let mut head = String::new();
    let mut reader = BufReader::new(client.try_clone()?);
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head)? > 0 {}
    let url = head.split(' ').nth(1).unwrap_or_default();
    let (status, file) = match file(folder, url) {
        Some(file) => ("200 OK", file),
        None => ("404 Not Found", folder.join("404.html")),
    };
    let bytes = fs::read(&file)?;
    let (kind, length) = (content_type(&file), bytes.len());
    write!(
        client,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    client.write_all(&bytes)
}

/// The file that a URL refers to.
fn file(folder: &Path, url: &str) -> Option<PathBuf> {
    let path = url.split('?').next()?.strip_prefix(AT)?;
    let file = folder.join(if path.is_empty() { "index.html" } else { path });
    file.is_file().then_some(file)
}

/// Whether a page only redirects from an old address to a new one.
fn leads_on(page: &Path) -> bool {
    fs::read_to_string(page).unwrap().contains("http-equiv=\"refresh\"")
}

fn content_type(file: &Path) -> &'static str {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        Some("wasm") => "application/wasm",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    }
}

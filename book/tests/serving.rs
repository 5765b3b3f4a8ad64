//! The local server: what it gives, to whom, and what not.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::thread;

use book::server::BookServer;

fn pages(pairs: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
    pairs.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
}

/// Runs a test against a server with a few pages.
fn with_server(test: impl FnOnce(&BookServer)) {
    let server = BookServer::start(0).unwrap();
    server.show(pages(&[
        ("index.html", "<h1>Home"),
        ("labs/lab-03.html", "Lab"),
        ("a.css", "b{}"),
        ("404.html", "Lost"),
    ]));
    thread::scope(|scope| {
        scope.spawn(|| server.serve());
        // Also when the test panics, so that it ends.
        struct Stop<'a>(&'a BookServer);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.stop();
            }
        }
        let stop = Stop(&server);
        test(stop.0);
    });
}

/// The answer to a request, its head and body together.
fn ask(server: &BookServer, request: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    write!(stream, "{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(server: &BookServer, path: &str) -> String {
    ask(server, &format!("GET {path}"), &server.address().to_string())
}

#[test]
fn it_gives_the_pages_and_their_kinds() {
    with_server(|server| {
        for (path, kind, body) in [
            ("/", "text/html; charset=utf-8", "<h1>Home<script>"),
            ("/index.html?search=x", "text/html; charset=utf-8", "<h1>Home<script>"),
            ("/labs/lab-03.html", "text/html; charset=utf-8", "Lab<script>"),
            ("/a.css", "text/css; charset=utf-8", "b{}"),
        ] {
            let answer = get(server, path);
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
            assert!(answer.contains(kind) && answer.contains(body), "{answer}");
        }
        assert!(get(server, "/gone.html").starts_with("HTTP/1.1 404 "));
        assert!(get(server, "/gone.html").contains("Lost"));
    });
}

#[test]
fn it_listens_on_this_computer_only() {
    with_server(|server| assert_eq!(server.address().ip(), Ipv4Addr::LOCALHOST));
}

#[test]
fn it_gives_no_other_file_whatever_the_path() {
    with_server(|server| {
        for path in [
            "/../Cargo.toml",
            "/labs/../../Cargo.toml",
            "/%2e%2e/Cargo.toml",
            "/..%2fCargo.toml",
            "//etc/passwd",
            "/etc/passwd",
            "/labs/../index.html",
            "/..\\Cargo.toml",
            "../Cargo.toml",
        ] {
            let answer = get(server, path);
            assert!(
                answer.starts_with("HTTP/1.1 404 ") || answer.starts_with("HTTP/1.1 400 "),
                "{path}: {answer}"
            );
            assert!(!answer.contains("[package]") && !answer.contains("root:"), "{path}: {answer}");
        }
    });
}

#[test]
fn it_answers_neither_other_methods_nor_other_names() {
    with_server(|server| {
        let here = server.address().to_string();
        assert!(ask(server, "POST /", &here).starts_with("HTTP/1.1 405 "));
        assert!(ask(server, "DELETE /index.html", &here).starts_with("HTTP/1.1 405 "));
        assert!(ask(server, "GET /", "evil.example").starts_with("HTTP/1.1 403 "));
        assert!(
            ask(server, "GET /", &format!("localhost:{}", server.address().port()))
                .starts_with("HTTP/1.1 200 ")
        );
    });
}

#[test]
fn a_new_version_or_its_mistakes_reach_the_page() {
    with_server(|server| {
        let version = |server| get(server, "/__version").split("\r\n\r\n").nth(1).unwrap().to_owned();
        assert_eq!(version(server), "1\n");
        server.show_mistakes("book/chapters/x.md:3: no lab `77`");
        assert_eq!(version(server), "1\nbook/chapters/x.md:3: no lab `77`");
        assert!(get(server, "/").contains("<h1>Home"), "the old page is still shown");
        server.show(pages(&[("index.html", "<h1>New")]));
        assert_eq!(version(server), "2\n");
        assert!(get(server, "/").contains("<h1>New"));
    });
}

#[test]
fn a_port_in_use_is_told() {
    with_server(|server| {
        let error = BookServer::start(server.address().port()).err().unwrap();
        assert!(error.contains("cannot be used") && error.contains("--port"), "{error}");
    });
}

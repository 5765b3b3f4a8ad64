//! The local server: what it gives, to whom, and what not.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::Checkout;
use book::builder::{self, Site};
use book::publish::Missing;
use book::room::Place;
use book::server::{BookServer, Limits};
use book::watch::Files;

fn pages(pairs: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
    pairs.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
}

/// Runs a test against a server with a few pages.
fn with_server(test: impl FnOnce(&BookServer)) {
    let server = BookServer::start(0, Limits::default()).unwrap();
    server.show(pages(&[
        ("index.html", "<h1>Home"),
        ("labs/lab-03.html", "Lab"),
        ("a.css", "b{}"),
        ("404.html", "Lost"),
    ]));
    serving(server, test);
}

fn serving(server: BookServer, test: impl FnOnce(&BookServer)) {
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
fn ask(address: SocketAddr, request: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(server: &BookServer, path: &str) -> String {
    ask(server.address(), &format!("GET {path}"), &server.address().to_string())
}

#[test]
fn it_gives_the_pages_and_their_kinds() {
    with_server(|server| {
        for (path, kind, body) in [
            ("/", "text/html; charset=utf-8", "<h1>Home<script "),
            ("/index.html?search=x", "text/html; charset=utf-8", "<h1>Home<script "),
            ("/labs/lab-03.html", "text/html; charset=utf-8", "Lab<script "),
            ("/a.css", "text/css; charset=utf-8", "b{}"),
        ] {
            let answer = get(server, path);
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
            assert!(answer.contains(kind) && answer.contains(body), "{answer}");
        }
        let reload = get(server, "/__reload.js");
        assert!(reload.contains("text/javascript") && reload.contains("location.reload()"), "{reload}");
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
        assert!(ask(server.address(), "POST /", &here).starts_with("HTTP/1.1 405 "));
        assert!(ask(server.address(), "DELETE /index.html", &here).starts_with("HTTP/1.1 405 "));
        assert!(ask(server.address(), "GET /", "evil.example").starts_with("HTTP/1.1 403 "));
        assert!(
            ask(server.address(), "GET /", &format!("localhost:{}", server.address().port()))
                .starts_with("HTTP/1.1 200 ")
        );
    });
}

/// A page of others leads its own name to this computer, and asks as that: such names are refused, however much they look like ours.
#[test]
fn a_name_is_ours_however_it_is_written_and_no_other_is() {
    with_server(|server| {
        let port = server.address().port();
        let status = |host: &str| ask(server.address(), "GET /", host)[9..12].to_owned();
        for name in ["localhost", "LOCALHOST", "LocalHost", "localhost.", "127.0.0.1", "[::1]"] {
            assert_eq!(status(name), "200", "{name}");
            assert_eq!(status(&format!("{name}:{port}")), "200", "{name}:{port}");
        }
        for name in [
            "evil.example",
            "localhost.evil.example",
            "evil-localhost",
            "127.0.0.1.evil.example",
            "localhost..",
            ".localhost",
            "127.0.0.2",
            "0.0.0.0",
            "127.0.0.1.",
            "[::2]",
            "::1",
            "localhost@evil.example",
            "evil.example@localhost",
            "localhost, evil.example",
            "lоcalhost", // with a Cyrillic о
        ] {
            assert!(["400", "403"].contains(&status(name).as_str()), "{name}: {}", status(name));
            let with_port = format!("{name}:{port}");
            assert!(["400", "403"].contains(&status(&with_port).as_str()), "{with_port}");
        }
        for wrong in ["", "localhost:1", "localhost:99999", "localhost:x"] {
            assert!(["400", "403"].contains(&status(wrong).as_str()), "'{wrong}'");
        }
        // As a proxy is asked.
        let whole = |target: &str| ask(server.address(), &format!("GET http://{target}/"), "localhost");
        assert!(whole("LOCALHOST").starts_with("HTTP/1.1 200 "));
        assert!(whole("evil.example").starts_with("HTTP/1.1 403 "));
        assert!(whole("evil.example@localhost").starts_with("HTTP/1.1 403 "));
    });
}

/// A room asks under the address that was named, and a page of others under a name of theirs.
#[test]
fn a_room_is_answered_under_the_address_that_was_named_and_under_no_other() {
    let mut place = Place::named("127.0.0.1", 0).unwrap();
    place.names = vec!["teacher.local".to_owned(), "192.168.1.20".to_owned()];
    let server = BookServer::start_at(place, Limits::of_a_room()).unwrap();
    server.show_permanently(pages(&[("index.html", "<h1>Home"), ("404.html", "Lost")]));
    serving(server, |server| {
        let port = server.address().port();
        let status = |host: &str| ask(server.address(), "GET /", host)[9..12].to_owned();
        for name in ["teacher.local", "Teacher.LOCAL.", "192.168.1.20"] {
            assert_eq!(
                (status(name), status(&format!("{name}:{port}"))),
                ("200".into(), "200".into()),
                "{name}"
            );
        }
        for name in [
            "localhost",
            "127.0.0.1",
            "192.168.1.2",
            "192.168.1.20.",
            "evil.example",
            "teacher.local.evil.example",
        ] {
            assert_eq!(status(name), "403", "{name}");
        }
        assert_eq!(status(&format!("teacher.local:{}", port ^ 1)), "403");
        // Pages that are built do not ask for newer ones.
        assert!(!ask(server.address(), "GET /", "teacher.local").contains("__reload"));
    });
}

#[test]
fn a_wrong_address_and_a_folder_without_a_book_are_one_line() {
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    for (words, says) in [
        (&["--listen", "0.0.0.0"][..], "name one address of this computer"),
        (&["--listen", "192.0.2.77:1"], "expected an address of this computer"),
        (&["--pages", empty], "index.html is missing"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_book")).arg("serve").args(words).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.code() == Some(2) && err.lines().count() == 1 && err.contains(says),
            "{words:?}: {err}"
        );
    }
}

#[test]
fn pages_can_ask_what_does_not_run_yet_and_why() {
    with_server(|server| {
        let missing = || get(server, "/__missing").split("\r\n\r\n").nth(1).unwrap().to_owned();
        assert_eq!(missing(), "{}");
        let labs = Some("The labs are being compiled: 3 of 9 crates. Run will be here.".to_owned());
        server.show_missing(Missing { labs, ..Default::default() });
        assert_eq!(missing(), r#"{"labs":"The labs are being compiled: 3 of 9 crates. Run will be here."}"#);
        // A module that has come loads only those pages again that wait for it.
        let before = version(server);
        server.show_with_module(pages(&[("index.html", "<h1>With Run")]));
        assert_eq!(version(server), before);
        assert!(get(server, "/").contains("<h1>With Run") && get(server, "/").contains("__reload.js"));
    });
}

/// The version that open pages are told, and the mistakes.
fn version(server: &BookServer) -> (String, String) {
    let answer = get(server, "/__version");
    let (version, mistakes) = answer.split("\r\n\r\n").nth(1).unwrap().split_once('\n').unwrap();
    (version.to_owned(), mistakes.to_owned())
}

#[test]
fn before_the_first_build_every_page_loads_itself_again() {
    serving(BookServer::start(0, Limits::default()).unwrap(), |server| {
        let (first, _) = version(server);
        for path in ["/", "/01-devices.html"] {
            let answer = get(server, path);
            assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("text/html"), "{answer}");
            assert!(answer.contains("The book is being built") && answer.contains("__reload.js"));
        }
        server.show_mistakes("x.md:3: `<b>` is HTML");
        let answer = get(server, "/01-devices.html");
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("text/html"), "{answer}");
        assert!(answer.contains("x.md:3: `&lt;b&gt;` is HTML") && answer.contains("__reload.js"));
        server.show(pages(&[("index.html", "<h1>Home")]));
        assert!(version(server).0 != first);
        assert!(get(server, "/").starts_with("HTTP/1.1 200 "));
    });
}

#[test]
fn a_server_that_is_started_again_has_another_version() {
    let versions = [(); 2].map(|()| {
        let mut kept = String::new();
        with_server(|server| kept = version(server).0);
        thread::sleep(Duration::from_millis(2));
        kept
    });
    assert_ne!(versions[0], versions[1]);
}

#[test]
fn a_new_version_or_its_mistakes_reach_the_page() {
    with_server(|server| {
        let (first, mistakes) = version(server);
        assert_eq!(mistakes, "");
        server.show_mistakes("book/chapters/x.md:3: no lab `77`");
        assert_eq!(version(server), (first.clone(), "book/chapters/x.md:3: no lab `77`".to_owned()));
        assert!(get(server, "/").contains("<h1>Home"), "the old page is still shown");
        server.show(pages(&[("index.html", "<h1>New")]));
        let (second, mistakes) = version(server);
        assert!(second != first && mistakes.is_empty(), "{first} {second} {mistakes}");
        assert!(get(server, "/").contains("<h1>New"));
    });
}

#[test]
fn a_port_in_use_is_told() {
    with_server(|server| {
        let error = BookServer::start(server.address().port(), Limits::default()).err().unwrap();
        assert!(error.contains("cannot be used") && error.contains("--port"), "{error}");
    });
}

/// A server with a page of 8 MiB, which no buffer between two programs takes whole.
fn with_limits(limits: Limits, test: impl FnOnce(&BookServer)) {
    let server = BookServer::start(0, limits).unwrap();
    server.show(pages(&[("index.html", "<h1>Home"), ("print.html", &"page ".repeat((8 << 20) / 5))]));
    serving(server, test);
}

/// A client that has sent this much of a request.
fn client(server: &BookServer, sent: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(sent.as_bytes()).unwrap();
    stream
}

/// A whole request, as a client sends it.
fn request(server: &BookServer, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", server.address())
}

#[test]
fn clients_that_do_not_read_hold_nobody_up() {
    with_limits(Limits::default(), |server| {
        let pipelined = request(server, "/print.html").repeat(10);
        let _unread: Vec<TcpStream> = (0..20).map(|_| client(server, &pipelined)).collect();
        assert!(get(server, "/").contains("<h1>Home"));
    });
}

/// Three hundred of each sort, with the limits that readers have.
#[test]
fn another_client_is_answered_at_once_while_hundreds_are_stuck() {
    let slow_head = "GET / HTTP/1.1\r\nHost: ";
    let body = "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n";
    for (what, sent) in
        [("never read", ""), ("say nothing", "-"), ("stop halfway", slow_head), ("owe a body", body)]
    {
        with_limits(Limits::default(), |server| {
            let unread = request(server, "/print.html");
            let sent = match sent {
                "" => unread.as_str(),
                "-" => "",
                sent => sent,
            };
            let _stuck: Vec<TcpStream> = (0..300).map(|_| client(server, sent)).collect();
            let began = Instant::now();
            assert!(get(server, "/").contains("<h1>Home"));
            // They are sent away after 50 ms each time that there is no room. The rest is for a computer that is busy; if a
            // connection was kept for its whole time, this would take longer.
            assert!(began.elapsed() < Duration::from_secs(10), "{what}: {:?}", began.elapsed());
            assert!(get(server, "/print.html").len() > 8 << 20, "a large page arrives whole");
        });
    }
}

#[test]
fn clients_that_keep_others_waiting_are_given_up() {
    let limits = Limits {
        connections: 4,
        head_time: Duration::from_millis(200),
        connection_time: Duration::from_millis(400),
        ..Limits::default()
    };
    for (sent, what) in [("", "nothing"), ("GET / HT", "half a head")] {
        with_limits(limits, |server| {
            let _slow: Vec<TcpStream> = (0..10).map(|_| client(server, sent)).collect();
            assert!(get(server, "/").contains("<h1>Home"), "{what}");
        });
    }
    with_limits(limits, |server| {
        let _unread: Vec<TcpStream> =
            (0..10).map(|_| client(server, &request(server, "/print.html"))).collect();
        assert!(get(server, "/").contains("<h1>Home"));
    });
}

#[test]
fn a_long_head_is_not_read_to_its_end() {
    with_limits(Limits::default(), |server| {
        for start in ["GET /", "GET / HTTP/1.1\r\nHost: "] {
            let mut client = client(server, start);
            let megabyte = "a".repeat(1 << 20);
            let written = (0..200).take_while(|_| client.write_all(megabyte.as_bytes()).is_ok()).count();
            assert!(written < 100, "{written} MiB of 200");
        }
        assert!(get(server, "/").contains("<h1>Home"));
    });
}

#[test]
fn a_name_that_comes_twice_has_to_be_ours_twice() {
    with_server(|server| {
        let here = server.address().to_string();
        let twice = format!("{here}\r\nHost: evil.example");
        assert!(ask(server.address(), "GET /", &twice).starts_with("HTTP/1.1 403 "));
        assert!(ask(server.address(), "GET http://evil.example/", &here).starts_with("HTTP/1.1 403 "));
        assert!(ask(server.address(), &format!("GET http://{here}/"), &here).starts_with("HTTP/1.1 200 "));
    });
}

#[test]
fn a_head_alone_has_no_body() {
    with_server(|server| {
        let answer = ask(server.address(), "HEAD /", &server.address().to_string());
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\n"), "{answer}");
    });
}

#[test]
fn a_changed_a_new_and_a_removed_file_are_noticed() {
    let checkout = Checkout::new();
    let (page, source) = (checkout.path("book/chapters/index.md"), checkout.path("gpu/src/base/shape.rs"));
    let mut before = Files::of(&checkout.course());
    assert!(before == Files::of(&checkout.course()));
    let mut changed = |what| {
        let now = Files::of(&checkout.course());
        assert!(now != before, "{what}");
        before = now;
    };
    fs::write(&page, "# Another\n").unwrap();
    changed("changed");
    fs::write(checkout.path("labs/questions/99.toml"), "").unwrap();
    changed("new");
    fs::remove_file(page).unwrap();
    changed("removed");
    fs::write(checkout.path("labs/tests/snapshots/lab-03-none.snap"), "").unwrap();
    changed("a snapshot");
    fs::write(checkout.path("book/plan.toml"), "").unwrap();
    changed("the plan");
    fs::write(source, "").unwrap();
    changed("a source of what labs stand on");
}

/// Ends the program that a test started.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_binary_says_where_it_serves_and_serves_the_book_there() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_book"));
    let small = Checkout::small();
    // Of a book that cannot be built the program says so, and waits for a change.
    builder::pages(small.course(), Site::Local).unwrap();
    let command = command.args(["serve", "--no-player", "--port", "0", "--course"]).arg(small.root());
    let mut started = Started(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(started.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let first = lines.next().unwrap();
    let address = first.split("http://").nth(1).and_then(|rest| rest.split(';').next()).unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{first}");
    assert_eq!(lines.next().as_deref(), Some("Built."));
    let page = || ask(address.parse().unwrap(), "GET /", address);
    assert!(page().starts_with("HTTP/1.1 200 ") && page().contains("<title>To Device"), "{}", page());

    if cfg!(target_os = "linux") {
        // Building takes hundreds of megabytes, and they do not stay.
        let status = fs::read_to_string(format!("/proc/{}/status", started.0.id())).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kilobytes: u64 = resident.split_whitespace().next().unwrap().parse().unwrap();
        assert!(kilobytes < 120_000, "the server holds {kilobytes} kB after a build");
        let threads = || fs::read_dir(format!("/proc/{}/task", started.0.id())).unwrap().count();
        let before = threads();
        let half_open: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
        assert!(page().starts_with("HTTP/1.1 200 "));
        assert_eq!(threads(), before, "{} connections", half_open.len());
    }
}

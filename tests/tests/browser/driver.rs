//! A browser: Chromium, driven through chromedriver with the W3C WebDriver protocol.

use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value as Json, json};
use ureq::Agent;

use crate::axe::AXE;

/// The error message if the browser is missing.
const NEEDED: &str = "the tests of the book's pages need Chromium and chromedriver; on Debian: \
                      apt-get install chromium chromium-driver";

/// Keys as WebDriver encodes them.
pub const TAB: &str = "\u{e004}";
pub const ENTER: &str = "\u{e007}";
pub const ESCAPE: &str = "\u{e00c}";
pub const CONTROL: &str = "\u{e009}";
pub const SHIFT: &str = "\u{e008}";
pub const LEFT: &str = "\u{e012}";
pub const RIGHT: &str = "\u{e014}";
pub const DOWN: &str = "\u{e015}";

/// A browser with one window and axe-core in each of its pages; closed on drop.
pub struct Browser {
    driver: Child,
    /// Kept open: chromedriver exits when it cannot write.
    _output: BufReader<ChildStdout>,
    agent: Agent,
    session: String,
}

impl Browser {
    pub fn start() -> Browser {
        Browser::with(json!({}), "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    }

    /// A browser that also reaches this computer at an external address, which it treats as another computer.
    pub fn in_a_room(address: IpAddr) -> Browser {
        Browser::with(json!({}), &format!("MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE {address}"))
    }

    /// A browser that runs no JavaScript of pages; test scripts still run.
    pub fn without_javascript() -> Browser {
        let preferences = json!({ "profile.managed_default_content_settings.javascript": 2 });
        Browser::with(preferences, "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    }

    fn with(preferences: Json, names: &str) -> Browser {
        let (driver, output, port) = started();
        // Accept any status, because the body of a failure explains it. Ignore proxies.
        let config = Agent::config_builder().http_status_as_error(false).proxy(None).build();
        let mut browser = Browser { driver, _output: output, agent: config.into(), session: String::new() };
        browser.session = format!("http://127.0.0.1:{port}/session");

        let options = json!({
            "args": [
                "--headless=new",
                // Chromium's sandbox does not work for root, nor in many containers. It loads only our own pages.
                "--no-sandbox",
                "--disable-dev-shm-usage",
                // Requests to other sites fail, and are logged in the console.
                format!("--host-resolver-rules={names}"),
            ],
            "prefs": preferences,
        });
        let wanted = json!({
            "goog:chromeOptions": options,
            "goog:loggingPrefs": { "browser": "ALL" },
            "timeouts": { "pageLoad": 30_000, "script": 60_000 },
        });
        let wanted = json!({ "capabilities": { "alwaysMatch": wanted } });
        let made = browser.ask("", wanted).unwrap_or_else(|what| panic!("{NEEDED} ({what})"));
        browser.session += &format!("/{}", made["sessionId"].as_str().expect("the session's name"));
        // The print page calls `window.print`, which would wait for a user.
        let first = format!("window.print = () => {{}};\n{}", *AXE);
        browser.cdp("Page.addScriptToEvaluateOnNewDocument", json!({ "source": first }));
        browser
    }

    /// Loads a page, and returns after its `load` event. Chromium's first page sometimes hangs before its first
    /// request, so retry.
    pub fn open(&self, url: &str) {
        let load = || self.ask("/url", json!({ "url": url }));
        load().or_else(|_| load()).or_else(|_| load()).unwrap_or_else(|what| panic!("{url}: {what}"));
    }

    /// The value of an expression in the page.
    pub fn value(&self, expression: &str) -> Json {
        self.must("/execute/sync", json!({ "script": format!("return {expression};"), "args": [] }))
    }

    /// The lines returned by a function body in the page.
    pub fn lines(&self, script: &str) -> Vec<String> {
        lines(self.must("/execute/sync", json!({ "script": script, "args": [] })))
    }

    /// The lines that a function body in the page eventually passes to the callback, its last argument.
    pub fn lines_later(&self, script: &str, args: &[Json]) -> Vec<String> {
        lines(self.must("/execute/async", json!({ "script": script, "args": args })))
    }

    /// The id of the process that started the browser.
    pub fn process(&self) -> u32 {
        self.driver.id()
    }

    /// Presses keys one after another.
    pub fn press(&self, keys: &[&str]) {
        let strokes = keys.iter().flat_map(|key| ["keyDown", "keyUp"].map(|kind| (kind, key)));
        let actions: Vec<Json> = strokes.map(|(kind, key)| json!({ "type": kind, "value": key })).collect();
        self.must("/actions", json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] }));
    }

    /// Presses a key while another, such as Ctrl, is held.
    pub fn press_with(&self, held: &str, key: &str) {
        let strokes = [("keyDown", held), ("keyDown", key), ("keyUp", key), ("keyUp", held)];
        let actions = strokes.map(|(kind, key)| json!({ "type": kind, "value": key }));
        self.must("/actions", json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] }));
    }

    /// The text of the open browser dialog.
    pub fn asked(&self) -> String {
        let answer = self.agent.get(format!("{}/alert/text", self.session)).call();
        let mut answer = answer.unwrap_or_else(|error| panic!("no question: {error}"));
        let body: Json = answer.body_mut().read_json().expect("JSON");
        body["value"].as_str().unwrap_or_else(|| panic!("no question: {body}")).to_owned()
    }

    /// Accepts or dismisses the dialog.
    pub fn reply(&self, yes: bool) {
        self.must(if yes { "/alert/accept" } else { "/alert/dismiss" }, json!({}));
    }

    /// Sends a command of the Chrome DevTools protocol.
    pub fn cdp(&self, command: &str, params: Json) -> Json {
        self.must("/goog/cdp/execute", json!({ "cmd": command, "params": params }))
    }

    /// The console messages since the last call: script errors and warnings, failed requests.
    pub fn complaints(&self) -> Vec<String> {
        let log = self.must("/se/log", json!({ "type": "browser" }));
        let entries = log.as_array().expect("a list").iter();
        let bad = entries.filter(|entry| entry["level"] == "SEVERE" || entry["level"] == "WARNING");
        bad.map(|entry| entry["message"].as_str().expect("a text").to_owned()).collect()
    }

    fn must(&self, path: &str, body: Json) -> Json {
        self.ask(path, body).unwrap_or_else(|what| panic!("{path}: {what}"))
    }

    fn ask(&self, path: &str, body: Json) -> Result<Json, String> {
        let answer = self.agent.post(format!("{}{path}", self.session)).send_json(body);
        let mut answer = answer.map_err(|error| error.to_string())?;
        // A screenshot of a long page is large.
        let body = answer.body_mut().with_config().limit(1 << 30).read_json::<Json>();
        let mut body = body.map_err(|error| error.to_string())?;
        match body["value"]["error"].as_str() {
            None => Ok(body["value"].take()),
            Some(error) => {
                let message = body["value"]["message"].as_str().unwrap_or_default();
                Err(format!("{error}: {}", message.lines().next().unwrap_or_default()))
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Closes Chromium; a failed test has already given its reason.
        let _ = self.agent.delete(&self.session).call();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn lines(answer: Json) -> Vec<String> {
    serde_json::from_value(answer).expect("a list of texts")
}

/// Starts chromedriver. Returns the process, its output, and its port.
///
/// chromedriver picks a free IPv6 port and then needs the same IPv4 port, which another process may have taken in the
/// meantime.
fn started() -> (Child, BufReader<ChildStdout>, u16) {
    let mut said = String::new();
    for _ in 0..5 {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{NEEDED} (chromedriver: {error})"));
        let mut output = BufReader::new(driver.stdout.take().expect("its output is piped"));
        match port(&mut output) {
            Ok(port) => return (driver, output, port),
            Err(text) => said = text,
        }
        let _ = driver.wait();
        assert!(said.contains("port not available"), "chromedriver does not say its port: {said}");
    }
    panic!("chromedriver finds no port: {said}");
}

/// The port that chromedriver chose, or its whole output if it exited.
fn port(output: &mut impl BufRead) -> Result<u16, String> {
    let mut said = String::new();
    for line in output.lines() {
        let line = line.unwrap_or_else(|error| panic!("chromedriver cannot be heard: {error}"));
        let port = line.strip_prefix("ChromeDriver was started successfully on port ");
        if let Some(port) = port.and_then(|port| port.trim_end_matches('.').parse().ok()) {
            return Ok(port);
        }
        said += &line;
    }
    Err(said)
}

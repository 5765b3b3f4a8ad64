//! The last build step, once all pages exist: sets their content security policy, the modules they can run, and the
//! list of files for offline reading.
//!
//! A page runs only its own scripts: its policy tells the browser so, and has the hashes of inline scripts.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::html;
use crate::player::Module;

/// The list of all files of the book, for offline reading.
const LIST: &str = "offline.json";
/// The service worker that stores them.
const KEEPER: &str = "offline.js";

/// The modules of pages, each present or with the reason why it is missing.
#[derive(Clone)]
pub struct Modules {
    pub labs: Result<Module, String>,
    pub exercises: Result<Module, String>,
    pub assessment: Result<Module, String>,
    pub errors: Result<Module, String>,
    pub kernels: Result<Module, String>,
}

impl Modules {
    pub fn none(why: &str) -> Modules {
        let none = || Err(why.to_owned());
        Modules { labs: none(), exercises: none(), assessment: none(), errors: none(), kernels: none() }
    }

    pub fn missing(&self) -> Missing {
        let why = |module: &Result<Module, String>| module.as_ref().err().cloned();
        Missing {
            labs: why(&self.labs),
            exercises: why(&self.exercises),
            assessment: why(&self.assessment),
            errors: why(&self.errors),
            kernels: why(&self.kernels),
        }
    }
}

/// Why modules are missing, in a sentence or two that pages show instead.
#[derive(Clone, Debug, Default)]
pub struct Missing {
    pub labs: Option<String>,
    pub exercises: Option<String>,
    pub assessment: Option<String>,
    pub errors: Option<String>,
    pub kernels: Option<String>,
}

impl Missing {
    /// `{"labs": "They are being compiled."}`
    pub fn to_json(&self) -> String {
        let all = [
            ("labs", &self.labs),
            ("exercises", &self.exercises),
            ("assessment", &self.assessment),
            ("errors", &self.errors),
            ("kernels", &self.kernels),
        ];
        let missing = all.into_iter().filter_map(|(name, why)| Some((name, why.as_ref()?)));
        serde_json::to_string(&missing.collect::<BTreeMap<_, _>>()).unwrap_or_default()
    }
}

/// Adds the existing modules, and sets the policy of every page.
pub fn finished(
    mut pages: BTreeMap<String, Vec<u8>>,
    modules: Modules,
    keeper: &str,
) -> BTreeMap<String, Vec<u8>> {
    let mut named = Vec::new();
    for (name, module) in [
        ("labs", modules.labs),
        ("exercises", modules.exercises),
        ("assessment", modules.assessment),
        ("errors", modules.errors),
        ("kernels", modules.kernels),
    ] {
        match module {
            Ok(Module { files, path }) => {
                pages.extend(files);
                named.push((format!("{name}-module"), Ok(path)));
            }
            Err(why) => named.push((format!("{name}-missing"), Err(html::escape(&why)))),
        }
    }
    for (path, bytes) in pages.iter_mut().filter(|(path, _)| path.ends_with(".html")) {
        let up = "../".repeat(path.matches('/').count());
        let page = untranslated(&String::from_utf8_lossy(bytes));
        let mut metas =
            format!("\n<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">", policy(&page));
        for (name, module) in &named {
            metas += &match module {
                Ok(path) => format!("\n<meta name=\"{name}\" content=\"{up}{path}\">"),
                Err(why) => format!("\n<meta name=\"{name}\" content=\"{why}\">"),
            };
        }
        metas += &format!("\n<meta name=\"offline\" content=\"{up}{KEEPER}\">");
        *bytes = page.replacen("<head>", &format!("<head>{metas}"), 1).into_bytes();
    }
    // Each version of the book has its own name, so that no reader gets files of two versions at once.
    let mut all = Sha256::new();
    for (path, bytes) in &pages {
        all.update(path);
        all.update(bytes);
    }
    let version = STANDARD.encode(all.finalize());
    pages.insert(KEEPER.to_owned(), keeper.replace("VERSION", &version[..12]).into_bytes());
    let files: Vec<&String> = pages.keys().filter(|path| !path.ends_with("404.html")).collect();
    pages.insert(LIST.to_owned(), serde_json::to_vec(&files).unwrap_or_default());
    pages
}

/// Marks the page's code and output so that a browser's translator leaves them alone. `course.js` marks elements that
/// scripts create later.
fn untranslated(page: &str) -> String {
    const KEPT: [&str; 5] = ["<pre", "<code", "<kbd", "<samp", "<figure class=\"lab-output\""];
    let mut marked = String::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        let kept = KEPT
            .iter()
            .find(|kept| tag.strip_prefix(**kept).is_some_and(|after| after.starts_with([' ', '>', '\n'])));
        let length = kept.map_or(1, |kept| kept.len());
        marked += before;
        marked += &tag[..length];
        if kept.is_some() {
            marked += " translate=\"no\"";
        }
        rest = &tag[length..];
    }
    marked + rest
}

/// The content security policy of a page. Modules are compiled in workers, to which the page's policy does not apply.
fn policy(page: &str) -> String {
    let scripts = hashes(inside(page, "<script>", "</script>"));
    let styles = hashes(inside(page, " style=\"", "\""));
    let styles = if styles.is_empty() { "'none'".to_owned() } else { format!("'unsafe-hashes'{styles}") };
    format!(
        "default-src 'none'; script-src 'self'{scripts}; style-src 'self'; style-src-attr {styles}; img-src 'self' data:; \
         font-src 'self'; connect-src 'self'; worker-src 'self'; frame-src 'self'; base-uri 'self'; form-action 'self'"
    )
}

fn inside<'a>(page: &'a str, begin: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
    page.split(begin).skip(1).filter_map(move |rest| rest.split(end).next())
}

fn hashes<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let texts: BTreeSet<&str> = texts.collect();
    texts.iter().map(|text| format!(" 'sha256-{}'", STANDARD.encode(Sha256::digest(text)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(modules: Modules) -> String {
        let html = "<html><head>\n<title>A</title></head><body><p style=\"clear: both\"></p><script>1;</script></body></html>";
        let pages = BTreeMap::from([("labs/a.html".to_owned(), html.as_bytes().to_vec())]);
        let mut pages = finished(pages, modules, "const version = \"VERSION\";");
        assert_eq!(pages["offline.json"], br#"["labs/a.html","offline.js"]"#);
        assert!(!String::from_utf8_lossy(&pages["offline.js"]).contains("VERSION"));
        String::from_utf8(pages.remove("labs/a.html").unwrap()).unwrap()
    }

    #[test]
    fn a_page_runs_no_scripts_but_its_own() {
        let page = page(Modules::none("because"));
        // echo -n '1;' | openssl dgst -sha256 -binary | base64
        assert!(
            page.contains("script-src 'self' 'sha256-CImjRDTlhukYQ2AnxOi0wzgPhGQ3Mb3rVwJK24dFz1M=';"),
            "{page}"
        );
        assert!(page.contains("style-src-attr 'unsafe-hashes' 'sha256-"), "{page}");
        assert!(!page.contains("-module\""), "{page}");
    }

    #[test]
    fn code_and_output_are_not_translated() {
        assert_eq!(
            untranslated(
                "<p>Run <code>cargo</code>:</p><pre class=\"a\"><code>x < y</code></pre><precise> <"
            ),
            "<p>Run <code translate=\"no\">cargo</code>:</p><pre translate=\"no\" class=\"a\"><code translate=\"no\">x < \
             y</code></pre><precise> <"
        );
        let output = "<figure class=\"lab-output\" data-lab=\"lab-03\"><table>";
        assert_eq!(
            untranslated(output),
            "<figure class=\"lab-output\" translate=\"no\" data-lab=\"lab-03\"><table>"
        );
    }

    #[test]
    fn a_page_names_its_modules_from_where_it_is_or_says_why_it_has_none() {
        let module = |path: &str| Ok(Module { files: BTreeMap::new(), path: path.to_owned() });
        let exercises = Err("They are \"being\" compiled.".to_owned());
        let (labs, errors) = (module("play/labs-1.wasm"), module("play/errors-3.wasm"));
        let (assessment, kernels) = (module("play/assessment-2.wasm"), module("play/kernels-4.wasm"));
        let modules = Modules { labs, exercises, assessment, errors, kernels };
        assert_eq!(modules.missing().to_json(), r#"{"exercises":"They are \"being\" compiled."}"#);
        let page = page(modules);
        assert!(page.contains("<meta name=\"labs-module\" content=\"../play/labs-1.wasm\">"), "{page}");
        assert!(page.contains("<meta name=\"errors-module\" content=\"../play/errors-3.wasm\">"), "{page}");
        let missing = "<meta name=\"exercises-missing\" content=\"They are &quot;being&quot; compiled.\">";
        assert!(page.contains(missing) && !page.contains("exercises-module"), "{page}");
    }
}

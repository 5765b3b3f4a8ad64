use crate::host::program::{Outcome, Program, Rejected, Run};
use crate::run::checks::Severity;
use crate::source::{Errors, Files, Span};

pub fn json(files: &Files, run: &Run) -> String {
    let findings: Vec<String> = run
        .findings
        .all
        .iter()
        .map(|finding| {
            let sites: Vec<String> = finding
                .sites
                .iter()
                .map(|site| {
                    let mut fields = vec![format!("\"text\":{}", string(&site.text))];
                    if let Some(span) = site.span {
                        fields.push(place(files, span));
                    }
                    if let Some(thread) = site.thread {
                        fields.push(format!("\"thread\":{:?},\"block\":{:?}", thread.thread, thread.block));
                    }
                    format!("{{{}}}", fields.join(","))
                })
                .collect();
            let severity = match finding.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Info => "info",
            };
            let notes: Vec<String> = finding.notes.iter().map(|note| string(note)).collect();
            format!(
                "{{\"check\":{},\"severity\":{},\"title\":{},\"function\":{},\"count\":{},\"sites\":[{}],\"notes\":[{}]}}",
                string(finding.check),
                string(severity),
                string(&finding.title),
                string(&finding.function),
                finding.count,
                sites.join(","),
                notes.join(",")
            )
        })
        .collect();
    let code = match run.outcome {
        Outcome::Exit(code) => code.to_string(),
        Outcome::Fault => "null".to_owned(),
    };
    let error = run.error_text().map_or("null".to_owned(), |text| string(&text));
    format!(
        "{{\"output\":{},\"exit_code\":{code},\"error\":{error},\"findings\":[{}],\"left_out\":{}}}\n",
        string(&run.output),
        findings.join(","),
        run.findings.left_out
    )
}

pub fn rejected(rejected: &Rejected) -> String {
    format!("{{\"errors\":[{}]}}\n", list(&rejected.files, &rejected.errors))
}

/// As [`rejected`], for a program that compiles.
pub fn accepted(program: &Program) -> String {
    format!("{{\"errors\":[],\"warnings\":[{}]}}\n", list(&program.files, &program.warnings))
}

/// Errors or warnings, separated by commas.
pub fn list(files: &Files, errors: &Errors) -> String {
    let errors = errors.0.iter().map(|error| {
        let notes = error
            .notes
            .iter()
            .map(|(text, span)| format!("{{\"text\":{},{}}}", string(text), place(files, *span)));
        let help = error.help.as_ref().map_or("null".to_owned(), |help| string(help));
        format!(
            "{{\"message\":{},{},\"length\":{},\"label\":{},\"help\":{help},\"notes\":[{}]}}",
            string(&error.message),
            place(files, error.span),
            error.span.length,
            string(&error.label),
            notes.collect::<Vec<_>>().join(",")
        )
    });
    errors.collect::<Vec<_>>().join(",")
}

fn place(files: &Files, span: Span) -> String {
    let file = files.0.get(span.file as usize).map_or("", |file| file.name.as_str());
    format!("\"file\":{},\"line\":{},\"column\":{}", string(file), span.line, span.column)
}

pub fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

//! The plan: what pages show of it, the one line that each mistake in it gets, and that sidebar, plan and *Next* agree.

use crate::common::{Checkout, pages};
use book::Course;
use book::page::{Page, expand};

fn page(course: &Course, path: &str, text: &str) -> Result<String, String> {
    expand(course, &Page { file: &format!("book/chapters/{path}"), path, text })
        .map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

thread_local! {
    /// One for all the mistakes of a test: it is hundreds of files.
    static CHECKOUT: Checkout = Checkout::new();
}

/// What a page shows of this plan.
fn shown(toml: &str, path: &str, text: &str) -> Result<String, String> {
    CHECKOUT.with(|checkout| {
        std::fs::write(checkout.path("book/plan.toml"), toml).unwrap();
        page(&checkout.course(), path, text)
    })
}

const PLAN: &str = r#"[[chapter]]
number = "01"
title = "Devices"
then = "You move."
page = "01-devices.md"

[[chapter]]
number = "02"
title = "More"
then = "You *know*."
optional = true
page = "02-golden-rule.md"

[[chapter]]
number = "03"
title = "Memory"
then = "You save."

[appendix]
number = "00"
title = "Setup"
then = "You start."

[[session]]
name = "First"
chapters = ["01", "03"]
"#;

/// The minutes that a chapter says of itself.
fn minutes(path: &str) -> u32 {
    let course = Course::here();
    let text = std::fs::read_to_string(course.book().join("chapters").join(path)).unwrap();
    let text = page(&course, path, &text).unwrap();
    let (_, after) = text.split_once("<p class=\"minutes\">About ").unwrap();
    after.split_once(" minutes</p>").unwrap().0.parse().unwrap()
}

/// `1 hour 30 minutes`
fn hours(minutes: u32) -> String {
    let some = |number: u32, unit: &str| match number {
        0 => None,
        1 => Some(format!("1 {unit}")),
        number => Some(format!("{number} {unit}s")),
    };
    [some(minutes / 60, "hour"), some(minutes % 60, "minute")]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn the_plan_is_a_list_of_chapters_with_the_minutes_that_they_say() {
    let (one, two) = (minutes("01-devices.md"), minutes("02-golden-rule.md"));
    assert!(one > 10 && two > 10, "{one}, {two}");
    let (hours_one, hours_two) = (hours(one), hours(two));
    assert_eq!(
        shown(PLAN, "errors/x.md", "{{#plan}}").unwrap(),
        format!(
            "<div class=\"plan\">\n\n\
             - [01 Devices](../01-devices.md), {one} minutes. You move.\n\
             - [02 More](../02-golden-rule.md), {two} minutes, optional. You *know*.\n\
             - 03 Memory, not written yet. You save.\n\n\
             The last chapter of the book is 00 Setup, not written yet. You start.\n\n\
             <p class=\"minutes\">All chapters: {hours_one}, and {hours_two} more for the optional chapters, without \
             the chapters to come</p>\n\n\
             </div>\n\n"
        )
    );
}

#[test]
fn a_chapter_of_several_pages_names_each_with_its_minutes() {
    let parts = "\n[[chapter.part]]\ntitle = \"Full\"\npage = \"04a-when-memory-is-full.md\"\n\n[[chapter.part]]\ntitle = \"B: Inside\"\npage = \
                 \"04b-allocator.md\"\noptional = true\n";
    let first =
        "[[chapter]]\nnumber = \"04\"\ntitle = \"Memory\"\nthen = \"You save.\"\npage = \"04-memory.md\"\n";
    let (_, last) = PLAN.split_once("[appendix]").unwrap();
    let (before, _) = PLAN.split_once("[appendix]").unwrap();
    let plan = format!("{before}{first}{parts}\n[appendix]{last}");
    let shown = |plan: &str| shown(plan, "x.md", "{{#plan}}");
    let pages = ["04-memory.md", "04a-when-memory-is-full.md", "04b-allocator.md"];
    let [memory, full, inside] = pages.map(minutes);
    let line = format!(
        "- [04 Memory](04-memory.md), {memory} minutes; [04 Full](04a-when-memory-is-full.md), {full} minutes; \
         [04 B: Inside](04b-allocator.md), {inside} minutes, optional. You save.\n"
    );
    let told = shown(&plan).unwrap();
    assert!(told.contains(&line), "{told}");
    let needed = hours(minutes("01-devices.md") + memory + full);
    let more = hours(minutes("02-golden-rule.md") + inside);
    assert!(told.contains(&format!("All chapters: {needed}, and {more} more")), "{told}");

    // The letters are the order.
    let wrong = shown(&plan.replace("04a-when-memory-is-full.md", "04b-allocator.md")).unwrap_err();
    assert!(wrong.contains(": `04b-allocator.md` is not a page of chapter 04: write `04a-….md`"), "{wrong}");
}

#[test]
fn a_session_adds_up_to_what_it_says() {
    let told = shown(PLAN, "index.md", "{{#sessions}}").unwrap();
    let (before, after) = told.split_once(" minutes in class, ").unwrap();
    let minutes: u32 = before.rsplit(' ').next().unwrap().parse().unwrap();
    let of_all = self::minutes("01-devices.md");
    // The questions and all exercises but one are homework.
    assert!(minutes < of_all - 5, "{minutes} of {of_all}");
    assert!(before.starts_with("<div class=\"sessions\">\n\n1 session, the longest of "), "{told}");
    assert!(
        after.ends_with(&format!(
            " at home\n   - [01 Devices](01-devices.md), {minutes} minutes\n   - 03 Memory, not written yet\n\nNot in class: \
             02 More.\n\n</div>\n\n"
        )),
        "{told}"
    );
}

#[test]
fn only_a_page_of_the_plan_says_its_minutes() {
    let minutes = page(&Course::here(), "x.md", "{{#minutes}}").unwrap_err();
    assert_eq!(
        minutes,
        "book/chapters/x.md:1: no chapter in book/plan.toml has `page = \"x.md\"`: add it there"
    );
}

/// Its minutes depend on those of the chapters.
#[test]
fn a_chapter_does_not_show_the_plan() {
    for name in ["plan", "sessions"] {
        let error = page(&Course::here(), "01-devices.md", &format!("{{{{#{name}}}}}")).unwrap_err();
        let what =
            format!("book/chapters/01-devices.md:1: a chapter has no `{{{{#{name}}}}}`: name `plan.md`");
        assert!(error.starts_with(&what), "{error}");
    }
}

#[test]
fn each_mistake_gets_one_line() {
    for (from, to, expected) in [
        ("title =", "titel =", "3: unknown field `titel`, expected one of `number`, `title`, `then`, "),
        ("then = \"You move.\"\n", "", "1: missing field `then`"),
        ("title =", "minutes = 5\ntitle =", "3: unknown field `minutes`, expected one of "),
        (
            "number = \"02\"",
            "number = \"01\"",
            "8: chapter `01` stands where `02` belongs: the number is the order",
        ),
        ("number = \"03\"", "number = \"3\"", "15: chapter `3` stands where `03` belongs: "),
        ("number = \"00\"", "number = \"14\"", "20: chapter `14` stands where `00` belongs: "),
        (
            "\"01-devices.md\"",
            "\"01-divices.md\"",
            "5: book/chapters/01-divices.md does not exist: leave out `page`",
        ),
        (
            "\"01-devices.md\"",
            "\"02-golden-rule.md\"",
            "5: `02-golden-rule.md` is not a page of chapter 01: write `01-….md`",
        ),
        ("\"01\", \"03\"", "\"01\", \"01\"", "26: 01 is taught twice"),
        ("\"01\", \"03\"", "\"03\", \"01\"", "26: 01 is taught after 03: the number is the order"),
        ("\"01\", \"03\"", "\n  \"01\",\n  \"05\",\n", "28: no chapter `05`: write 00 | 01 | 02 | 03"),
    ] {
        assert!(PLAN.contains(from), "{from}");
        let error = shown(&PLAN.replacen(from, to, 1), "x.md", "{{#plan}}").unwrap_err();
        let lines: Vec<&str> =
            error.lines().filter(|line| line.starts_with(&format!("book/plan.toml:{expected}"))).collect();
        assert_eq!(lines.len(), 1, "{expected}\n{error}");
    }
}

/// The links of a page, or of a part of one, each with what it says.
fn links(html: &str) -> Vec<(String, String)> {
    let links = html.split("<a ").skip(1).filter_map(|link| {
        let (_, rest) = link.split_once("href=\"")?;
        let (to, rest) = rest.split_once('"')?;
        let (_, rest) = rest.split_once('>')?;
        let words: String = rest.split_once("</a>")?.0.split('<').map(after_tag).collect();
        Some((to.to_owned(), words.trim().to_owned()))
    });
    links.collect()
}

/// What follows the `>` of a tag, or all of it.
fn after_tag(text: &str) -> &str {
    text.split_once('>').map_or(text, |(_, after)| after)
}

/// Where the links of this kind lead, `next` or `prev`: there are two, for narrow windows and for wide ones.
fn led(page: &str, rel: &str) -> Option<String> {
    let links: Vec<String> = page
        .split(&format!("<a rel=\"{rel}"))
        .skip(1)
        .map(|link| link.split("href=\"").nth(1).unwrap().split('"').next().unwrap().to_owned())
        .collect();
    assert!(links.len().is_multiple_of(2) && links.windows(2).all(|pair| pair[0] == pair[1]), "{links:?}");
    links.into_iter().next()
}

#[test]
fn sidebar_plan_index_and_next_agree() {
    let pages = pages();

    // From the first page by *Next*, and back by *Previous*.
    let mut walked = vec!["index.html".to_owned()];
    while let Some(next) = led(&pages[walked.last().unwrap()], "next") {
        assert_eq!(led(&pages[&next], "prev").as_ref(), walked.last(), "{next}");
        assert!(!walked.contains(&next), "{next} comes twice: {walked:?}");
        walked.push(next);
    }
    let is_chapter = |page: &&String| page.as_bytes()[0].is_ascii_digit();
    let chapters: Vec<&String> = walked.iter().filter(is_chapter).collect();
    // The first chapter is one step away. The last leads to the final assessment, and that to the page that says how the reader did.
    assert_eq!(walked[1].split('-').next(), Some("01"), "{walked:?}");
    let end = [chapters[chapters.len() - 1], "final-assessment.html", "how-you-did.html"];
    assert!(walked.iter().map(String::as_str).collect::<Vec<_>>().ends_with(&end), "{walked:?}");
    assert!(!walked.iter().any(|page| page.starts_with("00-") || page.contains('/')), "{walked:?}");
    // In the order of their numbers, of which some are not written yet.
    let number = |page: &&String| page.split('-').next().unwrap_or_default().to_owned();
    let numbers: Vec<String> = chapters.iter().map(number).collect();
    assert!(numbers[0] == "01" && numbers.is_sorted_by(|one, next| one < next), "{walked:?}");

    // The sidebar begins with the same, and has a part of its own for the sources of the labs, its last.
    let parts: Vec<&str> = pages["toc.html"].split("class=\"part-title\"").collect();
    let targets = |part: &str| links(part).into_iter().map(|(to, _)| to).collect::<Vec<_>>();
    assert_eq!(targets(parts[0]), walked);
    let sources = targets(parts.last().unwrap());
    assert!(sources.len() >= 10 && sources.iter().all(|page| page.starts_with("labs/")), "{sources:?}");
    for part in &parts[1..] {
        for page in targets(part) {
            assert_eq!((led(&pages[&page], "next"), led(&pages[&page], "prev")), (None, None), "{page}");
            assert!(!pages[&page].contains("aria-label=\"Page navigation\""), "{page}");
        }
    }
    for part in &parts[1..parts.len() - 1] {
        assert!(!part.contains("href=\"labs/"), "{part}");
    }

    // The plan has all chapters that there are, under the same titles, and then those to come.
    let (_, plan) = pages["plan.html"].split_once("<div class=\"plan\">").unwrap();
    let (list, _) = plan.split_once("</ul>").unwrap();
    let of_plan = links(list);
    assert_eq!(of_plan.iter().map(|(to, _)| to).collect::<Vec<_>>(), chapters);
    let titles = |links: Vec<(String, String)>| -> Vec<String> {
        let chapters = links.into_iter().filter(|(to, _)| is_chapter(&to));
        chapters.map(|(_, words)| words).collect()
    };
    assert_eq!(titles(of_plan), titles(links(parts[0])));
    let numbers: Vec<u32> = list
        .split("<li>")
        .skip(1)
        .map(|item| item.split('<').map(after_tag).collect::<String>()[..2].parse().unwrap())
        .collect();
    assert_eq!(numbers, (1..=numbers.len() as u32).collect::<Vec<_>>(), "{list}");

    // The first page names chapters in the same order, as often as it does.
    let (_, index) = pages["index.html"].split_once("<main>").unwrap();
    let (index, _) = index.split_once("</main>").unwrap();
    for list in index.split("<ul>").skip(1).filter_map(|list| list.split_once("</ul>")) {
        let named: Vec<String> = targets(list.0).into_iter().filter(|page| is_chapter(&page)).collect();
        assert!(named.is_sorted(), "the first page names {named:?}");
    }

    // The source of a lab leads back to its chapter, every chapter to the source of its lab, and an old address to the plan.
    for source in &sources {
        let number = source.trim_start_matches("labs/lab-").trim_end_matches(".html");
        let main = pages[source].split("<main>").nth(1).unwrap().split("</main>").next().unwrap();
        assert!(main.contains(&format!("of <a href=\"../{number}-")), "{source}");
    }
    for page in &chapters {
        assert!(pages[*page].contains(&format!("href=\"labs/lab-{}.html\"", &page[..2])), "{page}");
    }
    assert!(pages["path.html"].contains("URL=plan.html"), "{}", pages["path.html"]);
}

/// A class has six sessions, and nobody is kept longer than a lesson of 80 minutes, by the minutes that are counted on the pages.
#[test]
fn six_sessions_of_a_class_fit_into_eighty_minutes_each() {
    let pages = pages();
    for page in ["how-to-use.html", "teaching/index.html"] {
        let (_, list) = pages[page].split_once("<div class=\"sessions\">").unwrap();
        let (list, _) = list.split_once("</div>").unwrap();
        let in_class: Vec<u32> = list
            .split(" minutes in class")
            .map(|before| before.rsplit(' ').next().unwrap().parse().unwrap_or(0))
            .filter(|minutes| *minutes > 0)
            .collect();
        assert_eq!(in_class.len(), 6, "{list}");
        assert!(in_class.iter().all(|minutes| (40..=80).contains(minutes)), "{in_class:?}");
        assert!(list.contains(" at home"), "{list}");
        // What the parts say adds up.
        let parts: Vec<u32> = list
            .split("<li>")
            .filter(|item| !item.contains("minutes in class"))
            .filter_map(|item| item.split(", ").last()?.split(" minutes").next()?.parse().ok())
            .collect();
        assert_eq!(parts.iter().sum::<u32>(), in_class.iter().sum::<u32>(), "{list}");
    }
    for (number, session) in (1..).zip([
        "01-devices",
        "03-training-loop",
        "05-monitoring",
        "07-cudnn",
        "09-feeding",
        "13-pitfalls",
    ]) {
        let page = &pages[&format!("teaching/session-{number}.html")];
        assert!(
            page.contains(&format!("href=\"../{session}")) && page.contains(" in class; at home: "),
            "{number}"
        );
    }
}

/// The guide says what the test of the exercises has seen, and the sheets give no answer away.
#[test]
fn the_guide_has_the_verdicts_of_the_mistakes_and_the_sheets_have_no_answers() {
    let pages = pages();
    let guide: String =
        (1..=5).map(|number| pages[&format!("teaching/session-{number}.html")].as_str()).collect();
    for (id, diagnosis) in [("01-one-by-one", "row-by-row"), ("02-batch", "result-dropped")] {
        assert!(
            guide.contains(&format!("<code>{id}</code>"))
                && guide.contains(&format!("<code>{diagnosis}</code>")),
            "{id}"
        );
    }
    // Three for each of the ten chapters of five sessions.
    assert_eq!(guide.matches("The diagnosis is").count(), 30);
    assert_eq!(guide.matches("not yet: ").count(), 30);
    assert_eq!(guide.matches("<h3 id=\"to-discuss").count(), 10);
    let sheets: Vec<&String> = pages.keys().filter(|page| page.starts_with("teaching/sheet-")).collect();
    assert_eq!(sheets.len(), 14, "{sheets:?}");
    for sheet in sheets {
        let (_, sheet) = pages[sheet].split_once("<div class=\"sheet\">").unwrap();
        assert!(!sheet.contains("Right:") && !sheet.contains("\nidea "), "{sheet}");
        // A name, and three answers at least; a chapter with exercises has three mistakes to find.
        assert!(sheet.matches("sheet-line").count() >= 4, "{sheet}");
    }
}

//! Events as readers and programs see them.

use crate::tiny;
use drawing::MemoryMap;
use labs::{
    Drawing, Event, Figure, Kind, Table, bytes, exact, measured, modelled, render_json, render_text, row,
    run_captured, text,
};
use serde_json::{Value as Json, json};
use todevice::Tensor;

#[test]
fn text_reads_as_in_a_terminal() {
    insta::assert_snapshot!(run_captured(&tiny::LAB, &["--gpu", "none"]).text);
}

#[test]
fn json_is_one_object_a_line() {
    insta::assert_snapshot!(run_captured(&tiny::LAB, &["--gpu", "none", "--fail"]).json);
}

#[test]
fn every_line_of_json_parses_and_says_which_event_it_is() {
    let captured = run_captured(&tiny::LAB, &["--fail"]);
    assert_eq!(captured.json.lines().count(), captured.events.len());
    for line in captured.json.lines() {
        let object: Json = serde_json::from_str(line).unwrap();
        assert!(object["event"].is_string(), "{line}");
    }
}

#[test]
fn bytes_told_in_mebibytes_are_counted_in_json() {
    let object = render_json::render(&Event::Figure(bytes("peak", 108_000_256)));
    assert_eq!((&object["value"], &object["unit"]), (&json!(108_000_256), &json!("bytes")));
    assert_eq!(object["text"], "103.0 MiB");
}

#[test]
fn values_json_cannot_hold_are_null_with_a_text() {
    let object = |value: f64| render_json::render(&Event::Figure(exact("loss", value)));
    for (value, text) in [(f64::NAN, "nan"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf")] {
        assert_eq!(object(value)["value"], Json::Null);
        assert_eq!(object(value)["text"], json!(text));
    }
}

#[test]
fn a_printed_line_is_exact_and_its_figure_stays_raw() {
    let line = text!("Epoch [1/3], Loss: {:.4}", exact("loss", 0.755907));
    let event = Event::Line(line);
    assert_eq!(render_text::render([&event]), "Epoch [1/3], Loss: 0.7559\n");
    assert_eq!(render_json::render(&event)["figures"][0]["value"], json!(0.755907));
}

#[test]
fn a_text_takes_several_figures_in_any_order() {
    let text = text!("{1:.1} of {0}", exact("bytes", 1024), exact("share", 0.25),);
    assert_eq!(text.printed(), "0.2 of 1024");
    let names: Vec<&str> = text.figures().map(|figure| figure.name).collect();
    assert_eq!(names, ["share", "bytes"]);
}

#[test]
fn whatever_is_not_exact_says_so() {
    let captured = run_captured(&tiny::LAB, &[]);
    for event in &captured.events {
        let rendered = render_text::render([event]);
        for figure in event.figures() {
            match figure.kind {
                Kind::Measured => assert!(rendered.contains("measured"), "{rendered}"),
                Kind::Modelled => assert!(rendered.contains("modelled"), "{rendered}"),
                Kind::Exact | Kind::Hardware => {}
            }
        }
    }
}

#[test]
fn a_column_of_one_kind_says_it_once() {
    let time = |figure: Figure| figure.unit("ms").digits(1);
    let same = Table::new(["n", "time"])
        .row(row![1, time(modelled("time", 2.0))])
        .row(row![10, time(modelled("time", 20.0))])
        .row(row![100, "out of memory"]);
    insta::assert_snapshot!(render_text::render(&[Event::Table(same)]), @r"
      n  time (ms, modelled)
    ───  ───────────────────
      1                  2.0
     10                 20.0
    100        out of memory
    ");
    let mixed = Table::new(["n", "time"])
        .row(row![1, time(modelled("time", 2.0))])
        .row(row![10, time(measured("time", 20.0))]);
    insta::assert_snapshot!(render_text::render(&[Event::Table(mixed)]), @r"
     n                time
    ──  ──────────────────
     1   2.0 ms (modelled)
    10  20.0 ms (measured)
    ");
}

#[test]
fn a_ragged_or_empty_table_is_drawn_all_the_same() {
    let ragged = Table::new(["a"]).row(row![]).row(row!["x", 1]);
    insta::assert_snapshot!(render_text::render(&[Event::Table(ragged)]), @r"
    a
    ─  ─

    x  1
    ");
    let empty = Table::new(Vec::<String>::new());
    assert_eq!(render_text::render(&[Event::Table(empty)]), "\n\n");
}

#[test]
fn a_picture_is_drawn_where_it_can_be_and_else_named() {
    let picture = |text: Option<&str>| Event::Picture {
        drawing: Drawing { text: text.map(str::to_owned), ..Drawing::from("<svg/>".to_owned()) },
        caption: "Two copies.".to_owned(),
    };
    assert_eq!(render_text::render([&picture(None)]), "[picture: Two copies.]\n");
    let drawn = picture(Some("copies  ▒▒ ▒▒\nµs      └0 └5"));
    assert_eq!(
        render_text::render([&drawn, &drawn]),
        "Two copies.\ncopies  ▒▒ ▒▒\nµs      └0 └5\n\nTwo copies.\ncopies  ▒▒ ▒▒\nµs      └0 └5\n"
    );
    assert_eq!(render_json::render(&drawn)["text"], json!("copies  ▒▒ ▒▒\nµs      └0 └5"));
}

#[test]
fn timelines_and_memory_maps_are_both_svg_and_text() {
    let machine: todevice::Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        let (x, trace) = machine.profile(|| Tensor::ones(&[1000]).unwrap().cuda().unwrap());
        let map = MemoryMap::now().name("x", [&x]);
        for (drawing, word) in [(Drawing::from(&trace), "modelled"), (Drawing::from(&map), "x")] {
            let text = drawing.text.expect("a text");
            assert!(drawing.svg.starts_with("<svg ") && drawing.svg.contains(word) && text.contains(word));
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
        assert_eq!(Drawing::from("<svg/>".to_owned()).text, None);
    });
}

#[test]
fn every_figure_of_a_lab_can_be_found() {
    let captured = run_captured(&tiny::LAB, &["--epochs", "2"]);
    let names: Vec<&str> =
        captured.events.iter().flat_map(Event::figures).map(|figure| figure.name).collect();
    assert_eq!(
        names,
        [
            "device",
            "host_memory",
            "loss",
            "loss",
            "mean_loss",
            "load_time",
            "diverged",
            "copy",
            "ratio",
            "copy",
            "ratio",
            "total"
        ]
    );
}

#[test]
fn values_that_might_print_differently_elsewhere_are_found() {
    let near = |value: f64, digits| exact("x", value).digits(digits).near_rounding_boundary();
    assert!(near(0.12345, 4) && near(-0.12345, 4) && near(0.123_450_000_1, 4));
    assert!(!near(0.12346, 4) && !near(0.1234, 4) && !near(0.0, 4) && !near(1e-12, 4));
    assert!(near(2.5, 0) && !near(3.0, 0));
    // More digits than single precision has: never safe.
    assert!(near(123_456_789.0, 0) && near(1e300, 255) && near(f64::MAX, 4));
    assert!(!near(f64::NAN, 4) && !near(f64::INFINITY, 4));
    assert!(!exact("bytes", 2_097_152).near_rounding_boundary());
}

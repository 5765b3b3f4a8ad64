//! Pastes in the forms that people use: whole logs, launchers' reports, warnings before the error, chains of errors.

use errors::explain;

/// `=== kind`, a line with `* ` for each sentence on its numbers, an empty line, and the text.
const PASTES: &str = include_str!("fresh.txt");

#[test]
fn the_last_error_of_a_paste_is_explained_with_its_numbers() {
    let mut wrong = String::new();
    let pastes: Vec<&str> = PASTES.split("\n=== ").collect();
    for paste in &pastes {
        let (expected, text) = paste.split_once("\n\n").unwrap();
        let mut expected = expected.trim_start_matches("=== ").lines();
        let kind = expected.next().unwrap();
        let sentences: Vec<&str> = expected.map(|line| line.strip_prefix("* ").unwrap()).collect();
        let explained = explain(text);
        let said = explained.as_ref().map(|explained| (explained.kind.id, explained.numbers.clone()));
        if !said.as_ref().is_some_and(|(id, numbers)| *id == kind && *numbers == sentences) {
            wrong += &format!("{kind}, {sentences:#?}, but\n{said:#?}:\n{text}\n\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(pastes.len() >= 60);
}

/// A kernel that fails a check spoils all that the GPU is asked later.
#[test]
fn an_assertion_is_the_cause_of_the_library_s_error_after_it() {
    for later in ["cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED"] {
        assert_ne!(explain(later).unwrap().kind.id, "device-assert");
        let both = format!("Assertion `srcIndex < srcSelectDimSize` failed.\nRuntimeError: {later}");
        assert_eq!(explain(&both).unwrap().kind.id, "device-assert");
    }
}

#[test]
fn a_warning_is_explained_alone_and_not_in_place_of_an_unknown_error() {
    const WARNING: &str = "loss.py:616: UserWarning: Using a target size (torch.Size([64])) that is different to the input size (torch.Size([64, 1])).";
    assert_eq!(explain(WARNING).unwrap().kind.id, "loss-sizes");
    let unknown = format!(
        "{WARNING}\nTraceback (most recent call last):\nAttributeError: 'Tensor' has no attribute 'x'"
    );
    assert!(explain(&unknown).is_none());
    let known = format!(
        "{WARNING}\nTraceback (most recent call last):\nValueError: optimizer got an empty parameter list"
    );
    assert_eq!(explain(&known).unwrap().kind.id, "optimizer-empty");
}

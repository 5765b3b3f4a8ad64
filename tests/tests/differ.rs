//! Random programs with PyTorch's answers: `vectors/programs.json`, written by the command `differ`. They run on the
//! CPU and on a simulated GPU.

use course_tests::differ::compare::{Against, difference};
use course_tests::differ::operations::OPERATIONS;
use course_tests::differ::{Dialect, Program, known, pytorch, run};
use course_tests::vectors;

#[test]
fn programs_answer_as_in_pytorch() {
    let kept = vectors("programs.json");
    let kept = kept["programs"].as_array().unwrap();
    assert!(kept.len() >= 200, "only {} programs", kept.len());
    let mut called = vec![false; OPERATIONS.len()];
    let mut wrong = Vec::new();
    for json in kept {
        let program = Program::from_json(&json["program"]).expect("a program of operations that there are");
        for step in &program.steps {
            called[OPERATIONS.iter().position(|known| known.name == step.operation.name).unwrap()] = true;
        }
        let (ours, theirs) = (run::on_cpu(&program), pytorch::read(&json["answer"]).unwrap());
        let found = difference(&program, &ours, &theirs, Against::PyTorch)
            .or_else(|| difference(&program, &ours, &run::on_simulated_t4(&program), Against::SimulatedGpu));
        if let Some(found) = found.filter(|found| known::reason(found).is_none()) {
            wrong.push(format!("{found:?} in\n{}", program.written(Dialect::Rust, &ours.made())));
        }
    }
    assert!(wrong.is_empty(), "{} programs differ, the first by {}", wrong.len(), wrong[0]);
    let missing: Vec<&str> = OPERATIONS
        .iter()
        .zip(called)
        .filter(|(_, called)| !called)
        .map(|(operation, _)| operation.name)
        .collect();
    assert!(missing.len() < 6, "no program calls {missing:?}");
}

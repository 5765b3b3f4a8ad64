//! Modules moved without one of their fields: the golden rule's report names the field that no list contains.

use crate::each_case::each_case;
use todevice::nn::{Buffer, Parameter};
use todevice::prelude::*;

/// Lists only the fields in `lists`, so that every kind of field can be forgotten.
struct Net {
    hidden: nn::Linear,
    out: nn::Linear,
    scale: Parameter,
    mean: Buffer,
    lists: &'static [&'static str],
}

/// The line on which `hidden` is made.
const HIDDEN: u32 = line!() + 5;

impl Net {
    fn new(lists: &'static [&'static str]) -> Result<Net> {
        Ok(Net {
            hidden: nn::Linear::new(3, 4)?,
            out: nn::Linear::new(4, 1)?,
            scale: Parameter::new(&Tensor::ones(&[3])?)?,
            mean: Buffer::new(&Tensor::zeros(&[3])?),
            lists,
        })
    }

    fn has(&self, name: &str) -> bool {
        self.lists.contains(&name)
    }
}

impl Module for Net {
    fn name(&self) -> &'static str {
        "Net"
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = ((x - &self.mean.tensor())? * &self.scale.tensor())?;
        self.out.forward(&self.hidden.forward(&x)?)
    }

    fn children(&self) -> Vec<(String, &dyn Module)> {
        let children: [(&str, &dyn Module); 2] = [("hidden", &self.hidden), ("out", &self.out)];
        children
            .into_iter()
            .filter(|(name, _)| self.has(name))
            .map(|(name, m)| (name.to_owned(), m))
            .collect()
    }

    fn own_parameters(&self) -> Vec<(&'static str, Parameter)> {
        if self.has("scale") { vec![("scale", self.scale.clone())] } else { Vec::new() }
    }

    fn own_buffers(&self) -> Vec<(&'static str, Buffer)> {
        if self.has("mean") { vec![("mean", self.mean.clone())] } else { Vec::new() }
    }
}

/// The last two lines of the report of a forward pass after `.to`.
fn report(model: &(impl Module + 'static)) -> Result<[String; 2]> {
    let x = Tensor::ones(&[2, 3])?.to(Device::cuda(0))?;
    let report = model.forward(&x).unwrap_err().report();
    let lines: Vec<&str> = report.lines().rev().take(2).collect();
    Ok([lines[1], lines[0]].map(|line| line.trim_start().to_owned()))
}

fn on_gpu<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    "sim:t4".parse::<Machine>()?.enter(run)
}

#[test]
fn a_forgotten_child_parameter_or_buffer_is_named_with_the_list_that_lacks_it() -> Result<()> {
    let cases: [(&[&str], u32, &str, &str, &str, &str); 3] = [
        (&["out", "scale", "mean"], 0, "bias of ", "Linear", "children", "out, scale, mean"),
        (&["hidden", "out", "mean"], 2, "", "parameter", "own_parameters", "hidden, out, mean"),
        (&["hidden", "out", "scale"], 3, "", "buffer", "own_buffers", "hidden, out, scale"),
    ];
    each_case(cases, |(lists, line, of, what, list, listed)| -> Result<()> {
        on_gpu(|| {
            let net = Net::new(lists)?;
            let moved = line!() + 1;
            net.to(Device::cuda(0))?;
            let [left, fix] = report(&net)?;
            let column = match what {
                "Linear" => 21,
                "parameter" => 20,
                _ => 32,
            };
            let made = format!("the {what} made at {}:{}:{column}", file!(), HIDDEN + line);
            assert_eq!(
                left,
                format!(
                    "= not listed: {of}{made} did not move with Net, which lists {listed} only, at {}:{moved}:17",
                    file!()
                )
            );
            let field = if what == "Linear" { "the field that holds " } else { "" };
            assert_eq!(
                fix,
                format!(
                    "= fix: in Net, add {field}{made} to `{list}`, or derive Module; if it belongs to another model, move that one"
                )
            );
            Ok(())
        })?;
        Ok(())
    });
    Ok(())
}

#[test]
fn a_module_that_lists_nothing_is_told_so_wherever_it_stands() -> Result<()> {
    on_gpu(|| {
        let model = nn::Sequential::new((nn::ReLU, Net::new(&[])?));
        model.to(Device::cuda(0))?;
        let [left, _] = report(&model)?;
        assert!(left.contains("the buffer made at"), "{left}");
        assert!(left.contains("did not move with Net, which lists nothing, at"), "{left}");
        Ok(())
    })
}

#[derive(Module)]
struct Skipping {
    out: nn::Linear,
    #[module(skip)]
    hidden: nn::Linear,
}

impl Skipping {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.out.forward(&self.hidden.forward(x)?)
    }
}

#[test]
fn a_field_that_a_derived_module_skips_is_named() -> Result<()> {
    on_gpu(|| {
        let model = Skipping { out: nn::Linear::new(4, 1)?, hidden: nn::Linear::new(3, 4)? };
        model.to(Device::cuda(0))?;
        let [left, fix] = report(&model)?;
        assert!(left.contains("did not move with Skipping, which skips hidden, at"), "{left}");
        assert!(fix.starts_with("= fix: in Skipping, take #[module(skip)] off hidden; if"), "{fix}");
        Ok(())
    })
}

/// As before: there is nothing to suggest.
#[test]
fn a_model_that_was_not_moved_or_that_derives_its_lists_is_not_suspected() -> Result<()> {
    on_gpu(|| {
        let forgotten =
            "= fix: self is learned: move its model to cuda:0 before this line, `model.to(device)?`";
        let other = nn::Sequential::new((nn::Linear::new(3, 1)?,));
        other.to(Device::cuda(0))?;
        assert_eq!(report(&nn::Linear::new(3, 1)?)?[1], forgotten, "built-in modules list all they have");

        let net = Net::new(&["hidden", "out", "scale", "mean"])?;
        net.to(Device::cuda(0))?;
        assert_eq!(report(&nn::Linear::new(3, 1)?)?[1], forgotten, "it was made after the move");
        Ok(())
    })
}

#[test]
fn the_class_weights_of_a_loss_that_was_forgotten_are_named() -> Result<()> {
    on_gpu(|| {
        let weight = Some(Tensor::ones(&[3])?);
        let loss_fn = nn::CrossEntropyLoss::new(CrossEntropyOptions { weight, ..Default::default() });
        let net = Net::new(&["out"])?;
        net.to(Device::cuda(0))?;
        let (scores, y) =
            (Tensor::ones((&[2, 3], Device::cuda(0)))?, Tensor::zeros((&[2], Device::cuda(0)))?);
        let report = loss_fn.forward(&scores, &y.to(DType::I64)?).unwrap_err().report();
        assert!(report.contains("= not listed: weight of the CrossEntropyLoss made at"), "{report}");
        Ok(())
    })
}

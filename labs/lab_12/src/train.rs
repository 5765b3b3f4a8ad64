//! The reader's activation function in two kernels: checked against finite differences, then used to train the network
//! of lab 03.

use std::fmt::Write;
use std::path::Path;

use todevice::autograd::{Function, GradcheckOptions, gradcheck};
use todevice::prelude::*;
use todevice::time::Instant;
use todevice::{Approximate, GpuSpec, cuda};

use crate::activation::Activation;
use crate::interpreter;

pub const EXAMPLE: (&str, &str) = ("activation.cu", include_str!("../examples/activation.cu"));

pub struct Options {
    /// The file with the kernels; `None` for the example.
    pub file: Option<String>,
    pub gpu: GpuSpec,
    pub epochs: usize,
    pub seed: u64,
}

impl Options {
    pub fn kernels(&self) -> std::result::Result<(String, String), String> {
        let Some(file) = &self.file else { return Ok((EXAMPLE.0.to_owned(), EXAMPLE.1.to_owned())) };
        let bytes =
            std::fs::read(file).map_err(|error| format!("the file {file} cannot be read: {error}"))?;
        Ok((file.clone(), String::from_utf8_lossy(&bytes).into_owned()))
    }
}

pub const HELP: &str = "\
Compiles two kernels, `forward` and `backward`, and uses them as the activation function of lab 03's network: checks the
gradient against finite differences, then trains.

Usage: cargo run --bin lab-12 -- train [FILE.cu] [--gpu GPU] [--epochs N] [--seed N]

  FILE.cu      the kernels [default: squared ReLU, which --show prints]
  --gpu GPU    the GPU to run on: sim:t4, sim:rtx4090, sim:h200, …, or real [default: sim:t4]
  --epochs N   passes over the data, from 1 to 1000 [default: 3]
  --seed N     the seed of the data, the network, and the order of batches [default: 42]
  --show       prints the kernels instead of training
  -h, --help   prints this help

Exit code: 0 if the gradient is right, 1 if it is wrong, 2 if the kernels or a flag is wrong.
";

pub enum Command {
    Help,
    Show(Options),
    Train(Options),
}

/// Parses the arguments after `train`.
pub fn parse(arguments: impl Iterator<Item = String>) -> std::result::Result<Command, String> {
    let mut options = Options { file: None, gpu: GpuSpec::Auto, epochs: 3, seed: 42 };
    let (mut arguments, mut is_shown) = (arguments, false);
    while let Some(argument) = arguments.next() {
        let (name, joined) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
            _ => (argument.clone(), None),
        };
        let mut value =
            || joined.clone().or_else(|| arguments.next()).ok_or(format!("`{name}` needs a value"));
        match name.as_str() {
            "-h" | "--help" => return Ok(Command::Help),
            "--show" => is_shown = true,
            "--gpu" => options.gpu = value()?.parse().map_err(|error: Error| format!("--gpu: {error}"))?,
            "--epochs" => {
                let text = value()?;
                let epochs = text.parse().ok().filter(|epochs| (1..=1000).contains(epochs));
                options.epochs = epochs.ok_or(format!("`--epochs {text}`: 1 to 1000 epochs"))?;
            }
            "--seed" => {
                let text = value()?;
                options.seed =
                    text.parse().map_err(|_| format!("`--seed {text}`: a seed is a whole number"))?;
            }
            flag if flag.starts_with('-') => return Err(format!("`train` has no flag `{flag}`")),
            _ if options.file.is_some() => return Err(format!("`{argument}`: one file at a time")),
            _ => options.file = Some(argument),
        }
    }
    Ok(if is_shown { Command::Show(options) } else { Command::Train(options) })
}

/// The largest relative difference of two losses that counts as rounding.
const TOLERANCE: f64 = 1e-4;

/// Compiles the kernels, checks their gradient and trains. Returns the output and the exit code: 1 if the gradient is
/// wrong, or if the losses differ from those of the same function in tensor operations.
pub fn run(options: &Options) -> Result<(String, u8)> {
    let (file, text) = options.kernels().map_err(Error::custom)?;
    let folder = Path::new(&file).parent().map(Path::to_path_buf).unwrap_or_default();
    interpreter::with(&options.gpu, &file, folder, |machine| {
        let mut said = format!("machine: {machine}\nkernels: forward and backward of {file}\n\n");
        let code = check_and_train(&text, options, &mut said)?;
        Ok((said, code))
    })
}

fn check_and_train(text: &str, options: &Options, said: &mut String) -> Result<u8> {
    let begin = std::time::Instant::now();
    let mine = Activation::compile(text)?;

    // ANCHOR: gradcheck
    // No element is 0, where many activation functions have a kink.
    let x = Tensor::new([-2.0, -1.25, -0.5, 0.5, 1.25, 2.0])?;
    let x = x.to(Device::cuda(0))?.requires_grad_(true)?;
    // Wider than the defaults, which are for doubles.
    let (eps, atol, rtol) = (1e-2, 1e-2, 1e-2);
    let floats = GradcheckOptions { eps, atol, rtol, ..Default::default() };
    let checked = gradcheck(|[x]| mine.clone().apply([x]), [&x], floats);
    // ANCHOR_END: gradcheck
    match checked {
        Ok(_) => said.push_str(
            "gradcheck: backward agrees with finite differences of forward, at 6 numbers from -2 to 2\n",
        ),
        Err(error) if error.kind() == "GradcheckError" => {
            let _ = writeln!(said, "gradcheck: {error}");
            return Ok(1);
        }
        Err(error) => return Err(error),
    }

    let known = KNOWN.iter().find(|known| agrees(known, &mine, &x.detach()).unwrap_or(false));
    let own = train(mine, options)?;
    let theirs = known.map(|known| train(Layer(known), options)).transpose()?;
    tell(options, said, (&own, theirs.as_ref().zip(known)));
    let _ = writeln!(said, "total time: {:.2} s (measured)", begin.elapsed().as_secs_f64());
    let differs = theirs.is_some_and(|theirs| largest_difference(&own, &theirs) > TOLERANCE);
    Ok(u8::from(differs))
}

struct Known {
    name: &'static str,
    compute: fn(&Tensor) -> Result<Tensor>,
}

const KNOWN: [Known; 7] = [
    Known { name: "x.relu()?.square()?", compute: |x| x.relu()?.square() },
    Known { name: "x.relu()?", compute: Tensor::relu },
    Known { name: "x.gelu(Approximate::Tanh)?", compute: |x| x.gelu(Approximate::Tanh) },
    Known { name: "x.gelu(Approximate::None)?", compute: |x| x.gelu(Approximate::None) },
    Known { name: "(x * x.sigmoid())?", compute: |x| x * x.sigmoid() },
    Known { name: "x.tanh()?", compute: Tensor::tanh },
    Known { name: "x.sigmoid()?", compute: Tensor::sigmoid },
];

/// Whether a function gives the same results as the kernels, up to rounding.
fn agrees(known: &Known, mine: &Activation, x: &Tensor) -> Result<bool> {
    let [a, b] = [(known.compute)(x)?, Module::forward(mine, x)?].map(|y| y.to_vec::<f32>());
    Ok(a?.iter().zip(&b?).all(|(a, b)| (a - b).abs() <= 1e-5 * a.abs().max(1.0)))
}

struct Layer(&'static Known);

impl Module for Layer {
    fn name(&self) -> &'static str {
        "Activation"
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        (self.0.compute)(x)
    }
}

/// The loss of the last batch of each epoch, and the training time in seconds.
struct Trained {
    losses: Vec<f64>,
    seconds: f64,
}

/// Trains lab 03's network with another activation function on lab 03's data.
fn train(activation: impl Module + 'static, options: &Options) -> Result<Trained> {
    // ANCHOR: train
    manual_seed(options.seed);
    let device = Device::cuda(0);
    let x = Tensor::randn(&[1024, 16])?;
    let y = Tensor::randn(&[1024, 1])?;
    let loader = DataLoader::new(
        TensorDataset::new([x, y])?,
        DataLoaderOptions { batch_size: 64, shuffle: true, ..Default::default() },
    )?;
    let model = nn::Sequential::new((nn::Linear::new(16, 64)?, activation, nn::Linear::new(64, 1)?));
    model.to(device)?;
    let loss_fn = nn::MSELoss::default();
    let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions { lr: 1e-3, ..Default::default() })?;

    cuda::synchronize()?;
    let start = Instant::now();
    let mut losses = Vec::new();
    for _ in 0..options.epochs {
        let mut last = None;
        for batch in &loader {
            let [x, y] = batch?;
            let (x, y) = (x.to(device)?, y.to(device)?);
            let loss = loss_fn.forward(&model.forward(&x)?, &y)?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
            last = Some(loss.detach());
        }
        losses.extend(last.map(|last| last.item()).transpose()?);
    }
    cuda::synchronize()?;
    // ANCHOR_END: train
    Ok(Trained { losses, seconds: start.elapsed().as_secs_f64() })
}

fn largest_difference(a: &Trained, b: &Trained) -> f64 {
    let differences = a.losses.iter().zip(&b.losses).map(|(a, b)| (a - b).abs() / a.abs().max(1e-30));
    // A NaN counts as the largest difference.
    differences.fold(0.0, |most, next| if next <= most { most } else { next })
}

fn tell(options: &Options, said: &mut String, (own, known): (&Trained, Option<(&Trained, &Known)>)) {
    let kind = if Machine::current().time_is_modelled() { "modelled" } else { "measured" };
    let rows = |said: &mut String, row: &dyn Fn(usize) -> String| {
        (0..options.epochs).for_each(|epoch| said.push_str(&row(epoch)));
    };
    let _ = writeln!(said, "\nlab 03's network, trained with it:");
    match known {
        None => {
            let _ = writeln!(said, "{:>5}  {:>9}", "epoch", "loss");
            rows(said, &|i| format!("{:>5}  {:>9.6}\n", i + 1, own.losses[i]));
            let names: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
            let _ = writeln!(
                said,
                "forward is not one of these functions, so there is no comparison: {}",
                names.join(", ")
            );
        }
        Some((theirs, known)) => {
            let width = known.name.len();
            let _ = writeln!(said, "{:>5}  {:>12}  {}", "epoch", "your kernels", known.name);
            rows(said, &|i| {
                format!("{:>5}  {:>12.6}  {:>width$.6}\n", i + 1, own.losses[i], theirs.losses[i])
            });
            let _ = match largest_difference(own, theirs) {
                0.0 => writeln!(said, "the losses have the same bits"),
                difference if difference <= TOLERANCE => writeln!(
                    said,
                    "the relative difference of the losses is at most {difference:.1e}, which is rounding"
                ),
                difference => writeln!(
                    said,
                    "the relative difference of the losses is {difference:.1e}: the kernels compute something else"
                ),
            };
            let _ = writeln!(
                said,
                "seconds: {:.6} with your kernels, {:.6} without ({kind})",
                own.seconds, theirs.seconds
            );
            return;
        }
    }
    let _ = writeln!(said, "seconds: {:.6} ({kind})", own.seconds);
}

//! A network that is trained in four ways.

use std::time::Duration;

use todevice::Machine;
use todevice::amp::{self, AutocastOptions, GradScaler};
use todevice::prelude::*;

use super::scaling::scaler_of;
use super::{Options, kibibytes, median, name_of, peak_of, percent, time_of};
use crate::{Lab, Prediction, Table, Text, exact, row, text, timed};

const POINTS: usize = 1024;
const HIDDEN: usize = 64;

// ANCHOR: rings
/// Points in a square, and the class of each: one of three rings around the middle.
pub(super) fn rings(seed: u64, device: Device) -> Result<(Tensor, Tensor)> {
    manual_seed(seed);
    let x = ((Tensor::rand(&[POINTS, 2])? * 2.0)? - 1.0)?;
    let r2 = x.mul(&x)?.sum_dims(&[1], false)?;
    let ring = (r2.gt(0.3)?.to(DType::I64)? + r2.gt(0.7)?.to(DType::I64)?)?;
    Ok((x.to(device)?, ring.to(device)?))
}
// ANCHOR_END: rings

// ANCHOR: network
pub(super) fn classifier(seed: u64, device: Device) -> Result<nn::Sequential> {
    manual_seed(seed);
    let model = nn::Sequential::new((
        nn::Linear::new(2, HIDDEN)?,
        nn::ReLU,
        nn::Linear::new(HIDDEN, HIDDEN)?,
        nn::ReLU,
        nn::Linear::new(HIDDEN, HIDDEN)?,
        nn::ReLU,
        nn::Linear::new(HIDDEN, 3)?,
    ));
    model.to(device)?;
    Ok(model)
}
// ANCHOR_END: network

// ANCHOR: options
/// Autocast to this type; without a type, it casts nothing.
pub(super) fn casting(half: Option<DType>, device: Device) -> AutocastOptions {
    AutocastOptions { dtype: half, enabled: half.is_some(), ..device.into() }
}
// ANCHOR_END: options

// ANCHOR: loss
/// The forward pass and the loss: the mean over `batches` batches as large as this one.
pub(super) fn loss_of(
    model: &nn::Sequential,
    x: &Tensor,
    y: &Tensor,
    batches: usize,
) -> Result<Tensor> {
    let scores = model.forward(x)?;
    scores.cross_entropy(y)? / batches as f64
}
// ANCHOR_END: loss

/// The lines of section 3 that a question is about.
const FORWARD: &str = "\
let hidden = first.forward(&x)?;
let active = hidden.relu()?;
let scores = last.forward(&active)?;
let loss = scores.cross_entropy(&y)?;";

pub(super) fn who_runs_in_what(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    let guess = lab.predict(
        Prediction::line(
            "06-types",
            "The batch and the weights are float32, and these lines run under autocast with float16. Which of them is \
             the first to give a result in float32?",
            FORWARD,
        )
        .because(
            "Products run in 16 bits, and ReLU keeps the type of its input. Some operations that add up many \
             numbers or take logarithms, such as `cross_entropy`, run in float32.",
        ),
    );
    let (x, y) = rings(lab.seed(), device)?;
    let first = nn::Linear::new(2, HIDDEN)?;
    let last = nn::Linear::new(HIDDEN, 3)?;
    first.to(device)?;
    last.to(device)?;
    // ANCHOR: types
    let forward = || -> Result<[Tensor; 4]> {
        let hidden = first.forward(&x)?;
        let active = hidden.relu()?;
        let scores = last.forward(&active)?;
        let loss = scores.cross_entropy(&y)?;
        Ok([hidden, active, scores, loss])
    };
    let step = || {
        let results = amp::autocast(casting(Some(DType::F16), device), forward)?;
        results[3].backward()?; // outside
        Ok(results)
    };
    // ANCHOR_END: types
    let (results, trace): (Result<[Tensor; 4]>, _) = Machine::current().profile(step);
    let [hidden, active, scores, loss] = results?;
    let weight = last.weight.tensor();
    let grad = weight.grad().ok_or("the weight has no gradient")?;
    let mut table = Table::new(["tensor", "type", "bytes"]);
    for (name, tensor) in [
        ("x, the points", &x),
        ("result of the first layer", &hidden),
        ("result of ReLU", &active),
        ("result of the last layer", &scores),
        ("loss", &loss),
        ("weight of the last layer", &weight),
        ("gradient of that weight", &grad),
    ] {
        let bytes = tensor.nbytes();
        table = table.row(row![
            name,
            exact("type", name_of(tensor.dtype())),
            exact("bytes", bytes)
        ]);
    }
    lab.table(table);
    let results = [
        ("let hidden", &hidden),
        ("let active", &active),
        ("let scores", &scores),
        ("let loss", &loss),
    ];
    let in_float32 =
        results.into_iter().find(|(_, result)| result.dtype() == DType::F32);
    lab.answer(guess, in_float32.map_or("none", |(line, _)| line));
    lab.prose(
        "Products run in 16 bits, because tensor cores can do them. ReLU is on none of autocast's lists, so it keeps the type \
         of its input. The loss, which takes logarithms, runs in float32. The weight is float32 and stays float32: the \
         product saw a rounded copy. The gradient of that copy has 16 bits, and is converted on its way to the weight.",
    );
    if let Some(gpu) = lab.gpu() {
        lab.part("conversions");
        let kernels = trace.kernels(gpu.index());
        let mut table = Table::new(["operation", "its kernels, by their types"]);
        for operation in kernels.chunk_by(|one, next| one.operation == next.operation) {
            let types: Vec<String> =
                operation.iter().map(|kernel| types_of(&kernel.types)).collect();
            table = table.row(row![
                operation[0].operation,
                exact("kernel_types", types.join(", "))
            ]);
        }
        lab.table(table);
        let casts = kernels.iter().filter(|kernel| kernel.types.len() == 2).count();
        lab.prose(text!(
            "Of {} kernels {} convert from one type to another. Autocast looks up each operation in its lists, and converts \
             whatever comes in another type.",
            exact("kernels", kernels.len()),
            exact("casts", casts)
        ));
        the_cache(lab, &last, &active.detach())?;
    }
    Ok(())
}

fn the_cache(lab: &mut Lab, layer: &nn::Linear, x: &Tensor) -> crate::Result<()> {
    let device = lab.device();
    let guess = lab.predict(
        Prediction::choice(
            "06-cached",
            "A layer is used twice in one region. Are its weight and its bias converted once or twice?",
        )
        .or("once", "Once.", "Count the kernels of the two rows: both are the same.")
        .or("twice", "Twice, at each use.", "Without the cache there are more kernels: the second conversion of the weight and of the bias.")
        .because("Autocast keeps the converted weights until the region ends."),
    );
    let mut table = Table::new(["a layer used twice", "kernels"]);
    let mut kernels = Vec::new();
    for (name, cache_enabled) in [("with the cache", true), ("without", false)] {
        // ANCHOR: cache
        let options = AutocastOptions {
            dtype: Some(DType::F16),
            cache_enabled: Some(cache_enabled),
            ..device.into()
        };
        let before = Machine::current().counters();
        amp::autocast(options, || {
            layer.forward(x)?;
            layer.forward(x)
        })?;
        let launches = (Machine::current().counters() - before).launches;
        // ANCHOR_END: cache
        kernels.push(launches);
        table = table.row(row![name, exact("launches", launches)]);
    }
    lab.table(table);
    lab.answer(guess, if kernels[0] < kernels[1] { "once" } else { "twice" });
    lab.prose(
        "They are converted once, because autocast keeps the copies of weights until the region ends. If a weight changes \
         within the region, its old copy stays in use. So the optimizer's step belongs outside.",
    );
    Ok(())
}

/// `f32 to f16` for a conversion.
fn types_of(types: &[DType]) -> String {
    let short = |dtype: &DType| match dtype {
        DType::F16 => "f16",
        DType::F32 => "f32",
        _ => "other",
    };
    types.iter().map(short).collect::<Vec<_>>().join(" to ")
}

fn gradients(
    seed: u64,
    half: Option<DType>,
    batches: usize,
    device: Device,
) -> crate::Result<Vec<Tensor>> {
    let (x, y) = rings(seed, device)?;
    let model = classifier(seed, device)?;
    let options = CrossEntropyOptions::default();
    // ANCHOR: gradients
    let (scores, watched) = amp::autocast(casting(half, device), || watch(&model, &x))?;
    let loss = (scores.to(DType::F32)?.cross_entropy((&y, options.clone()))?
        / batches as f64)?;
    loss.backward()?;
    // ANCHOR_END: gradients
    watched.iter().map(|zero| Ok(zero.grad().ok_or("no gradient came")?)).collect()
}

// ANCHOR: watch
/// The forward pass, with zeros added to each linear layer's result. The zeros get
/// the gradient of that result.
fn watch(model: &nn::Sequential, x: &Tensor) -> Result<(Tensor, Vec<Tensor>)> {
    let (mut x, mut zeros) = (x.clone(), Vec::new());
    for (_, module) in model.children() {
        x = module.forward(&x)?;
        if module.name() == "Linear" {
            let zero = x.detach().zeros_like()?.requires_grad_(true)?;
            x = (x + &zero)?;
            zeros.push(zero);
        }
    }
    Ok((x, zeros))
}
// ANCHOR_END: watch

fn zeros(x: &Tensor) -> Result<f64> {
    x.eq(0.0)?.to(DType::F32)?.mean()?.item()
}

fn exponent(x: f32) -> i32 {
    (x.to_bits() >> 23 & 0xff) as i32 - 127
}

/// The exponent of the median number, without zeros.
fn usual_size(x: &Tensor) -> Result<i32> {
    let mut sizes: Vec<i32> = x
        .to(Device::Cpu)?
        .flatten(0, -1)?
        .to_vec::<f32>()?
        .into_iter()
        .map(exponent)
        .collect();
    sizes.retain(|size| *size > -127);
    sizes.sort();
    Ok(sizes.get(sizes.len() / 2).copied().unwrap_or(-127))
}

const LAYERS: [&str; 4] = ["first layer", "second layer", "third layer", "last layer"];

pub(super) fn vanishing(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    let (device, seed) = (lab.device(), lab.seed());
    let batches = options.batches;
    let question = format!(
        "The loss is the mean over {} examples. Some gradients of activations are 0 even in float32. What percentage of \
         the others becomes 0 in float16, whose smallest number is 2^-24?",
        POINTS * batches
    );
    let guess = lab.predict(
        Prediction::number("06-vanish", question)
            .unit("%")
            .tolerance(0.1) // so that "nearly all" is right
            .because(
                "The more examples a loss is averaged over, the smaller the gradient of each, and whatever is less \
                 than 2^-25 is rounded to 0.",
            ),
    );
    let whole = gradients(seed, None, batches, device)?;
    let mut all = Vec::new();
    for gradient in &whole {
        all.extend(gradient.to(Device::Cpu)?.flatten(0, -1)?.to_vec::<f32>()?);
    }
    all.retain(|x| *x != 0.0);
    // ANCHOR: lost
    // Up to the first size, a float16 becomes 0. Below the second, it has fewer digits.
    let (half_of_smallest, all_digits) = (2f32.powi(-25), 2f32.powi(-14));
    let lost = all.iter().filter(|x| x.abs() <= half_of_smallest).count();
    let worn = all.iter().filter(|x| x.abs() < all_digits).count() - lost;
    // ANCHOR_END: lost
    let share = |count: usize| count as f64 / all.len() as f64;
    lab.print(text!(
        "The loss is divided by {}. Gradients by their size:",
        exact("batches", options.batches)
    ));
    lab.report(histogram(&all));
    lab.answer(guess, percent("lost_share", share(lost)));
    lab.prose(text!(
        "Of the gradients that are not 0 in float32, {} lie below half of float16's smallest number and become 0. {} lie \
         where float16 has fewer digits. bfloat16 has the range of float32.",
        percent("lost_share", share(lost)),
        percent("worn_share", share(worn))
    ));

    lab.think(
        "06-first",
        "Where do gradients vanish first: in the first layer, or in the last one, which is next to the loss?",
    );
    let in_half = gradients(seed, Some(DType::F16), batches, device)?;
    let in_brain = gradients(seed, Some(DType::BF16), batches, device)?;
    let mut table =
        Table::new(["gradients that are 0", "float32", "float16", "bfloat16", "size"]);
    let (mut lost_more, mut nothing_left) = (false, true);
    let mut sizes = Vec::new();
    for (index, layer) in LAYERS.iter().enumerate() {
        let (in_single, in_half) = (zeros(&whole[index])?, zeros(&in_half[index])?);
        lost_more |= in_half > in_single + 0.01;
        nothing_left &= index == 3 || in_half > 0.995;
        sizes.push(usual_size(&whole[index])?);
        table = table.row(row![
            *layer,
            percent("float32_zeros", in_single),
            percent("float16_zeros", in_half),
            percent("bfloat16_zeros", zeros(&in_brain[index])?),
            exact("usual_size", format!("2^{}", sizes[index]))
        ]);
    }
    lab.table(table);
    let shrink = sizes.is_sorted_by(|one, next| one < next);
    lab.prose(match (lost_more, shrink) {
        (true, true) => {
            "They vanish first in the first layer. The last column shows how large the middle one of them is in float32, \
             zeros aside: smaller with each layer of the backward pass. The zeros of float32 are ReLU's doing, and nothing is \
             lost by them."
        }
        (true, false) => {
            "They vanish where they are smallest. The last column shows how large the middle one of them is in float32, zeros \
             aside. The zeros of float32 are ReLU's doing, and nothing is lost by them."
        }
        (false, _) => {
            "Nowhere: with so few batches the gradients are large enough. The zeros are ReLU's doing, and nothing is lost \
             by them."
        }
    });
    if nothing_left {
        lab.prose(
            "In float16 next to nothing arrives in the first three layers, and no error says so.",
        );
    }
    Ok(())
}

/// A histogram by exponents, four at a time.
fn histogram(numbers: &[f32]) -> String {
    let sizes: Vec<i32> = numbers.iter().copied().map(exponent).collect();
    let first = -40;
    let mut lines = Vec::new();
    let mut row = |low: i32, high: i32, label: String, note: &str| {
        let share = sizes.iter().filter(|size| (low..high).contains(*size)).count()
            as f64
            / sizes.len() as f64;
        let bar = "#".repeat((share * 60.0).round() as usize);
        let share = crate::format_float(100.0 * share, 0);
        lines.push(
            format!("{label:<15} {share:>3} % {bar}{note}").trim_end().to_owned(),
        );
    };
    row(i32::MIN, first, format!("less than 2^{first}"), "");
    for low in (first..-8).step_by(4) {
        let note = if low == -24 { "  <- float16 begins here" } else { "" };
        row(low, low + 4, format!("2^{low} to 2^{}", low + 4), note);
    }
    lines.join("\n")
}

struct Trained {
    loss: f64,
    accuracy: f64,
    skipped: usize,
    step_time: Duration,
    peak: Option<u64>,
}

fn train(
    seed: u64,
    half: Option<DType>,
    scaled: bool,
    options: &Options,
    device: Device,
) -> crate::Result<Trained> {
    let (x, y) = rings(seed, device)?;
    let model = classifier(seed, device)?;
    // ANCHOR: train
    let mut optimizer = optim::Adam::new(
        model.parameters(),
        AdamOptions { lr: 0.01, ..Default::default() },
    )?;
    let mut scaler = GradScaler::new(scaler_of(scaled, 65536.0, device))?;
    let mut skipped = 0;
    let mut step = || {
        optimizer.zero_grad();
        let loss = amp::autocast(casting(half, device), || {
            loss_of(&model, &x, &y, options.batches)
        })?;
        scaler.scale(&loss)?.backward()?;
        let taken = scaler.step(&mut optimizer)?;
        skipped += usize::from(!taken);
        scaler.update()?;
        Ok(loss.detach())
    };
    // ANCHOR_END: train
    let (mut last, mut times) = (None, Vec::new());
    let ((), peak) = peak_of(device, || {
        for _ in 0..options.steps {
            let (loss, time) = time_of(device, &mut step)?;
            times.push(time);
            last = Some(loss);
        }
        Ok(())
    })?;
    let loss = last.ok_or("no step was taken")?.item()? * options.batches as f64;
    let right = no_grad(|| {
        model.forward(&x)?.argmax(1, false)?.eq(&y)?.to(DType::F32)?.mean()?.item()
    })?;
    Ok(Trained { loss, accuracy: right, skipped, step_time: median(times), peak })
}

/// Why a dtype is not the fastest.
const MORE_LAUNCHES: &str = "Its kernels have less to move, but there are more of them, and it is launching them that takes the time.";
const ANOTHER_IS_FASTER: &str = "Another of the four takes less time here.";

pub(super) fn side_by_side(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    let (device, seed) = (lab.device(), lab.seed());
    let guess = lab.predict(
        Prediction::choice(
            "06-learn",
            "The same network is trained from the same seed in float32, in float16, in float16 with a scaler, and in \
             bfloat16. Which of the four fail to learn the rings?",
        )
        .or("", "None of them.", "At least one gets fewer than 90 % of the points right.")
        .or("float16", "Only float16 without a scaler.", "Others fail as well, or float16 does not.")
        .or(
            "float16; bfloat16",
            "float16 without a scaler, and bfloat16.",
            "bfloat16 has the range of float32, so its gradients do not vanish.",
        )
        .or(
            "float16; float16, scaler; bfloat16",
            "All three that use 16 bits.",
            "A scaler keeps the gradients of float16 from vanishing, and bfloat16 has the range of float32.",
        )
        .or("others", "Others than these.", "It is one of the sets above."),
    );
    let ways = [
        ("float32", None, false),
        ("float16", Some(DType::F16), false),
        ("float16, scaler", Some(DType::F16), true),
        ("bfloat16", Some(DType::BF16), false),
    ];
    let mut learned =
        Table::new(["trained in", "loss", "share right", "steps skipped"]);
    let memory = lab.gpu().map(|_| "memory");
    let mut took = Table::new(["trained in", "a step"].into_iter().chain(memory));
    let (mut failed, mut fastest) = (Vec::new(), (Duration::MAX, ""));
    let mut times = Vec::new();
    for (name, half, scaled) in ways {
        let trained = train(seed, half, scaled, options, device)?;
        if trained.step_time < fastest.0 {
            fastest = (trained.step_time, name);
        }
        times.push(trained.step_time);
        if trained.accuracy < 0.9 {
            failed.push(name);
        }
        learned = learned.row(row![
            name,
            exact("final_loss", trained.loss).digits(1),
            exact("accuracy", trained.accuracy).digits(1),
            exact("steps_skipped", trained.skipped)
        ]);
        let mut cells = row![name, timed("step_time", trained.step_time).digits(2)];
        cells.extend(trained.peak.map(|peak| kibibytes("peak_memory", peak).into()));
        took = took.row(cells);
    }
    lab.table(learned);
    lab.print(format!(
        "Fewer than 90 % right: {}",
        if failed.is_empty() { "none".to_owned() } else { failed.join("; ") }
    ));
    let all = failed.join("; ");
    let sets =
        ["", "float16", "float16; bfloat16", "float16; float16, scaler; bfloat16"];
    lab.answer(
        guess,
        if sets.contains(&all.as_str()) { all.as_str() } else { "others" },
    );
    lab.prose(match failed[..] {
        ["float16"] => {
            "In float16 alone the gradients of the first layers are 0 until the last layer has learned what it can without \
             them. With a scaler float16 learns as float32 does. bfloat16 needs no scaler, because it has float32's range."
        }
        [] => {
            "All four have learned the rings, float16 alone among them: with so few batches, or so many steps, the gradients \
             it loses do not matter."
        }
        _ => {
            "With more --steps more of them learn the rings, and with fewer --batches float16 does without a scaler."
        }
    });
    let (because, why_not) = match fastest.1 {
        "float32" => (
            "So small a network waits for its launches, and each conversion is one more.",
            MORE_LAUNCHES,
        ),
        _ => (
            "Here the work on the card takes longer than its launches, and 16 bits shorten it.",
            ANOTHER_IS_FASTER,
        ),
    };
    let prediction = Prediction::choice(
        "06-shortest",
        "Which of the four takes the shortest time for a step?",
    )
    .or("float32", "float32", "Here the work itself takes longer than its launches, and 16 bits shorten it.")
    .or("float16", "float16", why_not)
    .or(
        "float16, scaler",
        "float16 with a scaler",
        "The scaler adds work: it divides the gradients, looks for infinite ones, and makes the host wait.",
    )
    .or("bfloat16", "bfloat16", why_not)
    .because(because)
    .raced();
    let guess = lab.predict_on_gpu(prediction);
    lab.table(took);
    lab.answer(guess, fastest.1);
    if !lab.has_gpu_or("A CPU has no tensor cores, so it converts. With --gpu sim:t4 this table shows the memory of the GPU, too.") {
        return Ok(());
    }
    lab.prose(
        "16 bits take less memory, because the activations that are kept for the backward pass are half as large.",
    );
    let pace = match times[1].as_secs_f64() / times[0].as_secs_f64() {
        ratio if ratio > 1.05 => "But a step takes longer! Section 7 says why.",
        ratio if ratio > 0.95 => "A step takes about as long as in float32.",
        _ => "And a step is shorter, because here the work on the card sets the pace.",
    };
    lab.prose(Text::from(pace).raced());
    Ok(())
}

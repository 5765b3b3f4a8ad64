//! The cost of each dtype on two cards, and when a smaller dtype is slower.

use std::time::Duration;

use todevice::amp::{self, GradScaler};
use todevice::backends;
use todevice::cuda::{self, Event, EventOptions};
use todevice::prelude::*;

use super::scaling::scaler_of;
use super::training::{casting, loss_of};
use super::{first_product, kibibytes, median, name_of, other_card, peak_of, time_of};
use crate::frame::clock::{modelled_or_measured, wait_for};
use crate::{Figure, Lab, Prediction, Table, Text, exact, modelled, row, text, timed};

// ANCHOR: on_gpu
/// The device's time for `run`, without the host's part.
fn device_time(device: Device, run: impl Fn() -> Result<Tensor>) -> Result<Duration> {
    if !device.is_cuda() {
        return Ok(time_of(device, run)?.1);
    }
    let busy = Tensor::empty((&[1 << 22], device))?;
    run()?; // not timed: the first run allocates memory
    let timing = EventOptions { enable_timing: true };
    let (start, end) = (Event::new(timing), Event::new(timing));
    wait_for(device)?;
    busy.zero_()?; // work for the device while the host queues the rest
    start.record()?;
    run()?;
    end.record()?;
    end.synchronize()?;
    Ok(Duration::from_secs_f64(start.elapsed_time(&end)? / 1e3))
}
// ANCHOR_END: on_gpu

type Job = (&'static str, fn(Device) -> Result<Duration>);

const JOBS: [Job; 7] = [
    ("product, float32", |device| product(DType::F32, 1024, device)),
    // The three shorter types.
    ("product, TF32", |device| {
        backends::cuda::matmul::set_allow_tf32(true);
        let time = product(DType::F32, 1024, device);
        backends::cuda::matmul::set_allow_tf32(false);
        time
    }),
    ("product, bfloat16", |device| product(DType::BF16, 1024, device)),
    ("product, float16", |device| product(DType::F16, 1024, device)),
    ("float16, sizes of 1023", |device| product(DType::F16, 1023, device)),
    ("ReLU, float32", |device| relu(DType::F32, device)),
    ("ReLU, float16", |device| relu(DType::F16, device)),
];

// ANCHOR: jobs
fn product(dtype: DType, size: usize, device: Device) -> Result<Duration> {
    let x = Tensor::ones((&[size, size], (device, dtype)))?;
    device_time(device, || x.matmul(&x))
}

fn relu(dtype: DType, device: Device) -> Result<Duration> {
    let x = Tensor::ones((&[1 << 22], (device, dtype)))?;
    device_time(device, || x.relu())
}
// ANCHOR_END: jobs

pub(super) fn by_type(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    let device_name = match lab.gpu() {
        Some(gpu) => cuda::get_device_name(gpu.index())?,
        None => "a CPU".to_owned(),
    };
    let question = format!(
        "A product of two matrices of 1024 x 1024 is computed in float32, and then in bfloat16, which has half the bits. \
         Is it faster in bfloat16 on this device, {device_name}?"
    );
    let guess = lab.predict(
        Prediction::yes_no("06-bfloat16", question)
            .because(
                "Fewer bits alone do not make a product faster. Tensor cores do, on a card that has them for this type.",
            )
            .raced(),
    );
    let (other, other_name) = other_card(device)?;
    let mut table = Table::new(["", "here", other_name]);
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for (name, job) in JOBS {
        let time = job(device)?;
        let on_other = other.enter(|| job(Device::cuda(0)))?;
        table = table.row(row![
            name,
            timed("here", time),
            modelled_there("there", on_other)
        ]);
        here.push(time.as_secs_f64());
        there.push(on_other.as_secs_f64());
    }
    lab.table(table);
    lab.answer(guess, is_shorter(here[BFLOAT16], here[0]));

    lab.prose_on_cpu(
        "A CPU has no tensor cores. It converts 16 bits to 32 and back, so it may even take longer with them. The \
         second column is that of a simulated card.",
    );
    // A CPU's gain depends on its other work, so only the table shows it.
    let mut products = lab.gpu_or_cpu(
        format!(
            "Here the product is {}. On the {other_name} it is {}.",
            gains(&here),
            gains(&there)
        ),
        format!("On the {other_name} the product is {}.", gains(&there)),
    );
    products.push_str(
        " A type gains where the card has tensor cores for it, which do many more multiplications at a time than the rest of \
         the card.",
    );
    if device.is_cuda()
        && [&here, &there].into_iter().any(|times| emulates_bfloat16(times))
    {
        products.push_str(
            " A T4 has none for TF32 and bfloat16. It ignores the first and emulates the second, on a simulated card at the pace \
             of float32. A real T4 may be slower at that.",
        );
    }
    lab.prose(Text::from(products).raced());
    if lab.gpu().is_some() {
        let moved = here[RELU + 1] / here[RELU];
        let mut bytes = if moved < 0.6 {
            "ReLU only moves numbers, and moves half as many bytes in half the time."
        } else if moved < 0.95 {
            "ReLU only moves numbers. Half as many bytes take less time, though not half: each kernel takes a moment of \
             its own."
        } else {
            "ReLU only moves numbers, but here half as many bytes save no time."
        }
        .to_owned();
        if is_shorter(here[FLOAT16], here[SIZES_OF_1023]) {
            bytes.push_str(
                " Sizes that are multiples of 8 suit tensor cores, because a thread loads numbers 16 bytes at a time: with 1023 \
                 the product takes longer than with 1024. By how much is a guess of the simulator.",
            );
        }
        lab.prose(Text::from(bytes).raced());
    }
    Ok(())
}

/// Rows of the table.
const BFLOAT16: usize = 2;
const FLOAT16: usize = 3;
const SIZES_OF_1023: usize = 4;
const RELU: usize = 5;

/// Smaller differences count as equal.
fn is_shorter(one: f64, other: f64) -> bool {
    one < 0.95 * other
}

/// Whether these are the times of a card with tensor cores for float16, but not for bfloat16.
fn emulates_bfloat16(times: &[f64]) -> bool {
    is_shorter(times[FLOAT16], times[0]) && !is_shorter(times[BFLOAT16], times[0])
}

/// The shorter types that make a product faster: `faster in float16, and no faster in TF32 and bfloat16`.
fn gains(times: &[f64]) -> String {
    let types = [("TF32", 1), ("bfloat16", BFLOAT16), ("float16", FLOAT16)];
    let (gain, lose): (Vec<_>, Vec<_>) =
        types.into_iter().partition(|(_, row)| is_shorter(times[*row], times[0]));
    let list = |types: &[(&str, usize)]| match types {
        [(one, _)] => one.to_string(),
        [(one, _), (two, _)] => format!("{one} and {two}"),
        _ => "TF32, bfloat16 and float16".to_owned(),
    };
    match (gain.is_empty(), lose.is_empty()) {
        (true, _) => format!("no faster in {}", list(&lose)),
        (_, true) => format!("faster in {}", list(&gain)),
        _ => format!("faster in {}, and no faster in {}", list(&gain), list(&lose)),
    }
}

fn modelled_there(name: &'static str, time: Duration) -> Figure {
    modelled(name, time.as_secs_f64() * 1e3).unit("ms").digits(3)
}

/// The time and the memory of a training step with `rows` rows per batch and layers of width `width`.
fn step_of(
    device: Device,
    [rows, width]: [usize; 2],
    half: Option<DType>,
) -> crate::Result<(Duration, Option<u64>)> {
    let x = Tensor::ones((&[rows, width], device))?;
    let y = Tensor::zeros((&[rows], (device, DType::I64)))?;
    first_product(device)?;
    peak_of(device, || {
        // ANCHOR: step
        let layer = || nn::Linear::new(width, width);
        let model = nn::Sequential::new((
            layer()?,
            nn::ReLU,
            layer()?,
            nn::ReLU,
            nn::Linear::new(width, 16)?,
        ));
        model.to(device)?;
        let options = SGDOptions { lr: 0.1, ..Default::default() };
        let mut optimizer = optim::SGD::new(model.parameters(), options)?;
        let mut scaler = GradScaler::new(scaler_of(half.is_some(), 1024.0, device))?;
        let mut step = || {
            optimizer.zero_grad();
            let loss =
                amp::autocast(casting(half, device), || loss_of(&model, &x, &y, 1))?;
            scaler.scale(&loss)?.backward()?;
            scaler.step(&mut optimizer)?;
            scaler.update()
        };
        // ANCHOR_END: step
        step()?; // not timed: the first step allocates memory
        // All modelled steps take the same time.
        let steps = modelled_or_measured(1, 3);
        let times = (0..steps).map(|_| Ok(time_of(device, &mut step)?.1));
        Ok(median(times.collect::<Result<_>>()?))
    })
}

pub(super) fn slower(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    let guess = lab.predict(
        Prediction::choice(
            "06-memory",
            "A training step with 64 rows and layers of 1024 x 1024 runs once in float32 and once in mixed precision with \
             float16. Which of them takes more memory?",
        )
        .or(
            "float32",
            "Float32, nearly twice as much.",
            "Only the activations have half the bits, and beside layers of 1024 x 1024 those of 64 rows are small.",
        )
        .or(
            "same",
            "They take the same, within 5 %.",
            "The activations shrink, and copies of the weights come on top. The two seldom cancel out.",
        )
        .or(
            "mixed",
            "Mixed precision.",
            "Here the copies of the weights take less than the activations save.",
        )
        .because("Most of the memory is for weights. They stay float32, and each also has a copy of 16 bits."),
    );
    let (other, other_name) = other_card(device)?;
    let mut table = Table::new(["rows x width", "here", other_name, "memory"]);
    let wide = [64, 1024];
    let mut peaks_of_wide = Vec::new();
    let (mut times_here, mut times_there) = (Vec::new(), Vec::new());
    for sizes in [[64, 64], wide, [768, 512]] {
        for half in [None, Some(DType::F16)] {
            let (here, peak) = step_of(device, sizes, half)?;
            let (there, peak_there) =
                other.enter(|| step_of(Device::cuda(0), sizes, half))?;
            times_here.push(here.as_secs_f64());
            times_there.push(there.as_secs_f64());
            let peak = peak.or(peak_there).unwrap_or_default();
            if sizes == wide {
                peaks_of_wide.push(peak as f64);
            }
            table = table.row(row![
                format!(
                    "{} x {}, {}",
                    sizes[0],
                    sizes[1],
                    half.map_or("float32", name_of)
                ),
                timed("step_here", here).digits(2),
                modelled_there("step_there", there).digits(2),
                kibibytes("step_memory", peak)
            ]);
        }
    }
    lab.table(table);
    let key = match peaks_of_wide[1] / peaks_of_wide[0] {
        share if share > 1.05 => "mixed",
        share if share > 0.95 => "same",
        _ => "float32",
    };
    lab.answer(guess, key);
    lab.prose_on_cpu(text!(
        "The memory is that of the {}, which is simulated.",
        exact("other_card", other_name)
    ));
    // On a CPU, launches do not matter.
    let (card, times) =
        lab.gpu_or_cpu(("Here", times_here), ("On that card", times_there));
    lab.prose(Text::from(format!("{card} {}", when_it_pays(&times))).raced());
    lab.prose(
        "Memory is another matter. Mixed precision saves some where activations outweigh weights, \
         as in the last pair. Where weights outweigh activations it takes more, because each weight now has a copy.",
    );
    Ok(())
}

/// Interprets the times of three pairs, from the smallest work to the largest.
fn when_it_pays(times: &[f64]) -> &'static str {
    let pays: Vec<bool> =
        times.chunks(2).map(|pair| is_shorter(pair[1], pair[0])).collect();
    match pays[..] {
        [false, .., false] => {
            "mixed precision pays for neither the smallest network nor the last. The card has so little to do that its time \
             is that of the launches, and mixed precision has more of them: for conversions, for the scaler, and a \
             wait for its verdict. Section 8 has a network with more work."
        }
        [false, .., true] => {
            "mixed precision pays for the last network, where the work on the card sets the pace. The smallest gives the \
             card so little to do that its time is that of the launches, and mixed precision has more of them: for \
             conversions, for the scaler, and a wait for its verdict."
        }
        _ => {
            "mixed precision pays even for the smallest network, because the work on the card takes longer than its launches."
        }
    }
}

//! What a type costs on two cards, and when the smaller one is slower.

use std::time::Duration;

use todevice::amp::{self, GradScaler};
use todevice::backends;
use todevice::cuda::{self, Event, EventOptions};
use todevice::prelude::*;

use super::scaling::scaler_of;
use super::training::{casting, loss_of};
use super::{kibibytes, median, name_of, other_card, peak_of, time_of, wait_for};
use crate::{Lab, Prediction, Table, exact, modelled, row, text, timed};

// ANCHOR: on_gpu
/// How long the device itself takes for `run`, without the host's part.
fn device_time(device: Device, run: impl Fn() -> Result<Tensor>) -> Result<Duration> {
    if !device.is_cuda() {
        return Ok(time_of(device, run)?.1);
    }
    let busy = Tensor::empty(&[1 << 22], device)?;
    run()?; // not timed: the first takes memory
    let [start, end] =
        [(); 2].map(|()| Event::new(EventOptions { enable_timing: true }));
    wait_for(device)?;
    busy.zero_()?; // something to do, while the host asks for the rest
    start.record()?;
    run()?;
    end.record()?;
    end.synchronize()?;
    Ok(Duration::from_secs_f64(start.elapsed_time(&end)? / 1e3))
}
// ANCHOR_END: on_gpu

/// What there is to time: a name, and its time on a device.
type Job = (&'static str, fn(Device) -> Result<Duration>);

const JOBS: [Job; 7] = [
    ("product, float32", |device| product(device, DType::F32, 1024)),
    ("product, TF32", |device| {
        backends::cuda::matmul::set_allow_tf32(true);
        let time = product(device, DType::F32, 1024);
        backends::cuda::matmul::set_allow_tf32(false);
        time
    }),
    ("product, bfloat16", |device| product(device, DType::BF16, 1024)),
    ("product, float16", |device| product(device, DType::F16, 1024)),
    ("float16, sizes of 1023", |device| product(device, DType::F16, 1023)),
    ("ReLU, float32", |device| relu(device, DType::F32)),
    ("ReLU, float16", |device| relu(device, DType::F16)),
];

// ANCHOR: jobs
fn product(device: Device, dtype: DType, size: usize) -> Result<Duration> {
    let x = Tensor::ones_with(&[size, size], (device, dtype))?;
    device_time(device, || x.matmul(&x))
}

fn relu(device: Device, dtype: DType) -> Result<Duration> {
    let x = Tensor::ones_with(&[1 << 22], (device, dtype))?;
    device_time(device, || x.relu())
}
// ANCHOR_END: jobs

pub(super) fn by_type(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    let device_name = match device.is_cuda() {
        true => cuda::get_device_name(device.index())?,
        false => "a CPU".to_owned(),
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
    let mut times = Vec::new();
    for (name, job) in JOBS {
        let time = job(device)?;
        times.push((name, time));
        let here = timed("here", time);
        let there =
            other.enter(|| Ok::<_, Error>(timed("there", job(Device::cuda(0))?)))?;
        table = table.row(row![name, here, there]);
    }
    lab.table(table);
    let seconds_of = |job: &str| {
        let times = times.iter().filter(|(name, _)| *name == job);
        times.map(|(_, time)| time.as_secs_f64()).sum::<f64>()
    };
    // What differs by less is the same time.
    lab.answer(
        guess,
        seconds_of("product, bfloat16") < 0.95 * seconds_of("product, float32"),
    );
    if !device.is_cuda() {
        lab.prose(
            "The RTX 4090 is simulated. A CPU has no tensor cores: it converts 16 bits to 32 and back, so it may even take longer. \
             With --gpu sim:t4 the first column is a Tesla T4's, which gains nothing by TF32 and bfloat16.",
        );
    }
    lab.prose(
        "A product is faster because tensor cores do many more multiplications of 16 bits at a time than the rest of the card does of \
         32. ReLU only moves numbers, and moves half as many bytes in half the time. And tensor cores want sizes that are \
         multiples of 8: numbers are loaded 16 bytes at a time.",
    );
    if device.is_cuda() {
        lab.prose(
            "A T4 has tensor cores for float16. For bfloat16 and TF32 it has none: it rounds, and multiplies at the pace of \
             float32.",
        );
    }
    Ok(())
}

/// A step of training with so many rows in a batch, and layers that wide: how long it takes, and its memory.
fn step_of(
    device: Device,
    [rows, width]: [usize; 2],
    half: Option<DType>,
) -> crate::Result<(Duration, u64)> {
    let x = Tensor::ones_with(&[rows, width], device)?;
    let y = Tensor::zeros_with(&[rows], (device, DType::I64))?;
    x.matmul(&x.t()?)?; // with its first product the library takes memory of its own
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
        let mut scaler = GradScaler::new(scaler_of(device, half.is_some(), 1024.0))?;
        let mut step = || {
            optimizer.zero_grad();
            let loss =
                amp::autocast(casting(device, half), || loss_of(&model, &x, &y, 1))?;
            scaler.scale(&loss)?.backward()?;
            scaler.step(&mut optimizer)?;
            scaler.update()
        };
        // ANCHOR_END: step
        step()?; // not timed: the first takes memory
        let times = (0..3).map(|_| Ok(time_of(device, &mut step)?.1));
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
            "Only the activations have half the bits, and beside layers of 1024 x 1024 those of 64 rows are few.",
        )
        .or(
            "same",
            "They take the same, within 5 %.",
            "The activations shrink, and the copies of the weights come on top: the two seldom cancel.",
        )
        .or(
            "mixed",
            "Mixed precision.",
            "The copies of the weights take less here than the activations save.",
        )
        .because("The weights are most of it. They stay float32, and of each there is a copy of 16 bits as well."),
    );
    let (other, other_name) = other_card(device)?;
    let mut table = Table::new(["rows x width", "here", other_name, "memory"]);
    let wide = [64, 1024];
    let mut peaks_of_wide = Vec::new();
    for sizes in [[64, 64], wide, [1024, 512]] {
        for half in [None, Some(DType::F16)] {
            let (here, peak) = step_of(device, sizes, half)?;
            let (there, peak_there) =
                other.enter(|| step_of(Device::cuda(0), sizes, half))?;
            let peak = if device.is_cuda() { peak } else { peak_there };
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
                modelled("step_there", there.as_secs_f64() * 1e3).unit("ms").digits(2),
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
    if !device.is_cuda() {
        lab.prose(text!(
            "The memory is that of the {}, which is simulated.",
            exact("other_card", other_name)
        ));
    }
    lab.prose(
        "A tiny network gives a GPU nothing to do: its time is that of the launches, and mixed precision has more of them, \
         for conversions, for the scaler, and a wait for it. It pays where the work on the card sets the pace; the faster the \
         card, the more of it there must be: section 8 has an example. And it saves memory where results outweigh weights: of each \
         weight there is now a copy more.",
    );
    Ok(())
}

//! A lab with one event of each kind, to test sinks.

use labs::{
    Entry, Lab, Prediction, Result, Table, cli::count, exact, hardware, measured, modelled, row, text,
};

pub const LAB: Entry<Options> = Entry { name: "lab-99", title: "One of everything", run };

#[derive(clap::Args)]
pub struct Options {
    /// Passes over the dataset
    #[arg(long, default_value_t = 3, value_parser = count(1..=1_000_000))]
    pub epochs: usize,

    /// Examples in a batch
    #[arg(long, default_value_t = 64, value_parser = count(1..=65_536))]
    pub batch_size: usize,

    /// Processes that load data
    #[arg(long, default_value_t = 2, value_parser = count(0..=64))]
    pub num_workers: usize,

    /// End with an error
    #[arg(long)]
    pub fail: bool,
}

pub fn run(lab: &mut Lab, options: &Options) -> Result<()> {
    let epochs = options.epochs;

    lab.section(1, "Setting up the device");
    lab.prose(
        "A device is where a tensor lives and where its arithmetic happens. Everything below runs on the \
         device named here, and a second line is needed to say so.",
    );
    lab.print(text!("The selected device is: {}", exact("device", "cpu")));
    lab.figure(hardware("host_memory", 16_i64).unit("GiB"));

    lab.section("A2", "Training");
    let guess = lab.predict(
        Prediction::number(
            "99-loss",
            "Both inputs and targets are noise. What will the loss be after three epochs?",
        )
        .tolerance(0.1),
    );
    let progress = lab.progress(epochs, "training");
    for epoch in 1..=epochs {
        let loss = 0.755907 / epoch as f64;
        lab.print(text!("Epoch [{epoch}/{epochs}], Loss: {:.4}", exact("loss", loss)));
        progress.inc(1);
    }
    progress.finish();
    lab.answer(guess, exact("last_loss", 0.755907 / epochs as f64));
    lab.figure(exact("mean_loss", 1.0055_f32).label("Mean loss of the last epoch"));
    lab.figure(measured("load_time", 3.2).unit("ms").digits(1));
    lab.figure(exact("diverged", f64::NAN));

    lab.section(3, "Where the bytes are");
    let copy = |size: i64, time, moved| {
        row![
            size,
            modelled("copy", time).unit("ms").digits(2),
            moved,
            exact("ratio", time / 0.1).unit("×").digits(1)
        ]
    };
    lab.table(
        Table::new(["size", "copy", "moved", "against the CPU"])
            .row(copy(16, 0.012, "yes"))
            .row(copy(4096, 1.5, "no")),
    );
    lab.prose(text!("That is {} in all.", modelled("total", f64::INFINITY).unit("ms")));
    lab.report("tensor([[1., 2.],\n        [3., 4.]])\n");
    lab.picture("<svg/>".to_owned(), "two copies, one after the other");
    if options.fail {
        return Err("the optimizer has no parameters".into());
    }
    Ok(())
}

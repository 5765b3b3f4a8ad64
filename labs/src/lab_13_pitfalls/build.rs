//! Section 6: a card that is newer than the build of PyTorch.

use std::sync::{Arc, Mutex};

use todevice::prelude::*;
use todevice::{Machine, cuda};

use super::pitfall::Pitfall;
use crate::frame::render_text::wrap;
use crate::{Cell, Lab, Prediction, Table, exact, row};

struct Seen {
    warnings: Vec<String>,
    is_available: bool,
    arch_list: Vec<String>,
    copy: Result<Tensor>,
    kernel: Result<Tensor>,
}

impl Seen {
    fn on(gpu: &str) -> crate::Result<Seen> {
        let machine: Machine = gpu.parse()?;
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let heard = warnings.clone();
        machine.on_warning(move |warning| {
            heard
                .lock()
                .unwrap_or_else(|all| all.into_inner())
                .push(warning.to_owned());
        });
        let seen = machine.enter(|| -> Result<Seen> {
            // ANCHOR: first_kernel
            let is_available = cuda::is_available();
            let arch_list = cuda::get_arch_list();
            let x = Tensor::ones(&[1000])?;
            let copy = x.to(Device::cuda(0));
            let kernel = copy.as_ref().map_or_else(|_| x.copy(), |there| there + 1.0);
            // ANCHOR_END: first_kernel
            let warnings = Vec::new();
            Ok(Seen { warnings, is_available, arch_list, copy, kernel })
        })?;
        let warnings = std::mem::take(
            &mut *warnings.lock().unwrap_or_else(|all| all.into_inner()),
        );
        Ok(Seen { warnings, ..seen })
    }

    fn kernels(&self) -> u32 {
        u32::from(self.kernel.is_ok())
    }
}

pub(super) fn section(lab: &mut Lab, build: &str) -> crate::Result<Pitfall> {
    let card = "sim:rtx5090";
    lab.section_on(6, "A new card", &card.parse()?);
    lab.part("warning");
    let before = Seen::on(&format!("{card},build={build}"))?;
    // The last of the two: the first has the same text, with a line for each architecture.
    if let Some(warning) = before.warnings.last() {
        lab.report(wrap(warning.trim()));
    }
    let is_refused = before.kernel.is_err();
    match &before.kernel {
        Err(error) => {
            let message = error.to_string();
            lab.report(message.lines().next().unwrap_or_default());
        }
        Ok(_) => lab.prose(format!("With {build} the card gives no warning and no error. --build cu126 shows both.")),
    }
    let guess = lab.predict(
        Prediction::choice(
            "13-build",
            "A program runs on a new card: first the warning, then the error. What is wrong, what proves it, and what helps?",
        )
        .or(
            "driver",
            "The driver is too old for the card. `nvidia-smi` shows its version. Install a newer one.",
            "Then `cuda::is_available()` would be false, and the copy would fail. Both work here.",
        )
        .or(
            "build",
            "The build is older than the card. `get_arch_list()` does not have `sm_120`. Install a newer build.",
            "Here the build has code for the card.",
        )
        .or(
            "kernel",
            "The kernel has a bug. `CUDA_LAUNCH_BLOCKING=1` shows the line. Report it.",
            "The same line runs on other cards. On this one every kernel fails.",
        )
        .because("A build brings the machine code of its kernels. This one was made before the card, and has none for it.")
        .only_if(is_refused),
    );
    let after = Seen::on(&format!("{card},build=cu130"))?;
    let outcome =
        |result: &Result<Tensor>| if result.is_ok() { "runs" } else { "error" };
    let newest = |seen: &Seen| seen.arch_list.last().cloned().unwrap_or_default();
    let line = |what: &'static str,
                name: &'static str,
                of: &dyn Fn(&Seen) -> String|
     -> Vec<Cell> {
        row![what, exact(name, of(&before)), exact(name, of(&after))]
    };
    lab.table(
        Table::new(["", build, "cu130"])
            .row(line("is_available()", "available", &|seen| {
                seen.is_available.to_string()
            }))
            .row(line("newest of get_arch_list()", "newest", &newest))
            .row(line("x.to(cuda:0)", "copy", &|seen| outcome(&seen.copy).to_owned()))
            .row(line("x + 1", "kernel", &|seen| outcome(&seen.kernel).to_owned())),
    );
    lab.answer(
        guess,
        if newest(&before) == newest(&after) { "kernel" } else { "build" },
    );
    Ok(Pitfall {
        what: "build too old",
        counted: "kernels that run",
        before: exact("kernels_before", before.kernels()).into(),
        after: exact("kernels_after", after.kernels()).into(),
    })
}

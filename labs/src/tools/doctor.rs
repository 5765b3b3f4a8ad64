//! The `doctor`: lab 00 under the name that people look for. For a simulated GPU, it also shows the figures that
//! determine its times.

use std::ffi::OsString;

use todevice::{GpuSpec, Machine};

use super::model;
use crate::lab_00_setup::{self, LAB, Options};
use crate::{Entry, Lab, exact, text};

/// The doctor with these flags.
pub fn doctor<I>(flags: I) -> Entry<Options>
where
    I: IntoIterator,
    I::Item: Into<OsString> + Clone,
{
    let is_asked = LAB
        .parse(flags)
        .is_ok_and(|(common, _)| matches!(common.gpu, GpuSpec::Simulated(_)));
    let run = if is_asked { with_model } else { lab_00_setup::run };
    Entry { name: "doctor", run, ..LAB }
}

fn with_model(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    lab_00_setup::run(lab, options)?;
    let machine = Machine::current();
    let GpuSpec::Simulated(gpus) = machine.gpus() else { return Ok(()) };
    let (card, host) = (gpus.card(), gpus.host_profile());

    lab.section(5, "What the model is made of");
    lab.prose(
        "The times of this machine are modelled: they are computed from the figures \
         below. A datasheet figure comes from the manufacturer. A measured figure \
         comes from a real computer. A guess has the right order of magnitude, and \
         may be off by a factor of two.",
    );
    lab.prose(format!(
        "The card: {}. Your own file can change its figures: --gpu sim:FILE.profile.",
        card.name
    ));
    lab.table(model::table(card));
    lab.prose(format!(
        "The host: {}. Your own file can change its figures: --host FILE.host.",
        host.name
    ));
    lab.table(model::table(host));
    let ([of_card, all_of_card], [of_host, all_of_host]) =
        (model::guesses(card), model::guesses(host));
    lab.print(text!(
        "{} of these {} figures are guesses.",
        exact("guesses", of_card + of_host),
        exact("figures", all_of_card + all_of_host)
    ));
    Ok(())
}

//! The table of `nvidia-smi`, as printed by a 2026 driver (610).

use std::time::{SystemTime, UNIX_EPOCH};

use todevice::Machine;
use todevice::monitor::{self, Gpu, GpuProcess};

const WIDE: &str =
    "+-----------------------------------------------------------------------------------------+";
const RULE: &str =
    "+-----------------------------------------+------------------------+----------------------+";
const COLUMNS: &str = "\
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|";
const PROCESSES: &str = "\
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|";
const NO_PROCESSES: &str =
    "|  No running processes found                                                             |";

/// Formats the table, 91 columns wide, after a line that says what it shows.
pub fn table(gpus: &[Gpu]) -> String {
    let simulated = Machine::current().time_is_modelled();
    let (kind, lacking) = match simulated {
        true => ("modelled", "\nN/A marks what a simulated GPU lacks. Its clock begins in 1970."),
        false => ("measured", ""),
    };
    let now = if simulated { UNIX_EPOCH } else { SystemTime::now() };
    let versions = monitor::versions();
    let [nvml, driver, cuda] = [versions.nvml, versions.driver, versions.cuda].map(or_na);
    let mut lines = vec![
        format!("As nvidia-smi draws it. Perf, Pwr and GPU-Util are {kind}.{lacking}"),
        date(now),
        WIDE.to_owned(),
        format!("| NVIDIA-SMI {nvml:<23}KMD Version: {driver:<14}CUDA UMD Version: {cuda:<9}|"),
        RULE.to_owned(),
        COLUMNS.to_owned(),
    ];
    for gpu in gpus {
        lines.extend(card(gpu));
        lines.push(RULE.to_owned());
    }
    lines.extend([String::new(), WIDE.to_owned(), PROCESSES.to_owned()]);
    let processes = gpus.iter().flat_map(|gpu| gpu.processes.iter().map(|one| process(gpu, one)));
    let before = lines.len();
    lines.extend(processes);
    if lines.len() == before {
        lines.push(NO_PROCESSES.to_owned());
    }
    lines.push(WIDE.to_owned());
    lines.join("\n")
}

/// The three lines of a card.
fn card(gpu: &Gpu) -> [String; 3] {
    let on = |mode: Option<bool>| or_na(mode.map(|on| if on { "On" } else { "Off" }));
    let name = match gpu.name.chars().count() {
        0..=27 => gpu.name.clone(),
        _ => gpu.name.chars().take(24).chain("...".chars()).collect(),
    };
    let mig = or_na(gpu.mig_mode.map(|on| if on { "Enabled" } else { "Disabled" }));
    [
        format!(
            "|{:>4}  {name:<27}    {:<3} |{:>19} {:>3} |{:>21} |",
            gpu.index,
            on(gpu.persistence_mode),
            or_na(gpu.bus_id.as_deref()),
            on(gpu.display_active),
            or_na(gpu.ecc_errors),
        ),
        format!(
            "|{:>4}{:>6}{:>6}{:>16} /{:>6} |{:>11} /{:>10} |{:>8}{:>13} |",
            with(gpu.fan_speed, "%"),
            with(gpu.temperature, "C"),
            or_na(gpu.performance_state.map(|state| format!("P{state}"))),
            with(watts(gpu.power_draw), "W"),
            with(watts(gpu.power_limit), "W"),
            with(Some(mebibytes(gpu.memory_used)), "MiB"),
            with(Some(mebibytes(gpu.memory_total)), "MiB"),
            with(gpu.utilization, "%"),
            or_na(gpu.compute_mode.map(|mode| mode.words())),
        ),
        format!("|{:41}|{:24}|{mig:>21} |", "", ""),
    ]
}

fn process(gpu: &Gpu, process: &GpuProcess) -> String {
    // The end of a path is more informative.
    let letters = process.name.chars().count();
    let name = match letters {
        0..=32 => process.name.clone(),
        _ => "...".chars().chain(process.name.chars().skip(letters - 29)).collect(),
    };
    let memory = with(process.used_memory.map(mebibytes), "MiB");
    let (index, pid, kind) = (gpu.index, process.pid, process.kind.letters());
    format!("|{index:>5}   N/A  N/A{pid:>16}{kind:>7}   {name:<32}{memory:>14} |")
}

/// Formats a date like `nvidia-smi`, but in UTC: `Mon Nov 23 09:30:00 2026`.
pub fn date(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Years that start in March have their leap day at the end; 400 of them have 146,097 days.
    let since_march = days + 719_468;
    let (era, day) = (since_march / 146_097, since_march % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let name = ["Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb"];
    let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][days as usize % 7];
    format!(
        "{weekday} {} {day:>2} {:02}:{:02}:{:02} {}",
        name[month as usize],
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60,
        400 * era + year + u64::from(month >= 10),
    )
}

/// Converts milliwatts to watts.
pub fn watts(milliwatts: Option<u32>) -> Option<i64> {
    milliwatts.map(|milliwatts| i64::from(milliwatts.div_ceil(1000)))
}

/// Converts bytes to mebibytes.
pub fn mebibytes(bytes: u64) -> u64 {
    bytes >> 20
}

fn or_na(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "N/A".to_owned(), |value| value.to_string())
}

fn with(value: Option<impl ToString>, unit: &str) -> String {
    or_na(value.map(|value| value.to_string() + unit))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use todevice::{Device, Result, Tensor, monitor};

    use super::*;

    #[test]
    fn every_line_is_as_wide_as_the_table() {
        for gpus in ["sim:t4", "sim:rtx4090", "sim:h200x2,others=100GiB"] {
            let machine: Machine = gpus.parse().unwrap();
            machine.enter(|| {
                for look in 0..2 {
                    let count = todevice::cuda::device_count();
                    let gpus: Vec<Gpu> = (0..count).map(monitor::gpu).collect::<Result<_>>().unwrap();
                    let text = table(&gpus);
                    let drawn = text.lines().skip(3).filter(|line| !line.is_empty());
                    let wrong: Vec<&str> = drawn.filter(|line| line.chars().count() != 91).collect();
                    assert!(wrong.is_empty(), "{wrong:#?}");
                    assert_eq!(text.contains("todevice"), look == 1);
                    Tensor::ones((&[1], Device::cuda(0))).unwrap();
                }
            });
        }
    }

    /// As a 610 driver printed this card, with this program on it, in June 2026.
    #[test]
    fn a_card_of_which_all_is_known_looks_as_nvidia_smi_draws_it() {
        let machine: Machine = "sim:t4".parse().unwrap();
        let mut gpu = machine.enter(|| monitor::gpu(0)).unwrap();
        gpu.name = "NVIDIA RTX 5000 Ada Generation".to_owned();
        (gpu.bus_id, gpu.persistence_mode) = (Some("00000000:AC:00.0".to_owned()), Some(false));
        (gpu.display_active, gpu.mig_mode, gpu.ecc_errors) = (Some(true), None, Some(0));
        (gpu.fan_speed, gpu.temperature) = (Some(30), Some(41));
        (gpu.power_draw, gpu.power_limit) = (Some(15_400), Some(250_000));
        (gpu.memory_used, gpu.memory_total) = (579 << 20, 32760 << 20);
        gpu.utilization = Some(3);
        let expected = [
            "|   0  NVIDIA RTX 5000 Ada Gene...    Off |   00000000:AC:00.0  On |                    0 |",
            "| 30%   41C    P8             16W /  250W |     579MiB /  32760MiB |      3%      Default |",
            "|                                         |                        |                  N/A |",
        ];
        assert_eq!(card(&gpu), expected);
        let expected =
            "|    0   N/A  N/A            2112    C+G   ...share/program/that/has/a/path        185MiB |";
        let machine: Machine = "sim:t4,others=185MiB".parse().unwrap();
        let mut other = machine.enter(|| monitor::gpu(0)).unwrap().processes.remove(0);
        other.name = "/srv/share/program/that/has/a/path".to_owned();
        assert_eq!(process(&gpu, &other), expected);
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let at = |seconds| date(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(at(951_782_399), "Mon Feb 28 23:59:59 2000");
        assert_eq!(at(951_782_400), "Tue Feb 29 00:00:00 2000");
        assert_eq!(at(1_795_426_205), "Mon Nov 23 09:30:05 2026");
        assert_eq!(at(4_107_542_400), "Mon Mar  1 00:00:00 2100");
    }
}

//! The table of `nvidia-smi`, without the columns that training has no use for.

use std::fmt::Write;

use todevice::Machine;
use todevice::monitor::Gpu;

const RULE: &str = "+-------------------------------+----------------------+----------------------+";
const WIDE: &str = "+-----------------------------------------------------------------------------+";

/// Draws the table, 79 columns wide.
pub fn table(gpus: &[Gpu]) -> String {
    let kind = if Machine::current().time_is_modelled() { "modelled" } else { "measured" };
    let mut text = format!("{WIDE}\n");
    row(&mut text, &format!("{:<75}", format!("As nvidia-smi draws it. Pwr and GPU-Util are {kind}.")));
    text += &format!("{RULE}\n");
    row(&mut text, &format!("{:<29} | {:<20} | {:<20}", "GPU  Name", "Bus-Id", ""));
    row(
        &mut text,
        &format!("{:<29} | {:>20} | {:<20}", "Fan  Temp  Perf  Pwr:Usage/Cap", "Memory-Usage", "GPU-Util")
            .replace("Pwr:Usage/Cap |", "Pwr:Usage/Cap|"),
    );
    text += "|===============================+======================+======================|\n";
    for gpu in gpus {
        let name: String = gpu.name.chars().take(24).collect();
        let bus_id = gpu.bus_id.as_deref().unwrap_or("N/A");
        row(&mut text, &format!("{:>3}  {name:<24} | {bus_id:<20} | {:<20}", gpu.index, ""));
        let health = format!(
            "{:<4} {:>4} {:>5} {:>6} / {:>4}",
            or_na(gpu.fan_speed, "%"),
            or_na(gpu.temperature, "C"),
            gpu.performance_state.map_or("N/A".to_owned(), |state| format!("P{state}")),
            or_na(watts(gpu.power_draw), "W"),
            or_na(watts(gpu.power_limit), "W"),
        );
        let memory = format!("{}MiB / {}MiB", mebibytes(gpu.memory_used), mebibytes(gpu.memory_total));
        let memory = if memory.len() > 20 { memory.replace(" / ", "/") } else { memory };
        row(&mut text, &format!("{health:<29} | {memory:>20} | {:>8}{:12}", or_na(gpu.utilization, "%"), ""));
        text += &format!("{RULE}\n");
    }
    text += &format!("{WIDE}\n");
    let processes = |[gpu, pid, kind, name, memory]: [&str; 5]| {
        format!("{gpu:>4} {pid:>9}  {kind:>4}  {name:<37} {memory:>14} ")
    };
    row(&mut text, &format!("{:<75}", "Processes:"));
    row(&mut text, &processes(["GPU", "PID", "Type", "Process name", "Memory Usage"]));
    text += &WIDE.replace('-', "=").replace('+', "|");
    text.push('\n');
    let mut any = false;
    for gpu in gpus {
        for process in &gpu.processes {
            let name: String = process.name.chars().rev().take(37).collect();
            let name: String = name.chars().rev().collect();
            let memory = or_na(process.used_memory.map(mebibytes), "MiB");
            row(
                &mut text,
                &processes([
                    &gpu.index.to_string(),
                    &process.pid.to_string(),
                    process.kind.letters(),
                    &name,
                    &memory,
                ]),
            );
            any = true;
        }
    }
    if !any {
        row(&mut text, &format!("{:<75}", " No running processes found"));
    }
    text + WIDE
}

/// Watts of milliwatts.
pub fn watts(milliwatts: Option<u32>) -> Option<i64> {
    milliwatts.map(|milliwatts| i64::from(milliwatts.div_ceil(1000)))
}

/// Mebibytes of bytes.
pub fn mebibytes(bytes: u64) -> u64 {
    bytes >> 20
}

fn row(text: &mut String, cells: &str) {
    let _ = writeln!(text, "| {cells} |");
}

fn or_na(value: Option<impl ToString>, unit: &str) -> String {
    value.map_or_else(|| "N/A".to_owned(), |value| value.to_string() + unit)
}

#[cfg(test)]
mod tests {
    use todevice::{Device, Machine, Result, Tensor, monitor};

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
                    let wrong: Vec<&str> = text.lines().filter(|line| line.chars().count() != 79).collect();
                    assert!(wrong.is_empty(), "{wrong:#?}");
                    assert_eq!(text.contains("todevice"), look == 1);
                    Tensor::ones_with(&[1], Device::cuda(0)).unwrap();
                }
            });
        }
    }
}

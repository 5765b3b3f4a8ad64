//! Reasons why programs see no GPU: variables of NVIDIA's driver and containers, or no GPU at all.

use todevice::Machine;
use todevice::cuda::DriverTrouble;

use super::computer::Computer;

/// An environment variable that selects GPUs.
pub struct Variable {
    /// The name for programs: `visible_devices`.
    pub finding: &'static str,
    pub name: &'static str,
    pub value: String,
    /// Whether it is the reason why programs see no GPU.
    pub hides: bool,
    /// Its effect here, if it is not obvious.
    pub means: Option<&'static str>,
}

const OF_PROGRAMS: &str = "CUDA_VISIBLE_DEVICES";
const OF_CONTAINERS: &str = "NVIDIA_VISIBLE_DEVICES";

pub fn variables(computer: &Computer) -> Vec<Variable> {
    let is_set = |name: &str| {
        let value = computer.environment.get(name)?;
        Some(value.replace(char::is_control, " "))
    };
    let sees_none = computer.nvidia.driver.is_err();
    let of_programs = is_set(OF_PROGRAMS).map(|value| {
        let hides = hides_all(computer).is_some();
        let means = match (hides, sees_none) {
            (true, _) => Some("it names none of the GPUs of this computer"),
            (false, true) => Some("it hides nothing: no GPU could be used without it"),
            (false, false) => None,
        };
        Variable { finding: "visible_devices", name: OF_PROGRAMS, value, hides, means }
    });
    let of_containers = is_set(OF_CONTAINERS).map(|value| {
        let hides = container_gets_none(computer).is_some();
        let means = hides.then_some("it gives this container no GPU");
        let (finding, name) = ("container_devices", OF_CONTAINERS);
        Variable { finding, name, value, hides, means }
    });
    of_programs.into_iter().chain(of_containers).collect()
}

/// The value of `CUDA_VISIBLE_DEVICES`, if it hides all GPUs of this computer. `None` if the computer has no GPU, or
/// the driver has another problem.
pub fn hides_all(computer: &Computer) -> Option<String> {
    let list = computer.environment.get(OF_PROGRAMS)?;
    if !shows_none(computer) || is_without_gpu(computer) {
        return None;
    }
    // If the system does not report the number, assume one, since there is a driver.
    let count = computer.plugged_in().unwrap_or(1);
    let hides = Machine::visible_devices(list, count).is_empty();
    hides.then(|| list.replace(char::is_control, " "))
}

/// The value of `NVIDIA_VISIBLE_DEVICES`, if it hides the host's GPUs from this container.
pub fn container_gets_none(computer: &Computer) -> Option<&str> {
    let value = computer.environment.get(OF_CONTAINERS)?;
    let none = ["", "void", "none"].contains(&value.trim());
    let lacks = computer.nvidia.driver.is_err() && computer.plugged_in() != Some(0);
    (none && lacks && computer.is_container()).then_some(value)
}

/// Whether this computer has no NVIDIA GPU, as far as its system and its driver report.
pub fn is_without_gpu(computer: &Computer) -> bool {
    let not_installed = matches!(&computer.nvidia.driver, Err(driver) if driver.trouble == DriverTrouble::NotInstalled);
    computer.plugged_in() == Some(0) && (not_installed || shows_none(computer))
}

/// Whether the driver works but reports no GPU.
fn shows_none(computer: &Computer) -> bool {
    let trouble = computer.nvidia.driver.as_ref().err().map(|driver| driver.trouble);
    matches!(trouble, Some(DriverTrouble::NoGpu | DriverTrouble::Fails(100)))
}

//! Devices of the current machine, by index and by name.

use std::str::FromStr;

use crate::ambient::Ambient;
use crate::device::Device;
use crate::error::gpu::{GpuError, Result};

impl Device {
    /// `cuda:index` of the current machine. Naming a device does not ask whether it is there; the first use
    /// does.
    pub fn cuda(index: usize) -> Device {
        Device::Cuda { index, machine: Ambient::current_id() }
    }

    /// The line that makes a program portable: the current GPU if there is one, else the CPU.
    ///
    /// `torch.device("cuda" if torch.cuda.is_available() else "cpu")`
    pub fn cuda_if_available() -> Device {
        if Ambient::gpus() > 0 { Device::cuda(Ambient::current_device()) } else { Device::Cpu }
    }

    /// Errors unless tensors can be made on this device, with the reason PyTorch would give.
    pub fn check_usable(self) -> Result<()> {
        let Device::Cuda { index, machine } = self else { return Ok(()) };
        if machine != Ambient::current_id() {
            return Err(GpuError::OtherMachine { device: self });
        }
        match Ambient::gpus() {
            0 if Ambient::has_driver() => Err(GpuError::NoGpus),
            0 => Err(GpuError::NoDriver),
            _ if Ambient::in_worker() => Err(GpuError::CudaInWorker),
            gpus if index < gpus => Ok(()),
            _ => Err(GpuError::InvalidDevice),
        }
    }
}

/// `cpu`, `cpu:0`, `cuda` (the current GPU) or `cuda:N`, of the current machine.
impl FromStr for Device {
    type Err = GpuError;

    fn from_str(text: &str) -> Result<Device> {
        let (kind, index) = match text.split_once(':') {
            Some((kind, index)) => (kind, Some(index)),
            None => (text, None),
        };
        if !matches!(kind, "cpu" | "cuda") {
            return Err(GpuError::DeviceType(text.to_string()));
        }
        let index = match index {
            None if kind == "cuda" => Ambient::current_device(),
            None => 0,
            Some(digits) => {
                let canonical = digits == "0" || !digits.starts_with('0');
                let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
                match digits.parse::<usize>() {
                    Ok(index) if canonical && all_digits && index <= i8::MAX as usize => index,
                    _ => return Err(GpuError::DeviceString(text.to_string())),
                }
            }
        };
        Ok(if kind == "cpu" { Device::Cpu } else { Device::cuda(index) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_strings_are_read_and_refused_as_pytorch_does() {
        assert_eq!("cpu".parse::<Device>().unwrap(), Device::Cpu);
        assert_eq!("cuda".parse::<Device>().unwrap(), Device::cuda(0));
        assert_eq!("cuda:3".parse::<Device>().unwrap(), Device::cuda(3));
        assert_eq!(Device::cuda(1).to_string(), "cuda:1");
        for wrong in
            ["cuda:-2", "cuda:", "cuda:01", "cuda:x", "cuda:+1", "cuda:1:2", "cpu:999999999999999999999"]
        {
            let error = wrong.parse::<Device>().unwrap_err().to_string();
            assert_eq!(error, format!("Invalid device string: '{wrong}'"));
        }
        assert!("gpu".parse::<Device>().unwrap_err().to_string().ends_with("at start of device string: gpu"));
    }
}

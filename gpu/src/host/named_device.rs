//! Devices of the current machine, by index and by name.

use std::str::FromStr;

use crate::base::device::Device;
use crate::base::error::GpuError;
use crate::host::host_context::HostContext;

impl Device {
    /// Returns `cuda:index` of the current machine. The first use checks that the device exists.
    pub fn cuda(index: usize) -> Device {
        Device::Cuda { index, machine: HostContext::current_id() }
    }

    /// Returns the current GPU, else the CPU: `torch.device("cuda" if torch.cuda.is_available() else "cpu")`.
    pub fn cuda_if_available() -> Device {
        if HostContext::gpus() > 0 { Device::cuda(HostContext::current_device()) } else { Device::Cpu }
    }

    /// Returns PyTorch's error unless tensors can be created on this device.
    pub fn check_usable(self) -> Result<(), GpuError> {
        let Device::Cuda { index, machine } = self else { return Ok(()) };
        if machine != HostContext::current_id() {
            return Err(GpuError::OtherMachine { device: self });
        }
        match HostContext::gpus() {
            0 if HostContext::has_driver() => Err(GpuError::NoGpus),
            0 => Err(GpuError::NoDriver),
            _ if HostContext::in_worker() => Err(GpuError::CudaInWorker),
            gpus if index < gpus => Ok(()),
            _ => Err(GpuError::InvalidDevice),
        }
    }

    /// Returns an error for a copy to another machine's device: it must go through the host.
    pub fn check_route(self, to: Device) -> Result<(), GpuError> {
        match (self, to) {
            (Device::Cuda { machine, .. }, Device::Cuda { machine: other, .. }) if machine != other => {
                Err(GpuError::OtherMachine { device: self })
            }
            _ => Ok(()),
        }
    }
}

/// Parses `cpu`, `cpu:0`, `cuda` (the current GPU) or `cuda:N`, on the current machine.
impl FromStr for Device {
    type Err = GpuError;

    fn from_str(text: &str) -> Result<Device, GpuError> {
        let (kind, index) = match text.split_once(':') {
            Some((kind, index)) => (kind, Some(index)),
            None => (text, None),
        };
        if text.is_empty() {
            return Err(GpuError::NoDeviceString);
        }
        let invalid = || GpuError::DeviceString(text.to_string());
        let is_word = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
        if kind.is_empty() || !kind.bytes().all(is_word) {
            return Err(invalid());
        }
        let index = match index {
            None if kind == "cuda" => HostContext::current_device(),
            None => 0,
            Some("") => return Err(invalid()),
            Some(digits) if !digits.bytes().all(|byte| byte.is_ascii_digit()) => return Err(invalid()),
            Some(digits) if digits != "0" && digits.starts_with('0') => return Err(invalid()),
            Some(digits) => match digits.parse::<i32>() {
                Ok(index) => index as usize,
                Err(_) => {
                    return Err(GpuError::UnreadableIndex {
                        index: digits.to_string(),
                        text: text.to_string(),
                    });
                }
            },
        };
        match kind {
            // PyTorch stores the index in one byte, where larger ones wrap around.
            _ if index > i8::MAX as usize => Err(invalid()),
            "cpu" => Ok(Device::Cpu),
            "cuda" => Ok(Device::cuda(index)),
            _ if OTHER_TYPES.contains(&kind) => Err(GpuError::OtherDeviceType(kind.to_string())),
            _ => Err(GpuError::DeviceType(kind.to_string())),
        }
    }
}

/// PyTorch's device types that this crate does not have.
const OTHER_TYPES: [&str; 18] = [
    "ipu",
    "xpu",
    "mkldnn",
    "opengl",
    "opencl",
    "ideep",
    "hip",
    "ve",
    "fpga",
    "maia",
    "xla",
    "lazy",
    "vulkan",
    "mps",
    "meta",
    "hpu",
    "mtia",
    "privateuseone",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::each_case::each_case;

    #[test]
    fn device_strings_are_read_and_refused_as_pytorch_does() {
        assert_eq!("cpu".parse::<Device>().unwrap(), Device::Cpu);
        assert_eq!("cuda".parse::<Device>().unwrap(), Device::cuda(0));
        assert_eq!("cuda:3".parse::<Device>().unwrap(), Device::cuda(3));
        assert_eq!(Device::cuda(1).to_string(), "cuda:1");
        let says = |wrong: &str| wrong.parse::<Device>().unwrap_err().to_string();
        each_case(
            [
                "cuda:-2", "cuda:", "cuda:01", "cuda:x", "cuda:+1", "cuda:1:2", "cuda0", "cuda-0", ":0",
                " cuda", "cuda ", "cuda:0 ", "cuda::0", "cpu:x",
            ],
            |wrong| {
                assert_eq!(says(wrong), format!("Invalid device string: '{wrong}'"));
            },
        );
        each_case(["gpu", "gpu:0", "CUDA:1", "cud"], |wrong| {
            let kind = wrong.split(':').next().unwrap();
            assert!(
                says(wrong).ends_with(&format!(" device type at start of device string: {kind}")),
                "{wrong}"
            );
        });
        assert_eq!(says(""), "Device string must not be empty");
        each_case(["2147483648", "999999999999999999999"], |index| {
            let text = format!("cpu:{index}");
            assert_eq!(
                says(&text),
                format!("Could not parse device index '{index}' in device string '{text}'")
            );
        });
        // PyTorch accepts other device types. It also reads this index as -128.
        assert_eq!(says("mps:0"), "this crate supports cpu and cuda devices, not mps devices");
        assert_eq!(says("cuda:128"), "Invalid device string: 'cuda:128'");
        let list = says("gpu");
        for kind in OTHER_TYPES {
            assert!(list.contains(&format!(" {kind}")), "{kind}");
        }
    }
}

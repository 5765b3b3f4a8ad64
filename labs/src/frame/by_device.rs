//! The differences between a lab on a GPU and on the CPU.

use todevice::{Device, Result, cuda};

use super::lab::Lab;
use super::prediction::{Guess, Prediction};
use super::text::Text;

impl Lab<'_> {
    /// The lab's GPU; `None` on the CPU.
    #[inline(never)] // Many sections call this, and each page loads its lab's code.
    pub fn gpu(&self) -> Option<Device> {
        Some(self.device()).filter(|device| device.is_cuda())
    }

    /// Returns the first value on a GPU, and the second on the CPU.
    pub fn gpu_or_cpu<T>(&self, on_gpu: T, on_cpu: T) -> T {
        if self.gpu().is_some() { on_gpu } else { on_cpu }
    }

    pub fn prose_on_gpu(&mut self, text: impl Into<Text>) {
        if self.gpu().is_some() {
            self.prose(text);
        }
    }

    pub fn prose_on_cpu(&mut self, text: impl Into<Text>) {
        if self.gpu().is_none() {
            self.prose(text);
        }
    }

    /// Asks for a prediction that only a GPU can settle. On the CPU, it becomes a question to think about.
    pub fn predict_on_gpu(&mut self, prediction: Prediction) -> Guess {
        self.predict(prediction.only_if(self.gpu().is_some()))
    }

    /// Whether the lab runs on a GPU. If not, prints a paragraph on why the section ends here.
    pub fn has_gpu_or(&mut self, without: impl Into<Text>) -> bool {
        self.prose_on_cpu(without);
        self.gpu().is_some()
    }

    /// As [`has_gpu_or`](Self::has_gpu_or), before a new part of the section.
    pub fn has_gpu_or_part(
        &mut self,
        part: &'static str,
        without: impl Into<Text>,
    ) -> bool {
        if self.gpu().is_none() {
            self.part(part);
        }
        self.has_gpu_or(without)
    }

    /// As [`has_gpu_or`](Self::has_gpu_or), with an [invitation](Self::invite_to_gpu).
    pub fn has_gpu_to_show(&mut self, what: &str) -> bool {
        self.invite_to_gpu(what);
        self.gpu().is_some()
    }

    /// On the CPU, tells the reader how to get a GPU, and what the section shows on one.
    #[inline(never)]
    pub fn invite_to_gpu(&mut self, to: &str) {
        let how = match cuda::is_available() {
            true => "Without --device cpu",
            false => "With --gpu sim:t4",
        };
        self.prose_on_cpu(format!("{how} this section shows {to}"));
    }
}

/// The major version of a GPU's compute capability, and 0 for the CPU.
pub(crate) fn compute_capability(device: Device) -> Result<u32> {
    match device.is_cuda() {
        true => Ok(cuda::get_device_properties(device.index())?.major),
        false => Ok(0),
    }
}

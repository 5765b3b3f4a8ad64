//! `torch.amp`: training in 16 bits where that is accurate enough, and in 32 bits elsewhere.
//!
//! - [`autocast`]: chooses the dtype of each operation
//! - [`GradScaler`]: keeps gradients from underflowing in f16
//!
//! ```
//! use todevice::amp::{self, AutocastOptions, GradScaler, GradScalerOptions};
//! use todevice::prelude::*;
//! use todevice::{DeviceType, Machine};
//!
//! let machine: Machine = "sim:t4".parse()?;
//! machine.enter(|| -> Result<()> {
//!     let device = Device::cuda(0);
//!     let model = nn::Linear::new(8, 2)?;
//!     model.to(device)?;
//!     let mut optimizer = optim::SGD::new(model.parameters(), Default::default())?;
//!     let mut scaler = GradScaler::new(GradScalerOptions::default())?;
//!     let x = Tensor::randn(&[4, 8])?.to(device)?;
//!     let y = Tensor::new([0, 1, 1, 0])?.to(device)?;
//!     for _ in 0..3 {
//!         let loss = amp::autocast(DeviceType::Cuda, || {
//!             let output = model.forward(&x)?;
//!             assert_eq!(output.dtype(), DType::F16);
//!             nn::CrossEntropyLoss::default().forward(&output, &y)
//!         })?;
//!         assert_eq!(loss.dtype(), DType::F32);
//!         optimizer.zero_grad();
//!         scaler.scale(&loss)?.backward()?;
//!         scaler.step(&mut optimizer)?;
//!         scaler.update()?;
//!     }
//!     Ok(())
//! })?;
//! # Ok::<(), todevice::Error>(())
//! ```

mod autocast;
pub(crate) mod error;
mod grad_scaler;

pub use autocast::{AutocastOptions, autocast, get_autocast_dtype, is_autocast_enabled};
pub(crate) use autocast::{Operands, again, anew, begin_autocast, without_autocast};
pub use grad_scaler::{GradScaler, GradScalerOptions};

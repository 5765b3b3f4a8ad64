//! `torch.backends`: settings for speed and reproducibility, per machine (in PyTorch, per process).

pub mod cudnn;

pub use crate::flags::Float32MatmulPrecision;
use crate::host_context::HostContext;

/// `torch.backends.cuda`
pub mod cuda {
    /// Returns whether this crate supports NVIDIA GPUs (`torch.backends.cuda.is_built`): everywhere except in a web
    /// page. [`is_available`](crate::cuda::is_available) checks for a GPU.
    pub fn is_built() -> bool {
        cfg!(not(target_family = "wasm"))
    }

    /// `torch.backends.cuda.matmul`: settings of cuBLAS.
    pub mod matmul {
        use super::super::{
            Float32MatmulPrecision, get_float32_matmul_precision, set_float32_matmul_precision,
        };

        /// Returns whether tensor cores may round the operands of f32 matrix products to TF32 (default: false).
        pub fn allow_tf32() -> bool {
            get_float32_matmul_precision() != Float32MatmulPrecision::Highest
        }

        /// Allows or forbids TF32. It makes large matrix products faster, with three correct digits instead of six.
        pub fn set_allow_tf32(allow: bool) {
            set_float32_matmul_precision(match allow {
                true => Float32MatmulPrecision::High,
                false => Float32MatmulPrecision::Highest,
            });
        }
    }
}

/// `torch.get_float32_matmul_precision`
pub fn get_float32_matmul_precision() -> Float32MatmulPrecision {
    HostContext::backends(|flags| flags.matmul_precision)
}

/// `torch.set_float32_matmul_precision`
pub fn set_float32_matmul_precision(precision: Float32MatmulPrecision) {
    HostContext::backends(|flags| flags.matmul_precision = precision);
}

/// Makes results equal in every run (`torch.use_deterministic_algorithms`).
///
/// PyTorch then rejects operations without a deterministic version. Here all operations except convolutions are always
/// deterministic: sums on a GPU have a fixed order, without atomic additions. This setting selects deterministic
/// convolutions, like [`cudnn::set_deterministic`], and makes [`Tensor::empty`](crate::Tensor::empty) fill its memory
/// with NaN or the largest integer. Also set a seed: [`manual_seed`](crate::manual_seed).
pub fn use_deterministic_algorithms(mode: bool) {
    HostContext::backends(|flags| flags.deterministic_algorithms = mode);
}

/// `torch.are_deterministic_algorithms_enabled`
pub fn are_deterministic_algorithms_enabled() -> bool {
    HostContext::backends(|flags| flags.deterministic_algorithms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::tensor::Tensor;
    use cudnn::Flags;

    #[test]
    fn flags_are_pytorchs_at_first_and_belong_to_the_machine() {
        Machine::new().enter(|| {
            assert!(
                cudnn::enabled() && !cudnn::benchmark() && !cudnn::deterministic() && cudnn::allow_tf32()
            );
            assert!(cuda::is_built() && !crate::gpu::is_available());
            assert!(!cuda::matmul::allow_tf32() && !are_deterministic_algorithms_enabled());
            cuda::matmul::set_allow_tf32(true);
            assert_eq!(get_float32_matmul_precision(), Float32MatmulPrecision::High);
            set_float32_matmul_precision(Float32MatmulPrecision::Medium);
            assert!(cuda::matmul::allow_tf32());
            Machine::new().enter(|| assert!(!cuda::matmul::allow_tf32()));
        });
    }

    #[test]
    fn a_scope_of_flags_ends_as_it_began_also_by_a_panic() {
        Machine::new().enter(|| {
            let flags = Flags { benchmark: true, allow_tf32: false, ..cudnn::current() };
            assert!(cudnn::flags(flags, || cudnn::benchmark() && !cudnn::allow_tf32()));
            assert!(!cudnn::benchmark() && cudnn::allow_tf32());
            let _ = std::panic::catch_unwind(|| cudnn::flags(flags, || panic!("on the way")));
            assert!(!cudnn::benchmark());
        });
    }

    #[test]
    fn empty_memory_is_filled_for_determinism() {
        Machine::new().enter(|| {
            use_deterministic_algorithms(true);
            assert!(
                Tensor::empty((&[3], crate::DType::F32))
                    .unwrap()
                    .to_vec::<f32>()
                    .unwrap()
                    .iter()
                    .all(|x| x.is_nan())
            );
            let ints = Tensor::empty((&[2], crate::DType::I32)).unwrap();
            assert_eq!(ints.to_vec::<i32>().unwrap(), [i32::MAX; 2]);
        });
    }
}

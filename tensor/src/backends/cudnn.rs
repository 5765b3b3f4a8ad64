//! `torch.backends.cudnn`: settings of convolutions on a GPU.

use crate::flags::Backends;
pub use crate::flags::Flags;
use crate::host_context::HostContext;
use crate::machine::Machine;

/// Declares the functions that read and set a flag: `enabled, set_enabled: bool;` declares `pub fn enabled() -> bool`
/// and `pub fn set_enabled(enabled: bool)`.
macro_rules! flag_functions {
    ($($(#[$doc:meta])* $name:ident, $set:ident: $T:ty;)*) => {$(
        $(#[$doc])*
        pub fn $name() -> $T {
            HostContext::backends(|flags| flags.cudnn.$name)
        }

        #[doc = concat!("Sets [`", stringify!($name), "`].")]
        pub fn $set($name: $T) {
            HostContext::backends(|flags| flags.cudnn.$name = $name);
        }
    )*};
}

flag_functions! {
    /// Returns whether cuDNN is used (default: true).
    enabled, set_enabled: bool;
    /// Returns whether benchmarking selects the fastest algorithm (default: false).
    ///
    /// The first convolution of each kind then takes the time of all tried algorithms, and the memory of the largest. A
    /// kind is a pass (forward, input gradient, weight gradient), a dtype, and all sizes. With many different input
    /// sizes the search never ends.
    benchmark, set_benchmark: bool;
    /// Returns whether only bitwise reproducible algorithms are used (default: false).
    deterministic, set_deterministic: bool;
    /// Returns whether f32 operands may be rounded to TF32 (default: *true*, unlike for matrix products).
    allow_tf32, set_allow_tf32: bool;
    /// Returns the number of algorithms that benchmarking tries; 0 means all (default: 10).
    benchmark_limit, set_benchmark_limit: usize;
}

/// Returns whether this machine has cuDNN. On simulated GPUs it is simulated.
pub fn is_available() -> bool {
    version().is_some()
}

/// Returns the version of cuDNN: 91900 for 9.19.0 (`torch.backends.cudnn.version()`).
pub fn version() -> Option<usize> {
    Machine::current().cuda()?.cudnn_version()
}

/// Returns the current flags.
pub fn current() -> Flags {
    HostContext::backends(|flags| flags.cudnn)
}

/// Runs `scope` with other flags, which affect all threads of the machine (`torch.backends.cudnn.flags`).
///
/// ```
/// use todevice::backends::cudnn;
///
/// let exact = cudnn::Flags { allow_tf32: false, deterministic: true, ..cudnn::current() };
/// cudnn::flags(exact, || assert!(cudnn::deterministic()));
/// assert!(!cudnn::deterministic());
/// ```
pub fn flags<R>(flags: Flags, scope: impl FnOnce() -> R) -> R {
    struct Restore(Machine, Flags);
    impl Drop for Restore {
        fn drop(&mut self) {
            self.0.enter(|| set(self.1));
        }
    }
    let _restore = Restore(Machine::current(), set(flags));
    scope()
}

fn set(flags: Flags) -> Flags {
    HostContext::backends(|backends: &mut Backends| std::mem::replace(&mut backends.cudnn, flags))
}

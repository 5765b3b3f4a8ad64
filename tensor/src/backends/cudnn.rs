//! `torch.backends.cudnn`: settings for convolutions on a GPU.

use crate::flags::Backends;
pub use crate::flags::Flags;
use crate::host_context::HostContext;
use crate::machine::Machine;

/// Declares the functions that read and set a flag: `enabled, set_enabled: bool;` is `pub fn enabled() -> bool` and
/// `pub fn set_enabled(enabled: bool)`.
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
    /// Whether cuDNN is used (default: true).
    enabled, set_enabled: bool;
    /// Whether the fastest algorithm is found by benchmarking (default: false).
    ///
    /// The first convolution of each kind then takes the additional time of all the others that are tried, and the
    /// memory of the one that needs most. A kind is a pass (forward, gradient of the input, gradient of the
    /// weight), a dtype, and all sizes: with inputs of many different sizes the search never ends.
    benchmark, set_benchmark: bool;
    /// Whether only algorithms that give bitwise the same results in every run are used (default: false).
    deterministic, set_deterministic: bool;
    /// Whether f32 operands may be rounded to TF32 (default: *true*, unlike for matrix products).
    allow_tf32, set_allow_tf32: bool;
    /// The number of algorithms that benchmark mode tries; 0 means all (default: 10).
    benchmark_limit, set_benchmark_limit: usize;
}

/// Whether the GPUs of this machine have cuDNN. A simulated GPU's cuDNN is simulated.
pub fn is_available() -> bool {
    version().is_some()
}

/// The version of cuDNN, such as 91900 for 9.19.0 (`torch.backends.cudnn.version()`).
pub fn version() -> Option<usize> {
    Machine::current().cuda()?.cudnn_version()
}

/// The current flags.
pub fn current() -> Flags {
    HostContext::backends(|flags| flags.cudnn)
}

/// Runs `scope` with other flags (`torch.backends.cudnn.flags`). The flags belong to the machine, so its other
/// threads see them too.
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

/// Sets all flags, and returns the previous ones.
fn set(flags: Flags) -> Flags {
    HostContext::backends(|backends: &mut Backends| std::mem::replace(&mut backends.cudnn, flags))
}

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

use super::module::Module;
use super::parameter::{Buffer, Parameter};
use crate::device::Device;
use crate::dtype::DType;

/// The type of a field in a module with `#[derive(Module)]`: a module, a parameter, a buffer, a [`Training`], or a
/// plain value such as a number. Fields of other types need `#[module(skip)]`, or else the compiler points to them:
///
/// ```compile_fail,E0277
/// use todevice::nn::{self, Module};
/// use todevice::{Result, Tensor};
///
/// #[derive(Module)]
/// struct Center {
///     mean: Tensor, // `todevice::Tensor` is neither a module nor a parameter, a buffer or a plain value
/// }
///
/// impl Center {
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         x - &self.mean
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a module nor a parameter, a buffer or a plain value",
    label = "this field of a module would not be moved, trained or saved with it",
    note = "derive `Module` for `{Self}` if it has parameters; make a tensor a `Parameter` or a `Buffer`",
    note = "write `#[module(skip)]` above the field if the module's parameters and state do without it"
)]
pub trait ModuleField {
    #[doc(hidden)]
    fn add_children<'m>(&'m self, _name: &str, _found: &mut Vec<(String, &'m dyn Module)>) {}

    #[doc(hidden)]
    fn add_parameters(&self, _name: &'static str, _found: &mut Vec<(&'static str, Parameter)>) {}

    #[doc(hidden)]
    fn add_buffers(&self, _name: &'static str, _found: &mut Vec<(&'static str, Buffer)>) {}

    #[doc(hidden)]
    fn training_changed(&self, _training: bool) {}
}

type NamedFields<'m> = Vec<(&'static str, &'m dyn ModuleField)>;

pub(super) fn children(fields: NamedFields<'_>) -> Vec<(String, &dyn Module)> {
    let mut found = Vec::new();
    fields.into_iter().for_each(|(name, field)| field.add_children(name, &mut found));
    found
}

pub(super) fn parameters(fields: NamedFields<'_>) -> Vec<(&'static str, Parameter)> {
    let mut found = Vec::new();
    fields.into_iter().for_each(|(name, field)| field.add_parameters(name, &mut found));
    found
}

pub(super) fn buffers(fields: NamedFields<'_>) -> Vec<(&'static str, Buffer)> {
    let mut found = Vec::new();
    fields.into_iter().for_each(|(name, field)| field.add_buffers(name, &mut found));
    found
}

impl<M: Module> ModuleField for M {
    fn add_children<'m>(&'m self, name: &str, found: &mut Vec<(String, &'m dyn Module)>) {
        found.push((name.to_owned(), self));
    }
}

impl<M: Module> ModuleField for Option<M> {
    fn add_children<'m>(&'m self, name: &str, found: &mut Vec<(String, &'m dyn Module)>) {
        found.extend(self.iter().map(|module| (name.to_owned(), module as &dyn Module)));
    }
}

/// Names each module after the field and its index, like an `nn.ModuleList`: `blocks.0`.
impl<M: Module> ModuleField for Vec<M> {
    fn add_children<'m>(&'m self, name: &str, found: &mut Vec<(String, &'m dyn Module)>) {
        found.extend(
            self.iter().enumerate().map(|(i, module)| (format!("{name}.{i}"), module as &dyn Module)),
        );
    }
}

impl ModuleField for Parameter {
    fn add_parameters(&self, name: &'static str, found: &mut Vec<(&'static str, Parameter)>) {
        found.push((name, self.clone()));
    }
}

impl ModuleField for Option<Parameter> {
    fn add_parameters(&self, name: &'static str, found: &mut Vec<(&'static str, Parameter)>) {
        found.extend(self.iter().map(|parameter| (name, parameter.clone())));
    }
}

impl ModuleField for Buffer {
    fn add_buffers(&self, name: &'static str, found: &mut Vec<(&'static str, Buffer)>) {
        found.push((name, self.clone()));
    }
}

impl ModuleField for Option<Buffer> {
    fn add_buffers(&self, name: &'static str, found: &mut Vec<(&'static str, Buffer)>) {
        found.extend(self.iter().map(|buffer| (name, buffer.clone())));
    }
}

/// The mode of a module (`self.training`): true until [`Module::eval`] is called on it or on an enclosing module.
///
/// ```
/// use todevice::nn::{self, Module};
/// use todevice::{Result, Tensor};
///
/// /// Noise, but only while training.
/// #[derive(Module)]
/// struct Noise {
///     size: f64,
///     training: nn::Training,
/// }
///
/// impl Noise {
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         if !self.training.is_on() {
///             return Ok(x.clone());
///         }
///         x + &(x.randn_like()? * self.size)?
///     }
/// }
///
/// let noise = Noise { size: 0.1, training: Default::default() };
/// let x = Tensor::ones(&[2])?;
/// noise.eval();
/// assert_eq!(noise.forward(&x)?.to_vec::<f32>()?, [1.0, 1.0]);
/// # Ok::<(), todevice::Error>(())
/// ```
#[derive(Debug)]
pub struct Training(AtomicBool);

impl Training {
    /// Returns whether the module is in training mode.
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for Training {
    fn default() -> Training {
        Training(AtomicBool::new(true))
    }
}

impl ModuleField for Training {
    fn training_changed(&self, training: bool) {
        self.0.store(training, Ordering::Relaxed);
    }
}

macro_rules! plain_values {
    ($($T:ty)*) => {$(
        impl ModuleField for $T {}
        impl ModuleField for Option<$T> {}
        impl ModuleField for Vec<$T> {}
        impl<const N: usize> ModuleField for [$T; N] {}
        impl ModuleField for ($T, $T) {}
    )*};
}
plain_values!(bool char u8 i32 u32 i64 u64 usize isize f32 f64 String &'static str Device DType);

impl<T> ModuleField for PhantomData<T> {}

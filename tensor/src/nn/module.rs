use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use super::error::ModuleError;
use super::field::{self, ModuleField};
use super::parameter::{Buffer, Parameter, Replacement};
use super::state_dict::{self, IncompatibleKeys, StateDict};
use crate::error::{Forgetful, HalfDone, Result};
use crate::moves;
use crate::options::AndOptions;
use crate::scope;
use crate::tensor::Tensor;
use crate::tensor_options::ToOptions;

/// A layer, or a network of layers (`torch.nn.Module`).
///
/// Derive it for your own modules. Their fields become children, parameters and buffers, named like the fields, and the
/// method `forward` becomes the forward pass. A field may be a module, an `Option` or a `Vec` of modules, a
/// [`Parameter`], a [`Buffer`], [`Training`](super::Training), or a plain value. Others need `#[module(skip)]`.
///
/// ```
/// use todevice::nn::{self, Module};
/// use todevice::{Result, Tensor, manual_seed};
///
/// #[derive(Module)]
/// struct Net {
///     hidden: nn::Linear,
///     out: nn::Linear,
/// }
///
/// impl Net {
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         self.out.forward(&self.hidden.forward(x)?.relu()?)
///     }
/// }
///
/// manual_seed(0);
/// let net = Net { hidden: nn::Linear::new(3, 4)?, out: nn::Linear::new(4, 1)? };
/// let names: Vec<String> = net.named_parameters().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["hidden.weight", "hidden.bias", "out.weight", "out.bias"]);
/// # Ok::<(), todevice::Error>(())
/// ```
pub trait Module: Send + Sync {
    /// Returns the name of the type as printed: "Linear".
    fn name(&self) -> &'static str;

    /// Computes the output. Autograd records the computation.
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor>;

    #[doc(hidden)]
    fn fields(&self) -> Vec<(&'static str, &dyn ModuleField)> {
        Vec::new()
    }

    /// Returns the fields that a derived list skips, or `None` without a derived list.
    #[doc(hidden)]
    fn skipped_fields(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// Whether the module belongs to this crate, whose modules list all fields.
    #[doc(hidden)]
    fn is_built_in(&self) -> bool {
        std::any::type_name::<Self>().starts_with("todevice::")
    }

    /// Returns the submodules by name, in the order of construction.
    fn children(&self) -> Vec<(String, &dyn Module)> {
        field::children(self.fields())
    }

    /// Returns the module's parameters, without those of its children.
    fn own_parameters(&self) -> Vec<(&'static str, Parameter)> {
        field::parameters(self.fields())
    }

    /// Returns the module's buffers, without those of its children.
    fn own_buffers(&self) -> Vec<(&'static str, Buffer)> {
        field::buffers(self.fields())
    }

    /// Returns the version of the module's entries in a state (`Module._version`), which the state contains.
    fn state_version(&self) -> i64 {
        1
    }

    /// Returns the names that a state of the given version may lack, because they were added later. Their values stay.
    /// States from PyTorch before 0.4.1, and states assembled by hand, have no version.
    fn optional_in_state(&self, _version: Option<i64>) -> &'static [&'static str] {
        &[]
    }

    /// Sets the mode of this module, for [`train`](Self::train) and [`eval`](Self::eval). Layers may store it.
    fn set_training(&self, training: bool) {
        self.fields().iter().for_each(|(_, field)| field.training_changed(training));
    }

    /// Returns the text between the parentheses of the printed module.
    fn extra_repr(&self) -> String {
        String::new()
    }

    /// Returns all parameters, including those of children. A shared one is listed once.
    fn parameters(&self) -> Vec<Parameter> {
        self.named_parameters().into_iter().map(|(_, parameter)| parameter).collect()
    }

    /// Returns all parameters with their names ("0.weight").
    fn named_parameters(&self) -> Vec<(String, Parameter)> {
        let mut found = Vec::new();
        collect_parameters("", self.own_parameters(), self.children(), &mut found);
        found
    }

    /// Returns all buffers with their names.
    fn named_buffers(&self) -> Vec<(String, Buffer)> {
        let mut found = Vec::new();
        collect_buffers("", self.own_buffers(), self.children(), &mut found);
        found
    }

    /// Turns training mode on.
    fn train(&self) {
        set_training(self, true);
    }

    /// Turns training mode off, so dropout does nothing. `no_grad` turns off gradients.
    fn eval(&self) {
        set_training(self, false);
    }

    /// Unfreezes or freezes all parameters, including those of children (`Module.requires_grad_`), but keeps gradients.
    fn requires_grad_(&self, requires_grad: bool) -> Result<()> {
        require_grad(&self.parameters(), requires_grad)
    }

    /// Moves or converts every parameter and buffer in place. Only floating-point tensors change their dtype.
    ///
    /// Errors, before any conversion, if the dtype is not floating-point.
    ///
    /// If another device lacks memory, nothing is moved. A conversion on the same device frees memory tensor by tensor,
    /// as in PyTorch, so its error contains the number of converted tensors
    /// ([`Error::HalfDone`](crate::Error::HalfDone)).
    #[track_caller]
    fn to(&self, options: impl Into<ToOptions>) -> Result<&Self>
    where
        Self: Sized,
    {
        let _scope = scope::on_behalf_of(Location::caller());
        let options = options.into();
        convert(&self.parameters(), &self.named_buffers(), options)?;
        note_move(self, options);
        Ok(self)
    }

    /// Clears all gradients.
    fn zero_grad(&self) {
        self.parameters().iter().for_each(Parameter::zero_grad);
    }

    /// Returns the values of all parameters and buffers, by name. They share memory with the module.
    #[track_caller]
    fn state_dict(&self) -> StateDict {
        let _scope = scope::on_behalf_of(Location::caller());
        state_dict::of(self)
    }

    /// Copies values into the parameters and buffers of the same names.
    ///
    /// Errors before any copy if sizes differ, or, with `strict`, if names are missing or unknown. (PyTorch first
    /// copies all tensors that fit.)
    #[track_caller]
    fn load_state_dict(&self, state: &StateDict, strict: bool) -> Result<IncompatibleKeys> {
        let _scope = scope::on_behalf_of(Location::caller());
        state_dict::load(self, state, strict)
    }
}

/// For functions with a module and options, such as `DataParallel::new`.
impl<M: Module, O: Default> AndOptions<M, O> for M {
    fn split(self) -> (M, O) {
        (self, O::default())
    }
}

fn require_grad(parameters: &[Parameter], requires_grad: bool) -> Result<()> {
    parameters.iter().try_for_each(|parameter| parameter.requires_grad_(requires_grad))
}

/// A pointer to a module is a module, so a `Box<dyn Module>` can be moved and be a child.
macro_rules! forward_module_to_pointee {
    ($($Pointer:ident),*) => {$(
        impl<M: Module + ?Sized> Module for $Pointer<M> {
            fn name(&self) -> &'static str {
                (**self).name()
            }

            #[track_caller]
            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                (**self).forward(input)
            }

            fn skipped_fields(&self) -> Option<&'static [&'static str]> {
                (**self).skipped_fields()
            }

            fn is_built_in(&self) -> bool {
                (**self).is_built_in()
            }

            fn children(&self) -> Vec<(String, &dyn Module)> {
                (**self).children()
            }

            fn own_parameters(&self) -> Vec<(&'static str, Parameter)> {
                (**self).own_parameters()
            }

            fn own_buffers(&self) -> Vec<(&'static str, Buffer)> {
                (**self).own_buffers()
            }

            fn state_version(&self) -> i64 {
                (**self).state_version()
            }

            fn optional_in_state(&self, version: Option<i64>) -> &'static [&'static str] {
                (**self).optional_in_state(version)
            }

            fn set_training(&self, training: bool) {
                (**self).set_training(training);
            }

            fn extra_repr(&self) -> String {
                (**self).extra_repr()
            }

            fn parameters(&self) -> Vec<Parameter> {
                (**self).parameters()
            }

            fn named_parameters(&self) -> Vec<(String, Parameter)> {
                (**self).named_parameters()
            }

            fn named_buffers(&self) -> Vec<(String, Buffer)> {
                (**self).named_buffers()
            }

            fn train(&self) {
                (**self).train();
            }

            fn eval(&self) {
                (**self).eval();
            }

            fn requires_grad_(&self, requires_grad: bool) -> Result<()> {
                (**self).requires_grad_(requires_grad)
            }

            fn zero_grad(&self) {
                (**self).zero_grad();
            }

            #[track_caller]
            fn state_dict(&self) -> StateDict {
                (**self).state_dict()
            }

            #[track_caller]
            fn load_state_dict(&self, state: &StateDict, strict: bool) -> Result<IncompatibleKeys> {
                (**self).load_state_dict(state, strict)
            }
        }
    )*};
}
forward_module_to_pointee!(Box, Arc);

// Not generic over the module, so they are compiled once.

fn collect_parameters(
    prefix: &str,
    own: Vec<(&'static str, Parameter)>,
    children: Vec<(String, &dyn Module)>,
    found: &mut Vec<(String, Parameter)>,
) {
    for (name, parameter) in own {
        if !found.iter().any(|(_, known)| known.is_same(&parameter)) {
            found.push((format!("{prefix}{name}"), parameter));
        }
    }
    for (name, child) in children {
        collect_parameters(&format!("{prefix}{name}."), child.own_parameters(), child.children(), found);
    }
}

fn collect_buffers(
    prefix: &str,
    own: Vec<(&'static str, Buffer)>,
    children: Vec<(String, &dyn Module)>,
    found: &mut Vec<(String, Buffer)>,
) {
    found.extend(own.into_iter().map(|(name, buffer)| (format!("{prefix}{name}"), buffer)));
    for (name, child) in children {
        collect_buffers(&format!("{prefix}{name}."), child.own_buffers(), child.children(), found);
    }
}

pub(super) fn convert(
    parameters: &[Parameter],
    buffers: &[(String, Buffer)],
    options: ToOptions,
) -> Result<()> {
    if let Some(dtype) = options.dtype.filter(|dtype| !dtype.is_floating_point()) {
        return Err(ModuleError::NotFloating { dtype }.into());
    }
    let of = parameters.len() + buffers.len();
    let parameters = parameters.iter().map(|parameter| parameter.converted(options));
    let buffers = buffers.iter().map(|(_, buffer)| buffer.converted(options));
    let (mut moved, mut done) = (Vec::new(), 0);
    for replacement in parameters.chain(buffers) {
        let half = HalfDone::after(
            done,
            of,
            "parameters and buffers were converted: the same call, with memory for it, does the rest",
        );
        match replacement.map_err(half)? {
            // Tensors for another device are kept until all have arrived. Others are replaced at once, to save memory.
            Some(replacement) if replacement.is_elsewhere() => moved.push(replacement),
            Some(replacement) => {
                replacement.take_place()?;
                done += 1;
            }
            None => {}
        }
    }
    moved.into_iter().try_for_each(Replacement::take_place)
}

/// Records which moved modules may have missed a field, for the error about a tensor left behind.
fn note_move(module: &dyn Module, options: ToOptions) {
    fn look(module: &dyn Module, found: &mut Vec<Forgetful>) {
        let children = module.children();
        let skipped = module.skipped_fields();
        let lists_all = module.is_built_in() || skipped.is_some_and(<[_]>::is_empty);
        if !lists_all && !found.iter().any(|other| other.module == module.name()) {
            let own = module.own_parameters().into_iter().map(|(name, _)| name);
            let own = own.chain(module.own_buffers().into_iter().map(|(name, _)| name));
            let listed =
                children.iter().map(|(name, _)| name.clone()).chain(own.map(str::to_owned)).collect();
            found.push(Forgetful { module: module.name(), listed, skipped });
        }
        children.iter().for_each(|(_, child)| look(*child, found));
    }
    let Some(device) = options.device else { return };
    let mut found = Vec::new();
    look(module, &mut found);
    moves::note(device, scope::here(), found);
}

fn set_training<M: Module + ?Sized>(module: &M, training: bool) {
    module.set_training(training);
    for (_, child) in module.children() {
        set_training(child, training);
    }
}

/// Prints like PyTorch: one line for a layer, and one for each child.
impl fmt::Display for dyn Module + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let children = self.children();
        if children.is_empty() {
            return write!(f, "{}({})", self.name(), self.extra_repr());
        }
        writeln!(f, "{}(", self.name())?;
        for (name, child) in children {
            let lines = child.to_string().replace('\n', "\n  ");
            writeln!(f, "  ({name}): {lines}")?;
        }
        f.write_str(")")
    }
}

macro_rules! display_as_module {
    ($($Type:ty),*) => {$(
        impl std::fmt::Display for $Type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self as &dyn $crate::nn::Module, f)
            }
        }
    )*};
}
pub(super) use display_as_module;

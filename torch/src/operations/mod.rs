//! The operations of `torch` in one table: the signature of each, where it is found, and how `todevice` computes it.
//!
//! From this table come the methods of tensors, the functions of `torch` and those of `torch.nn.functional`, with
//! PyTorch's names, defaults, keywords and errors.

mod create;
mod elementwise;
pub mod integers;
mod neural;
mod order;
mod properties;
pub use properties::type_name;
mod random;
mod reduce;
mod select;
mod shape;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use rustpython_vm::builtins::PyModule;
use rustpython_vm::function::FuncArgs;
use rustpython_vm::{AsObject, Py, PyPayload, PyResult, VirtualMachine};
use todevice::{Error, Tensor, interpreter};

use crate::arguments::{Arguments, types_of};
use crate::fault::{Fault, Result, raise};
use crate::schema::Signature;
use crate::tensor::PyTensor;
use crate::value::Value;

/// Where an operation is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Method,
    Function,
    /// `x.relu()` and `torch.relu(x)`
    Both,
    /// `torch.nn.functional`
    Functional,
}

pub struct Entry {
    pub place: Place,
    pub signature: &'static str,
    pub run: fn(&Arguments) -> Result<Value>,
}

/// Declares a table: `Both "relu(Tensor input)" => |a| a.t(0).relu()?;`
macro_rules! table {
    ($($Place:ident $signature:literal => |$a:ident| $result:expr;)*) => {
        pub(super) static TABLE: &[$crate::operations::Entry] = &[$(
            $crate::operations::Entry {
                place: $crate::operations::Place::$Place,
                signature: $signature,
                run: |$a| Ok($crate::value::Value::from($result)),
            },
        )*];
    };
}
use table;

static TABLES: &[&[Entry]] = &[
    create::TABLE,
    elementwise::TABLE,
    properties::TABLE,
    neural::TABLE,
    order::TABLE,
    random::TABLE,
    reduce::TABLE,
    select::TABLE,
    shape::TABLE,
];

/// The same result with a node of another name, where PyTorch has one operation and `todevice` several.
fn with_node(name: &'static str, y: &Tensor) -> Result<Tensor> {
    Ok(interpreter::record(name, &[y], y.detach(), |grad| Ok(vec![Some(grad.clone())]))?)
}

/// The result of an operation that PyTorch has no gradient of.
pub fn without_gradient(operation: &'static str, inputs: &[&Tensor], y: &Tensor) -> Result<Tensor> {
    let refuse =
        move |_: &Tensor| Err(Error::custom(format!("derivative for {operation} is not implemented")));
    Ok(interpreter::record("NotImplemented", inputs, y.detach(), refuse)?)
}

/// A function with its overloads.
pub struct Function {
    pub name: &'static str,
    overloads: Vec<(Signature, fn(&Arguments) -> Result<Value>)>,
}

/// The functions of each place: methods, `torch`, `torch.nn.functional`.
struct Functions {
    methods: BTreeMap<&'static str, Function>,
    torch: BTreeMap<&'static str, Function>,
    functional: BTreeMap<&'static str, Function>,
}

fn functions() -> &'static Functions {
    static FUNCTIONS: OnceLock<Functions> = OnceLock::new();
    FUNCTIONS.get_or_init(|| {
        let mut functions =
            Functions { methods: BTreeMap::new(), torch: BTreeMap::new(), functional: BTreeMap::new() };
        for entry in TABLES.iter().copied().flatten() {
            let places: &mut [&mut BTreeMap<_, _>] = match entry.place {
                Place::Method => &mut [&mut functions.methods],
                Place::Function => &mut [&mut functions.torch],
                Place::Both => &mut [&mut functions.methods, &mut functions.torch],
                Place::Functional => &mut [&mut functions.functional],
            };
            for place in places {
                let signature = Signature::parse(entry.signature);
                let name = signature.name;
                let function = place.entry(name).or_insert_with(|| Function { name, overloads: Vec::new() });
                function.overloads.push((signature, entry.run));
            }
        }
        functions
    })
}

impl Function {
    pub fn call(&'static self, args: FuncArgs, vm: &VirtualMachine) -> PyResult {
        self.run(args, vm).map_err(|fault| fault.into_exception(vm))
    }

    fn run(&'static self, args: FuncArgs, vm: &VirtualMachine) -> Result<rustpython_vm::PyObjectRef> {
        let mut refused: Option<Fault> = None;
        for (signature, run) in &self.overloads {
            match Arguments::bind(signature, &args, vm) {
                Ok(arguments) => {
                    let _place = crate::place::of_script(vm);
                    return Ok(run(&arguments)?.to_object(&arguments)?);
                }
                Err(fault) => refused = Some(fault),
            }
        }
        match refused {
            // With several signatures, PyTorch lists them.
            Some(Fault::Raise("TypeError", _)) if self.overloads.len() > 1 => {
                let skip =
                    usize::from(self.overloads[0].0.parameters.first().is_some_and(|p| p.name == "input"));
                let given = FuncArgs::new(
                    args.args.get(skip..).unwrap_or(&[]).to_vec(),
                    rustpython_vm::function::KwArgs::new(args.kwargs.clone()),
                );
                let mut text = format!(
                    "{}() received an invalid combination of arguments - got ({}), but expected one of:",
                    self.name,
                    types_of(&given)
                );
                for (signature, _) in &self.overloads {
                    text.push_str(&format!("\n * {signature}"));
                }
                Err(raise("TypeError", text + "\n"))
            }
            Some(fault) => Err(fault),
            None => Ok(vm.ctx.none()),
        }
    }
}

/// Gives the class of tensors its methods.
pub fn add_methods(vm: &VirtualMachine) {
    let class = PyTensor::class(&vm.ctx);
    for (name, function) in &functions().methods {
        let method =
            vm.new_method(name, class, move |args: FuncArgs, vm: &VirtualMachine| function.call(args, vm));
        class.set_attr(vm.ctx.intern_str(*name), method.into());
    }
}

/// Adds the functions of `torch`, also under `T_`, and those of `torch.nn.functional` under `F_`.
pub fn add_functions(module: &Py<PyModule>, vm: &VirtualMachine) -> PyResult<()> {
    let Functions { torch, functional, .. } = functions();
    let add = |attribute: String, function: &'static Function| {
        let object = vm
            .new_function(function.name, move |args: FuncArgs, vm: &VirtualMachine| function.call(args, vm));
        module.as_object().set_attr(vm.ctx.intern_str(attribute), object, vm)
    };
    torch.iter().try_for_each(|(name, function)| add((*name).to_owned(), function))?;
    torch.iter().try_for_each(|(name, function)| add(format!("T_{name}"), function))?;
    functional.iter().try_for_each(|(name, function)| add(format!("F_{name}"), function))
}

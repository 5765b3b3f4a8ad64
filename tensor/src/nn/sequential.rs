use super::module::{Module, display_as_module};
use crate::error::Result;
use crate::tensor::Tensor;

/// Runs its modules in order, each on the output of the previous one (`torch.nn.Sequential`).
///
/// ```
/// # use todevice::{Tensor, nn, nn::Module};
/// let model = nn::Sequential::new((nn::Linear::new(16, 64)?, nn::ReLU, nn::Linear::new(64, 1)?));
/// assert_eq!(model.forward(&Tensor::zeros(&[8, 16])?)?.sizes(), [8, 1]);
/// # Ok::<(), todevice::Error>(())
/// ```
pub struct Sequential {
    modules: Vec<Box<dyn Module>>,
}

impl Sequential {
    /// Creates the module from a tuple of up to twelve modules, or from a vector of boxed ones.
    pub fn new(modules: impl IntoModules) -> Sequential {
        Sequential { modules: modules.into_modules() }
    }

    /// Returns the number of modules.
    pub fn len(&self) -> usize {
        self.modules.len()
    }

    /// Returns whether there are no modules. The output is then the input.
    pub fn is_empty(&self) -> bool {
        self.modules.is_empty()
    }
}

impl Module for Sequential {
    fn name(&self) -> &'static str {
        "Sequential"
    }

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let mut x = input.clone();
        // A closure would lose the caller's location.
        for module in &self.modules {
            x = module.forward(&x)?;
        }
        Ok(x)
    }

    fn children(&self) -> Vec<(String, &dyn Module)> {
        self.modules.iter().enumerate().map(|(i, module)| (i.to_string(), &**module)).collect()
    }
}

display_as_module!(Sequential);

/// A list of modules for [`Sequential::new`].
pub trait IntoModules {
    /// Returns the modules in order.
    fn into_modules(self) -> Vec<Box<dyn Module>>;
}

impl IntoModules for Vec<Box<dyn Module>> {
    fn into_modules(self) -> Vec<Box<dyn Module>> {
        self
    }
}

macro_rules! tuples {
    ($First:ident $($Rest:ident)*) => {
        impl<$First: Module + 'static, $($Rest: Module + 'static),*> IntoModules for ($First, $($Rest,)*) {
            #[allow(non_snake_case)]
            fn into_modules(self) -> Vec<Box<dyn Module>> {
                let ($First, $($Rest,)*) = self;
                vec![Box::new($First), $(Box::new($Rest)),*]
            }
        }
        tuples!($($Rest)*);
    };
    () => {};
}
tuples!(A B C D E F G H I J K L);

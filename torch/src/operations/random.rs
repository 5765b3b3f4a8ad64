//! Random numbers.

use todevice::{DType, RandomOptions, Tensor, TensorOptions};

use super::create::like;
use super::table;
use crate::arguments::Arguments;
use crate::fault::{Result, raise};
use crate::tensor::not_here;

fn with<'g>(a: &'g Arguments, generator: usize, options: TensorOptions) -> RandomOptions<'g> {
    RandomOptions { generator: a.generator(generator), ..options.into() }
}

fn randint(a: &Arguments, low: i64, high: i64, sizes: usize) -> Result<Tensor> {
    let options = a.options(sizes + 2);
    let options = TensorOptions { dtype: Some(options.dtype.unwrap_or(DType::I64)), ..options };
    a.finish(Tensor::randint(low, high, (&a.sizes(sizes)?[..], with(a, sizes + 1, options)))?, sizes + 2)
}

/// `x · std + mean`, from standard normal numbers, as PyTorch computes it for tensors.
fn normal(a: &Arguments) -> Result<Tensor> {
    let x = Tensor::empty((&a.sizes(2)?[..], a.options(4)))?;
    a.finish(x.normal_(a.float(0), a.float(1), a.generator(3))?, 4)
}

table! {
    Function "rand(int[] size, *, Generator? generator=None, dtype? dtype=None, layout? layout=None, Device? device=None, bool pin_memory=False, bool requires_grad=False)"
        => |a| a.finish(Tensor::rand((&a.sizes(0)?[..], with(a, 1, a.options(2))))?, 2)?;
    Function "randn(int[] size, *, Generator? generator=None, dtype? dtype=None, layout? layout=None, Device? device=None, bool pin_memory=False, bool requires_grad=False)"
        => |a| a.finish(Tensor::randn((&a.sizes(0)?[..], with(a, 1, a.options(2))))?, 2)?;
    Function "randint(int high, int[] size, *, Generator? generator=None, dtype? dtype=None, layout? layout=None, Device? device=None, bool pin_memory=False, bool requires_grad=False)"
        => |a| randint(a, 0, a.int(0), 1)?;
    Function "randint(int low, int high, int[] size, *, Generator? generator=None, dtype? dtype=None, layout? layout=None, Device? device=None, bool pin_memory=False, bool requires_grad=False)"
        => |a| randint(a, a.int(0), a.int(1), 2)?;
    Function "randperm(int n, *, Generator? generator=None, dtype? dtype=None, layout? layout=None, Device? device=None, bool pin_memory=False, bool requires_grad=False)"
        => |a| {
            let n = a.count(0, |n| format!("Trying to create tensor with negative dimension {n}: [{n}]"))?;
            let order = match a.generator(1) {
                Some(generator) => Tensor::randperm((n, generator))?,
                None => Tensor::randperm(n)?,
            };
            if a.device(4).is_some_and(|device| device.is_cuda()) {
                return Err(not_here("torch.randperm on a GPU"));
            }
            a.finish(order.to(a.dtype(2).unwrap_or(DType::I64))?, 2)?
        };
    Function "normal(float mean, float std, int[] size, *, Generator? generator=None, dtype? dtype=None, layout? layout=None, Device? device=None, bool pin_memory=False, bool requires_grad=False)"
        => |a| normal(a)?;
    Function "rand_like(Tensor input, **options, any? memory_format=None)" => |a| like(a, 1, |sizes, options| Tensor::rand((sizes, options)), Tensor::rand_like)?;
    Function "randn_like(Tensor input, **options, any? memory_format=None)" => |a| like(a, 1, |sizes, options| Tensor::randn((sizes, options)), Tensor::randn_like)?;
    Both "bernoulli(Tensor input, *, Generator? generator=None)" => |a| a.t(0).bernoulli(a.generator(1))?;
    Method "uniform_(Tensor input, float from=0, float to=1, *, Generator? generator=None)" => |a| {
        if a.float(1) > a.float(2) {
            return Err(raise("RuntimeError", format!("uniform_ expects to return a [from, to) range, but found from={} > to={}", a.float(1), a.float(2))));
        }
        a.t(0).uniform_(a.float(1), a.float(2), a.generator(3))?
    };
    Method "normal_(Tensor input, float mean=0, float std=1, *, Generator? generator=None)" => |a| a.t(0).normal_(a.float(1), a.float(2), a.generator(3))?;
    Method "random_(Tensor input, *, Generator? generator=None)" => |a| a.t(0).random_(a.generator(1))?;
    Method "random_(Tensor input, int from, int to, *, Generator? generator=None)" => |a| a.t(0).random_from_to_(a.int(1), a.int(2), a.generator(3))?;
    Method "random_(Tensor input, int to, *, Generator? generator=None)" => |a| a.t(0).random_from_to_(0, a.int(1), a.generator(2))?;
}

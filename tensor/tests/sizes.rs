//! Impossible tensor sizes: `vectors/sizes.py` ran PyTorch on the CPU, and wrote `vectors/sizes.json`.
//!
//! On a GPU the messages are the same, except those of the allocator: PyTorch's caching allocator immediately rejects
//! an exabyte, and asks the driver for smaller amounts.

use crate::each_case::each_case;
use serde_json::Value;
use todevice::Machine;
use todevice::prelude::*;

const T: usize = 1 << 50;
const P: usize = 1 << 60;
const Q: usize = 1 << 61;
const R: usize = 1 << 62;
const S: usize = (1 << 63) - 1;
const H: usize = 1 << 32;

#[test]
fn a_permutation_of_more_numbers_than_the_host_holds_is_refused() {
    let error = Tensor::randperm(P / 2).unwrap_err().to_string();
    assert!(error.ends_with(
        "you tried to allocate 4611686018427387904 bytes. Error code 12 (Cannot allocate memory)"
    ));
}

#[test]
fn sizes_that_no_device_has_are_refused_in_pytorchs_words() {
    let pytorch: Value = serde_json::from_str(include_str!("vectors/sizes.json")).unwrap();
    let pytorch = pytorch["words"].as_object().unwrap();
    each_case([("none", "cpu"), ("sim:t4", "cuda:0")], |(gpu, device)| {
        gpu.parse::<Machine>().unwrap().enter(|| {
            let calls = calls(device.parse().unwrap());
            let differ = calls.iter().filter_map(|(call, result)| {
                let text = match result {
                    Ok(tensor) => format!("no error, but {:?}", tensor.sizes()),
                    Err(error) => error.to_string(),
                };
                let expected = on(device, pytorch[*call].as_str().unwrap());
                (!text.starts_with(&expected))
                    .then(|| format!("{call} on {device}\n  {text}\n  {expected}\n"))
            });
            assert_eq!(differ.collect::<String>(), "");
            assert_eq!(calls.len(), pytorch.len());
        });
    });
}

/// The start of PyTorch's CPU message as it reads on a device.
fn on(device: &str, words: &str) -> String {
    let bytes = words.split_once("you tried to allocate ").filter(|_| device != "cpu");
    match bytes.map(|(_, bytes)| bytes.split(' ').next().unwrap().parse::<usize>().unwrap()) {
        None => words.to_owned(),
        Some(P..) => "CUDA out of memory. Tried to allocate more than 1EB memory.".to_owned(),
        Some(bytes) => {
            format!("CUDA out of memory. Tried to allocate {:.2} GiB. GPU 0", bytes as f64 / (1 << 30) as f64)
        }
    }
}

fn calls(device: Device) -> Vec<(&'static str, Result<Tensor>)> {
    let of = |dtype| (device, dtype);
    let x = |sizes: &[usize]| Tensor::zeros((sizes, device)).unwrap();
    let typed = |dtype, sizes: &[i64]| Tensor::zeros((&[1], of(dtype))).unwrap().expand(sizes);
    let e = |sizes: &[usize]| {
        let sizes: Vec<i64> = sizes.iter().map(|size| *size as i64).collect();
        typed(DType::F32, &sizes).unwrap()
    };
    let i = |size: usize| typed(DType::I64, &[size as i64]).unwrap();
    let view = |x: &Tensor, sizes: &[usize]| {
        let sizes: Vec<i64> = sizes.iter().map(|size| *size as i64).collect();
        x.view(&sizes)
    };
    vec![
        ("torch.empty(T)", Tensor::empty((&[T], device))),
        ("torch.zeros(T)", Tensor::zeros((&[T], device))),
        ("torch.empty(P - 1, dtype=u8)", Tensor::empty((&[P - 1], of(DType::U8)))),
        ("torch.empty(P, dtype=u8)", Tensor::empty((&[P], of(DType::U8)))),
        ("torch.empty(R, dtype=u8)", Tensor::empty((&[R], of(DType::U8)))),
        ("torch.empty(S, dtype=u8)", Tensor::empty((&[S], of(DType::U8)))),
        ("torch.empty(P)", Tensor::empty((&[P], device))),
        ("torch.empty(P, dtype=f64)", Tensor::empty((&[P], of(DType::F64)))),
        ("torch.empty(Q)", Tensor::empty((&[Q], device))),
        ("torch.empty(S)", Tensor::empty((&[S], device))),
        ("torch.empty(-1)", Tensor::empty((&[usize::MAX], device))),
        ("torch.empty(2, -3)", Tensor::empty((&[2, usize::MAX - 2], device))),
        ("torch.empty(3, S, dtype=u8)", Tensor::empty((&[3, S], of(DType::U8)))),
        ("torch.empty(H, H)", Tensor::empty((&[H, H], device))),
        ("torch.empty(H, H // 4, dtype=u8)", Tensor::empty((&[H, H / 4], of(DType::U8)))),
        ("torch.empty(H, H, 0)", Tensor::empty((&[H, H, 0], device))),
        ("torch.empty(H, 0, H)", Tensor::empty((&[H, 0, H], device))),
        ("torch.empty(0, H, H)", Tensor::empty((&[0, H, H], device))),
        ("torch.zeros(R)", Tensor::zeros((&[R], device))),
        ("torch.zeros(R, dtype=u8)", Tensor::zeros((&[R], of(DType::U8)))),
        ("torch.ones(R)", Tensor::ones((&[R], device))),
        ("torch.ones(R, dtype=u8)", Tensor::ones((&[R], of(DType::U8)))),
        ("torch.full((H, H), 1.)", Tensor::full(&[H, H], (1.0, device))),
        ("torch.full((R,), 1, dtype=u8)", Tensor::full(&[R], (1, of(DType::U8)))),
        ("torch.rand(R)", Tensor::rand((&[R], device))),
        ("torch.rand(P)", Tensor::rand((&[P], device))),
        ("torch.randn(R)", Tensor::randn((&[R], device))),
        ("torch.randint(0, 5, (T,))", Tensor::randint(0, 5, (&[T], of(DType::I64)))),
        ("torch.randperm(R)", Tensor::randperm(R)),
        ("torch.linspace(0, 1, R)", Tensor::linspace(0.0, 1.0, (R, device))),
        ("torch.arange(R)", Tensor::arange(0, R as i64, (1, of(DType::I64)))),
        ("torch.arange(T)", Tensor::arange(0, T as i64, (1, of(DType::I64)))),
        ("torch.arange(-R, R)", Tensor::arange(-(R as i64), R as i64, (1, of(DType::I64)))),
        ("torch.arange(0, 1e30)", Tensor::arange(0, 1e30, (1, device))),
        ("torch.arange(0, 1, 1e-30)", Tensor::arange(0, 1, (1e-30, device))),
        ("torch.arange(-1e308, 1e308, 1e-10)", Tensor::arange(-1e308, 1e308, (1e-10, device))),
        ("torch.arange(0, inf)", Tensor::arange(0, f64::INFINITY, (1, device))),
        ("torch.arange(1.5, -inf)", Tensor::arange(1.5, f64::NEG_INFINITY, (1, device))),
        ("torch.arange(nan, 1)", Tensor::arange(f64::NAN, 1, (1, device))),
        ("torch.arange(0, 1, nan)", Tensor::arange(0, 1, (f64::NAN, device))),
        ("torch.arange(0, 1, inf)", Tensor::arange(0, 1, (f64::INFINITY, device))),
        ("torch.eye(H)", Tensor::eye((H, device))),
        ("torch.eye(T)", Tensor::eye((T, device))),
        ("torch.eye(H // 2)", Tensor::eye((H / 2, device))),
        ("torch.eye(H // 2, dtype=u8)", Tensor::eye((H / 2, of(DType::U8)))),
        ("x(1).expand(H, H)", x(&[1]).expand(&[H as i64, H as i64])),
        ("x(1).expand(H, H, 0)", x(&[1]).expand(&[H as i64, H as i64, 0])),
        ("e(R)", Ok(e(&[R]))),
        ("e(R).contiguous()", e(&[R]).contiguous()),
        ("e(T).clone()", e(&[T]).copy()),
        ("e(R) + 1", e(&[R]).add(1)),
        ("e(R).sqrt()", e(&[R]).sqrt()),
        ("e(R) > 0", e(&[R]).gt(0)),
        ("e(H, 1) + e(1, H)", e(&[H, 1]).add(&e(&[1, H]))),
        ("e(H, 1) * e(1, H // 4)", e(&[H, 1]).mul(&e(&[1, H / 4]))),
        ("e(R).view(H, H // 4)", view(&e(&[R]), &[H, H / 4])),
        ("x(4).view(H, H)", view(&x(&[4]), &[H, H])),
        ("x(4).view(H, -1, H)", view(&x(&[4]), &[H, usize::MAX, H])),
        ("x(4).view(0, -1)", view(&x(&[4]), &[0, usize::MAX])),
        ("x(0).view(0, -1)", view(&x(&[0]), &[0, usize::MAX])),
        ("x(0).view(H, H, 0)", view(&x(&[0]), &[H, H, 0])),
        ("x(0).view(H, H)", view(&x(&[0]), &[H, H])),
        ("x(0).view(S, S, -1)", view(&x(&[0]), &[S, S, usize::MAX])),
        ("torch.cat([e(R), e(R)])", Tensor::cat(&[e(&[R]), e(&[R])], 0)),
        ("torch.cat([e(S), e(S)])", Tensor::cat(&[e(&[S]), e(&[S])], 0)),
        ("torch.cat([e(P), e(P)])", Tensor::cat(&[e(&[P]), e(&[P])], 0)),
        ("torch.cat([e(T), e(T)])", Tensor::cat(&[e(&[T]), e(&[T])], 0)),
        ("torch.cat([e(0, H, H // 4), e(0, H, H // 4)], 2)", {
            Tensor::cat(&[e(&[0, H, H / 4]), e(&[0, H, H / 4])], 2)
        }),
        ("e(H, 1) @ e(1, H)", e(&[H, 1]).matmul(&e(&[1, H]))),
        ("torch.mm(e(H, 0), e(0, H))", e(&[H, 0]).mm(&e(&[0, H]))),
        ("F.linear(e(T, 1), x(2, 1))", e(&[T, 1]).linear(&x(&[2, 1]), None)),
        ("x(4).index_select(0, i(T))", x(&[4]).index_select(0, &i(T))),
        ("x(4).gather(0, i(T))", x(&[4]).gather(0, &i(T))),
        ("F.embedding(i(P), x(3, 1))", i(P).embedding(&x(&[3, 1]), None)),
        ("F.embedding(i(P), x(3, 2))", i(P).embedding(&x(&[3, 2]), None)),
        ("F.embedding(i(R), x(3, 8))", i(R).embedding(&x(&[3, 8]), None)),
        ("F.adaptive_avg_pool2d(x(1, 1, 4, 4), H)", x(&[1, 1, 4, 4]).adaptive_avg_pool2d((H, H))),
        (
            "F.adaptive_avg_pool2d(x(1, 1, 4, 4), H // 2)",
            x(&[1, 1, 4, 4]).adaptive_avg_pool2d((H / 2, H / 2)),
        ),
        ("F.layer_norm(e(T, 2), (2,))", e(&[T, 2]).layer_norm(&[2])),
        ("F.softmax(e(T, 2), 1)", e(&[T, 2]).softmax(1)),
        ("e(T, 2).sum(1)", e(&[T, 2]).sum_dims(&[1], false)),
        ("e(T, 2).cumsum(1)", e(&[T, 2]).cumsum(1)),
        ("e(T).relu()", e(&[T]).relu()),
        ("F.mse_loss(e(T), e(T), reduction='none')", e(&[T]).mse_loss(&e(&[T]), Reduction::None)),
    ]
}

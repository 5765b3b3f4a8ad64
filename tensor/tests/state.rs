//! States of optimizers, schedulers, scalers and generators, compared with PyTorch's, from `vectors/state.py`.

use crate::each_case::each_case;
use std::process::Command;

use serde_json::Value as Json;
use todevice::amp::{GradScaler, GradScalerOptions};
use todevice::nn::{Parameter, StateDict};
use todevice::optim::lr_scheduler::{CosineAnnealingLR, StepLR};
use todevice::optim::{Adam, AdamW, ParamGroup, SGD};
use todevice::prelude::*;
use todevice::serialize::{self, Dict, Key, Value};
use todevice::{DeviceType, Machine, cuda, get_rng_state, set_rng_state};

fn pytorch() -> Json {
    serde_json::from_str(include_str!("vectors/state.json")).unwrap()
}

/// Checks that a value equals PyTorch's: the same keys in the same order, the same types, the same bits. A Python `int`
/// may be a float here: `weight_decay=0` means one.
fn check(ours: &Value, theirs: &Json, path: &str) {
    let (kind, theirs_is) = (theirs[0].as_str().unwrap(), &theirs[1]);
    match ours {
        Value::Float(number) => {
            let text = theirs_is.as_str().map_or_else(|| theirs_is.to_string(), str::to_owned);
            assert_eq!(*number, text.parse::<f64>().unwrap(), "{path}");
        }
        _ if ours.kind() != kind => panic!("{path}: {} is a {kind}", ours.kind()),
        Value::None => {}
        Value::Bool(truth) => assert_eq!(Some(*truth), theirs_is.as_bool(), "{path}"),
        Value::Int(number) => assert_eq!(Some(*number), theirs_is.as_i64(), "{path}"),
        Value::Tensor(tensor) => {
            assert_eq!(
                tensor.dtype().to_string(),
                format!("torch.{}", theirs_is.as_str().unwrap()),
                "{path}"
            );
            assert_eq!(serde_json::json!(tensor.sizes()), theirs[2], "{path}");
            let bits: Vec<u32> = tensor.to_vec::<f32>().unwrap().iter().map(|v| v.to_bits()).collect();
            let texts = theirs[3].as_str().unwrap().split_whitespace();
            assert_eq!(
                bits,
                texts.map(|v| v.parse::<f32>().unwrap().to_bits()).collect::<Vec<_>>(),
                "{path}"
            );
        }
        Value::List(values) | Value::Tuple(values) => {
            let theirs = theirs_is.as_array().unwrap();
            assert_eq!(values.len(), theirs.len(), "{path}");
            values
                .iter()
                .zip(theirs)
                .enumerate()
                .for_each(|(i, (a, b))| check(a, b, &format!("{path}[{i}]")));
        }
        Value::Dict(dict) => {
            let theirs = theirs_is.as_array().unwrap();
            let key = |key: &Json| key.as_i64().map_or_else(|| key.as_str().unwrap().into(), Key::from);
            let keys: Vec<Key> = theirs.iter().map(|entry| key(&entry[0])).collect();
            assert_eq!(dict.keys().cloned().collect::<Vec<_>>(), keys, "{path}");
            for ((key, value), entry) in dict.iter().zip(theirs) {
                check(value, &entry[1], &format!("{path}[{key}]"));
            }
        }
        Value::Str(text) => assert_eq!(Some(text.as_str()), theirs_is.as_str(), "{path}"),
        other => panic!("{path}: no state has a {}", other.kind()),
    }
}

fn parameters() -> Result<Vec<Parameter>> {
    let weight = (Tensor::arange(0, 6, (1, DType::F32))?.reshape(&[2, 3])? - 2.5)?.div(4.0)?;
    [weight, Tensor::new([0.5f32, -0.25])?, Tensor::ones(&[1])?].iter().map(Parameter::new).collect()
}

type Make = fn(Vec<Parameter>) -> Result<Box<dyn Optimizer>>;

const OPTIMIZERS: [(&str, Make); 6] = [
    ("SGD", |p| Ok(Box::new(SGD::new(p, SGDOptions { lr: 0.1, ..Default::default() })?))),
    ("SGD momentum", |p| {
        let options = SGDOptions {
            lr: 0.1,
            momentum: 0.9,
            dampening: 0.1,
            weight_decay: 0.01,
            maximize: true,
            ..Default::default()
        };
        Ok(Box::new(SGD::new(p, options)?))
    }),
    ("SGD nesterov", |p| {
        let options = SGDOptions { lr: 0.1, momentum: 0.9, nesterov: true, ..Default::default() };
        Ok(Box::new(SGD::new(p, options)?))
    }),
    ("Adam", |p| Ok(Box::new(Adam::new(p, AdamOptions { lr: 0.1, ..Default::default() })?))),
    ("AdamW", |p| {
        let options = AdamWOptions { lr: 0.1, betas: (0.8, 0.99), eps: 1e-6, weight_decay: 0.1 };
        Ok(Box::new(AdamW::new(p, options)?))
    }),
    ("AdamW groups", |p| {
        let first =
            ParamGroup { params: p[..1].to_vec(), options: AdamWOptions { lr: 0.5, ..Default::default() } };
        let rest = AdamWOptions { lr: 0.25, ..Default::default() };
        Ok(Box::new(AdamW::with_groups(vec![first, ParamGroup { params: p[1..].to_vec(), options: rest }])?))
    }),
];

fn made(name: &str) -> Make {
    OPTIMIZERS.iter().find(|(known, _)| *known == name).unwrap().1
}

/// Step number `step`, in which the last parameter has no gradient.
fn step(params: &[Parameter], optimizer: &mut dyn Optimizer, step: usize) -> Result<()> {
    for parameter in &params[..2] {
        let (count, sizes) = (parameter.numel() as i64, parameter.tensor().sizes().to_vec());
        let grad = ((Tensor::arange(0, count, (1, DType::F32))? * 0.5)? + (step as f64 - 1.25))?
            .reshape(&signed(&sizes))?;
        parameter.set_grad(Some(grad.to(parameter.tensor().dtype())?.to(parameter.tensor().device())?))?;
    }
    optimizer.step()
}

pub fn signed(sizes: &[usize]) -> Vec<i64> {
    sizes.iter().map(|size| *size as i64).collect()
}

/// The same training as in `state.py`.
fn trained(params: &[Parameter], optimizer: &mut dyn Optimizer) -> Result<StepLR> {
    let mut schedule = StepLR::new(&*optimizer, 2, 0.1)?;
    for number in 0..3 {
        step(params, optimizer, number)?;
        if number < 2 {
            schedule.step();
        }
    }
    Ok(schedule)
}

fn on_cpu() -> GradScalerOptions {
    GradScalerOptions { device: DeviceType::Cpu, ..Default::default() }
}

#[test]
fn states_are_pytorchs() -> Result<()> {
    let pytorch = pytorch();
    let states = pytorch["states"].as_array().unwrap();
    assert_eq!(states.len(), OPTIMIZERS.len());
    each_case(OPTIMIZERS.iter().zip(states), |((name, make), theirs)| -> Result<()> {
        assert_eq!(theirs[0].as_str(), Some(*name));
        let params = parameters()?;
        let mut optimizer = make(params.clone())?;
        drop(StepLR::new(&*optimizer, 2, 0.1)?); // It leaves `initial_lr` behind.
        check(&optimizer.state_dict().into(), &theirs[1], name);
        let schedule = trained(&params, &mut *optimizer)?;
        check(&optimizer.state_dict().into(), &theirs[2], name);
        check(&schedule.state_dict().into(), &theirs[3], name);
        if *name == "Adam" {
            let mut cosine = CosineAnnealingLR::new(&*optimizer, 10, 0.001)?;
            cosine.step();
            check(&cosine.state_dict().into(), &pytorch["cosine"], "cosine");
        }
        Ok(())
    });
    check(&GradScaler::new(on_cpu())?.state_dict()?.into(), &pytorch["scaler"], "scaler");

    Machine::new().enter(|| {
        manual_seed(3);
        Tensor::randn(&[3])?;
        let state: String =
            get_rng_state()?.to_vec::<u8>()?.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(Some(state.as_str()) == pytorch["rng_state"].as_str(), "{state}");
        Ok(())
    })
}

/// The same calls give the same errors.
#[test]
fn what_does_not_fit_is_refused_in_pytorchs_words() -> Result<()> {
    let params = parameters()?;
    let mut adam = made("Adam")(params.clone())?;
    trained(&params, &mut *adam)?;
    let inner = nn::Sequential::new((nn::Linear::new(2, 1)?,));
    let model = nn::Sequential::new((nn::Linear::new(3, 2)?, inner));
    let zero = Tensor::zeros(&[1])?;
    let load = |with: &[(&str, &Tensor)], strict: bool, without: &[&str]| {
        let mut state = model.state_dict();
        without.iter().for_each(|name| drop(state.remove(name)));
        with.iter().for_each(|(name, tensor)| state.insert(*name, (*tensor).clone()));
        model.load_state_dict(&state, strict).map(drop)
    };
    let load_optimizer = |groups: &[&[Parameter]], without: &str| {
        let options = AdamOptions::default();
        let groups = groups.iter().map(|params| ParamGroup { params: params.to_vec(), options }).collect();
        let mut state = adam.state_dict();
        state.remove(without);
        Adam::with_groups(groups)?.load_state_dict(&state)
    };
    let scaler = |state: Dict| GradScaler::new(on_cpu())?.load_state_dict(&state);
    let unexpected = [("x", &zero), ("1.y", &zero), ("0.z", &zero), ("1.0.w", &zero), ("2.v", &zero)];
    let number = Tensor::zeros(&[])?;
    let calls = [
        (r#"load(without=["1.0.bias", "0.weight"])"#, load(&[], true, &["1.0.bias", "0.weight"])),
        (
            r#"load({"x": ZERO, "1.y": ZERO, "0.z": ZERO, "1.0.w": ZERO, "2.v": ZERO})"#,
            load(&unexpected, true, &[]),
        ),
        (
            r#"load({"0.weight": ZERO, "1.0.bias": torch.zeros(()), "x": ZERO}, without=["0.bias"])"#,
            load(&[("0.weight", &zero), ("1.0.bias", &number), ("x", &zero)], true, &["0.bias"]),
        ),
        (
            r#"load({"0.weight": ZERO, "x": ZERO}, strict=False, without=["0.bias"])"#,
            load(&[("0.weight", &zero), ("x", &zero)], false, &["0.bias"]),
        ),
        ("MODEL.load_state_dict(3)", StateDict::try_from(&Value::Int(3)).map(drop)),
        (
            r#"load_optimizer([{"params": P[:1]}, {"params": P[1:]}])"#,
            load_optimizer(&[&params[..1], &params[1..]], ""),
        ),
        ("load_optimizer(P[:2])", load_optimizer(&[&params[..2]], "")),
        (r#"load_optimizer(P, lambda state: state.pop("state"))"#, load_optimizer(&[&params], "state")),
        (
            r#"load_optimizer(P, lambda state: state.pop("param_groups"))"#,
            load_optimizer(&[&params], "param_groups"),
        ),
        ("torch.set_rng_state(torch.zeros(3))", set_rng_state(&Tensor::zeros(&[3])?)),
        (
            "torch.set_rng_state(torch.zeros(3, dtype=torch.uint8))",
            set_rng_state(&Tensor::zeros((&[3], DType::U8))?),
        ),
        (r#"torch.amp.GradScaler("cpu").load_state_dict({})"#, scaler(Dict::new())),
        (
            r#"torch.amp.GradScaler("cpu").load_state_dict({"scale": 1.0})"#,
            scaler(Dict::from_iter([("scale", 1.0)])),
        ),
    ];
    let pytorch = pytorch();
    let words = pytorch["words"].as_object().unwrap();
    assert_eq!(calls.len(), words.len());
    each_case(calls, |(call, result)| {
        let error = result.expect_err(call);
        assert_eq!(serde_json::json!([error.kind(), error.to_string()]), words[call], "{call}");
    });
    Ok(())
}

#[test]
fn a_loaded_state_is_the_checkpoints_own_unless_it_had_to_be_converted() -> Result<()> {
    let params = parameters()?;
    let mut adam = made("Adam")(params.clone())?;
    trained(&params, &mut *adam)?;
    let given = adam.state_dict();
    each_case([("float32", DType::F32), ("float64", DType::F64)], |(name, dtype)| -> Result<()> {
        let params =
            params.iter().map(|p| Parameter::new(&p.tensor().to(dtype)?)).collect::<Result<Vec<_>>>()?;
        let mut other = made("Adam")(params)?;
        other.load_state_dict(&given)?;
        let own = other.state_dict();
        let (own, given) = (kept(&own, 0)?, kept(&given, 0)?);
        for (key, theirs) in pytorch()["loaded"][name].as_object().unwrap() {
            let (own, given) = (own.at(key.as_str())?.as_tensor()?, given.at(key.as_str())?.as_tensor()?);
            let found =
                serde_json::json!([own.dtype().to_string().replace("torch.", ""), own.shares_storage(given)]);
            assert_eq!(found, *theirs, "{name} {key}");
        }
        Ok(())
    });
    Ok(())
}

/// The state of the parameter with this number.
fn kept(state: &Dict, id: usize) -> Result<&Dict> {
    state.at("state")?.as_dict()?.at(id)?.as_dict()
}

/// Both continue alike, for every optimizer.
#[test]
fn an_optimizer_goes_on_from_its_state() -> Result<()> {
    each_case(OPTIMIZERS, |(name, make)| -> Result<()> {
        let params = parameters()?;
        let mut optimizer = make(params.clone())?;
        let mut schedule = trained(&params, &mut *optimizer)?;

        let copies =
            params.iter().map(|p| Parameter::new(&p.tensor().copy()?)).collect::<Result<Vec<_>>>()?;
        let mut other = make(copies.clone())?;
        // Through copies: unconverted tensors are shared.
        let state = optimizer.state_dict();
        other.load_state_dict(&state)?;
        other.map_state(&mut |tensor| tensor.copy())?;
        let mut resumed = StepLR::new(&*other, 7, 0.5)?;
        resumed.load_state_dict(&schedule.state_dict())?;
        for number in 3..6 {
            step(&params, &mut *optimizer, number)?;
            step(&copies, &mut *other, number)?;
            schedule.step();
            resumed.step();
            assert_eq!(schedule.get_last_lr(), resumed.get_last_lr(), "{name}");
            assert_eq!(optimizer.learning_rates().all(), other.learning_rates().all(), "{name}");
        }
        for (a, b) in params.iter().zip(&copies) {
            assert_eq!(bits(&a.tensor())?, bits(&b.tensor())?, "{name}");
        }
        Ok(())
    });
    Ok(())
}

pub fn bits(tensor: &Tensor) -> Result<Vec<u64>> {
    Ok(tensor.cpu()?.to(DType::F64)?.reshape(&[-1])?.to_vec::<f64>()?.iter().map(|v| v.to_bits()).collect())
}

/// PyTorch's `step += 1`, for a step of any type.
#[test]
fn steps_are_counted_in_any_type() -> Result<()> {
    let floats = [DType::F16, DType::BF16, DType::F32, DType::F64];
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        each_case([Device::Cpu, Device::cuda(0)], |device| -> Result<()> {
            for dtype in [&floats[..], &[DType::U8, DType::I32, DType::I64]].concat() {
                let params = parameters()?;
                let mut adam = Adam::new(params.clone(), AdamOptions::default())?;
                step(&params, &mut adam, 0)?;
                adam.map_state(&mut |kept| match kept.ndim() {
                    0 => kept.to((device, dtype)),
                    _ => Ok(kept.clone()),
                })?;
                for number in 1..3 {
                    step(&params, &mut adam, number)?;
                }
                let count = adam.state(&params[0]).unwrap().step;
                assert_eq!((count.dtype(), count.device(), count.item()?), (dtype, device, 3.0));
            }
            Ok(())
        });
        Ok(())
    })
}

/// Except a bool: PyTorch refuses to add 1 to it, and so nothing is updated.
#[test]
fn a_step_that_cannot_count_is_refused() -> Result<()> {
    let params = parameters()?;
    let mut adam = Adam::new(params.clone(), AdamOptions::default())?;
    step(&params, &mut adam, 0)?;
    let before = params[0].tensor().copy()?;
    adam.map_state(&mut |kept| if kept.ndim() == 0 { kept.to(DType::Bool) } else { Ok(kept.clone()) })?;
    let refused = step(&params, &mut adam, 1).unwrap_err().to_string();
    assert_eq!(refused, "result type Long can't be cast to the desired output type Bool");
    assert!(params[0].tensor().equal(&before)?);
    Ok(())
}

#[test]
fn a_state_of_another_kind_is_refused_and_changes_nothing() -> Result<()> {
    let params = parameters()?;
    let mut adam = made("Adam")(params.clone())?;
    trained(&params, &mut *adam)?;
    let with = |change: &dyn Fn(&mut Dict, &mut Dict)| {
        let state = adam.state_dict();
        let mut group = state.at("param_groups")?.as_list()?[0].as_dict()?.clone();
        let mut first = kept(&state, 0)?.clone();
        change(&mut group, &mut first);
        let mut states = state.at("state")?.as_dict()?.clone();
        states.insert(0, first);
        Ok::<_, Error>(Dict::from_iter([
            ("state", Value::from(states)),
            ("param_groups", vec![group].into()),
        ]))
    };
    let amsgrad = with(&|group, _| drop(group.insert("amsgrad", true)))?;
    let no_betas = with(&|group, _| drop(group.remove("betas")))?;
    let text = with(&|group, _| drop(group.insert("eps", "small")))?;
    let betas = with(&|group, _| drop(group.insert("betas", vec![0.9])))?;
    let eps = with(&|group, _| drop(group.insert("eps", -1.0)))?;
    let half = with(&|_, first| drop(first.remove("exp_avg")))?;
    let sizes = with(&|_, first| drop(first.insert("exp_avg_sq", Tensor::zeros(&[3]).unwrap())))?;
    let steps = with(&|_, first| drop(first.insert("step", Tensor::zeros(&[2]).unwrap())))?;
    each_case(
        [
            (amsgrad, "loaded state dict has amsgrad=True, which Adam does not support here"),
            (no_betas, "loaded state dict has no 'betas' in a parameter group: it is not the state of Adam"),
            (text, "'eps': expected float, found str"),
            (betas, "'betas': expected a pair of numbers, found 1"),
            (eps, "Invalid epsilon value: -1.0"),
            (half, "'exp_avg'"),
            (
                sizes,
                "size mismatch for exp_avg_sq of parameter 0: copying a state with shape torch.Size([3]), the shape of the \
             parameter is torch.Size([2, 3])",
            ),
            (steps, "'step' must be one number, but has shape torch.Size([2])"),
            (
                made("SGD")(params.clone())?.state_dict(),
                "loaded state dict has no 'betas' in a parameter group: it is not the state of Adam",
            ),
            (
                made("AdamW")(params.clone())?.state_dict(),
                "loaded state dict has decoupled_weight_decay=True, which Adam does not support here",
            ),
        ],
        |(state, words)| -> Result<()> {
            let mut other = made("Adam")(params.clone())?;
            assert_eq!(other.load_state_dict(&state).unwrap_err().to_string(), words);
            assert!(other.state_dict().at("state")?.as_dict()?.is_empty());
            assert_eq!(other.learning_rates().all(), [0.1]);
            Ok(())
        },
    );
    // Files from before PyTorch 1.12 contain an int.
    let mut old = made("Adam")(params.clone())?;
    old.load_state_dict(&with(&|_, first| drop(first.insert("step", 3)))?)?;
    assert_eq!(kept(&old.state_dict(), 0)?.at("step")?.as_tensor()?.item()?, 3.0);

    let mut schedule = StepLR::new(&*adam, 2, 0.1)?;
    let state = schedule.state_dict();
    let refused = |key: &str, value: Value, schedule: &mut StepLR| {
        let mut state = state.clone();
        state.insert(key, value);
        schedule.load_state_dict(&state).unwrap_err().to_string()
    };
    assert_eq!(
        refused("step_size", Value::Int(-1), &mut schedule),
        "'step_size': expected a count, found -1"
    );
    assert_eq!(
        refused("step_size", Value::Int(0), &mut schedule),
        "step_size should be a positive integer value, but got step_size=0"
    );
    assert_eq!(
        refused("base_lrs", vec![0.1, 0.1].into(), &mut schedule),
        "loaded state dict has a different number of parameter groups"
    );
    assert!(schedule.load_state_dict(&state).is_ok());
    Ok(())
}

#[test]
fn seeds_of_the_gpus_leave_the_cpu_alone() -> Result<()> {
    let machine: Machine = "sim:t4x2".parse().unwrap();
    machine.enter(|| {
        let seeds = || -> Result<Vec<u64>> {
            let states = cuda::get_rng_state_all()?.into_iter();
            states
                .map(|state| Ok(u64::from_le_bytes(state.to_vec::<u8>()?[..8].try_into().unwrap())))
                .collect()
        };
        manual_seed(5);
        let cpu = get_rng_state()?;
        cuda::manual_seed(6);
        assert_eq!(seeds()?, [6, 5]);
        cuda::device(1, || cuda::manual_seed(-1i64 as u64))?;
        assert_eq!(seeds()?, [6, u64::MAX]);
        Tensor::rand((&[3], Device::cuda(0)))?;
        cuda::manual_seed_all(8);
        assert_eq!(seeds()?, [8, 8]);
        let x = Tensor::rand((&[3], Device::cuda(0)))?;
        assert!(x.equal(&Tensor::rand((&[3], Device::cuda(1)))?.to(x.device())?)?);
        assert!(get_rng_state()?.equal(&cpu)?);
        Ok::<(), Error>(())
    })?;
    // As in PyTorch, a missing GPU is not an error.
    Machine::new().enter(|| {
        cuda::manual_seed(1);
        cuda::manual_seed_all(1);
    });
    Ok(())
}

#[test]
fn generators_go_on_from_their_states() -> Result<()> {
    let machine: Machine = "sim:t4x2".parse().unwrap();
    machine.enter(|| {
        manual_seed(5);
        let draw = || -> Result<Vec<Vec<u64>>> {
            [Device::Cpu, Device::cuda(0), Device::cuda(1)]
                .into_iter()
                .map(|device| bits(&Tensor::randn((&[3], device))?))
                .collect()
        };
        draw()?;
        let (cpu, gpus) = (get_rng_state()?, cuda::get_rng_state_all()?);
        assert_eq!((cpu.sizes(), gpus.len(), gpus[0].sizes()), (&[5056][..], 2, &[16][..]));
        assert_eq!(gpus[1].to_vec::<u8>()?[..8], 5u64.to_le_bytes());
        let expected = draw()?;
        set_rng_state(&cpu)?;
        cuda::set_rng_state_all(&gpus)?;
        assert_eq!(draw()?, expected);
        cuda::set_rng_state(&gpus[1], 0)?;
        assert_eq!(bits(&Tensor::randn((&[3], Device::cuda(0)))?)?, expected[2]);

        // A checkpoint loaded to a GPU as a whole has the generator state there too.
        let moved = set_rng_state(&cpu.to(Device::cuda(0))?).unwrap_err();
        assert_eq!(
            (moved.kind(), moved.to_string().as_str()),
            ("TypeError", "RNG state must be a torch.ByteTensor")
        );
        let wrong = cuda::set_rng_state(&cpu, 0).unwrap_err().to_string();
        assert_eq!(wrong, "RNG state is wrong size");
        assert!(cuda::get_rng_state(2).is_err());
        Ok(())
    })
}

/// Python code: PyTorch's optimizer loads our state, and its next step equals ours.
const GOES_ON: &str = "
import sys, torch
c = torch.load(sys.argv[1])
p = [torch.nn.Parameter(t) for t in c['before']]
o = torch.optim.Adam(p, lr=9.0)
s = torch.optim.lr_scheduler.StepLR(o, 7)
o.load_state_dict(c['optimizer']); s.load_state_dict(c['scheduler'])
torch.set_rng_state(c['rng']); assert torch.equal(torch.rand(4), c['drawn'])
torch.amp.GradScaler('cpu').load_state_dict(c['scaler'])
for q, g in zip(p, c['grads']): q.grad = g
o.step(); s.step()
for q, after in zip(p, c['after']): assert torch.allclose(q, after, rtol=1e-6, atol=1e-7), (q, after)
assert o.param_groups[0]['lr'] == c['lr'] == s.get_last_lr()[0], o.param_groups
";

#[test]
#[ignore = "it takes a Python that has PyTorch, TORCH_PYTHON=…"]
fn python_goes_on_from_our_states() -> Result<()> {
    let python = std::env::var_os("TORCH_PYTHON").expect("TORCH_PYTHON names a Python that has PyTorch");
    let params = parameters()?;
    let mut adam = made("Adam")(params.clone())?;
    let mut schedule = trained(&params, &mut *adam)?;
    // Serialized, since the tensors of a state belong to the optimizer and keep changing.
    let saved = |value: Value| serialize::from_bytes(&serialize::to_bytes(value)?, Device::Cpu);
    let tensors = |of: fn(&Parameter) -> Tensor| {
        // The last parameter has no gradient, so it has no state.
        saved(params[..2].iter().map(|parameter| of(parameter).detach()).collect::<Vec<_>>().into())
    };
    let mut checkpoint = Dict::from_iter([
        ("optimizer", saved(adam.state_dict().into())?),
        ("scheduler", schedule.state_dict().into()),
        ("scaler", GradScaler::new(on_cpu())?.state_dict()?.into()),
        ("rng", get_rng_state()?.into()),
        ("drawn", Tensor::rand(&[4])?.into()),
    ]);
    let all = |parameters: &[Parameter]| {
        saved(parameters.iter().map(|p| p.tensor().detach()).collect::<Vec<_>>().into())
    };
    checkpoint.insert("before", all(&params)?);
    step(&params, &mut *adam, 3)?;
    schedule.step();
    checkpoint.insert("grads", tensors(|parameter| parameter.grad().expect("it has one"))?);
    checkpoint.insert("after", all(&params)?);
    checkpoint.insert("lr", adam.learning_rates().all()[0]);
    let file = std::env::temp_dir().join(format!("states-{}.pt", std::process::id()));
    serialize::save(checkpoint, &file)?;
    let output = Command::new(python).args(["-c", GOES_ON]).arg(&file).output().unwrap();
    std::fs::remove_file(&file)?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

//! Options of functions: alone, or in a tuple with the last argument.

use crate::each_case::each_case;
use todevice::distributed::{DistributedDataParallel, DistributedDataParallelOptions};
use todevice::parallel::{DataParallel, DataParallelOptions};
use todevice::prelude::*;
use todevice::{
    Conv2dOptions, LayerNormArguments, MaxPool2dOptions, RandomOptions, TensorOptions, get_rng_state,
    set_rng_state,
};

fn on<T>(machine: &str, run: impl FnOnce() -> Result<T>) -> Result<T> {
    machine.parse::<Machine>()?.enter(run)
}

#[test]
fn sizes_take_a_type_a_device_a_tensor_or_all_options_in_a_pair() -> Result<()> {
    on("sim:t4", || {
        let gpu = Device::cuda(0);
        let like = Tensor::zeros((&[1], (gpu, DType::F16)))?;
        let all = TensorOptions { dtype: Some(DType::F64), device: gpu, requires_grad: true };
        let sizes = vec![2, 3];
        let made = [
            Tensor::zeros(&[2, 3])?,
            Tensor::ones(&sizes)?,
            Tensor::zeros((&[2, 3], DType::I64))?,
            Tensor::ones((&sizes[..], gpu))?,
            Tensor::zeros((&sizes, &like))?,
            Tensor::ones((&[2, 3], all))?,
        ];
        let of: Vec<_> = made.iter().map(|x| (x.dtype(), x.device(), x.requires_grad())).collect();
        assert_eq!(
            of,
            [
                (DType::F32, Device::Cpu, false),
                (DType::F32, Device::Cpu, false),
                (DType::I64, Device::Cpu, false),
                (DType::F32, gpu, false),
                (DType::F16, gpu, false),
                (DType::F64, gpu, true),
            ]
        );
        assert!(made.iter().all(|x| x.sizes() == [2, 3]));
        Ok(())
    })
}

/// As in `torch.full`, `arange`, `linspace`, `eye` and `empty`.
#[test]
fn numbers_say_the_type_of_a_new_tensor_unless_the_options_do() -> Result<()> {
    use DType::{Bool, F16, F32, F64, I64, U8};
    on("sim:t4", || {
        let gpu = Device::cuda(0);
        let like = Tensor::zeros((&[1], (gpu, F16)))?;
        let made = [
            (Tensor::full(&[2], 7), I64, Device::Cpu),
            (Tensor::full(&[2], 7.0), F32, Device::Cpu),
            (Tensor::full(&[2], true), Bool, Device::Cpu),
            (Tensor::full(&[2], (7, gpu)), I64, gpu),
            (Tensor::full(&[2], (7.0, gpu)), F32, gpu),
            (Tensor::full(&[2], (7, F64)), F64, Device::Cpu),
            (Tensor::full(&[2], (7.0, &like)), F16, gpu),
            (Tensor::full(&[2], (7, TensorOptions { device: gpu, ..Default::default() })), I64, gpu),
            (Tensor::ones((&[2], TensorOptions { device: gpu, ..Default::default() })), F32, gpu),
            (Tensor::arange(0, 3, 1), I64, Device::Cpu),
            (Tensor::arange(0, 3, 0.5), F32, Device::Cpu),
            (Tensor::arange(0.0, 3, 1), F32, Device::Cpu),
            (Tensor::arange(0, 3, (1, gpu)), I64, gpu),
            (Tensor::arange(0, 3, (1, (gpu, U8))), U8, gpu),
            (Tensor::linspace(0.0, 3.0, 4), F32, Device::Cpu),
            (Tensor::linspace(0.0, 3.0, (4, (gpu, I64))), I64, gpu),
            (Tensor::eye(2), F32, Device::Cpu),
            (Tensor::eye((2, &like)), F16, gpu),
            (Tensor::empty(&[2]), F32, Device::Cpu),
            (Tensor::empty((&[2], (gpu, Bool))), Bool, gpu),
        ];
        for (number, (x, dtype, device)) in made.into_iter().enumerate() {
            let x = x?;
            assert_eq!((x.dtype(), x.device()), (dtype, device), "tensor {number}");
        }
        let whole = Tensor::full(&[2], (7, TensorOptions { requires_grad: true, ..Default::default() }));
        assert!(whole.unwrap_err().to_string().contains("floating point"), "as PyTorch refuses it");
        Ok(())
    })
}

#[test]
fn random_tensors_take_a_generator_too_and_whole_numbers_stay_i64() -> Result<()> {
    on("sim:t4", || {
        let drawn = |generator: &Generator| -> Result<Vec<Vec<f64>>> {
            let options =
                RandomOptions { dtype: Some(DType::F64), generator: Some(generator), ..Default::default() };
            let all = [
                Tensor::rand((&[3], generator))?,
                Tensor::randn((&[3], options))?,
                Tensor::randint(0, 9, (&[3], generator))?,
                Tensor::randperm((3, generator))?,
            ];
            all.iter().map(|x| x.to(DType::F64)?.to_vec()).collect()
        };
        let [a, b] = [Generator::new(), Generator::new()];
        a.manual_seed(5);
        b.manual_seed(5);
        let state = get_rng_state()?;
        assert_eq!(drawn(&a)?, drawn(&b)?);
        assert_eq!(
            get_rng_state()?.to_vec::<u8>()?,
            state.to_vec::<u8>()?,
            "the default generator drew nothing"
        );
        set_rng_state(&state)?;
        let on_gpu = Tensor::randint(0, 9, (&[3], Device::cuda(0)))?;
        assert_eq!((on_gpu.dtype(), on_gpu.is_cuda()), (DType::I64, true));
        Ok(())
    })
}

#[test]
fn layers_and_wrappers_take_their_options_in_a_pair_with_the_last_argument() -> Result<()> {
    on("sim:t4x2", || {
        let gpu = Device::cuda(0);
        let linear = nn::LinearOptions { bias: false, device: gpu, ..Default::default() };
        let conv = Conv2dOptions { padding: 2.into(), bias: false, ..Default::default() };
        let pool = MaxPool2dOptions { stride: Some(1.into()), ..Default::default() };
        let norm = nn::LayerNormOptions { bias: false, ..Default::default() };
        let batch = nn::BatchNormOptions { affine: false, ..Default::default() };
        let embedding = nn::EmbeddingOptions { padding_idx: Some(0), ..Default::default() };
        let layers: [&dyn Module; 6] = [
            &nn::Linear::new(2, (3, linear))?,
            &nn::Conv2d::new(2, 3, ((5, 3), conv))?,
            &nn::MaxPool2d::new((3, pool)),
            &nn::LayerNorm::new((&[4], norm))?,
            &nn::BatchNorm2d::new((4, batch))?,
            &nn::Embedding::new(7, (4, embedding))?,
        ];
        let printed: Vec<String> = layers.iter().map(|layer| layer.to_string()).collect();
        assert_eq!(
            printed,
            [
                "Linear(in_features=2, out_features=3, bias=False)",
                "Conv2d(2, 3, kernel_size=(5, 3), stride=(1, 1), padding=(2, 2), bias=False)",
                "MaxPool2d(kernel_size=3, stride=1, padding=0, dilation=1, ceil_mode=False)",
                "LayerNorm((4,), eps=1e-05, elementwise_affine=True)",
                "BatchNorm2d(4, eps=1e-05, momentum=0.1, affine=False, track_running_stats=True)",
                "Embedding(7, 4, padding_idx=0)",
            ]
        );
        assert!(layers[0].parameters()[0].is_cuda());

        let model = || {
            let options = nn::LinearOptions { device: Device::cuda(0), ..Default::default() };
            nn::Linear::new(2, (3, options))
        };
        let options = DataParallelOptions { device_ids: Some(vec![0]), ..Default::default() };
        let spread = DataParallel::new((model()?, options))?;
        assert_eq!(spread.forward(&Tensor::ones(&[4, 2])?.to(gpu)?)?.sizes(), [4, 3]);
        todevice::distributed::spawn(1, |_| {
            todevice::distributed::init_process_group("nccl")?;
            let options = DistributedDataParallelOptions { broadcast_buffers: false, ..Default::default() };
            DistributedDataParallel::new((model()?, options)).map(drop)
        })?;
        Ok(())
    })
}

#[test]
fn functions_of_images_take_options_by_value_and_refuse_those_of_a_layer() -> Result<()> {
    let (x, w) = (Tensor::ones(&[1, 1, 4, 4])?, Tensor::ones(&[1, 1, 3, 3])?);
    let padded = Conv2dOptions { padding: 1.into(), ..Default::default() };
    assert_eq!(x.conv2d(&w, (None, padded))?.sizes(), [1, 1, 4, 4]);
    each_case(
        [
            (Conv2dOptions { bias: false, ..padded }, "bias"),
            (Conv2dOptions { dtype: DType::F64, ..padded }, "dtype"),
            (Conv2dOptions { device: Device::cuda(0), ..padded }, "device"),
        ],
        |(options, option)| {
            let error = x.conv2d(&w, (None, options)).unwrap_err();
            assert_eq!(error.kind(), "TypeError");
            assert_eq!(
                error.to_string(),
                format!(
                    "conv2d gets its weight and bias as arguments: the option `{option}` is for nn::Conv2d, which creates them"
                )
            );
        },
    );
    let weight = Some(Tensor::full(&[4], (2.0, DType::F32))?);
    let plain = x.layer_norm(&[4])?;
    let weighted = x.layer_norm((&[4], LayerNormArguments { weight, ..Default::default() }))?;
    assert!(weighted.equal(&(plain * 2.0)?)?);
    Ok(())
}

#[test]
#[allow(deprecated)]
fn older_names_do_the_same() -> Result<()> {
    let generator = Generator::new();
    let drawn = |run: &dyn Fn() -> Result<Tensor>| {
        generator.manual_seed(3);
        run()?.to_vec::<f32>()
    };
    let options = RandomOptions { generator: Some(&generator), ..Default::default() };
    assert_eq!(Tensor::zeros_with(&[2], DType::F64)?.dtype(), DType::F64);
    assert_eq!(Tensor::ones_with(&[2], DType::I64)?.to_vec::<i64>()?, [1, 1]);
    assert_eq!(
        drawn(&|| Tensor::rand_with(&[2], DType::F32, Some(&generator)))?,
        drawn(&|| Tensor::rand((&[2], options)))?
    );
    assert_eq!(
        drawn(&|| Tensor::randn_with(&[2], DType::F32, Some(&generator)))?,
        drawn(&|| Tensor::randn((&[2], options)))?
    );
    let padded = Conv2dOptions { padding: 1.into(), ..Default::default() };
    assert_eq!(
        nn::Conv2d::with_options(1, 2, 3, padded)?.to_string(),
        nn::Conv2d::new(1, 2, (3, padded))?.to_string()
    );
    on("sim:t4", || {
        todevice::distributed::spawn(1, |_| {
            todevice::distributed::init_process_group("gloo")?;
            let options = DistributedDataParallelOptions::default();
            DistributedDataParallel::with_options(nn::Linear::new(2, 3)?, options).map(drop)
        })
    })?;
    Ok(())
}

/// The right column of the table in `lib.rs`, to keep it correct.
#[test]
fn the_table_for_those_who_know_pytorch_is_right() -> Result<()> {
    use todevice::autograd::{self, BackwardOptions};
    let device = Device::cuda_if_available();
    let x = Tensor::zeros((&[2, 16], device))?;
    let model = nn::Linear::new(16, (64, nn::LinearOptions { bias: false, ..Default::default() }))?;
    nn::Conv2d::new(1, 8, (3, nn::Conv2dOptions { padding: 1.into(), ..Default::default() }))?;
    let y = Tensor::zeros(&[2, 64])?;
    let loss = nn::MSELoss::default().forward(&model.forward(&x)?, &y)?;
    autograd::backward(&loss, BackwardOptions { retain_graph: true, ..Default::default() })?;
    for batch in &DataLoader::new(TensorDataset::new([x.clone(), y])?, DataLoaderOptions::default())? {
        let [x, _y] = batch?;
        let x = x.to(device)?;
        no_grad(|| (&x + &x)? + 1.0)?;
        assert_eq!(x.flatten(1, -1)?.argmax(1, false)?.sizes(), [1]);
    }
    // The table contains each of these.
    let table = include_str!("../src/lib.rs");
    each_case(
        [
            "Tensor::zeros((&[2, 3], device))?",
            "x.flatten(1, -1)?",
            "x.argmax(1, false)?",
            "let [x, y] = batch?;",
        ],
        |form| {
            assert!(table.contains(form), "{form}");
        },
    );
    Ok(())
}

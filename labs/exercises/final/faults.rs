//! The faults: each is an edit of one function of the program. Nothing of it stands in a name or in a comment.

use super::kinds::Kind;
use crate::Edit;

/// A fault of a kind at a place, the function that it is in.
#[derive(Debug, PartialEq)]
pub struct Fault {
    pub kind: &'static str,
    pub place: &'static str,
    /// Its first symptom: see `judge.rs`.
    pub symptom: &'static str,
    pub edits: &'static [Edit],
}

impl Fault {
    pub fn kind(&self) -> &'static Kind {
        Kind::find(self.kind).expect("tested")
    }
}

/// Declares faults, sorted by the functions that they are in.
macro_rules! faults {
    ($($place:ident { $($kind:literal shows $symptom:literal: $(($from:literal, $to:literal)),+;)+ })+) => {
        pub static FAULTS: &[Fault] = &[$($(Fault {
            kind: $kind,
            place: stringify!($place),
            symptom: $symptom,
            edits: &[$(($from, $to)),+],
        },)+)+];
    };
}

faults! {
    network {
        "one-card" shows "error": ("model.to(device)?;", "model.to(Device::cuda_if_available())?;");
        "train-mode" shows "result": ("    Ok(model)", "    model.eval();\n    Ok(model)");
        "double" shows "error": ("model.to(device)?;", "model.to((device, DType::F64))?;");
    }
    loader {
        "last-rows" shows "result": ("        pin_memory: true,\n", "        pin_memory: true,\n        drop_last: true,\n");
        "blocking-copy" shows "result": ("    let options = DataLoaderOptions {\n        batch_size: numbers().batch,\n        shuffle: true,\n        pin_memory: true,\n        ..Default::default()\n    };\n", "    let options =\n        DataLoaderOptions { batch_size: numbers().batch, shuffle: true, ..Default::default() };\n");
    }
    normalize {
        "wrong-dim" shows "result": ("x.std(&[0], 1, true)", "x.std(&[1], 1, true)");
        "not-a-copy" shows "result": ("    (x - mean)? /", "    x.sub_(&mean)? /");
        "double" shows "double": ("    let mean =", "    let x = x.to(DType::F64)?;\n    let mean ="), ("(x - mean)? / (deviation + numbers().epsilon)?", "((x - mean)? / (deviation + numbers().epsilon)?)?.to(DType::F32)");
        "row-by-row" shows "launches": ("    let mean = x.mean_dims(&[0], true)?;\n", "    let columns = x.split(1, 1)?;\n    let means = columns.iter().map(|column| column.mean_dims(&[0], true));\n    let mean = Tensor::cat(&means.collect::<Result<Vec<_>>>()?, 1)?;\n");
        "on-the-host" shows "on-the-host": ("    let mean =", "    let device = x.device();\n    let x = x.cpu()?;\n    let mean ="), ("(x - mean)? / (deviation + numbers().epsilon)?", "((x - mean)? / (deviation + numbers().epsilon)?)?.to(device)");
    }
    augment {
        "left-behind" shows "error": ("Tensor::randn((x.sizes(), x.device()))?", "Tensor::randn(x.sizes())?");
        "one-card" shows "error": ("Tensor::randn((x.sizes(), x.device()))?", "Tensor::randn((x.sizes(), Device::cuda_if_available()))?");
        "not-a-copy" shows "result": ("    x + (noise * numbers().noise)?", "    x.add_(&(noise * numbers().noise)?)");
        "double" shows "double": ("Tensor::randn((x.sizes(), x.device()))?", "Tensor::randn((x.sizes(), (x.device(), DType::F64)))?"), ("x + (noise * numbers().noise)?", "(x + (noise * numbers().noise)?)?.to(DType::F32)");
        "made-on-host" shows "copies": ("Tensor::randn((x.sizes(), x.device()))?", "Tensor::randn(x.sizes())?.to(x.device())?");
        "on-the-host" shows "copies-back": ("Tensor::randn((x.sizes(), x.device()))?", "Tensor::randn(x.sizes())?"), ("    x + (noise * numbers().noise)?", "    (x.cpu()? + (noise * numbers().noise)?)?.to(x.device())");
    }
    train {
        "left-behind" shows "error": ("(x.to(to)?, y.to(to)?)", "(x.to(to)?, y)");
        "train-mode" shows "result": ("    model.train();\n", "");
        "no-zero-grad" shows "result": ("        optimizer.zero_grad();\n", "");
        "zeroed-late" shows "error": ("        optimizer.zero_grad();\n", ""), ("        scaler.unscale_(optimizer)?;\n", "        optimizer.zero_grad();\n        scaler.unscale_(optimizer)?;\n");
        "clipped-scaled" shows "result": ("        scaler.unscale_(optimizer)?;\n", "");
        "no-update" shows "error": ("        scaler.update()?;\n", "");
        "unscaled-loss" shows "result": ("        scaler.scale(&loss)?.backward()?;\n", "        loss.backward()?;\n");
        "softmax-twice" shows "result": ("model.forward(&x)?.cross_entropy(", "model.forward(&x)?.softmax(1)?.cross_entropy(");
        "mean-of-means" shows "result": ("        let rows = x.size(0)? as f64;\n", ""), ("(loss.detach() * rows)?", "loss.detach()"), ("loader.dataset().len()", "loader.len()");
        "graph-kept" shows "result": ("loss.detach() * rows", "&loss * rows");
        "batch-kept" shows "peak": ("    model.train();\n", "    let mut seen = Vec::new();\n    model.train();\n"), ("(loss.detach() * rows)?)?;\n", "(loss.detach() * rows)?)?;\n        seen.push(x);\n"), ("total / loader.dataset().len() as f64", "let rows = seen.iter().map(|x| x.sizes()[0]).sum::<usize>();\n    total / rows as f64");
        "item-each" shows "copies-back": ("Tensor::zeros((&[], device))?", "0.0"), ("total = (total + (loss.detach() * rows)?)?;", "total += loss.item()? * rows;"), ("    total / loader.dataset().len() as f64", "    Tensor::full(&[], (total / loader.dataset().len() as f64, device))");
        "synchronize" shows "waits": ("        scaler.update()?;\n", "        scaler.update()?;\n        cuda::current_stream(device)?.synchronize()?;\n");
        "empty-cache" shows "driver": ("        scaler.update()?;\n", "        scaler.update()?;\n        cuda::empty_cache()?;\n");
        "moved-each-time" shows "copies": ("    let weight = Some(weights.to(device)?);\n    let options = CrossEntropyOptions { weight, ..Default::default() };\n", ""), ("        optimizer.zero_grad();\n", "        let weight = Some(weights.to(device)?);\n        let options = CrossEntropyOptions { weight, ..Default::default() };\n        optimizer.zero_grad();\n");
        "blocking-copy" shows "blocking": ("non_blocking: true", "non_blocking: false");
        "full-precision" shows "precision": ("        let loss = amp::autocast(DeviceType::Cuda, || {\n            model.forward(&x)?.cross_entropy((&y, options.clone()))\n        })?;\n", "        let outputs = model.forward(&x)?;\n        let loss =\n            amp::autocast(DeviceType::Cuda, || outputs.cross_entropy((&y, options.clone())))?;\n");
    }
    accumulate {
        "left-behind" shows "error": ("(x.to(device)?, y.to(device)?)", "(x.to(device)?, y)");
        "train-mode" shows "result": ("    model.train();\n", "");
        "no-zero-grad" shows "result": ("    optimizer.zero_grad();\n", "");
        "zeroed-late" shows "result": ("    optimizer.zero_grad();\n", ""), ("        scaler.scale(&share)?.backward()?;\n", "        optimizer.zero_grad();\n        scaler.scale(&share)?.backward()?;\n");
        "clipped-scaled" shows "result": ("    scaler.unscale_(optimizer)?;\n    let clipping", "    let clipping");
        "no-update" shows "error": ("    scaler.update()?;\n", "");
        "unscaled-loss" shows "result": ("        scaler.scale(&share)?.backward()?;\n", "        share.backward()?;\n");
        "softmax-twice" shows "result": ("model.forward(&x)?.cross_entropy(", "model.forward(&x)?.softmax(1)?.cross_entropy(");
        "graph-kept" shows "result": ("losses.push(loss.detach())", "losses.push(loss)");
        "all-at-once" shows "peak": ("    for [x, y] in batches {\n        let (x, y) = (x.to(device)?, y.to(device)?);\n", "    let there = batches.iter().map(|[x, y]| Ok((x.to(device)?, y.to(device)?)));\n    for (x, y) in &there.collect::<Result<Vec<_>>>()? {\n"), ("model.forward(&x)?", "model.forward(x)?"), ("cross_entropy((&y,", "cross_entropy((y,");
        "batch-kept" shows "peak": ("    let mut losses = Vec::new();\n", "    let (mut inputs, mut losses) = (Vec::new(), Vec::new());\n"), ("        losses.push(loss.detach());\n", "        losses.push(loss.detach());\n        inputs.push((x, y));\n");
        "item-each" shows "copies-back": ("losses.push(loss.detach())", "losses.push(Tensor::full(&[], (loss.item()?, device))?)");
        "moved-each-time" shows "copies": ("    let weight = Some(weights.to(device)?);\n    let options = CrossEntropyOptions { weight, ..Default::default() };\n", ""), ("        let loss =", "        let weight = Some(weights.to(device)?);\n        let options = CrossEntropyOptions { weight, ..Default::default() };\n        let loss =");
        "full-precision" shows "precision": ("        let loss = amp::autocast(DeviceType::Cuda, || {\n            model.forward(&x)?.cross_entropy((&y, options.clone()))\n        })?;\n", "        let outputs = model.forward(&x)?;\n        let loss =\n            amp::autocast(DeviceType::Cuda, || outputs.cross_entropy((&y, options.clone())))?;\n");
    }
    fine_tune {
        "left-behind" shows "error": ("    let weight = Some(weights.to(device)?);\n", "    let weight = Some(weights.clone());\n");
        "eval-mode" shows "result": ("    body.eval();\n", "");
        "no-zero-grad" shows "result": ("        optimizer.zero_grad();\n", "");
        "zeroed-late" shows "error": ("        optimizer.zero_grad();\n        scaler.scale(&loss)?.backward()?;\n", "        scaler.scale(&loss)?.backward()?;\n        optimizer.zero_grad();\n");
        "clipped-scaled" shows "result": ("        scaler.unscale_(&optimizer)?;\n", "");
        "no-update" shows "error": ("        scaler.update()?;\n", "");
        "unscaled-loss" shows "error": ("        scaler.scale(&loss)?.backward()?;\n", "        loss.backward()?;\n");
        "softmax-twice" shows "result": ("head.forward(&features)?.cross_entropy(", "head.forward(&features)?.softmax(1)?.cross_entropy(");
        "last-rows" shows "result": ("    for (x, y) in x.split(96, 0)?.iter().zip(y.split(96, 0)?) {\n        let (x, y) = (x.to(device)?, y.to(device)?);\n", "    for batch in 0..x.size(0)? / 96 {\n        let [x, y] = [x, y].map(|all| all.narrow(0, 96 * batch, 96));\n        let (x, y) = (x?.to(device)?, y?.to(device)?);\n");
        "graph-kept" shows "result": ("losses.push(loss.detach())", "losses.push(loss)");
        "no-grad" shows "result": ("no_grad(|| body.forward(&x))?", "body.forward(&x)?");
        "all-at-once" shows "peak": ("    body.eval();\n", "    let (x, y) = (x.to(device)?, y.to(device)?);\n    body.eval();\n"), ("        let (x, y) = (x.to(device)?, y.to(device)?);\n", "");
        "synchronize" shows "waits": ("        scaler.update()?;\n", "        scaler.update()?;\n        cuda::current_stream(device)?.synchronize()?;\n");
        "empty-cache" shows "driver": ("        scaler.update()?;\n", "        scaler.update()?;\n        cuda::empty_cache()?;\n");
        "moved-each-time" shows "copies": ("    let weight = Some(weights.to(device)?);\n    let options = CrossEntropyOptions { weight, ..Default::default() };\n", ""), ("        let loss =", "        let weight = Some(weights.to(device)?);\n        let options = CrossEntropyOptions { weight, ..Default::default() };\n        let loss =");
        "copied-twice" shows "copies-back": ("let features = no_grad(|| body.forward(&x))?;", "let features = no_grad(|| body.forward(&x))?.cpu()?.to(device)?;");
        "full-precision" shows "precision": ("        let loss = amp::autocast(DeviceType::Cuda, || {\n            let features = no_grad(|| body.forward(&x))?;\n", "        let features = no_grad(|| body.forward(&x))?;\n        let loss = amp::autocast(DeviceType::Cuda, || {\n");
    }
    evaluate {
        "left-behind" shows "error": ("(x.to(to)?, y.to(to)?)", "(x.to(to)?, y)");
        "eval-mode" shows "result": ("    model.eval();\n", "");
        "softmax-twice" shows "result": ("outputs.cross_entropy(", "outputs.softmax(1)?.cross_entropy(");
        "wrong-dim" shows "result": ("outputs.argmax(1, false)?.eq(&y)?", "outputs.softmax(0)?.argmax(1, false)?.eq(&y)?");
        "mean-of-means" shows "result": ("    let options =\n        CrossEntropyOptions { reduction: Reduction::Sum, ..Default::default() };\n", "    let options = CrossEntropyOptions::default();\n"), ("hits.sum()?", "hits.mean()?"), ("    let rows = loader.dataset().len() as f64;\n    Ok([right.item()? / rows, total.item()? / rows])", "    let batches = loader.len() as f64;\n    Ok([right.item()? / batches, total.item()? / batches])");
        "no-grad" shows "peak": ("        let outputs =\n            no_grad(|| amp::autocast(DeviceType::Cuda, || model.forward(&x)))?;\n", "        let outputs = amp::autocast(DeviceType::Cuda, || model.forward(&x))?;\n");
        "outputs-kept" shows "peak": ("    let mut right = Tensor::zeros((&[], device))?;\n", "    let mut parts = Vec::new();\n    let mut right = Tensor::zeros((&[], device))?;\n"), ("        right = (right + hits.sum()?)?;\n        total = (total + outputs.cross_entropy((&y, options.clone()))?)?;\n", "        right = (right + hits.sum()?)?;\n        parts.push((x, outputs, y));\n"), ("    let rows = loader", "    for (_, outputs, y) in &parts {\n        total = (total + outputs.cross_entropy((y, options.clone()))?)?;\n    }\n    let rows = loader");
        "item-each" shows "copies-back": ("    let mut right = Tensor::zeros((&[], device))?;\n    let mut total = Tensor::zeros((&[], device))?;\n", "    let (mut right, mut total) = (0.0, 0.0);\n"), ("        right = (right + hits.sum()?)?;\n        total = (total + outputs.cross_entropy((&y, options.clone()))?)?;\n", "        right += hits.sum()?.item()?;\n        total += outputs.cross_entropy((&y, options.clone()))?.item()?;\n"), ("Ok([right.item()? / rows, total.item()? / rows])", "Ok([right / rows, total / rows])");
        "synchronize" shows "waits": ("        right = (right + hits.sum()?)?;\n", "        right = (right + hits.sum()?)?;\n        cuda::current_stream(device)?.synchronize()?;\n");
        "empty-cache" shows "driver": ("        right = (right + hits.sum()?)?;\n", "        cuda::empty_cache()?;\n        right = (right + hits.sum()?)?;\n");
        "made-on-host" shows "copies": ("        right = (right + hits.sum()?)?;\n", "        let ones = Tensor::ones(y.sizes())?.to(device)?;\n        right = (right + (hits * ones)?.sum()?)?;\n");
        "blocking-copy" shows "blocking": ("non_blocking: true", "non_blocking: false");
        "copied-twice" shows "copies-back": ("(outputs.to(DType::F32)? / numbers().temperature)?", "(outputs.to(DType::F32)?.cpu()?.to(device)? / numbers().temperature)?");
        "full-precision" shows "precision": ("        let outputs =\n            no_grad(|| amp::autocast(DeviceType::Cuda, || model.forward(&x)))?;\n", "        let outputs = no_grad(|| model.forward(&x))?;\n");
    }
    predict {
        "one-card" shows "error": ("x.to(device)?", "x.to(Device::cuda_if_available())?");
        "eval-mode" shows "result": ("    model.eval();\n", "");
        "wrong-dim" shows "result": (".softmax(1)?", ".softmax(0)?");
        "last-rows" shows "result": ("    for x in x.split(100, 0)? {\n        let x = x.to(device)?;\n", "    for batch in 0..x.size(0)? / 100 {\n        let x = x.narrow(0, 100 * batch, 100)?.to(device)?;\n");
        "no-grad" shows "peak": ("        let outputs =\n            no_grad(|| amp::autocast(DeviceType::Cuda, || model.forward(&x)))?;\n", "        let outputs = amp::autocast(DeviceType::Cuda, || model.forward(&x))?;\n");
        "outputs-kept" shows "peak": ("    let mut classes = Vec::new();\n", "    let (mut batches, mut classes) = (Vec::new(), Vec::new());\n"), (".cpu()?);\n", ".cpu()?);\n        batches.push((x, outputs));\n");
        "all-at-once" shows "peak": ("    for x in x.split(100, 0)? {\n        let x = x.to(device)?;\n", "    let x = x.to(device)?;\n    for x in x.split(100, 0)? {\n");
        "empty-cache" shows "driver": ("        let x = x.to(device)?;\n", "        let x = x.to(device)?;\n        cuda::empty_cache()?;\n");
        "on-the-host" shows "copies-back": ("            outputs.to(DType::F32)?.softmax(1)?", "            outputs.to(DType::F32)?.cpu()?.softmax(1)?");
        "full-precision" shows "precision": ("        let outputs =\n            no_grad(|| amp::autocast(DeviceType::Cuda, || model.forward(&x)))?;\n", "        let outputs = no_grad(|| model.forward(&x))?;\n");
    }
    center {
        "left-behind" shows "error": ("    let to =\n        ToOptions { device: Some(device), non_blocking: true, ..Default::default() };\n", ""), ("        let x = x.to(to)?;\n", "");
        "eval-mode" shows "result": ("    model.eval();\n", "");
        "mean-of-means" shows "result": ("sum_dims(&[0], false)?);\n", "mean_dims(&[0], false)?);\n"), ("loader.dataset().len()", "loader.len()");
        "no-grad" shows "result": ("        let outputs =\n            no_grad(|| amp::autocast(DeviceType::Cuda, || model.forward(&x)))?;\n", "        let outputs = amp::autocast(DeviceType::Cuda, || model.forward(&x))?;\n");
        "outputs-kept" shows "peak": ("sums.push(outputs.to(DType::F32)?.sum_dims(&[0], false)?);", "sums.push((outputs.to(DType::F32)?, x));"), ("    let sum = Tensor::stack(&sums, 0)?.sum_dims(&[0], false)?;\n", "    let sums = sums.iter().map(|(outputs, _)| outputs.sum_dims(&[0], false));\n    let sum =\n        Tensor::stack(&sums.collect::<Result<Vec<_>>>()?, 0)?.sum_dims(&[0], false)?;\n");
        "batch-kept" shows "peak": ("    let mut sums = Vec::new();\n", "    let (mut all, mut sums) = (Vec::new(), Vec::new());\n"), ("sum_dims(&[0], false)?);\n", "sum_dims(&[0], false)?);\n        all.push(x);\n");
        "item-each" shows "copies-back": ("sums.push(outputs.to(DType::F32)?.sum_dims(&[0], false)?);", "let sum = outputs.to(DType::F32)?.sum_dims(&[0], false)?;\n        sums.push(Tensor::new(sum.to_vec::<f32>()?)?.to(device)?);");
        "copied-twice" shows "copies-back": ("        let x = x.to(to)?;\n", "        let x = x.to(to)?.cpu()?.to(device)?;\n");
        "full-precision" shows "precision": ("        let outputs =\n            no_grad(|| amp::autocast(DeviceType::Cuda, || model.forward(&x)))?;\n", "        let outputs = no_grad(|| model.forward(&x))?;\n");
    }
    confusion {
        "wrong-dim" shows "result": ("((actual * 8)? + predicted)?", "((predicted * 8)? + actual)?");
        "double" shows "double": ("to(DType::F32)?;\n", "to(DType::F64)?;\n"), ("predicted.device()))?", "(predicted.device(), DType::F64)))?"), ("reshape(&[8, 8])", "reshape(&[8, 8])?.to(DType::F32)");
        "made-on-host" shows "copies": ("Tensor::zeros((&[64], predicted.device()))?", "Tensor::zeros(&[64])?.to(predicted.device())?");
        "row-by-row" shows "launches": ("    let counts = Tensor::zeros((&[64], predicted.device()))?;\n    counts.scatter_add(0, &pairs, &counted)?.reshape(&[8, 8])\n", "    let counts =\n        (0..64).map(|pair| (pairs.eq(pair)?.to(DType::F32)? * &counted)?.sum());\n    Tensor::stack(&counts.collect::<Result<Vec<_>>>()?, 0)?.reshape(&[8, 8])\n");
        "on-the-host" shows "on-the-host": ("    let counted =", "    let device = predicted.device();\n    let (predicted, actual) = (&predicted.cpu()?, actual.cpu()?);\n    let counted ="), ("reshape(&[8, 8])", "reshape(&[8, 8])?.to(device)");
    }
    recall {
        "wrong-dim" shows "result": ("counts.sum_dims(&[1], false)? + ", "counts.sum_dims(&[0], false)? + ");
        "double" shows "double": ("Tensor::eye((8, counts.device()))?", "Tensor::eye((8, (counts.device(), DType::F64)))?"), ("    right / (counts.sum_dims(&[1], false)? + numbers().prior)?", "    (right / (counts.sum_dims(&[1], false)? + numbers().prior)?)?.to(DType::F32)");
        "made-on-host" shows "copies": ("Tensor::eye((8, counts.device()))?", "Tensor::eye((8, Device::Cpu))?.to(counts.device())?");
        "row-by-row" shows "launches": ("    let diagonal = Tensor::eye((8, counts.device()))?;\n    let right = (counts * diagonal)?.sum_dims(&[1], false)?;\n", "    let cells = (0..8).map(|class| counts.select(0, class)?.select(0, class)? * 1.0);\n    let right = Tensor::stack(&cells.collect::<Result<Vec<_>>>()?, 0)?;\n");
        "on-the-host" shows "on-the-host": ("    let diagonal = Tensor::eye((8, counts.device()))?;\n", "    let device = counts.device();\n    let counts = counts.cpu()?;\n    let diagonal = Tensor::eye((8, counts.device()))?;\n"), ("(counts * diagonal)", "(&counts * diagonal)"), ("    right / (counts.sum_dims(&[1], false)? + numbers().prior)?", "    (right / (counts.sum_dims(&[1], false)? + numbers().prior)?)?.to(device)");
    }
    average {
        "not-a-copy" shows "result": ("return model.state_dict().copy()", "return Ok(model.state_dict())");
        "double" shows "double": ("mean.mul_(numbers().decay)?.add_(&(weight * (1.0 - numbers().decay))?)?;", "let rest = (weight.to(DType::F64)? * (1.0 - numbers().decay))?;\n            mean.mul_(numbers().decay)?.add_(&rest.to(DType::F32)?)?;");
        "synchronize" shows "waits": ("mean.mul_(numbers().decay)?", "cuda::current_stream(weight.device())?.synchronize()?;\n            mean.mul_(numbers().decay)?");
        "on-the-host" shows "on-the-host": ("mean.mul_(numbers().decay)?.add_(&(weight * (1.0 - numbers().decay))?)?;", "let rest = (weight.cpu()? * (1.0 - numbers().decay))?;\n            let sum = ((mean.cpu()? * numbers().decay)? + rest)?;\n            mean.copy_(&sum)?;");
    }
    keep_best {
        "not-a-copy" shows "result": ("model.state_dict().copy()?", "model.state_dict()");
        "half-a-state" shows "result": ("        *best = (score, model.state_dict().copy()?);\n", "        best.1 = model.state_dict().copy()?;\n");
    }
    checkpoint {
        "half-a-state" shows "result": ("        (\"optimizer\", optimizer.state_dict().into()),\n", "        (\"optimizer\", optimizer.state_dict().at(\"param_groups\")?.clone()),\n");
        "second-copy" shows "peak": ("Value::from(model.state_dict())", "Value::from(model.state_dict().copy()?)");
    }
    resume {
        "one-card" shows "result": ("    model.to(device)?;\n", "    model.to(Device::cuda_if_available())?;\n");
        "half-a-state" shows "result": ("    optimizer.load_state_dict(checkpoint.at(\"optimizer\")?.as_dict()?)?;\n", "    let saved = checkpoint.at(\"optimizer\")?.as_dict()?;\n    optimizer.load_state_dict(&Dict::from_iter([\n        (\"state\", Dict::new().into()),\n        (\"param_groups\", saved.at(\"param_groups\")?.clone()),\n    ]))?;\n");
        "map-location" shows "error": ("serialize::from_bytes(file, Device::Cpu)", "serialize::from_bytes(file, serialize::MapLocation::None)");
        "not-strict" shows "result": ("load_state_dict(&weights, true)", "load_state_dict(&weights, false)");
        "second-copy" shows "peak": ("serialize::from_bytes(file, Device::Cpu)", "serialize::from_bytes(file, device)");
    }
    restore {
        "one-card" shows "result": ("    model.to(device)?;\n", "    model.to(Device::cuda_if_available())?;\n");
        "map-location" shows "error": ("serialize::from_bytes(file, Device::Cpu)", "serialize::from_bytes(file, serialize::MapLocation::None)");
        "not-strict" shows "result": ("load_state_dict(&weights, true)", "load_state_dict(&weights, false)");
        "second-copy" shows "copies-back": ("serialize::from_bytes(file, Device::Cpu)", "serialize::from_bytes(file, device)");
    }
    statistics {
        "left-behind" shows "result": ("entries.at(\"deviation\")?.as_tensor()?.to(device)?", "entries.at(\"deviation\")?.as_tensor()?");
        "map-location" shows "error": ("serialize::from_bytes(file, Device::Cpu)", "serialize::from_bytes(file, serialize::MapLocation::None)");
        "not-strict" shows "result": ("    let deviation = entries.at(\"deviation\")?.as_tensor()?.to(device)?;\n", "    let deviation = match entries.get(\"deviation\") {\n        Some(deviation) => deviation.as_tensor()?.to(device)?,\n        None => mean.ones_like()?,\n    };\n");
    }
    upload {
        "last-rows" shows "result": ("for batch in batches {", "for batch in &batches[..batches.len() / 4 * 4] {");
        "all-at-once" shows "peak": ("    for batch in batches {\n        let x = cuda::stream(copies, || batch.to(to))?;\n        let sent = copies.record_event()?;\n", "    let there = batches.iter().map(|batch| cuda::stream(copies, || batch.to(to)));\n    let there = there.collect::<Result<Vec<_>>>()?;\n    let sent = copies.record_event()?;\n    for x in there {\n");
        "synchronize" shows "waits": ("        compute.wait_event(&sent)?;\n", "        compute.wait_event(&sent)?;\n        compute.synchronize()?;\n");
        "blocking-copy" shows "blocking": ("non_blocking: true", "non_blocking: false");
        "copied-twice" shows "copies-back": ("cuda::stream(copies, || batch.to(to))?", "cuda::stream(copies, || batch.to(to)?.cpu()?.to(device))?");
        "no-wait" shows "race": ("        let sent = copies.record_event()?;\n        compute.wait_event(&sent)?;\n", "");
        "no-record-stream" shows "race": ("        x.record_stream(&compute)?;\n", "");
        "wrong-way" shows "race": ("        let sent = copies.record_event()?;\n        compute.wait_event(&sent)?;\n", "        let sent = compute.record_event()?;\n        copies.wait_event(&sent)?;\n");
        "event-early" shows "race": ("        let x = cuda::stream(copies, || batch.to(to))?;\n        let sent = copies.record_event()?;\n", "        let sent = copies.record_event()?;\n        let x = cuda::stream(copies, || batch.to(to))?;\n");
    }
    download {
        "synchronize" shows "waits": ("        arrived.push(", "        compute.synchronize()?;\n        arrived.push(");
        "blocking-copy" shows "waits": ("    let to = ToOptions {\n        device: Some(Device::Cpu),\n        non_blocking: true,\n        ..Default::default()\n    };\n", "    let to = ToOptions { device: Some(Device::Cpu), ..Default::default() };\n");
        "outputs-kept" shows "peak": ("    let mut arrived = Vec::new();\n", "    let (mut sent, mut arrived) = (Vec::new(), Vec::new());\n"), ("|| scaled.to(to))?);\n", "|| scaled.to(to))?);\n        sent.push(scaled);\n");
        "no-wait" shows "race": ("        let ready = compute.record_event()?;\n        copies.wait_event(&ready)?;\n", "");
        "no-record-stream" shows "race": ("        scaled.record_stream(copies)?;\n", "");
        "wrong-way" shows "race": ("        let ready = compute.record_event()?;\n        copies.wait_event(&ready)?;\n", "        let ready = copies.record_event()?;\n        compute.wait_event(&ready)?;\n");
        "event-early" shows "race": ("        let scaled = (output * numbers().scale)?;\n        let ready = compute.record_event()?;\n", "        let ready = compute.record_event()?;\n        let scaled = (output * numbers().scale)?;\n");
    }
    blend {
        "double" shows "double": ("let x = x.tanh()?;", "let x = x.to(DType::F64)?.tanh()?.to(DType::F32)?;");
        "no-wait" shows "race": ("    let done = side.record_event()?;\n", ""), ("    compute.wait_event(&done)?;\n", "");
        "no-record-stream" shows "race": ("    a.record_stream(&compute)?;\n", "");
        "wrong-way" shows "race": ("    compute.wait_event(&done)?;\n", "    side.wait_event(&compute.record_event()?)?;\n"), ("    let done = side.record_event()?;\n", "");
        "event-early" shows "race": ("    let a = cuda::stream(side, || x.matmul(left)?.relu())?;\n    let done = side.record_event()?;\n", "    let done = side.record_event()?;\n    let a = cuda::stream(side, || x.matmul(left)?.relu())?;\n");
    }
}

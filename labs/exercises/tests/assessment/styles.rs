//! Other right ways to write the functions: nothing is found in them.

use super::variants::{Version, compiled, told};

const STYLES: &[(&str, &str, &[(&str, &str)])] = &[
    (
        "moved as it is made",
        "network",
        &[
            ("    let model =\n", "    let made =\n"),
            (
                "    model.to(device)?;\n    Ok(model)",
                "    made.to(device)?;\n    made.train();\n    Ok(made)",
            ),
        ],
    ),
    (
        "drop_last said",
        "loader",
        &[(
            "        pin_memory: true,\n",
            "        pin_memory: true,\n        drop_last: false,\n        num_workers: 2,\n",
        )],
    ),
    ("variance", "normalize", &[("x.std(&[0], 1, true)?", "x.var(&[0], 1, true)?.sqrt()?")]),
    (
        "sub and div",
        "normalize",
        &[(
            "    (x - mean)? / (deviation + numbers().epsilon)?",
            "    let centered = x.sub(&mean)?;\n    centered.div(&deviation.add(numbers().epsilon)?)",
        )],
    ),
    ("randn_like", "augment", &[("Tensor::randn((x.sizes(), x.device()))?", "x.randn_like()?")]),
    (
        "normal_",
        "augment",
        &[
            (
                "    let noise = Tensor::randn((x.sizes(), x.device()))?;\n",
                "    let noise = x.zeros_like()?.normal_(0.0, numbers().noise, None)?;\n",
            ),
            ("    x + (noise * numbers().noise)?", "    x.add(&noise)"),
        ],
    ),
    (
        "zeroed last",
        "train",
        &[
            ("        optimizer.zero_grad();\n", ""),
            ("        scaler.update()?;\n", "        scaler.update()?;\n        optimizer.zero_grad();\n"),
            ("    model.train();\n", "    model.train();\n    optimizer.zero_grad();\n"),
        ],
    ),
    (
        "zeroed before backward",
        "train",
        &[
            ("        optimizer.zero_grad();\n", ""),
            (
                "        scaler.scale(&loss)?.backward()?;\n",
                "        optimizer.zero_grad();\n        scaler.scale(&loss)?.backward()?;\n",
            ),
        ],
    ),
    (
        "zeroed by the model, after the copies",
        "train",
        &[("        optimizer.zero_grad();\n", "        model.zero_grad();\n")],
    ),
    (
        "zeroed first",
        "train",
        &[
            ("        optimizer.zero_grad();\n", ""),
            (
                "        let [x, y] = batch?;\n",
                "        optimizer.zero_grad();\n        let [x, y] = batch?;\n",
            ),
        ],
    ),
    (
        "zeroed last",
        "fine_tune",
        &[
            ("        optimizer.zero_grad();\n", ""),
            ("        losses.push(", "        optimizer.zero_grad();\n        losses.push("),
            ("    body.eval();\n", "    body.eval();\n    optimizer.zero_grad();\n"),
        ],
    ),
    (
        "zeroed first",
        "fine_tune",
        &[
            ("        optimizer.zero_grad();\n", ""),
            ("        let loss =", "        optimizer.zero_grad();\n        let loss ="),
        ],
    ),
    (
        "in place",
        "train",
        &[("total = (total + (loss.detach() * rows)?)?;", "total.add_(&(loss.detach() * rows)?)?;")],
    ),
    (
        "a list of losses",
        "train",
        &[
            ("    let mut total = Tensor::zeros((&[], device))?;\n", "    let mut losses = Vec::new();\n"),
            (
                "        total = (total + (loss.detach() * rows)?)?;\n",
                "        losses.push((loss.detach() * rows)?);\n",
            ),
            ("    total / loader", "    Tensor::stack(&losses, 0)?.sum()? / loader"),
        ],
    ),
    (
        "outputs outside",
        "train",
        &[(
            "            model.forward(&x)?.cross_entropy((&y, options.clone()))\n",
            "            let outputs = model.forward(&x)?;\n            outputs.cross_entropy((&y, options.clone()))\n",
        )],
    ),
    (
        "running sum",
        "accumulate",
        &[
            ("    let mut losses = Vec::new();\n", "    let mut total = Tensor::zeros((&[], device))?;\n"),
            ("        losses.push(loss.detach());\n", "        total = (total + share.detach())?;\n"),
            ("    Tensor::stack(&losses, 0)?.mean()", "    Ok(total)"),
        ],
    ),
    (
        "zeroed last",
        "accumulate",
        &[
            ("    scaler.update()?;\n", "    scaler.update()?;\n    optimizer.zero_grad();\n"),
            ("    optimizer.zero_grad();\n    for [x, y]", "    model.zero_grad();\n    for [x, y]"),
        ],
    ),
    (
        "non_blocking",
        "accumulate",
        &[(
            "(x.to(device)?, y.to(device)?)",
            "(x.pin_memory()?.to(ToOptions { device: Some(device), non_blocking: true, ..Default::default() })?, y.to(device)?)",
        )],
    ),
    (
        "two scopes",
        "fine_tune",
        &[(
            "        let loss = amp::autocast(DeviceType::Cuda, || {\n            let features = no_grad(|| body.forward(&x))?;\n",
            "        let features = no_grad(|| amp::autocast(DeviceType::Cuda, || body.forward(&x)))?;\n        let loss = amp::autocast(DeviceType::Cuda, || {\n",
        )],
    ),
    (
        "detached",
        "fine_tune",
        &[(
            "no_grad(|| body.forward(&x))?;",
            "inference_mode(|| body.forward(&x)).or_else(|_| no_grad(|| body.forward(&x)))?.copy()?;",
        )],
    ),
    (
        "all in no_grad",
        "evaluate",
        &[
            (
                "    for batch in loader {\n        let [x, y] = batch?;\n",
                "    no_grad(|| -> Result<()> {\n    for batch in loader {\n        let [x, y] = batch?;\n",
            ),
            (
                "            no_grad(|| amp::autocast(DeviceType::Cuda, || model.forward(&x)))?;\n",
                "            amp::autocast(DeviceType::Cuda, || model.forward(&x))?;\n",
            ),
            ("        right = (right + hits.sum()?)?;\n", "        right = (&right + hits.sum()?)?;\n"),
            (
                "        total = (total + outputs.cross_entropy((&y, options.clone()))?)?;\n    }\n",
                "        total = (&total + outputs.cross_entropy((&y, options.clone()))?)?;\n    }\n    Ok(())\n    })?;\n",
            ),
        ],
    ),
    (
        "one copy back",
        "evaluate",
        &[(
            "    Ok([right.item()? / rows, total.item()? / rows])",
            "    let both = Tensor::stack(&[right, total], 0)?.to_vec::<f32>()?;\n    Ok([f64::from(both[0]) / rows, f64::from(both[1]) / rows])",
        )],
    ),
    (
        "mean times rows",
        "evaluate",
        &[
            (
                "    let options =\n        CrossEntropyOptions { reduction: Reduction::Sum, ..Default::default() };\n",
                "    let options = CrossEntropyOptions::default();\n",
            ),
            (
                "(total + outputs.cross_entropy((&y, options.clone()))?)?;",
                "(total + (outputs.cross_entropy((&y, options.clone()))? * y.size(0)? as f64)?)?;",
            ),
        ],
    ),
    (
        "classes kept on the GPU",
        "predict",
        &[(".cpu()?);\n", ");\n"), ("    Tensor::cat(&classes, 0)", "    Tensor::cat(&classes, 0)?.cpu()")],
    ),
    (
        "where_cond",
        "predict",
        &[(
            "class.masked_fill(&probability.lt(numbers().least)?, -1)?",
            "probability.ge(numbers().least)?.where_cond(&class, &class.full_like(-1)?)?",
        )],
    ),
    (
        "rows by number",
        "predict",
        &[(
            "    for x in x.split(100, 0)? {\n        let x = x.to(device)?;\n",
            "    let rows = x.size(0)?;\n    for start in (0..rows).step_by(100) {\n        let x = x.narrow(0, start, 100.min(rows - start))?.to(device)?;\n",
        )],
    ),
    (
        "running sum",
        "center",
        &[
            ("    let mut sums = Vec::new();\n", "    let mut sum = Tensor::zeros((&[8], device))?;\n"),
            (
                "        sums.push(outputs.to(DType::F32)?.sum_dims(&[0], false)?);\n",
                "        sum = (sum + outputs.to(DType::F32)?.sum_dims(&[0], false)?)?;\n",
            ),
            ("    let sum = Tensor::stack(&sums, 0)?.sum_dims(&[0], false)?;\n", ""),
        ],
    ),
    ("inference_mode", "center", &[("no_grad(||", "inference_mode(||")]),
    (
        "one-hot product",
        "confusion",
        &[(
            "    let pairs = ((actual * 8)? + predicted)?;\n    let counts = Tensor::zeros((&[64], predicted.device()))?;\n    counts.scatter_add(0, &pairs, &counted)?.reshape(&[8, 8])",
            "    let classes = Tensor::linspace(0.0, 7.0, (8, (predicted.device(), DType::I64)))?;\n    let hot = |labels: &Tensor| labels.unsqueeze(1)?.eq(&classes)?.to(DType::F32);\n    (hot(actual)? * counted.unsqueeze(1)?)?.t()?.matmul(&hot(predicted)?)",
        )],
    ),
    (
        "index_add",
        "confusion",
        &[("counts.scatter_add(0, &pairs, &counted)?", "counts.index_add(0, &pairs, &counted)?")],
    ),
    (
        "the diagonal as a view",
        "recall",
        &[
            ("    let diagonal = Tensor::eye((8, counts.device()))?;\n", ""),
            ("(counts * diagonal)?.sum_dims(&[1], false)?", "counts.reshape(&[64])?.slice(0, 0, 64, 9)?"),
        ],
    ),
    (
        "a new state",
        "average",
        &[(
            "    for (name, weight) in model.state_dict().iter() {\n        if let Some(mean) = mean.get(name) {\n            mean.mul_(numbers().decay)?.add_(&(weight * (1.0 - numbers().decay))?)?;\n        }\n    }\n    Ok(mean)",
            "    let state = model.state_dict();\n    let next = state.iter().map(|(name, weight)| {\n        let mean = mean.get(name).unwrap_or(weight);\n        let sum = ((mean * numbers().decay)? + (weight * (1.0 - numbers().decay))?)?;\n        Ok((name.to_owned(), sum))\n    });\n    no_grad(|| next.collect())",
        )],
    ),
    (
        "two lines",
        "keep_best",
        &[(
            "        *best = (score, model.state_dict().copy()?);\n",
            "        best.0 = score;\n        best.1 = model.state_dict().copy()?;\n",
        )],
    ),
    (
        "an empty dict first",
        "checkpoint",
        &[(
            "    serialize::to_bytes(Dict::from_iter([\n        (\"model\", Value::from(model.state_dict())),\n        (\"optimizer\", optimizer.state_dict().into()),\n        (numbers().epoch, epoch.into()),\n    ]))",
            "    let mut all = Dict::new();\n    all.insert(\"model\", model.state_dict());\n    all.insert(\"optimizer\", optimizer.state_dict());\n    all.insert(numbers().epoch, epoch);\n    serialize::to_bytes(all)",
        )],
    ),
    (
        "moved first",
        "resume",
        &[
            ("    model.to(device)?;\n", ""),
            ("    let weights =", "    model.to(device)?;\n    let weights ="),
        ],
    ),
    (
        "a map to the CPU",
        "restore",
        &[(
            "serialize::from_bytes(file, Device::Cpu)?",
            "serialize::from_bytes(file, serialize::MapLocation::function(|_| Some(Device::Cpu)))?",
        )],
    ),
    (
        "moved first",
        "restore",
        &[
            ("    model.to(device)?;\n", ""),
            ("    let weights =", "    model.to(device)?;\n    let weights ="),
        ],
    ),
    (
        "clamped on the host",
        "statistics",
        &[
            ("as_tensor()?.to(device)?;\n    Ok", "as_tensor()?.clone();\n    Ok"),
            (
                "deviation.clamp(numbers().floor, None)?",
                "deviation.clamp(numbers().floor, None)?.to(device)?",
            ),
        ],
    ),
    (
        "wait_stream",
        "upload",
        &[(
            "        let sent = copies.record_event()?;\n        compute.wait_event(&sent)?;\n",
            "        compute.wait_stream(copies)?;\n",
        )],
    ),
    (
        "one ahead",
        "upload",
        &[(
            "    for batch in batches {\n        let x = cuda::stream(copies, || batch.to(to))?;\n        let sent = copies.record_event()?;\n        compute.wait_event(&sent)?;\n        x.record_stream(&compute)?;\n        work((x * numbers().gain)?)?;\n    }\n",
            "    let send = |batch: &Tensor| Ok::<_, Error>((cuda::stream(copies, || batch.to(to))?, copies.record_event()?));\n    let mut rest = batches.iter();\n    let mut next = rest.next().map(send).transpose()?;\n    while let Some((x, sent)) = next {\n        compute.wait_event(&sent)?;\n        x.record_stream(&compute)?;\n        next = rest.next().map(send).transpose()?;\n        work((x * numbers().gain)?)?;\n    }\n",
        )],
    ),
    (
        "wait_stream",
        "download",
        &[(
            "        let ready = compute.record_event()?;\n        copies.wait_event(&ready)?;\n",
            "        copies.wait_stream(&compute)?;\n",
        )],
    ),
    (
        "an event at the end",
        "download",
        &[("    copies.synchronize()?;\n", "    copies.record_event()?.synchronize()?;\n")],
    ),
    (
        "wait_stream",
        "blend",
        &[
            (
                "    let ready = compute.record_event()?;\n    side.wait_event(&ready)?;\n",
                "    side.wait_stream(&compute)?;\n",
            ),
            ("    compute.wait_event(&done)?;\n", "    compute.wait_stream(side)?;\n"),
            ("    let done = side.record_event()?;\n", ""),
        ],
    ),
    (
        "recorded late",
        "blend",
        &[
            ("    x.record_stream(side)?;\n", ""),
            (
                "    a.record_stream(&compute)?;\n",
                "    a.record_stream(&compute)?;\n    x.record_stream(side)?;\n",
            ),
        ],
    ),
];

#[test]
fn nothing_is_found_in_other_right_ways_to_write_a_function() {
    let versions: Vec<Version> = STYLES
        .iter()
        .map(|(name, place, edits)| Version { name: format!("{place}: {name}"), place, edits })
        .collect();
    let program = compiled("assessment styles", &versions);
    let mut wrong = String::new();
    for seed in [3, 4] {
        let asked: Vec<_> = versions.iter().map(|version| (version.name.clone(), seed)).collect();
        for (version, told) in versions.iter().zip(told(&program, &asked)) {
            if let Some(symptom) = told.symptom {
                wrong += &format!("seed {seed}, {}: {symptom}, {}\n", version.name, told.seen);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

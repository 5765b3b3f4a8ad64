//! Files with a mistake that Python teaches.

/// The kind of the mistake; an exercise, and what stands in its solution and in the wrong file; the line of the mistake, and the
/// lines that belong there.
pub type Case = (&'static str, &'static str, &'static str, &'static str, u32, &'static [&'static str]);

#[rustfmt::skip]
pub const CASES: &[Case] = &[
    // question-mark
    ("question-mark", "01-one-by-one", "x.to(device)?", "x.to(device)", 8, &["let x = x.to(device)?;"]),
    ("question-mark", "03-loop", "(x.to(device)?, y.to(device)?)", "(x.to(device), y.to(device))", 20, &["let (x, y) = (x.to(device)?, y.to(device)?);"]),
    ("question-mark", "02-batch", "losses.push(loss.item()?)", "losses.push(loss.item())", 22, &["losses.push(loss.item()?);"]),
    ("question-mark", "03-item", "total = (&total + &loss.detach())?", "total = &total + &loss.detach()", 22, &["total = (&total + &loss.detach())?;"]),
    ("question-mark", "04-graph", "?.mean()?);", "?.mean());", 28, &["curve.push(Tensor::stack(&losses, 0)?.mean()?);"]),
    ("question-mark", "03-loop", "for batch in loader {\n            let [x, y] = batch?;", "for (x, y) in loader {", 18, &["for item in loader {", "let [x, y] = item?;"]),
    // no-question-mark
    ("no-question-mark", "02-batch", "optimizer.zero_grad();", "optimizer.zero_grad()?;", 19, &["optimizer.zero_grad();"]),
    ("no-question-mark", "03-item", "&loss.detach()", "&loss.detach()?", 22, &["total = (&total + &loss.detach())?;"]),
    ("no-question-mark", "11-strict", "tensor.clone()", "tensor.clone()?", 12, &["state.insert(name, tensor.clone());"]),
    ("no-question-mark", "04-no-grad", "model.eval();", "model.eval()?;", 9, &["model.eval();"]),
    // ok
    ("ok", "02-batch", "Ok(losses)", "return losses;", 24, &["return Ok(losses);"]),
    ("ok", "11-map", "    Ok(())\n", "", 12, &["Ok(())"]),
    ("ok", "04-no-grad", "Ok(sum / held_out.len() as f64)", "sum / held_out.len() as f64;", 16, &["Ok(sum / held_out.len() as f64)"]),
    ("ok", "04-graph", "|mean| mean.item()", "|mean| mean.item()?", 30, &["curve.iter().map(|mean| mean.item()).collect()"]),
    ("ok", "10-everyone", "Ok(Some(mean))", "Some(mean)", 10, &["if rank == 0 { Ok(Some(mean)) } else { Ok(None) }"]),
    ("ok", "02-batch", "    Ok(losses)\n", "", 24, &[]),
    ("ok", "03-item", "    Ok(means)\n", "", 26, &[]),
    // moved
    ("moved", "03-loop", "losses.push(loss.detach());", "losses.push(loss);\n            println!(\"{loss}\");", 25, &["losses.push(loss.clone());"]),
    ("moved", "01-one-by-one", "(&x * &x)?", "(x * x)?", 9, &["let lengths = (&x * &x)?.sum_dims(&[1], false)?.sqrt()?;"]),
    ("moved", "02-batch", "Ok(losses)", "let all = losses;\n    println!(\"{losses:?}\");\n    Ok(all)", 24, &["let all = losses.clone();"]),
    ("moved", "10-epochs", "batches.push(x);", "batches.push(x);\n            println!(\"{x}\");", 25, &["batches.push(x.clone());"]),
    // borrow
    ("borrow", "02-batch", "model.forward(&x)?", "model.forward(x)?", 18, &["let loss = loss_fn.forward(&model.forward(&x)?, &y)?;"]),
    ("borrow", "01-one-by-one", "&vectors.concat(), &sizes", "vectors.concat(), sizes", 7, &["let x = Tensor::from_slice(&vectors.concat(), &sizes)?;"]),
    ("borrow", "10-epochs", "for batch in &loader", "for batch in loader", 23, &["for batch in &loader {"]),
    ("borrow", "11-map", "try_from(&loaded)", "try_from(loaded)", 9, &["let state = StateDict::try_from(&loaded)?;"]),
    ("borrow", "07-same", "x.add(&noise)?", "x.add(noise)?", 29, &["let loss = loss_fn.forward(&net.forward(&x.add(&noise)?)?, y)?;"]),
    // borrow-mut
    ("borrow-mut", "06-scaler", "scaler.step(&mut optimizer)", "scaler.step(&optimizer)", 26, &["scaler.step(&mut optimizer)?;"]),
    ("borrow-mut", "07-shapes", "thumbnails, &mut scores)", "thumbnails, scores)", 14, &["cudnn::flags(search, || add_scores(conv, thumbnails, &mut scores))?;"]),
    ("borrow-mut", "07-shapes", "scores: &mut Vec<Tensor>", "scores: &Vec<Tensor>", 22, &["scores: &mut Vec<Tensor>,"]),
    ("borrow-mut", "09-prefetch", "step: &mut dyn FnMut", "step: &dyn FnMut", 10, &["step: &mut dyn FnMut(&Tensor) -> Result<f64>,"]),
    // mut
    ("mut", "02-batch", "let mut losses", "let losses", 14, &["let mut losses = Vec::new();"]),
    ("mut", "04-no-grad", "let mut sum", "let sum", 10, &["let mut sum = 0.0;"]),
    ("mut", "06-scaler", "let mut scaler", "let scaler", 16, &["let mut scaler = GradScaler::new(scaling)?;"]),
    ("mut", "05-fits", "let (mut room, _)", "let (room, _)", 8, &["let (mut room, _) = cuda::mem_get_info_device(index)?;"]),
    // let
    ("let", "02-batch", "let x = x.to(device)?", "x = x.to(device)?", 16, &["let x = x.to(device)?;"]),
    ("let", "03-loop", "let mut means = Vec::new()", "means = []", 15, &["let mut means = Vec::new();"]),
    ("let", "04-no-grad", "let mut sum = 0.0", "sum = 0.0", 10, &["let mut sum = 0.0;"]),
    ("let", "10-share", "let rows =", "rows =", 8, &["let rows = batch.sizes()[0] / ranks;"]),
    // number
    ("number", "02-batch", "lr: 0.1", "lr: 1", 11, &["let options = SGDOptions { lr: 1.0, ..Default::default() };"]),
    ("number", "03-item", "/ batches.len() as f64", "/ batches.len()", 24, &["means.push(total.item()? / batches.len() as f64);"]),
    ("number", "04-accumulate", "let mut mean = 0.0", "let mut mean = 0", 16, &["let mut mean = 0.0;"]),
    ("number", "01-portable", "n as f64, 1.0", "n, 1.0", 12, &["let x = Tensor::arange(0.0, n as f64, 1.0, device)?;"]),
    ("number", "10-share", "batch.narrow(0", "batch.narrow(0.0", 9, &["let own = batch.narrow(0, rank * rows, rows)?;"]),
    // semicolon
    ("semicolon", "02-batch", "let x = x.to(device)?;", "let x = x.to(device)?", 16, &["let x = x.to(device)?;"]),
    ("semicolon", "03-item", "optimizer.step()?;", "optimizer.step()?", 21, &["optimizer.step()?;"]),
    ("semicolon", "08-clock", "use todevice::cuda;", "use todevice::cuda", 1, &["use todevice::cuda;"]),
    ("semicolon", "11-strict", "StateDict::default();", "StateDict::default()", 9, &["let mut state = StateDict::default();"]),
    // import
    ("import", "01-one-by-one", "use todevice::prelude::*;\n\n", "", 3, &["use todevice::prelude::*;"]),
    ("import", "08-clock", "use todevice::time::Instant;\n", "", 12, &["use todevice::time::Instant;"]),
    ("import", "09-pinned", "use todevice::cuda::{Event, EventOptions};\n", "", 16, &["use todevice::cuda::Event;", "use todevice::cuda::EventOptions;"]),
    ("import", "02-batch", "model.to(device)?", "cuda::synchronize()?; model.to(device)?", 9, &["use todevice::cuda;"]),
    // path
    ("path", "02-batch", "nn::CrossEntropyLoss::default()", "nn.CrossEntropyLoss()", 10, &["let loss_fn = nn::CrossEntropyLoss::default();"]),
    ("path", "01-portable", "Tensor::arange", "torch.arange", 12, &["let x = Tensor::arange(0.0, n as f64, 1.0, device)?;"]),
    ("path", "05-reading", "cuda::memory_reserved();\n    let in", "torch.cuda.memory_reserved();\n    let in", 11, &["let reserved = todevice::cuda::memory_reserved();"]),
    ("path", "02-mask", "query: nn::Linear", "query: nn.Linear", 5, &["query: nn::Linear,"]),
    ("path", "06-autocast", "DType::BF16", "torch.bfloat16", 10, &["let short = AutocastOptions { dtype: Some(DType::BF16), ..device.into() };"]),
    // call
    ("call", "02-batch", "loss_fn.forward(&model.forward(&x)?, &y)?", "loss_fn(model(x), y)", 18, &["let loss = loss_fn.forward(&model.forward(&x)?, &y)?;"]),
    ("call", "02-mask", "nn::Linear::new(width, width)?", "nn::Linear(width, width)", 10, &["let query = nn::Linear::new(width, width)?;"]),
    ("call", "07-shapes", "conv.forward(x)?", "conv(x)?", 25, &["scores.push(no_grad(|| conv.forward(x)?.relu()?.mean())?);"]),
    ("call", "02-mask", "self.query.forward(x)", "self.query(x)", 20, &["let scores = self.query.forward(x)?.bmm(&x.transpose(1, 2)?)?;"]),
    // keyword
    ("keyword", "02-batch", "model.parameters(), options)", "model.parameters(), lr=0.1)", 12, &["let mut optimizer = optim::SGD::new(model.parameters(), SGDOptions { lr: 0.1, ..Default::default() })?;"]),
    ("keyword", "02-mask", "softmax(-1)", "softmax(dim=-1)", 21, &["self.hide_later(&scores)?.softmax(-1)?.bmm(x)"]),
    ("keyword", "08-stream", "chunk.to(to)", "chunk.to(device, non_blocking=True)", 18, &["let x = cuda::stream(copies, || chunk.to(todevice::ToOptions { device: Some(device), non_blocking: true, ..Default::default() }))?;"]),
    ("keyword", "03-loop", "AdamOptions { lr: 1e-2, ..Default::default() }", "AdamOptions(lr=1e-2)", 10, &["let options = AdamOptions { lr: 1e-2, ..Default::default() };"]),
    ("keyword", "03-optimizer", "momentum: 0.5, ..Default::default()", "momentum: 0.5", 17, &["let options = SGDOptions { lr: 0.2, momentum: 0.5, ..Default::default() };"]),
    // parentheses
    ("parentheses", "10-share", "batch.sizes()[0]", "batch.shape[0]", 8, &["let rows = batch.shape()[0] / ranks;"]),
    ("parentheses", "03-item", "total.item()?", "total.item", 24, &["means.push(total.item()? / batches.len() as f64);"]),
    ("parentheses", "03-optimizer", "parameter.requires_grad_(false)?", "parameter.requires_grad = false", 14, &["parameter.requires_grad_(false)?;"]),
    ("parentheses", "02-mask", "x.transpose(1, 2)?", "x.T", 20, &["let scores = self.query.forward(x)?.bmm(&x.t()?)?;"]),
    // word
    ("word", "02-batch", "losses.push(loss.item()?);", "print(\"loss\", loss.item()?);", 22, &["println!(\"loss {}\", loss.item()?);"]),
    ("word", "03-item", "0..epochs", "range(epochs)", 15, &["for _epoch in 0..epochs {"]),
    ("word", "04-no-grad", "held_out.len()", "len(held_out)", 16, &["Ok(sum / held_out.len() as f64)"]),
    ("word", "03-loop", "means.push(", "means.append(", 27, &["means.push(Tensor::stack(&losses, 0)?.mean()?.item()?);"]),
    ("word", "07-same", "benchmark: false", "benchmark: False", 12, &["Flags { benchmark: false, deterministic: true, ..cudnn::current() };"]),
    ("word", "02-batch", "use todevice::prelude::*;", "import torch", 1, &["use todevice::prelude::*;"]),
    // block
    ("block", "02-batch", "for (x, y) in batches {", "for x, y in batches:", 15, &["for (x, y) in batches {"]),
    ("block", "10-everyone", "if rank == 0 { Ok(Some(mean)) } else { Ok(None) }", "if rank == 0:\n        Ok(Some(mean))\n    else:\n        Ok(None)", 10, &["if rank == 0 {", "} else {", "}"]),
    ("block", "08-stream", "fn score(x: &Tensor, weight: &Tensor) -> Result<Tensor> {", "def score(x, weight):", 26, &["fn score(x: &Tensor, weight: &Tensor) -> Result<Tensor> {"]),
    ("block", "10-everyone", "} else { Ok(None) }", "} elif rank == 1 { Ok(None) } else { Ok(None) }", 10, &["if rank == 0 { Ok(Some(mean)) } else if rank == 1 { Ok(None) } else { Ok(None) }"]),
    ("block", "10-everyone", "if rank == 0 { Ok(Some(mean)) } else { Ok(None) }", "Ok(Some(mean)) if rank == 0 else Ok(None)", 10, &["if rank == 0 { Ok(Some(mean)) } else { Ok(None) }"]),
    // logic
    ("logic", "05-fits", "block.state == BlockState::Inactive && block.size", "block.state == BlockState::Inactive and block.size", 14, &["if block.state == BlockState::Inactive && block.size >= bytes {"]),
    ("logic", "05-fits", "if segment.device != index", "if not segment.device == index", 10, &["if !(segment.device == index) {"]),
    ("logic", "10-everyone", "if rank == 0", "if rank is 0", 10, &["if rank == 0 { Ok(Some(mean)) } else { Ok(None) }"]),
    ("logic", "05-fits", "block.state == BlockState::Inactive && block.size", "not block.state != BlockState::Inactive and block.size", 14, &["if !(block.state != BlockState::Inactive) && block.size >= bytes {"]),
    // tuple
    ("tuple", "03-loop", "let (x, y) = (x.to(device)?, y.to(device)?);", "x, y = x.to(device)?, y.to(device)?;", 20, &["let (x, y) = (x.to(device)?, y.to(device)?);"]),
    ("tuple", "02-batch", "for (x, y) in batches {", "for x, y in batches {", 15, &["for (x, y) in batches {"]),
    ("tuple", "03-loop", "let [x, y] = batch?;", "let (x, y) = batch?;", 19, &["let [x, y] = batch?;"]),
    ("tuple", "10-share", "let (rank, ranks) =", "let rank, ranks =", 7, &["let (rank, ranks) = (dist::get_rank()?, dist::get_world_size()?);"]),
    // comment
    ("comment", "02-batch", "    let mut losses", "    # Don't keep the graphs.\n    let mut losses", 14, &["// Don't keep the graphs."]),
    ("comment", "02-batch", "model.to(device)?;", "model.to(device)?;  # once", 9, &["model.to(device)?;  // once"]),
    ("comment", "01-one-by-one", "use todevice::prelude::*;", "# Lengths.\nuse todevice::prelude::*;", 1, &["// Lengths."]),
    ("comment", "02-batch", "    Ok(losses)", "    \"\"\"The losses.\"\"\"\n    Ok(losses)", 24, &["// The losses."]),
    // text
    ("text", "02-batch", "Ok(losses)", "println!('done');\n    Ok(losses)", 24, &["println!(\"done\");"]),
    ("text", "04-no-grad", "sum += loss.item()?;", "sum += loss.item()?;\n        print(f\"{sum}\");", 14, &["println!(\"{sum}\");"]),
    ("text", "02-batch", "Ok(losses)", "println!(losses);\n    Ok(losses)", 24, &["println!(\"{:?}\", losses);"]),
    ("text", "02-batch", "Ok(losses)", "println!(\"{losses}\");\n    Ok(losses)", 24, &["println!(\"{losses:?}\");"]),
    // operator
    ("operator", "03-item", "total = (&total + &loss.detach())?;", "total += loss.detach();", 22, &["total = (&total + &loss.detach())?;"]),
    ("operator", "01-one-by-one", "(&x * &x)?", "(x ** 2)", 9, &["let lengths = x.pow(2.0)?.sum_dims(&[1], false)?.sqrt()?;"]),
    ("operator", "10-share", "batch.narrow(0, rank * rows, rows)?", "batch[rank * rows:(rank + 1) * rows]", 9, &["let own = batch.narrow(0, rank * rows, (rank + 1) * rows - rank * rows)?;"]),
    ("operator", "09-pinned", "x.matmul(weight)?", "(x @ weight)", 25, &["scores.push(x.matmul(&weight)?.relu()?.mean()?);"]),
    ("operator", "04-no-grad", "sum += loss.item()?;", "sum += loss;", 13, &["sum += loss.item()?;"]),
    ("operator", "03-loop", "losses.push(loss.detach());", "losses += loss.detach();", 25, &["losses.push(loss.detach());"]),
    ("operator", "03-loop", "losses.push(loss.detach());", "losses += [loss.detach()];", 25, &["losses.push(loss.detach());"]),
    ("operator", "03-loop", "losses.push(loss.detach());", "losses += [loss.detach(), loss.detach()];", 25, &["losses.extend([loss.detach(), loss.detach()]);"]),
    ("operator", "02-batch", "losses.push(loss.item()?);", "losses += loss.item()?;", 22, &["losses.push(loss.item()?);"]),
    ("operator", "02-batch", "    Ok(losses)", "    let more = vec![1.0];\n    losses += more;\n    Ok(losses)", 25, &["losses.extend(more);"]),
    ("operator", "02-batch", "let mut losses = Vec::new();", "let mut losses = Vec::new();\n    let n = 2 ** 3;\n    println!(\"{n}\");", 15, &[]),
    ("operator", "02-batch", "let mut losses = Vec::new();", "let mut losses = Vec::new();\n    println!(\"{}\", 2 ** 3 as f64);", 15, &["println!(\"{}\", 2_i32.pow(3) as f64);"]),
    ("operator", "02-batch", "let mut losses = Vec::new();", "let mut losses = Vec::new();\n    println!(\"{}\", 2.0 ** 3);", 15, &["println!(\"{}\", 2.0_f64.powf(3.0));"]),
    ("operator", "02-batch", "let mut losses = Vec::new();", "let mut losses = Vec::new();\n    let k = 3;\n    println!(\"{}\", k ** 2);", 16, &[]),
    ("operator", "02-batch", "let mut losses = Vec::new();", "let mut losses = Vec::new();\n    let k: usize = 3;\n    println!(\"{}\", k ** 2);", 16, &["println!(\"{}\", k.pow(2));"]),
    ("operator", "02-batch", "let mut losses = Vec::new();", "let mut losses = Vec::new();\n    let a: f64 = 3.0;\n    println!(\"{}\", a ** 2);", 16, &["println!(\"{}\", a.powf(2.0));"]),
    ("operator", "02-batch", "losses.push(loss.item()?);", "losses.push(loss.item()? ** 2);", 22, &["losses.push(loss.item()?.powf(2.0));"]),
    ("operator", "02-batch", "Ok(losses)", "println!(\"{}\", losses[0] ** 2);\n    Ok(losses)", 24, &[]),
    // device
    ("device", "01-one-by-one", "x.to(device)?", "x.to(\"cuda\")?", 8, &["let x = x.to(device)?;"]),
    ("device", "01-one-by-one", "lengths.cpu()", "lengths.to(\"cpu\")", 10, &["lengths.to(Device::Cpu)"]),
    ("device", "01-portable", "Device::cuda_if_available()", "torch.device(\"cuda\" if torch.cuda.is_available() else \"cpu\")", 5, &["Ok(Device::cuda_if_available())"]),
    ("device", "11-map", "file, Device::Cpu", "file, \"cpu\"", 8, &["let loaded = serialize::from_bytes(file, Device::Cpu)?;"]),
    ("device", "11-map", "file, Device::Cpu", "file, Device::CPU", 8, &["let loaded = serialize::from_bytes(file, Device::Cpu)?;"]),
    // closure
    ("closure", "04-no-grad", "let loss = no_grad(|| loss_fn.forward(&model.forward(x)?, y))?;", "with torch.no_grad():\n            let loss = loss_fn.forward(&model.forward(x)?, y)?;", 12, &["let loss = no_grad(|| loss_fn.forward(&model.forward(x)?, y))?;"]),
    ("closure", "06-autocast", "amp::autocast(short, || loss_fn", "amp::autocast(short, loss_fn", 17, &["let loss = amp::autocast(short, || loss_fn.forward(&model.forward(x)?, y))?;"]),
    ("closure", "04-graph", "|mean| mean.item()", "lambda mean: mean.item()", 30, &["curve.iter().map(|mean| mean.item()).collect()"]),
    ("closure", "08-stream", "cuda::stream(copies, || chunk.to(to))?", "cuda::stream(copies, chunk.to(to)?)", 18, &["let x = cuda::stream(copies, || chunk.to(to))?;"]),
    ("closure", "03-loop", "losses.push(loss.detach());", "with no_grad():\n                losses.push(loss.detach());", 25, &["no_grad(|| {", "});"]),
    ("closure", "03-loop", "losses.push(loss.detach());", "with no_grad():\n                losses.push((&loss * 2.0)?);", 25, &["no_grad(|| {", "Ok::<(), Error>(())", "})?;"]),
    ("closure", "03-loop", "losses.push(loss.detach());", "with no_grad():\n                let kept = loss.detach();\n            losses.push(kept);", 25, &["let kept = no_grad(|| loss.detach());"]),
];

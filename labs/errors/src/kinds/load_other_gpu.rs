use crate::{Kind, Pasted, Run};

pub const KIND: Kind = Kind {
    id: "load-other-gpu",
    message: "Attempting to deserialize object on CUDA device 1 but torch.cuda.device_count() is 1",
    known_by: &["Attempting to deserialize object on CUDA device"],
    meaning: "The file was saved from a GPU with a number that this machine does not have.",
    place: "It is the `torch.load` in the traceback.",
    fix: &["Say where to: `torch.load(path, map_location='cpu')`, or `map_location={'cuda:1': 'cuda:0'}`.", "With several processes, load to the CPU in each: without `map_location`, all of them put the file on the GPU that saved it."],
    chapters: &["11-checkpoints.md"],
    run: Some(Run::Lab { number: "11", section: "2", run: "none", flags: "--gpu none" }),
    read: Some(other_gpu),
    ..Kind::NEW
};

fn other_gpu(pasted: &Pasted) -> Vec<String> {
    match (pasted.number("object on CUDA device "), pasted.number("device_count() is ")) {
        (Some(index), Some(count)) => {
            let gpus = match count {
                0 => "no GPU".to_owned(),
                1 => "one GPU, cuda:0".to_owned(),
                _ => format!("{count} GPUs, up to cuda:{}", count - 1),
            };
            vec![format!("The file comes from cuda:{index}, and this program sees {gpus}.")]
        }
        _ => Vec::new(),
    }
}

use crate::{Kind, Pasted, Run};

pub const KIND: Kind = Kind {
    id: "device-string",
    message: "Expected one of cpu, cuda, … device type at start of device string",
    known_by: &["device type at start of device string", "Invalid device string:", "Device string must not be empty", "Could not parse device index", "this crate supports cpu and cuda devices", "Expected a cuda device, but got:"],
    meaning: "The name of a device could not be read. It is `cpu`, `cuda`, or `cuda:` and a number.",
    place: "The text at the end of the message is the name that was given. It often comes from a configuration file or a flag: `gpu`, `CUDA`, `0` or `cuda0` are no names.",
    fix: &["Write `cuda` or `cuda:0`.", "Give a number as a number, `torch.device(0)`, and not as a text."],
    chapters: &["01-devices.md"],
    run: Some(Run::Here),
    read: Some(device_name),
    ..Kind::NEW
};

fn device_name(pasted: &Pasted) -> Vec<String> {
    let name = pasted.between("at start of device string: ", "").or_else(|| pasted.between("Invalid device string: ", ""));
    // A date belongs to a log, not to the name of a device.
    name.filter(|name| name.matches('-').count() < 2).map_or(Vec::new(), |name| vec![format!("`{name}` is not the name of a device.")])
}

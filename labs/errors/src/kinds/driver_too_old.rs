use crate::{Kind, Pasted};

pub const KIND: Kind = Kind {
    id: "driver-too-old",
    message: "The NVIDIA driver on your system is too old",
    known_by: &["The NVIDIA driver on your system is too old", "CUDA driver version is insufficient for CUDA runtime version", "forward compatibility was attempted on non supported HW"],
    meaning: "PyTorch brings its own CUDA libraries, and these need a driver that is at least as new. `is_available()` is False. The CUDA toolkit that you may have installed plays no part in this.",
    place: "The top line of `nvidia-smi` says up to which CUDA version the driver goes; `torch.version.cuda` says which one PyTorch was built with. Within one major version a somewhat older driver usually works.",
    fix: &["Update the driver.", "If you may not, install a PyTorch that was built with an older CUDA.", "If the message is about forward compatibility, a container brings a newer `libcuda` than the driver outside: use an image for an older CUDA."],
    chapters: &["00-setup.md"],
    read: Some(driver),
    ..Kind::NEW
};

fn driver(pasted: &Pasted) -> Vec<String> {
    // 11040 is CUDA 11.4.
    match pasted.number("found version ") {
        Some(found) if found >= 1000 => vec![format!(
            "Your driver goes up to CUDA {}.{}: this PyTorch was built with a newer one.",
            found / 1000,
            found % 1000 / 10
        )],
        _ => Vec::new(),
    }
}

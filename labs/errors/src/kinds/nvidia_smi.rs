use crate::Kind;

pub const KIND: Kind = Kind {
    id: "nvidia-smi",
    message: "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver",
    known_by: &["NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver", "Failed to initialize NVML: Driver/library version mismatch", "Failed to initialize NVML: Unknown Error"],
    meaning: "The driver's kernel module is not loaded, or it has another version than the library that talks to it. That happens after an update of the kernel or of the driver, and with Secure Boot when the module is not signed. No program can use the GPU until that is mended; PyTorch has nothing to do with it.",
    place: "`cat /proc/driver/nvidia/version` tells the version of the loaded module, and fails if there is none. `sudo dmesg | grep -i nvrm` says why it was not loaded. If `nvidia-smi` works outside a container and not inside, restart the container.",
    fix: &["Restart the computer: after a driver update the old module is still loaded.", "Install the driver again, so that its module is built for the running kernel; with DKMS that happens on each update.", "With Secure Boot, enrol the key with which the module is signed."],
    chapters: &["00-setup.md"],
    ..Kind::NEW
};

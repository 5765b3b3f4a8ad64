use crate::{Kind, Pasted};

pub const KIND: Kind = Kind {
    id: "missing-library",
    message: "ImportError: libcudart.so.11.0: cannot open shared object file",
    known_by: &["libcudart*cannot open shared object file", "libcudnn*cannot open shared object file", "libcublas*cannot open shared object file", "libcusparse*cannot open shared object file", "libnvrtc*cannot open shared object file", "libnvJitLink*cannot open shared object file", "undefined symbol: __nvJitLink", "undefined symbol: _ZN3c10", "undefined symbol: _ZN2at", "undefined symbol: _ZN5torch", "undefined symbol: _ZNK3c10"],
    meaning: "A library was built for another version of CUDA, or of PyTorch, than the one that is there. PyTorch brings its own CUDA libraries, so it is usually an extension that looks for one: flash-attn, apex, a `torchvision` of another build.",
    place: "The last file in the traceback belongs to the package that asks. If the message names a library such as `libcudart.so.11.0`, the number is the version it was built for; compare it with `torch.version.cuda`. An `undefined symbol` with `c10`, `at` or `torch` in it is missing in your PyTorch.",
    fix: &["Install that package again, in the version for your PyTorch and its CUDA.", "Or build it on this computer.", "Take other CUDA folders out of `LD_LIBRARY_PATH`: they hide the libraries that PyTorch brings."],
    chapters: &["00-setup.md"],
    read: Some(library),
    ..Kind::NEW
};

fn library(pasted: &Pasted) -> Vec<String> {
    let Some((before, _)) = pasted.words.rsplit_once(": cannot open shared object file") else { return Vec::new() };
    let name = before.rsplit(' ').next().unwrap_or_default();
    let is_plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter));
    match name.split_once(".so.") {
        Some((_, version)) if is_plain && name.len() < 60 => {
            vec![format!("The package that fails was built for version {version} of this library, `{name}`.")]
        }
        _ => Vec::new(),
    }
}

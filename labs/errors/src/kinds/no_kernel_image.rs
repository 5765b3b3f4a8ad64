use crate::text::BREAK;
use crate::{Kind, Pasted};

pub const KIND: Kind = Kind {
    id: "no-kernel-image",
    message: "CUDA error: no kernel image is available for execution on the device",
    known_by: &["no kernel image is available for execution on the device", "is not compatible with the current PyTorch installation", "cudaErrorNoKernelImageForDevice", "The following list shows the CCs this version of PyTorch was built for"],
    meaning: "This PyTorch, or an extension such as flash-attn, has no code for your GPU's architecture. `is_available()` is True all the same, and the first kernel fails. Usually the card is newer than the build: an RTX 50 is `sm_120`, which builds for CUDA 12.8 and later know. It can also be older than all that the build supports.",
    place: "Compare `torch.cuda.get_device_capability()` with `torch.cuda.get_arch_list()`: (12, 0) needs `sm_120`. Code for a lower minor number runs too: a card with (8, 9) runs `sm_86`. If they agree, an extension is to blame; the traceback ends in it.",
    fix: &["For a newer card: install a PyTorch built with a newer CUDA, such as `cu128`. The toolkit on your computer does not matter.", "For an older card: newer builds drop old architectures, so take one built with an older CUDA, or an earlier PyTorch.", "Build extensions again on this computer, with `TORCH_CUDA_ARCH_LIST` naming your card."],
    chapters: &["00-setup.md"],
    read: Some(architecture),
    ..Kind::NEW
};

fn architecture(pasted: &Pasted) -> Vec<String> {
    let number = |name: &str| name.strip_prefix("sm_")?.trim_end_matches(|letter: char| letter.is_ascii_lowercase()).parse::<u32>().ok();
    let card = pasted.between("with CUDA capability ", " is not compatible").or_else(|| pasted.between("with CUDA capabilities ", " is not compatible"));
    if let Some(capability) = pasted.between("which is of compute capability (CC) ", " The following list")
        && capability.bytes().all(|byte| b"0123456789.".contains(&byte))
    {
        return vec![format!("Your card has the compute capability {capability}, for which this build has no code.")];
    }
    let Some((card, found)) = card.and_then(|card| Some((number(card)?, card))) else { return Vec::new() };
    let list = pasted.words.rsplit_once("supports CUDA capabilities ").map_or("", |(_, list)| list);
    let mut built = Vec::new();
    for word in list.replace(&format!("{BREAK}sm_"), " sm_").split(' ') {
        let (name, rest) = word.split_once(BREAK).unwrap_or((word, ""));
        // A list that breaks off, also within a name, says nothing of its ends.
        match number(name.trim_end_matches('.')) {
            Some(architecture) if rest.is_empty() || name.ends_with('.') => built.push(architecture),
            None if name.starts_with("compute_") => {}
            _ => {
                built.clear();
                break;
            }
        }
        if name.ends_with('.') {
            break;
        }
    }
    let age = match (built.iter().min(), built.iter().max()) {
        (_, Some(newest)) if card > *newest => format!(" It goes up to sm_{newest}: the card is newer than the build."),
        (Some(oldest), _) if card < *oldest => format!(" It begins with sm_{oldest}: the card is older than the build supports."),
        _ => String::new(),
    };
    vec![format!("Your card is {found}, for which this build has no code.{age}")]
}

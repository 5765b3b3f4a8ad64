use crate::Kind;

pub const KIND: Kind = Kind {
    id: "damaged-file",
    message: "PytorchStreamReader failed reading zip archive",
    known_by: &["PytorchStreamReader failed", "This is no checkpoint: torch.save writes a zip file", "Invalid magic number; corrupt file?", "unexpected EOF, expected * more bytes. The file might be corrupted", "invalid load key, 'v'", "invalid load key, '<'", "invalid load key, '\\x", "Error while deserializing header", "This file is empty: a save that was cut short", "This is a checkpoint of PyTorch before 1.6", "This is a safetensors file: serialize::", "This is a TorchScript archive, of torch.jit.save", "The pickle is damaged", "MetadataIncompleteBuffer", "Attempted to read a PyTorch file with version", "Parent directory * does not exist", "file in archive is not in a subdirectory", "the archive has two records of the name", "torch.save stores records as they are", "Unknown endianness type", "the pickle stands for more than", "are out of bounds for storage of size", "but its record has * bytes", "deep within each other"],
    meaning: "The file is not a whole checkpoint. It was cut short when the disk was full or the program was ended, or the download is something else: a web page begins with `<`, a Git LFS pointer with `v`. Some messages have another cause: `Parent directory … does not exist` comes from `torch.save`, whose folder is not there; `Attempted to read a PyTorch file with version` means that a newer PyTorch saved the file; and `This is …` names a format that this course's crate does not read.",
    place: "Look at the size, and at the beginning: `ls -l model.pt; head -c 100 model.pt`. A checkpoint is a zip file and begins with `PK`.",
    fix: &["Download it again; for a Git LFS pointer, run `git lfs pull`.", "Save to another name and rename it afterwards, so that an interruption leaves the old file whole.", "With several processes, let one of them save.", "If the folder is missing, make it before you save: `os.makedirs(folder, exist_ok=True)`.", "For `Invalid magic number`, the file may be a pickle that Python's `pickle` wrote: read it with `pickle.load`, if you trust it.", "If the file is newer than your PyTorch, update PyTorch."],
    chapters: &["11-checkpoints.md"],
    ..Kind::NEW
};

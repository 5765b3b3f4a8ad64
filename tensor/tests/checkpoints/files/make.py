"""The files that the tests read: `python make.py FOLDER [cuda | changed]`.

Without a second argument it writes what every version of PyTorch is asked to save, as torch-VERSION.pt: run it with 1.13.1, 2.0.1
and 2.11.0. With `cuda`, on a machine with two GPUs, it writes cuda.pt; a PyTorch whose CUDA libraries are stood in for does,
since nothing is calculated there. With `changed` it makes, of PyTorch 2.11's file, what no version writes today: one of a
computer with the other order of bytes, and those of before 1.6; and a safetensors file.
"""
import collections
import io
import pathlib
import sys
import tarfile
import zipfile

import torch
from torch import nn

folder = pathlib.Path(sys.argv[1])
kind = sys.argv[2] if len(sys.argv) > 2 else "plain"
DTYPES = [torch.bool, torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]
SIZES = {torch.bool: 1, torch.uint8: 1, torch.int32: 4, torch.int64: 8,
         torch.float16: 2, torch.bfloat16: 2, torch.float32: 4, torch.float64: 8}


def content():
    base = torch.arange(24.0).reshape(4, 6)
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    with torch.no_grad():
        for i, parameter in enumerate(model.parameters()):
            parameter.copy_(torch.arange(parameter.numel()).reshape(parameter.shape) + 10.0 * i)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.125)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    state = model.state_dict()
    state = collections.OrderedDict((name, tensor.clone()) for name, tensor in state.items())
    state._metadata = model.state_dict()._metadata
    optimizer.step()
    return {
        "epoch": 3, "lr": 0.1, "name": "größer 🐍", "nothing": None, "truths": (True, False), "one": (1,),
        "large": 2**40, "negative": -(2**40), "small": -5, "middle": 300, "infinite": float("inf"),
        "nested": [1, [2.5, "x"], {}, [], ()], 7: "an integer key",
        "size": torch.Size([2, 3]), "dtype": torch.bfloat16, "device": torch.device("cuda", 1),
        "types": {str(dtype): torch.tensor([0, 1, 2, 3]).to(dtype) for dtype in DTYPES},
        "base": base, "alias": base, "row": base[1], "transposed": base.t(), "columns": base[:, 1::2],
        "expanded": base[2, 3].expand(2, 5), "number": torch.tensor(2.5), "empty": torch.zeros(0, 3),
        "leaf": torch.tensor([1.0, 2.0], requires_grad=True), "parameter": nn.Parameter(torch.tensor([3.0])),
        "model": state, "optimizer": optimizer.state_dict(),
    }


def rewritten(path, to, change):
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(to, "w") as new:
        for info in old.infolist():
            new.writestr(zipfile.ZipInfo(info.filename), change(info.filename, old.read(info)))


def storage_sizes(value, sizes):
    """The size of an element of each record."""
    class Unpickler(torch.serialization.pickle.Unpickler):
        def persistent_load(self, id):
            sizes["torch-2.11.0/data/" + id[2]] = SIZES[id[1].dtype]
            return torch.storage.TypedStorage(
                wrap_storage=torch.UntypedStorage(id[4] * SIZES[id[1].dtype]), dtype=id[1].dtype, _internal=True)
    Unpickler(io.BytesIO(value)).load()


if kind == "plain":
    torch.save(content(), folder / f"torch-{torch.__version__.split('+')[0]}.pt")
elif kind == "cuda":
    base = torch.arange(6.0)
    zero, one = base.to("cuda:0"), (base + 10).to("cuda:1")
    torch.save({"cpu": base, "zero": zero, "one": one, "view": one[2:4]}, folder / "cuda.pt")
elif kind == "changed":
    newest, sizes = folder / "torch-2.11.0.pt", {}
    storage_sizes(zipfile.ZipFile(newest).read("torch-2.11.0/data.pkl"), sizes)

    def big(name, data):
        if name.endswith("/byteorder"):
            return b"big"
        size = sizes.get(name, 1)
        return b"".join(data[i:i + size][::-1] for i in range(0, len(data), size))
    rewritten(newest, folder / "big-endian.pt", big)
    small = {"weight": torch.arange(3.0)}
    torch.save(small, folder / "before-1.6.pt", _use_new_zipfile_serialization=False)
    with tarfile.open(folder / "before-0.4.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        for name in ["sys_info", "pickle", "storages", "tensors"]:
            tar.addfile(tarfile.TarInfo(name))
    torch.jit.save(torch.jit.script(nn.Linear(1, 1)), str(folder / "torchscript.pt"))
    torch.save(nn.Linear(1, 1), folder / "module.pt")
    torch.save({"half": torch.tensor([1], dtype=torch.int16)}, folder / "int16.pt")
    torch.save(torch.tensor([2, 0, 255, 1], dtype=torch.uint8).view(torch.bool), folder / "bool-bytes.pt")
    from safetensors.torch import save_file
    tensors = {str(dtype): torch.tensor([[0, 1], [2, 3]]).to(dtype) for dtype in DTYPES}
    tensors |= {"number": torch.tensor(2.5), "empty": torch.zeros(0, 3)}
    save_file(tensors, folder / "python.safetensors", metadata={"format": "pt", "epoch": "3"})

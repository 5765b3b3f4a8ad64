"""The files that the tests read: `python make.py FOLDER [cuda | changed | kinds]`.

Without a second argument it writes what every version of PyTorch is asked to save, as torch-VERSION.pt: run it with 1.13.1, 2.0.1
and 2.11.0. With `cuda`, on a machine with two GPUs, it writes cuda.pt; a PyTorch whose CUDA libraries are stood in for does,
since nothing is calculated there. With `changed` it makes, of PyTorch 2.11's file, what no version writes today: one of a
computer with the other order of bytes, those of before 1.6, and one that was compressed; and a safetensors file. With `kinds` it
writes kinds.json: of each kind of value the records of a file, and what PyTorch 2.11 prints of it or says that it is.
"""
import collections
import io
import json
import math
import pathlib
import pickle
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


def accepted():
    """What `torch.load(weights_only=True)` gives back, of each kind that Python has."""
    yield "integers", [2**63, -(2**63) - 1, 2**64, 10**60, -(10**60), 2**63 - 1, -(2**63)]
    yield "sets", [{1, 2}, set(), {(1, 2)}, {None}, {1.5}, {"a"}, {b"x"}]
    yield "bytes", [b"abc\xff\x00'\"\n", b"it's", bytearray(b"abc'"), bytearray()]
    yield "complex", [1 + 2j, -1j, complex(-0.0, 1), complex(0, -0.0), complex(math.nan, -math.inf), complex(1e20, 1.5)]
    yield "Counter", [collections.Counter(), collections.Counter("aab")]
    yield "keys", {True: 1, None: 2, 1.5: 3, (1, (2, "x")): 4, b"k": 5, 1j: 6, torch.float32: 7, (): 8, (1,): 9, 2**70: 10,
                   torch.device("cuda:1"): 11}
    yield "constants", [torch.int16, torch.float32, torch.per_tensor_affine, torch.strided, torch.sparse_coo, torch.bits8]
    yield "classes", [torch.Size, torch.nn.Parameter, set, complex, torch.FloatTensor]
    yield "devices", [torch.device("cpu"), torch.device("cuda:1"), torch.device("mps")]
    parameter, tensor = nn.Parameter(torch.ones(2)), torch.ones(2)
    parameter.tag, tensor.tag = "mine", [1]
    frozen = nn.Parameter(torch.ones(1), requires_grad=False)
    frozen.tag = "frozen"
    yield "tensors with attributes", [parameter, tensor, frozen, nn.Buffer(torch.zeros(1))]
    numbers = torch.complex(torch.arange(3.0), torch.arange(3.0)).conj().imag
    yield "signs that change as they are read", [numbers, numbers[1:].requires_grad_()]
    storage = torch.tensor([1.0, 0.1]).storage()
    yield "storages", [storage, storage, torch.tensor([True, False]).storage(), torch.tensor([2**60]).storage()]
    yield "a storage of bytes", torch.tensor([1, 2], dtype=torch.int16).untyped_storage()
    yield "the number alone", 3
    yield "None alone", None


def lacking():
    """What this crate has no tensors of, and the name by which it says so."""
    ones = torch.ones(2, 2)
    for dtype in [torch.int8, torch.int16, torch.uint16, torch.uint32, torch.uint64, torch.complex64, torch.complex128,
                  torch.float8_e4m3fn]:
        yield ones.to(dtype), str(dtype)
    yield torch.ones(1, dtype=torch.int16).storage(), "torch.int16"
    yield torch.quantize_per_tensor(ones, 0.1, 0, torch.qint8), "torch.qint8"
    yield torch.quantize_per_channel(ones, torch.ones(2), torch.zeros(2), 0, torch.quint8), "torch.quint8"
    yield ones.to_sparse(), "torch.sparse_coo"
    yield ones.to_sparse_csr(), "torch.sparse_csr"
    yield torch.nested.nested_tensor([ones]), "torch.nested"
    yield torch.empty(1, device="meta"), "meta"


def records(value, **keywords):
    file = io.BytesIO()
    torch.save(value, file, **keywords)
    with zipfile.ZipFile(file) as zip:
        names = [name for name in zip.namelist() if name.endswith("data.pkl") or "/data/" in name]
        return {name.split("/", 1)[1]: zip.read(name).hex() for name in names}


def legacy(value):
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=False)
    return file


def with_views_of_storages():
    """A storage that is a part of another, as PyTorch before 0.4 saved it."""
    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            return value if isinstance(value, tuple) and value[:1] == ("storage",) else None
    class Call:
        def __init__(self, *arguments):
            self.arguments = arguments
        def __reduce__(self):
            return torch._utils._rebuild_tensor, self.arguments
    file = io.BytesIO()
    for value in [torch.serialization.MAGIC_NUMBER, torch.serialization.PROTOCOL_VERSION, {"little_endian": True}]:
        pickle.dump(value, file, protocol=2)
    whole = ("storage", torch.FloatStorage, "7", "cpu", 5, None)
    part = ("storage", torch.FloatStorage, "7", "cpu", 5, ("8", 2, 3))
    Pickler(file, protocol=2).dump([Call(whole, 0, (5,), (1,)), Call(part, 1, (2,), (1,))])
    pickle.dump(["7"], file, protocol=2)
    file.write((5).to_bytes(8, "little") + torch.arange(5.0).numpy().tobytes())
    return file


def loaded(file):
    file.seek(0)
    return torch.load(file, weights_only=True)


def kinds():
    found = {"accepted": [], "lacking": [], "legacy": []}
    for name, value in accepted():
        file = io.BytesIO()
        torch.save(value, file)
        found["accepted"].append({"kind": name, "records": records(value), "said": repr(loaded(file))})
        file = legacy(value)
        if name != "a storage of bytes":  # PyTorch does not read it again.
            found["legacy"].append({"kind": name, "file": file.getvalue().hex(), "said": repr(loaded(file))})
    for value, name in lacking():
        found["lacking"].append({"name": name, "records": records(value)})
    views = with_views_of_storages()
    found["legacy"].append({"kind": "views", "file": views.getvalue().hex(), "said": repr(loaded(views))})
    return found


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
    with zipfile.ZipFile(newest) as old, zipfile.ZipFile(folder / "compressed.pt", "w") as new:
        for i, name in enumerate(old.namelist()):
            new.writestr(zipfile.ZipInfo(name), old.read(name), zipfile.ZIP_DEFLATED, i % 10)
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
elif kind == "kinds":
    # A line each.
    lines = {key: "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]" for key, cases in kinds().items()}
    (folder / "kinds.json").write_text("{" + ",\n".join(f'"{key}": {case}' for key, case in lines.items()) + "}\n")

"""Reads our files with PyTorch and with safetensors: `python read.py PART FILE…`."""
import collections
import json
import sys
import warnings
import zipfile

import torch

warnings.simplefilter("ignore")


def plain(value, storages):
    """A value as something that can be compared, with every fact about its tensors."""
    if isinstance(value, torch.Tensor):
        storage = storages.setdefault(value.untyped_storage().data_ptr(), len(storages)) if value.numel() else None
        offset = value.storage_offset() if value.numel() else None
        data = value.detach().contiguous().reshape(-1).view(torch.uint8).tolist()
        return ("tensor", str(value.dtype), tuple(value.shape), value.stride(), offset, value.untyped_storage().nbytes(),
                storage, value.requires_grad, data)
    if isinstance(value, dict):
        kind = "OrderedDict" if isinstance(value, collections.OrderedDict) else "dict"
        return (kind, [(key, plain(item, storages)) for key, item in value.items()])
    if isinstance(value, (list, tuple)):
        return ("tuple" if isinstance(value, tuple) else "list", [plain(item, storages) for item in value])
    return (type(value).__name__, repr(value))



def same(ours, theirs):
    for keyword in [{}, {"mmap": True}, {"weights_only": False}]:
        read = [torch.load(file, map_location="cpu", **keyword) for file in [ours, theirs]]
        kinds = [repr(plain(value, {})) for value in read]
        assert kinds[0] == kinds[1], f"{kinds[0]}\n{kinds[1]}"
        if isinstance(read[0], dict) and "model" in read[0]:
            assert read[0]["model"]._metadata == read[1]["model"]._metadata
    locations = []
    for file in [ours, theirs]:
        found = []
        torch.load(file, map_location=lambda storage, location: (found.append(location), storage)[1])
        locations.append(found)
    assert locations[0] == locations[1], locations
    with zipfile.ZipFile(ours) as zip, open(ours, "rb") as file:
        assert zip.testzip() is None
        for info in zip.infolist():
            file.seek(info.header_offset + 26)
            lengths = [int.from_bytes(file.read(2), "little") for _ in range(2)]
            assert (info.header_offset + 30 + sum(lengths)) % 64 == 0, info.filename


def kinds(cases, folder):
    with open(cases) as file:
        cases = json.load(file)["accepted"]
    for number, case in enumerate(cases):
        read = repr(torch.load(f"{folder}/{number}.pt", weights_only=True))
        # A parameter is a tensor of ours.
        assert read == case["said"].replace("Parameter containing:\n", ""), f"{case['kind']}: {read}"


def same_safetensors(ours, theirs):
    from safetensors import safe_open
    with safe_open(ours, "pt") as a, safe_open(theirs, "pt") as b:
        assert a.metadata() == b.metadata(), (a.metadata(), b.metadata())
        assert list(a.keys()) == list(b.keys())
        for name in a.keys():
            x, y = a.get_tensor(name), b.get_tensor(name)
            assert x.dtype == y.dtype and x.shape == y.shape and torch.equal(x, y), name
    with open(ours, "rb") as a, open(theirs, "rb") as b:
        a, b = [int.from_bytes(file.read(8), "little") for file in [a, b]]
        assert a == b, "the headers differ in length"


def has_half(ours):
    from safetensors.torch import load_file
    assert load_file(ours)["half"].dtype == torch.bfloat16


globals()[sys.argv[1]](*sys.argv[2:])

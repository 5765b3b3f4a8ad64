"""An operation on tensors of two devices, and its repair."""

import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
on_cpu = torch.randn(3, 4)
on_device = torch.randn(3, 4).to(device)
print(on_cpu.device, on_device.device)

if device.type == "cuda":
    try:
        result = on_cpu + on_device
    except RuntimeError as e:
        print(f"Error: {e}")
    moved = on_cpu.to(device)
    result = moved + on_device
    print(f"The result is on {result.device}.")
else:
    print("There is only the CPU.")

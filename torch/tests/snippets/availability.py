"""What a machine has."""

import torch

print(torch.cuda.is_available())
print(torch.cuda.device_count())
for i in range(torch.cuda.device_count()):
    print(torch.cuda.get_device_name(i))

# ---- Prelude: without a GPU the next line raises.
if not torch.cuda.is_available():
    raise SystemExit
# ---- End of the prelude.

print(torch.cuda.current_device())
if torch.cuda.is_available() == True:
    device = torch.cuda.current_device()
    print(torch.cuda.get_device_name(device))
    torch.cuda.set_device(device)

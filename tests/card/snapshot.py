# The program of `cargo run --bin snapshot` in PyTorch, and what then lies in the memory of the GPU.
import torch
from torch import nn

device = torch.device("cuda")


def show(when):
    print(f"{when}: {torch.cuda.memory_allocated()} allocated, {torch.cuda.memory_reserved()} reserved")
    for segment in sorted(torch.cuda.memory_snapshot(), key=lambda segment: segment["address"]):
        blocks = (
            f" {block['size']}" + ("" if block["state"] == "active_allocated" else " free")
            for block in segment["blocks"])
        print(f"  {segment['segment_type']} {segment['total_size']}:" + "".join(blocks))


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).to(device)
show("the model")
x, y = torch.randn(128, 784).to(device), torch.randint(0, 10, (128,)).to(device)
show("a batch")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
loss = nn.CrossEntropyLoss()(model(x), y)
show("forward")
loss.backward()
show("backward")
optimizer.step()
show("step")
optimizer.zero_grad()
del loss
show("zero_grad")

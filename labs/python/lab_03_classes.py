"""The loop for classes, in functions, as PyTorch's quickstart has it: `train` and `test` take all that they use."""

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

BATCH_SIZE = 64


def train(dataloader, model, loss_fn, optimizer, device):
    size = len(dataloader.dataset)
    model.train()
    for batch, (x, y) in enumerate(dataloader):
        # The model is on the device, so the samples have to be there, and the classes, for the loss.
        x, y = x.to(device), y.to(device)

        prediction = model(x)
        loss = loss_fn(prediction, y)

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        if batch % 4 == 0:
            print(f"loss: {loss.item():.3f}  [{batch * BATCH_SIZE + len(x):>5}/{size:>5}]")


def test(dataloader, model, device):
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in dataloader:
            x, y = x.to(device), y.to(device)
            correct += (model(x).argmax(1) == y).sum().item()
    print(f"Accuracy: {100 * correct / len(dataloader.dataset):.1f} %")


if __name__ == "__main__":
    torch.manual_seed(42)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    x = torch.randn(1024, 16)
    y = (x @ torch.randn(16, 4)).argmax(1)  # of four random directions the nearest
    dataloader = DataLoader(TensorDataset(x, y), batch_size=BATCH_SIZE, shuffle=True)

    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4)).to(device)
    loss_fn = nn.CrossEntropyLoss()
    # It holds the parameters, wherever they are; its own state comes with the first step, where they are.
    optimizer = optim.Adam(model.parameters(), lr=1e-3)

    for epoch in range(1, 4):
        print(f"Epoch {epoch}")
        train(dataloader, model, loss_fn, optimizer, device)
    test(dataloader, model, device)

"""A training program as it is taught in many places, whole: setup, data, model, loop, evaluation.

The targets are random numbers, so there is nothing to learn. That is why the mean of each epoch and the error of a model
that always answers 0 are printed beside the loss of the last batch; set TARGET to "linear" for something to learn. It is
evaluated on the samples it was trained on.
"""

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

TARGET = "noise"
EPOCHS = 3


def main():
    # 1. Setup
    torch.manual_seed(42)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(f"Training on device: {device}")

    # 2. The data stays on the host: a batch moves when its turn has come.
    x = torch.randn(1024, 16)
    y = torch.randn(1024, 1) if TARGET == "noise" else x @ torch.randn(16, 1) / 4
    # Two workers cost more than they save on a data set as small as this. Pinned memory is what lets a copy be
    # asynchronous; it does so only with .to(device, non_blocking=True).
    loader = DataLoader(
        TensorDataset(x, y), batch_size=64, shuffle=True, num_workers=2, pin_memory=True
    )

    # 3. The model moves once.
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
    model.to(device)

    # 4. Loss and optimizer
    loss_fn = nn.MSELoss()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)

    # 5. The loop
    for epoch in range(1, EPOCHS + 1):
        model.train()
        losses = []
        for batch_x, batch_y in loader:
            batch_x, batch_y = batch_x.to(device), batch_y.to(device)

            loss = loss_fn(model(batch_x), batch_y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())  # item() would wait for the GPU in every step
        print(f"Epoch [{epoch}/{EPOCHS}], Loss: {losses[-1].item():.4f}")
        print(f"mean_loss = {torch.stack(losses).mean().item():.3f}")

    # 6. Evaluation: eval() for layers such as dropout, no_grad() for memory.
    model.eval()
    total, num_samples = 0.0, 0
    with torch.no_grad():
        for batch_x, batch_y in loader:
            batch_x, batch_y = batch_x.to(device), batch_y.to(device)
            total += (model(batch_x) - batch_y).abs().sum().item()
            num_samples += batch_x.size(0)
    error = total / num_samples
    print(f"Evaluation complete. Mean Absolute Error on the dataset: {error:.4f}")
    print(f"zero_mean_squared_error = {y.square().mean().item():.4f}")
    print(f"zero_mean_absolute_error = {y.abs().mean().item():.4f}")


if __name__ == "__main__":
    main()

"""An evaluation without a graph."""

# ---- Prelude: `model`, `data_loader` and `device` are those of a training loop.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
data_loader = DataLoader(TensorDataset(torch.randn(100, 16), torch.randn(100, 1)), batch_size=64)
# ---- End of the prelude.

model.eval()
total_error = 0
num_samples = 0
with torch.no_grad():
    for batch_X, batch_y in data_loader:
        batch_X = batch_X.to(device)
        batch_y = batch_y.to(device)
        predictions = model(batch_X)
        total_error += torch.abs(predictions - batch_y).sum().item()
        num_samples += batch_X.size(0)
print(f"mean absolute error {total_error / num_samples:.4f}, of {num_samples} rows")
print(predictions.requires_grad, model.training)

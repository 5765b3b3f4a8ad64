"""A training loop whose batches go to the device."""

import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

# ---- Prelude: the same numbers each time.
torch.manual_seed(1)
# ---- End of the prelude.

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
num_rows, num_columns = 1024, 16
X = torch.randn(num_rows, num_columns)
y = torch.randn(num_rows, 1)
dataset = TensorDataset(X, y)
data_loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=2, pin_memory=True)

model = nn.Sequential(nn.Linear(num_columns, 64), nn.ReLU(), nn.Linear(64, 1))
model.to(device)
loss_function = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=0.001)

num_epochs = 3
for epoch in range(num_epochs):
    model.train()
    for batch_X, batch_y in data_loader:
        batch_X = batch_X.to(device)
        batch_y = batch_y.to(device)
        predictions = model(batch_X)
        loss = loss_function(predictions, batch_y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"[{epoch + 1}/{num_epochs}] loss {loss.item():.4f}")

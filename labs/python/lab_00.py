"""Lab 00 in PyTorch: setup. Which CUDA this PyTorch was built for, which device it finds, and a tensor on that device."""

import torch


def main():
    print(f"PyTorch {torch.__version__}, built for CUDA {torch.version.cuda} (measured)")

    # ANCHOR: check
    is_available = torch.cuda.is_available()
    device = torch.device("cuda" if is_available else "cpu")
    x = torch.ones(2, 3, device=device)
    sum = x.sum().item()
    # ANCHOR_END: check

    print(f"torch.cuda.is_available(): {is_available}")
    print(f"The selected device is: {device}")
    if is_available:
        print(f"Its name: {torch.cuda.get_device_name(0)} (measured)")
    print(f"{sum = }")


if __name__ == "__main__":
    main()

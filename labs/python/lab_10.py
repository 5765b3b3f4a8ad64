"""Lab 10 in PyTorch: many GPUs. One model, several cards, and what they tell each other.

A rank is a process of its own. `torchrun` would start them; here the program does, and is rank 0 itself. Without GPUs the ranks
talk through gloo, and all tensors are on the CPU.
"""

import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn, optim
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.utils.data import DistributedSampler, TensorDataset

seed = 42
batch_size = 512
width = 384

on_gpus = torch.cuda.device_count() > 1
backend = "nccl" if on_gpus else "gloo"


def main():
    if on_gpus:
        where_tensors_live()
        from_one_to_another()
    by_hand()
    data_parallel()
    spawn(8, all_reduced)
    spawn(2, trained)
    sampled()
    spawn(2, bucketed)
    if not on_gpus:  # where rank 1 would wait for ten minutes
        spawn(2, uneven)


# ANCHOR: network
def network(width):
    """Three layers of as many numbers in as out."""
    return nn.Sequential(
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, width),
    )


def loss_of(net, x):
    """The network learns to give back its input."""
    return nn.functional.mse_loss(net(x), x)
# ANCHOR_END: network


def sgd(net):
    return optim.SGD(net.parameters(), lr=0.1)


def device_of(index):
    return torch.device("cuda", index) if on_gpus else torch.device("cpu")


# ---- One program, several GPUs


def where_tensors_live():
    # ANCHOR: names (needs a GPU)
    names = []
    for index in range(torch.cuda.device_count()):
        names.append(torch.cuda.get_device_name(index))
    # ANCHOR_END: names
    for index, name in enumerate(names):
        print(f"cuda:{index} {name}, reads directly from {peers_of(index)} (measured)")

    try:
        # ANCHOR: rule (needs a GPU)
        a = torch.ones(2, device="cuda:0")
        b = torch.ones(2, device="cuda:1")
        moved = a + b.to("cuda:0")
        sum = a + b  # fails
        # ANCHOR_END: rule
        print(sum)
    except RuntimeError as error:
        print(f"{error} (measured)")
    print(f"{moved} (measured)")


# ANCHOR: peers
def peers_of(index):
    """The GPUs whose memory this one reads without the host."""
    others = [i for i in range(torch.cuda.device_count()) if i != index]
    return [i for i in others if torch.cuda.can_device_access_peer(index, i)]
# ANCHOR_END: peers


def time_of(run):
    def wait():
        for index in range(torch.cuda.device_count()):
            torch.cuda.synchronize(index)

    wait()
    start = time.perf_counter()
    result = run()
    wait()
    return result, time.perf_counter() - start


# ANCHOR: two_ways (needs a GPU)
def two_ways(numbers):
    """The time of a copy between two GPUs, straight and by way of the host."""
    x = torch.ones(numbers, device="cuda:0")
    direct = lambda: x.to("cuda:1")
    detour = lambda: x.cpu().to("cuda:1")
    direct()  # not timed: the first takes memory
    detour()
    return time_of(direct)[1], time_of(detour)[1]
# ANCHOR_END: two_ways


def from_one_to_another():
    for kibibytes in [4, 256, 16 << 10]:
        direct, detour = two_ways(256 * kibibytes)
        print(f"{kibibytes} KiB: {1e3 * direct:.3f} ms, and {1e3 * detour:.3f} ms by way of the host (measured)")

    # ANCHOR: at_once (needs a GPU)
    a = torch.ones(512, 512, device="cuda:0")
    b = torch.ones(512, 512, device="cuda:1")

    def both(x, y):
        x @ x
        y @ y

    both(a, b)  # not timed: the first takes memory
    both(a, a)
    _, on_one = time_of(lambda: both(a, a))
    _, on_two = time_of(lambda: both(a, b))
    # ANCHOR_END: at_once
    print(f"{1e3 * on_one:.3f} ms on one, {1e3 * on_two:.3f} ms on two (measured)")

    # ANCHOR: ordered (needs a GPU)
    product = a @ a  # each number is 512
    copied = product.to("cuda:1")
    sum = copied.mean().item()
    # ANCHOR_END: ordered
    print(f"mean_of_copy = {sum:.1f}")


def by_hand():
    torch.manual_seed(seed)
    x = torch.randn(64, 32)

    # ANCHOR: whole
    net = replica(seed, 0)
    loss_of(net, x.to(device_of(0))).backward()
    whole = first_gradient(net)
    # ANCHOR_END: whole

    # ANCHOR: halves
    nets = [replica(seed, 0), replica(seed, 1)]  # the same numbers on both
    for index, half in enumerate(x.chunk(2)):
        loss_of(nets[index], half.to(device_of(index))).backward()
    halves = [first_gradient(net) for net in nets]
    sum = halves[0] + halves[1].to(device_of(0))
    mean = sum / 2
    # ANCHOR_END: halves

    for gradient in [whole, *halves, sum, mean]:
        gradient = gradient.cpu()
        same = gradient.allclose(whole.cpu(), 1e-4, 1e-6)
        print(f"gradient = {gradient[0, 0]:.6f}, is_same = {'yes' if same else 'no'}")


# ANCHOR: replica
def replica(seed, index):
    """A network of these numbers on this GPU."""
    torch.manual_seed(seed)
    return network(32).to(device_of(index))
# ANCHOR_END: replica


def first_gradient(net):
    return next(net.parameters()).grad


def data_parallel():
    if on_gpus:
        gpus = list(range(torch.cuda.device_count()))
        for rows in [10, 5, 2, 64]:
            # ANCHOR: parts (needs a GPU)
            batch = torch.zeros(rows, 4)
            parts = nn.parallel.scatter(batch, gpus)
            # ANCHOR_END: parts
            print(f"{rows} rows: {[len(part) for part in parts]} (measured)")

    # ANCHOR: data_parallel
    net = network(width)
    model = DataParallel(net)  # on all GPUs; without any it only calls the network
    model.to(device_of(0))
    # ANCHOR_END: data_parallel
    x = torch.randn(batch_size, width, device=device_of(0))
    optimizer = sgd(model)
    loss_of(model, x).backward()
    optimizer.step()
    print(f"DataParallel has trained a step on {device_of(0)}")


# ---- A program for each GPU


def spawn(world_size, run):
    """Starts the ranks, as `torchrun` does. This process is rank 0, and the others are told where to find it."""
    if on_gpus:
        world_size = torch.cuda.device_count()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, WORLD_SIZE=str(world_size))
    # A process that was forked from one that has used a GPU cannot use any.
    processes = mp.get_context("spawn" if on_gpus else "fork")
    others = [processes.Process(target=begin, args=(run, rank)) for rank in range(1, world_size)]
    for other in others:
        other.start()
    begin(run, 0)
    for other in others:
        other.join()


def begin(run, rank):
    os.environ["RANK"] = str(rank)
    try:
        run(rank)
    except RuntimeError as error:
        print(f"rank {rank}: {str(error).splitlines()[0]} (measured)", flush=True)
    dist.destroy_process_group()


# ANCHOR: set_up
def set_up(rank):
    """What every rank does first: it takes the GPU of its own number."""
    if torch.cuda.is_available():
        torch.cuda.set_device(rank)
    dist.init_process_group(backend)  # "nccl" for GPUs
    return device_of(rank)
# ANCHOR_END: set_up


def all_reduced(rank):
    # ANCHOR: all_reduce
    device = set_up(rank)
    x = torch.full((1,), float(rank), device=device)
    dist.all_reduce(x, dist.ReduceOp.SUM)  # queued on the GPU
    sum = x.item()  # waits for the GPU
    # ANCHOR_END: all_reduce
    sums = [torch.zeros(1, device=device) for _ in range(dist.get_world_size())]
    dist.all_gather(sums, torch.tensor([sum], device=device))
    if rank == 0:
        print(f"After all_reduce the ranks hold {', '.join(f'{sum.item():.0f}' for sum in sums)}.")


def trained(rank):
    torch.manual_seed(seed)
    rows = torch.randn(64, 32)
    # ANCHOR: construct
    device = set_up(rank)
    x = rows[32 * rank : 32 * (rank + 1)].to(device)  # a share of its own
    torch.manual_seed(rank)  # and other numbers
    net = network(32)
    first = first_number(net)
    net.to(device)
    model = DistributedDataParallel(net)  # now those of rank 0
    optimizer = sgd(model)
    # ANCHOR_END: construct
    constructed = first_number(net)
    # ANCHOR: steps
    for _ in range(3):
        loss = loss_of(model, x)
        optimizer.zero_grad()
        loss.backward()  # averages the gradients
        optimizer.step()
    # ANCHOR_END: steps
    said = [None] * dist.get_world_size()
    numbers = torch.cat([p.detach().flatten() for p in net.parameters()]).cpu()
    dist.all_gather_object(said, (first, constructed, first_number(net), loss.item(), numbers))
    if rank == 0:
        for made_with, constructed_with, trained_to, last_loss, _ in said[:2]:
            print(f"made_with = {made_with:.5f}, constructed_with = {constructed_with:.5f}")
            print(f"trained_to = {trained_to:.5f}, last_loss = {last_loss:.4f}")
        if torch.equal(said[0][-1], said[1][-1]):
            print("All parameters of the two are the same, to the bit. The losses are not: each")


def first_number(net):
    return next(net.parameters())[0, 0].item()


def bucketed(rank):
    torch.manual_seed(seed)
    batch = torch.randn(int(os.environ["WORLD_SIZE"]) * batch_size, width)
    # ANCHOR: buckets
    device = set_up(rank)
    x = batch[batch_size * rank : batch_size * (rank + 1)].to(device)
    net = network(width).to(device)
    model = DistributedDataParallel(net, bucket_cap_mb=0.25)
    optimizer = sgd(model)
    # ANCHOR_END: buckets
    for _ in range(12):  # the first steps are not logged
        loss = loss_of(model, x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sizes = model._get_ddp_logging_data()["rebuilt_bucket_sizes"]
    if rank == 0:
        print(f"buckets = {len(sizes.split(','))}")


def sampled():
    dataset = TensorDataset(torch.zeros(12, 1))
    # ANCHOR: sampler
    def sampler(rank):
        return DistributedSampler(dataset, num_replicas=2, rank=rank)

    samplers = [sampler(0), sampler(1)]
    # ANCHOR_END: sampler
    for told in [False, True]:
        for epoch in range(3):
            if told:
                for sampler in samplers:
                    sampler.set_epoch(epoch)
            shares = [" ".join(map(str, sampler)) for sampler in samplers]
            print(f"{epoch:5}  {'called      ' if told else 'never called'}  {shares[0]:13}  {shares[1]}")


def uneven(rank):
    # ANCHOR: uneven
    device = set_up(rank)
    batches = 3 if rank == 0 else 4  # a shorter share
    x = torch.ones(1000, device=device)
    for _ in range(batches):
        dist.all_reduce(x)
    # ANCHOR_END: uneven


if __name__ == "__main__":
    main()

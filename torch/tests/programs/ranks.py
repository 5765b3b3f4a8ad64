"""Ranks: `spawn`, process groups, every collective, averaged gradients, and wrong use. All tensors are on the CPU."""

import datetime
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    wrong_alone()
    alone()
    for program in [collectives, objects, messages, groups, wrong, trained, unused]:
        print(program.__name__)
        queue = mp.get_context("spawn").SimpleQueue()
        mp.spawn(begin, args=(program, 2, queue), nprocs=2)
        lines = dict(queue.get() for _ in range(2))
        for rank in range(2):
            for line in lines[rank]:
                print(f"  rank {rank}: {line}")
    failed()


def begin(rank, program, world_size, queue):
    torch.manual_seed(rank)
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", "29531"
    dist.init_process_group("gloo", rank=rank, world_size=world_size, timeout=datetime.timedelta(seconds=60))
    lines = []
    program(rank, lambda *values: lines.append(" ".join(map(text, values))))
    queue.put((rank, lines))
    dist.barrier()
    dist.destroy_process_group()


def text(value):
    return str(value).replace("\n", "")


def error_of(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return "no error"


def wrong_alone():
    print(dist.is_available(), dist.is_initialized())
    print(error_of(dist.get_rank))
    print(error_of(dist.get_world_size))
    print(error_of(dist.barrier))
    print(error_of(dist.destroy_process_group))
    print(error_of(DDP, nn.Linear(2, 1)))
    print(error_of(DistributedSampler, TensorDataset(torch.zeros(4, 1))))
    print(error_of(dist.init_process_group, "gloo"))
    print(error_of(dist.init_process_group, "gloo", rank=0, world_size=1))
    print(error_of(dist.init_process_group, "gloo", init_method="tcp://127.0.0.1:29530"))
    print(error_of(dist.init_process_group, "gloo", init_method="tcp://127.0.0.1:29530", rank=0))
    print(error_of(mp.spawn, lambda rank: None, nprocs=1).split("0x")[0])


def alone():
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29530", rank=0, world_size=1)
    x = torch.arange(3.0)
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    print(x, dist.get_rank(), dist.get_world_size(), dist.get_backend(), repr(dist.ReduceOp.SUM), dist.ReduceOp.AVG)
    print(error_of(dist.init_process_group, "gloo", init_method="tcp://127.0.0.1:29530", rank=0, world_size=1))
    dist.destroy_process_group()
    print(dist.is_initialized())


def collectives(rank, say):
    own = torch.arange(4.0) + 10 * rank
    for op in [dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MIN, dist.ReduceOp.MAX]:
        x = own.clone()
        dist.all_reduce(x, op)
        say("all_reduce", x)
    x = own.clone()
    dist.broadcast(x, src=1)
    say("broadcast", x)
    parts = [torch.zeros(4) for _ in range(2)]
    dist.all_gather(parts, own)
    say("all_gather", *parts)
    x = torch.empty(8)
    dist.all_gather_into_tensor(x, own)
    say("all_gather_into_tensor", x)
    x = own.clone()
    dist.reduce(x, 1)
    say("reduce", x if rank == 1 else "")
    x = torch.zeros(2)
    dist.scatter(x, list(own.chunk(2)) if rank == 0 else None, src=0)
    say("scatter", x)
    parts = [torch.zeros(2) for _ in range(2)] if rank == 1 else None
    dist.gather(x, parts, dst=1)
    say("gather", parts)
    x = torch.zeros(2)
    dist.reduce_scatter(x, list(own.chunk(2)))
    say("reduce_scatter", x)
    x = torch.zeros(2)
    dist.reduce_scatter_tensor(x, own)
    say("reduce_scatter_tensor", x)
    x = torch.zeros(4)
    dist.all_to_all_single(x, own)
    say("all_to_all", x)
    say(error_of(dist.all_to_all, list(x.chunk(2)), list(own.chunk(2))))
    x = own.clone()
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    say("async", x, dist.all_reduce(x))


def objects(rank, say):
    found = [None, None]
    dist.all_gather_object(found, {"rank": rank, "x": torch.ones(2) * rank, "deep": [(rank, "a")]})
    say(found)
    words = ["from", "rank", rank] if rank == 0 else [None, None, None]
    dist.broadcast_object_list(words, src=0)
    say(words)
    found = [None, None] if rank == 1 else None
    dist.gather_object(str(rank), found, dst=1)
    say(found)
    out = [None]
    dist.scatter_object_list(out, ["a", "b"] if rank == 0 else None, src=0)
    say(out)


def messages(rank, say):
    x = torch.tensor([rank, 7])
    if rank == 0:
        dist.send(x, dst=1)
        say(dist.recv(x, src=1), x)
    else:
        y = torch.zeros(2, dtype=torch.int64)
        dist.recv(y, src=0)
        dist.send(y + 1, dst=0)
        say(y)
    y = torch.zeros(1)
    works = [dist.isend(torch.tensor([float(rank)]), 1 - rank), dist.irecv(y, 1 - rank)]
    for work in works:
        work.wait()
    say(y)


def groups(rank, say):
    group = dist.new_group([1])
    if rank == 1:
        x = torch.ones(2)
        dist.all_reduce(x, group=group)
        say(x, dist.get_rank(group), dist.get_world_size(group), dist.get_process_group_ranks(group))
    both = dist.new_group([0, 1])
    x = torch.ones(2) + rank
    dist.all_reduce(x, group=both)
    say(x, dist.get_global_rank(both, 1), dist.get_group_rank(both, 0))


def wrong(rank, say):
    x = torch.ones(2)
    say(error_of(dist.all_reduce, [1.0]))
    say(error_of(dist.all_gather, x, x))
    say(error_of(dist.all_gather, [x, x.long()], x))
    say(error_of(dist.all_gather, [x], x))
    say(error_of(dist.all_gather, [x, torch.ones(3)], x))
    say(error_of(dist.send, x, rank))
    say(error_of(dist.broadcast, x, 2))
    say(error_of(dist.scatter, x, None if rank == 0 else [x, x], src=0))
    say(error_of(dist.gather, x, None if rank == 0 else [x, x], dst=0))
    say(error_of(dist.new_group, [0, 5]))
    say(error_of(dist.init_process_group, "gloo"))
    say(error_of(DDP, nn.ReLU()))
    say(error_of(DDP, nn.Linear(1, 1), device_ids=[0, 1]))
    say(error_of(DDP, nn.Linear(1, 1), device_ids=[0]))


def trained(rank, say):
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
    model = DDP(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(5)
    dataset = TensorDataset(torch.randn(12, 3, generator=generator), torch.arange(12) % 2)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=3, sampler=sampler)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        say(f"{loss.item():.4f} {next(net.parameters()).sum().item():.4f} {net[1].running_mean.sum().item():.4f}")
    with model.no_sync():
        model(x).sum().backward()
    say(list(model.state_dict())[0], type(model.module).__name__, len(sampler), model.device_ids)
    print_once(rank, say, model)


def print_once(rank, say, model):
    if rank == 0:
        say(text(model).replace("  ", ""))


class TwoPaths(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(1, 1), nn.Linear(1, 1)

    def forward(self, x, both=False):
        return {"a": self.a(x), "b": self.b(x) if both else None}


def unused(rank, say):
    model = DDP(TwoPaths(), find_unused_parameters=True)
    for both in [False, rank == 0]:
        result = model(torch.ones(1, 1) * (rank + 1), both=both)
        sum(value.sum() for value in result.values() if value is not None).backward()
        say(model.module.a.weight.grad, model.module.b.weight.grad)
    model = DDP(TwoPaths())
    model(torch.ones(1, 1))["a"].sum().backward()
    say(error_of(model, torch.ones(1, 1))[:120])


def raises(rank):
    if rank == 1:
        raise ValueError("no such thing")


def exits(rank):
    if rank == 1:
        raise SystemExit(3)


def failed():
    try:
        mp.spawn(raises, nprocs=2)
    except mp.ProcessRaisedException as error:
        print(error.error_index, str(error).strip().splitlines()[0], "|", str(error).strip().splitlines()[-1])
    try:
        mp.spawn(exits, nprocs=2)
    except mp.ProcessExitedException as error:
        print(error.error_index, error.exit_code, error)
    process = mp.Process(target=raises, args=(0,))
    process.start()
    process.join()
    print(process.exitcode, process.is_alive())


if __name__ == "__main__":
    main()

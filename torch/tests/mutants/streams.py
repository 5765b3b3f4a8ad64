import torch
s = torch.cuda.Stream()
x = torch.empty(1000, pin_memory=True)
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
with torch.cuda.stream(s):
    start.record()
    y = x.to("cuda", non_blocking=True)
    z = y * 2
    end.record()
torch.cuda.current_stream().wait_stream(s)
z.record_stream(torch.cuda.current_stream())
total = z.sum()
torch.cuda.synchronize()
print(start.elapsed_time(end) > 0, total.item(), s.query(), torch.cuda.memory_stats()["num_alloc_retries"])
print(torch.cuda.memory_summary(abbreviated=True)[:10])

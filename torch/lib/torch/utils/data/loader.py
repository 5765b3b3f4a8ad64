"""`DataLoader`: batches of a dataset. Its workers are simulated: each has a seed of its own, and works when it is asked."""

from collections import namedtuple

import _torch
from _torch import Tensor, empty, int64, stack, tensor

from .datasets import IterableDataset
from .samplers import BatchSampler, RandomSampler, SequentialSampler

WorkerInfo = namedtuple("WorkerInfo", ["id", "num_workers", "seed", "dataset"])
_worker_info = None


def get_worker_info():
    return _worker_info


def default_collate(batch):
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(batch, 0)
    if isinstance(first, bool):
        return tensor(batch)
    if isinstance(first, float):
        return tensor(batch, dtype=_torch.float64)
    if isinstance(first, int):
        return tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, dict):
        return {key: default_collate([sample[key] for sample in batch]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(samples) for samples in zip(*batch)))
    if isinstance(first, (tuple, list)):
        if not all(len(sample) == len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return [default_collate(samples) for samples in zip(*batch)]
    raise TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {type(first)}"
    )


def _convert(sample):
    return sample


def _pin(data):
    if isinstance(data, Tensor):
        return data.pin_memory()
    if isinstance(data, dict):
        return {key: _pin(value) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(_pin(value) for value in data))
    if isinstance(data, (tuple, list)):
        return type(data)(_pin(value) for value in data)
    return data


class DataLoader:
    def __class_getitem__(cls, item):
        return cls

    def __init__(
        self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None,
        pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None, multiprocessing_context=None, generator=None, *,
        prefetch_factor=None, persistent_workers=False, pin_memory_device="", in_order=True,
    ):
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable multiprocessing, "
                "otherwise set prefetch_factor to None."
            )
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        self._is_iterable = isinstance(dataset, IterableDataset)
        if self._is_iterable:
            if shuffle not in (None, False):
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}"
                )
            if sampler is not None:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified sampler option, but got sampler={sampler}"
                )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None and not self._is_iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None and not self._is_iterable:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset, self.batch_size, self.drop_last, self.num_workers = dataset, batch_size, drop_last, num_workers
        self.sampler, self.batch_sampler, self.generator = sampler, batch_sampler, generator
        self.pin_memory, self.timeout, self.worker_init_fn = pin_memory, timeout, worker_init_fn
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.persistent_workers, self._iterator = persistent_workers, None
        batched = batch_sampler is not None or (self._is_iterable and batch_size is not None)
        self.collate_fn = collate_fn if collate_fn is not None else (default_collate if batched else _convert)

    def __len__(self):
        if self._is_iterable:
            length = len(self.dataset)
            if self.batch_size is not None:
                length = length // self.batch_size if self.drop_last else -(-length // self.batch_size)
            return length
        return len(self.batch_sampler if self.batch_sampler is not None else self.sampler)

    def __iter__(self):
        if not self.persistent_workers:
            return _Iterator(self)
        if self._iterator is None:
            self._iterator = _Iterator(self)
        else:
            self._iterator.begin_epoch()
        return self._iterator


class _Iterator:
    def __init__(self, loader):
        self._loader = loader
        # As in PyTorch, new workers have a new seed, which is drawn even if there are none.
        seed = int(empty((), dtype=int64).random_(generator=loader.generator).item())
        self._workers = [_Worker(loader, i, seed + i) for i in range(loader.num_workers)]
        self.begin_epoch()
        self._pins = loader.pin_memory and _is_there_a_gpu()

    def begin_epoch(self):
        for worker in self._workers:
            worker.begin_epoch()
        self._batches = self._fetch_by_workers() if self._workers else self._fetch()

    def __len__(self):
        return len(self._loader)

    def __iter__(self):
        return self

    def __next__(self):
        batch = next(self._batches)
        return _pin(batch) if self._pins else batch

    def _fetch(self):
        loader = self._loader
        if loader._is_iterable:
            yield from _batches_of(loader)
        elif loader.batch_sampler is not None:
            for indices in loader.batch_sampler:
                yield _collated(loader, indices)
        else:
            for index in loader.sampler:
                yield loader.collate_fn(loader.dataset[index])

    def _fetch_by_workers(self):
        loader, count = self._loader, len(self._workers)
        if loader._is_iterable:
            alive = list(self._workers)
            while alive:
                for worker in list(alive):
                    try:
                        yield worker.next_batch()
                    except StopIteration:
                        alive.remove(worker)
            return
        indices = loader.batch_sampler if loader.batch_sampler is not None else loader.sampler
        for i, index in enumerate(indices):
            yield self._workers[i % count].run(lambda: (
                _collated(loader, index) if loader.batch_sampler is not None else loader.collate_fn(loader.dataset[index])
            ))


def _collated(loader, indices):
    dataset = loader.dataset
    if hasattr(dataset, "__getitems__"):
        return loader.collate_fn(dataset.__getitems__(indices))
    return loader.collate_fn([dataset[index] for index in indices])


def _batches_of(loader):
    if loader.batch_size is None:
        for sample in loader.dataset:
            yield loader.collate_fn(sample)
        return
    batch = []
    for sample in loader.dataset:
        batch.append(sample)
        if len(batch) == loader.batch_size:
            yield loader.collate_fn(batch)
            batch = []
    if batch and not loader.drop_last:
        yield loader.collate_fn(batch)


class _Worker:
    """A worker has its own random numbers. Its work is done by this process, when a batch is asked for."""

    def __init__(self, loader, number, seed):
        self._info = WorkerInfo(number, loader.num_workers, seed, loader.dataset)
        self._loader, self._batches, self._state = loader, None, None
        self._start = seed

    def begin_epoch(self):
        self._batches = None

    def run(self, work):
        import random

        global _worker_info
        before, outer = _torch.get_rng_state(), _worker_info
        of_python = random.getstate()
        _worker_info = self._info
        try:
            if self._state is None:
                _torch.default_generator().manual_seed(self._start)
                random.seed(self._start)
                if self._loader.worker_init_fn is not None:
                    self._loader.worker_init_fn(self._info.id)
            else:
                _torch.set_rng_state(self._state[0])
                random.setstate(self._state[1])
            return work()
        except StopIteration:
            raise
        except Exception as error:
            if len(error.args) == 1 and isinstance(error.args[0], str) and type(error) in (RuntimeError, ValueError, TypeError, IndexError):
                error.args = (f"Caught {type(error).__name__} in DataLoader worker process {self._info.id}.\n{error.args[0]}",)
            raise
        finally:
            self._state = _torch.get_rng_state(), random.getstate()
            _torch.set_rng_state(before)
            random.setstate(of_python)
            _worker_info = outer

    def next_batch(self):
        def work():
            if self._batches is None:
                self._batches = _batches_of(self._loader)
            return next(self._batches)

        return self.run(work)


def _is_there_a_gpu():
    from torch import cuda

    return cuda.is_available()

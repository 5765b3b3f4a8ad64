"""`torch.utils.data`: datasets, samplers and loaders."""

from ..._missing import module_getattr
from .datasets import ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset, random_split
from .loader import DataLoader, default_collate, get_worker_info
from .samplers import BatchSampler, DistributedSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler

__getattr__ = module_getattr("torch.utils.data", globals())

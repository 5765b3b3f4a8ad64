"""`torch.utils.data.distributed`"""

from .samplers import DistributedSampler

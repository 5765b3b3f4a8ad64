//! One model on several GPUs (`torch.nn.parallel`, `torch.distributed`).

pub mod distributed;

//! The reducer averages gradients over ranks during backward: each ready gradient is copied into its bucket, full
//! buckets are all-reduced on a separate stream, and the averages are copied back after the last one.

use std::sync::{Arc, Mutex, MutexGuard};

use super::buckets::{ParameterSize, assign, assign_backwards};
use super::collectives::{CollectiveOptions, all_reduce, broadcast_on_host};
use super::group::ProcessGroup;
use super::work::Work;
use crate::autograd::{Reach, no_grad};
use crate::collective::ReduceOp;
use crate::dtype::DType;
use crate::error::Result;
use crate::error::distributed::DistributedError;
use crate::lock::lock;
use crate::nn::Parameter;
use crate::ops::elementwise::mul_out;
use crate::scope;
use crate::shape::Layout;
use crate::tensor::Tensor;

/// Small, so that communication starts early.
pub(super) const FIRST_BUCKET: usize = 1 << 20;
pub(super) const BUCKET: usize = 25 << 20;

pub(super) struct Reducer {
    group: ProcessGroup,
    /// The parameters that require grad, in registration order.
    parameters: Vec<(String, Parameter)>,
    limits: Vec<usize>,
    find_unused: bool,
    state: Mutex<ReducerState>,
}

struct ReducerState {
    buckets: Vec<Bucket>,
    /// The bucket of each parameter, and the index in it.
    places: Vec<(usize, usize)>,
    step: BackwardPass,
    /// Whether each parameter got a gradient on this rank since the last averaging, `no_sync` included.
    used: Vec<bool>,
    /// Rank 0's order of arrival in the first step, while it is broadcast.
    order: Option<(Tensor, Work)>,
    is_rebuilt: bool,
}

struct Bucket {
    parameters: Vec<usize>,
    flat: Tensor,
    /// The start and length of each gradient.
    parts: Vec<(usize, usize)>,
}

#[derive(Default)]
struct BackwardPass {
    /// Whether a forward pass has announced it.
    is_expected: bool,
    has_begun: bool,
    is_ready: Vec<bool>,
    unused: Vec<usize>,
    arrived: Vec<usize>,
    /// The number of missing gradients per bucket.
    missing: Vec<usize>,
    under_way: Vec<Work>,
    /// The number of ranks that used each parameter, with `find_unused` only.
    used: Option<(Tensor, Work)>,
}

impl Reducer {
    pub(super) fn new(
        group: ProcessGroup,
        parameters: Vec<(String, Parameter)>,
        limits: Vec<usize>,
        find_unused: bool,
    ) -> Result<Arc<Reducer>> {
        // With `find_unused` the order may change from step to step. Buckets are then small from the start and are not
        // rebuilt.
        let first = if find_unused { &limits[..] } else { &[usize::MAX] };
        let assigned = assign_backwards(&sizes_of(&parameters), first);
        let (buckets, places) = make(&parameters, assigned)?;
        let state = Mutex::new(ReducerState {
            buckets,
            places,
            step: BackwardPass::default(),
            used: vec![false; parameters.len()],
            order: None,
            is_rebuilt: find_unused,
        });
        let reducer = Arc::new(Reducer { group, parameters, limits, find_unused, state });
        for (index, (_, parameter)) in reducer.parameters.iter().enumerate() {
            let weak = Arc::downgrade(&reducer);
            parameter.tensor().register_post_accumulate_grad_hook(move |_| match weak.upgrade() {
                Some(reducer) => reducer.ready(index),
                None => Ok(()),
            })?;
        }
        Ok(reducer)
    }

    fn state(&self) -> MutexGuard<'_, ReducerState> {
        lock(&self.state)
    }

    pub(super) fn buckets(&self) -> Vec<(usize, Vec<String>)> {
        let state = self.state();
        let names = |bucket: &Bucket| {
            bucket.parameters.iter().map(|index| self.parameters[*index].0.clone()).collect()
        };
        let bytes = |bucket: &Bucket| bucket.flat.numel() * bucket.flat.dtype().size();
        state.buckets.iter().map(|bucket| (bytes(bucket), names(bucket))).collect()
    }

    /// Before a forward pass: checks the last backward pass, and rebuilds the buckets once the order is known.
    pub(super) fn check(&self) -> Result<()> {
        let mut state = self.state();
        if state.step.has_begun && state.step.is_expected {
            let missing = state.step.is_ready.iter().enumerate().filter(|(_, ready)| !**ready);
            let parameters = missing.map(|(index, _)| (index, self.parameters[index].0.clone())).collect();
            let (rank, looked_for) = (self.group.0.member.rank, self.find_unused);
            return Err(DistributedError::Unused { rank, parameters, looked_for }.into());
        }
        if let Some((order, work)) = state.order.take() {
            work.wait()?;
            let order: Vec<usize> = order.to_vec::<i64>()?.into_iter().map(|index| index as usize).collect();
            let assigned = assign(&order, &sizes_of(&self.parameters), &self.limits);
            state.buckets.clear(); // Frees their memory for reuse.
            (state.buckets, state.places) = make(&self.parameters, assigned)?;
            state.is_rebuilt = true;
        }
        Ok(())
    }

    /// After a forward pass: prepares for backward from `outputs`.
    pub(super) fn prepare(&self, outputs: &[&Tensor]) -> Result<()> {
        let mut state = self.state();
        let reach = self.find_unused.then(|| Reach::of(outputs));
        let is_unused = |index: &usize| {
            reach.as_ref().is_some_and(|reach| !reach.has(&self.parameters[*index].1.tensor()))
        };
        let count = self.parameters.len();
        state.step = BackwardPass {
            is_expected: true,
            is_ready: vec![false; count],
            missing: state.buckets.iter().map(|bucket| bucket.parameters.len()).collect(),
            unused: (0..count).filter(is_unused).collect(),
            ..BackwardPass::default()
        };
        Ok(())
    }

    /// Disables averaging until the next forward pass.
    pub(super) fn expect_nothing(&self) {
        self.state().step = BackwardPass::default();
    }

    fn ready(&self, index: usize) -> Result<()> {
        let mut state = self.state();
        state.used[index] = true;
        if !state.step.is_expected {
            return Ok(());
        }
        no_grad(|| {
            // Unused parameters get no gradient in this pass. Decided only now, because the program may zero gradients
            // of earlier passes before backward.
            if !std::mem::replace(&mut state.step.has_begun, true) {
                std::mem::take(&mut state.step.unused)
                    .into_iter()
                    .try_for_each(|unused| self.note(&mut state, unused))?;
            }
            state.step.arrived.push(index);
            self.note(&mut state, index)
        })
    }

    /// Copies a gradient, or zeros, into its bucket. Sends full buckets in order, as all ranks must.
    fn note(&self, state: &mut ReducerState, index: usize) -> Result<()> {
        let ReducerState { buckets, places, step, used, .. } = state;
        let (name, parameter) = &self.parameters[index];
        if std::mem::replace(&mut step.is_ready[index], true) {
            return Err(DistributedError::ReadyTwice { index, name: name.clone() }.into());
        }
        let (at, place) = places[index];
        let part = buckets[at].part(place)?;
        match parameter.grad() {
            // As in PyTorch, each rank divides before the sum.
            Some(gradient) => mul_out(&part, &gradient.reshape(&[-1])?, 1.0 / self.group.size() as f64)?,
            None => drop(part.zero_()?),
        }
        step.missing[at] -= 1;
        let options = || CollectiveOptions { group: Some(self.group.clone()), async_op: true };
        while step.under_way.len() < buckets.len() && step.missing[step.under_way.len()] == 0 {
            let flat = &buckets[step.under_way.len()].flat;
            step.under_way.push(all_reduce(flat, (ReduceOp::Sum, options()))?);
        }
        if step.under_way.len() < buckets.len() {
            return Ok(());
        }
        if self.find_unused {
            let used: Vec<i32> = used.iter().map(|used| i32::from(*used)).collect();
            let used = Tensor::from_slice(&used, &[used.len()])?.to(buckets[0].flat.device())?;
            let work = all_reduce(&used, (ReduceOp::Sum, options()))?;
            step.used = Some((used, work));
        }
        self.finish(state)
    }

    fn finish(&self, state: &mut ReducerState) -> Result<()> {
        let mut step = std::mem::take(&mut state.step);
        step.under_way.iter().try_for_each(Work::wait)?;
        let mut used = std::mem::replace(&mut state.used, vec![false; self.parameters.len()]);
        // A parameter unused on this rank still gets a gradient if another rank used it.
        if let Some((on_ranks, work)) = step.used.take() {
            work.wait()?;
            if used.contains(&false) {
                used = on_ranks.to_vec::<i32>()?.into_iter().map(|ranks| ranks > 0).collect();
            }
        }
        for bucket in &state.buckets {
            for (place, index) in bucket.parameters.iter().copied().enumerate() {
                if !used[index] {
                    continue;
                }
                let parameter = &self.parameters[index].1;
                let like = parameter.tensor();
                let average = reshaped(&bucket.part(place)?, &like)?;
                match parameter.grad() {
                    Some(gradient) => drop(gradient.copy_(&average)?),
                    None => {
                        let gradient = like.detach().zeros_like()?;
                        gradient.copy_(&average)?;
                        parameter.set_grad(Some(gradient))?;
                    }
                }
            }
        }
        if !state.is_rebuilt && state.order.is_none() {
            let order: Vec<i64> = step.arrived.iter().map(|index| *index as i64).collect();
            let order = Tensor::new(order)?;
            let work = broadcast_on_host(&self.group, &order)?;
            state.order = Some((order, work));
        }
        Ok(())
    }
}

impl Bucket {
    fn part(&self, place: usize) -> Result<Tensor> {
        let (start, length) = self.parts[place];
        self.flat.narrow(0, start, length)
    }
}

fn reshaped(row: &Tensor, like: &Tensor) -> Result<Tensor> {
    let sizes: Vec<i64> = like.sizes().iter().map(|size| *size as i64).collect();
    row.reshape(&sizes)
}

fn sizes_of(parameters: &[(String, Parameter)]) -> Vec<ParameterSize> {
    let size = |(_, parameter): &(String, Parameter)| {
        let tensor = parameter.tensor();
        let dtype: DType = tensor.dtype();
        ParameterSize { dtype, device: tensor.device(), bytes: tensor.numel() * dtype.size() }
    };
    parameters.iter().map(size).collect()
}

fn make(
    parameters: &[(String, Parameter)],
    assigned: Vec<Vec<usize>>,
) -> Result<(Vec<Bucket>, Vec<(usize, usize)>)> {
    let _scope = scope::operation("DistributedDataParallel", std::panic::Location::caller());
    let mut places = vec![(0, 0); parameters.len()];
    let mut buckets = Vec::new();
    for indices in assigned {
        let (mut parts, mut start) = (Vec::new(), 0);
        for (place, index) in indices.iter().copied().enumerate() {
            let length = parameters[index].1.numel();
            places[index] = (buckets.len(), place);
            parts.push((start, length));
            start += length;
        }
        let like = parameters[indices[0]].1.tensor();
        let flat = Tensor::uninit_on(like.device(), Layout::contiguous(&[start])?, like.dtype())?;
        buckets.push(Bucket { parameters: indices, flat, parts });
    }
    Ok((buckets, places))
}

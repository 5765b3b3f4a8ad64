use std::collections::HashSet;
use std::sync::Arc;

use super::graph::{History, Leaf, Node};
use crate::tensor::Tensor;

pub(crate) struct Reach(HashSet<*const Leaf>);

impl Reach {
    /// Collects the leaves that the gradient of `outputs` reaches.
    pub(crate) fn of(outputs: &[&Tensor]) -> Reach {
        let (mut leaves, mut seen) = (HashSet::new(), HashSet::new());
        let mut ahead: Vec<Arc<Node>> = Vec::new();
        let mut visit = |history: &History, ahead: &mut Vec<Arc<Node>>| match history {
            History::Leaf(leaf) => _ = leaves.insert(Arc::as_ptr(leaf)),
            History::Node(node) if seen.insert(Arc::as_ptr(node)) => ahead.push(node.clone()),
            History::Node(_) | History::None => {}
        };
        outputs.iter().for_each(|output| visit(&output.history(), &mut ahead));
        while let Some(node) = ahead.pop() {
            node.edges.iter().for_each(|edge| visit(&edge.to, &mut ahead));
        }
        Reach(leaves)
    }

    pub(crate) fn has(&self, leaf: &Tensor) -> bool {
        leaf.history().leaf().is_some_and(|leaf| self.0.contains(&Arc::as_ptr(leaf)))
    }
}

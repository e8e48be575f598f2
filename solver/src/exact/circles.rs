//! Where a placement need not be first fit over some order.
//!
//! Of two buffers that may be at the same offset, one may be of those that must not be above the
//! other. Around a circle of them, all that share an offset lie on each other:
//! ```text
//! x: from 25 on, any offset     y: multiples of 6
//! x <= y (or 31 above),  y <= x (or 6 above)         x and y at 30; y alone could be at 0
//! ```
//! `x` is at 30 because of `y`, and `y` because of `x`: no order of placing them from the bottom
//! up, each at the least offset that is left, finds that. If all alignments around the circle are
//! the same, its first buffer is where it would be without the others.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::instance::Instance;

/// Whether there is such a circle of buffers with different alignments.
pub(super) fn any_uneven(instance: &Instance) -> bool {
    if instance.is_plain() {
        return false; // who may be at the same offset has size 0, and nothing below it
    }
    let n = instance.len();
    let mut graph: DiGraph<u64, ()> = DiGraph::with_capacity(n, 0);
    for x in 0..n {
        graph.add_node(instance.align[x]);
    }
    for x in 0..n {
        for (y, below, above) in instance.conflicts(x) {
            if below == 0 && above > 0 {
                graph.add_edge(NodeIndex::new(x), NodeIndex::new(y), ());
            }
        }
    }
    let uneven = |circle: &Vec<NodeIndex>| circle.iter().any(|&x| graph[x] != graph[circle[0]]);
    kosaraju_scc(&graph).iter().any(uneven)
}

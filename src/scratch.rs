//! Scratch memory that kernels ask for while TFLM prepares a model: always placed on the device, around the plan.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::graph::{Graph, MAX_BYTES, OpId, Origin};
use crate::prepared::Prepared;
use crate::target::Library;
use crate::tflm::scratch::requests;

/// One request of one operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The operator whose kernel asks.
    pub operator: OpId,
    /// Position among that operator's requests.
    pub index: u32,
    /// Bytes asked for, not rounded; 0 is a request too.
    pub bytes: u64,
}

/// All scratch requests of a model, in the order in which TFLM meets them: by subgraph, by operator, by request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scratch {
    library: Library,
    requests: Vec<Request>,
}

impl Default for Scratch {
    /// No request at all.
    fn default() -> Self {
        Self {
            library: Library::Reference,
            requests: Vec::new(),
        }
    }
}

impl Scratch {
    /// What TFLM's reference kernels ask for.
    pub fn reference(graph: &Graph<'_>) -> Self {
        Self::of(Library::Reference, graph)
    }

    /// What the kernels of `library` ask for.
    pub fn of(library: Library, graph: &Graph<'_>) -> Self {
        Self::collect((library, Prepared::stored(graph)), graph, &BTreeMap::new())
    }

    /// Like [`Scratch::of`], with the bytes of some operators replaced by those of a scratch file.
    ///
    /// Operators are named by their position before this tool changed the order, so that one file serves for a model with
    /// and without its plan. A line names an operator and the bytes of each of its requests: `INDEX BYTES...` in subgraph 0 or
    /// `SUBGRAPH:INDEX BYTES...`, separated by blanks or commas. No bytes mean no request. `#` starts a comment.
    ///
    /// # Errors
    /// [`Error::Scratch`] with the line: not a number, no such operator, or an operator named twice.
    pub fn with_file(library: Library, graph: &Graph<'_>, text: &str) -> Result<Self, Error> {
        Self::with((library, Prepared::stored(graph)), graph, text)
    }

    /// As [`Scratch::with_file`], of a file with more or less prepared data.
    pub(crate) fn with(
        kernels: (Library, Prepared<'_>),
        graph: &Graph<'_>,
        text: &str,
    ) -> Result<Self, Error> {
        let mut known: BTreeMap<OpId, Vec<u64>> = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let fail = |reason: String| Error::Scratch {
                line: number + 1,
                reason,
            };
            let line = line.split('#').next().unwrap_or("");
            let mut words = line.split([' ', '\t', ',']).filter(|w| !w.is_empty());
            let Some(place) = words.next() else { continue };
            let (subgraph, index) = place.split_once(':').unwrap_or(("0", place));
            let operator = match (subgraph.parse(), index.parse()) {
                (Ok(subgraph), Ok(index)) => OpId { subgraph, index },
                _ => return Err(fail(format!("{place:?} is not INDEX or SUBGRAPH:INDEX"))),
            };
            let exists = graph
                .subgraphs
                .get(operator.subgraph as usize)
                .is_some_and(|s| (operator.index as usize) < s.operators.len());
            if !exists {
                return Err(fail(format!("the model has no {operator}")));
            }
            let bytes = words
                .map(|w| match w.parse::<u64>() {
                    Ok(n) if n <= MAX_BYTES => Ok(n),
                    _ => Err(fail(format!("{w:?} is not a number of bytes below 2 GiB"))),
                })
                .collect::<Result<Vec<_>, _>>()?;
            if bytes.len() > MAX_REQUESTS {
                return Err(fail(format!(
                    "TFLM allows an operator {MAX_REQUESTS} requests at most"
                )));
            }
            if known.insert(operator, bytes).is_some() {
                return Err(fail(format!("{operator} is named twice")));
            }
        }
        Ok(Self::collect(kernels, graph, &known))
    }

    fn collect(
        (library, prepared): (Library, Prepared<'_>),
        graph: &Graph<'_>,
        known: &BTreeMap<OpId, Vec<u64>>,
    ) -> Self {
        let mut all = Vec::new();
        for op in graph.operators() {
            let place = OpId {
                index: op.original,
                ..op.id
            };
            // What was measured of a layer is enough for a part of it.
            let measured = known.get(&place).filter(|_| op.origin != Origin::Added);
            let sizes = match measured {
                Some(sizes) => sizes.clone(),
                None => requests(library, graph, op, prepared),
            };
            for (index, bytes) in sizes.into_iter().enumerate() {
                all.push(Request {
                    operator: op.id,
                    index: index as u32,
                    bytes,
                });
            }
        }
        Self {
            library,
            requests: all,
        }
    }

    /// The kernels whose requests these are, but for what a scratch file replaced.
    pub fn library(&self) -> Library {
        self.library
    }

    /// The requests, in TFLM's order.
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether no kernel asks for any.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }
}

/// `kMaxScratchBuffersPerOp` of TFLM's `micro_allocator.cc`.
const MAX_REQUESTS: usize = 12;

//! Bytes that operators and tensors keep in the tail, one by one: what a rewriting adds is a sum of them.
//!
//! The sums are exact but for alignment, which takes up to 15 bytes more or fewer, however many there are.

use crate::graph::{Graph, Operator};
use crate::target::{Library, Target};
use crate::tflm::tail::{self, Width};

/// Who keeps something in the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    library: Library,
    width: Width,
}

impl Tail {
    /// On a device of 32 bits, with the first of a target's libraries.
    pub fn of(target: Target) -> Self {
        let library = target.libraries().first().copied();
        Self::with(library.unwrap_or(Library::Reference), Width::Bits32)
    }

    /// With a library of kernels. `width` is that of TFLM's structs; the runtime has the same words on both.
    pub fn with(library: Library, width: Width) -> Self {
        Self { library, width }
    }

    /// An operator like one of the file, without its tensors.
    pub fn operator(&self, graph: &Graph<'_>, op: &Operator<'_>) -> u64 {
        match self.library {
            Library::Arenaplan => WORD,
            library => tail::bytes_of_operator(graph, op, library, self.width),
        }
    }

    /// A SLICE, without its tensors: three, of which the first of its rows and their number can serve others as well.
    pub fn slice(&self) -> u64 {
        match self.library {
            Library::Arenaplan => WORD,
            _ => tail::bytes_of_slice(self.width),
        }
    }

    /// A CONCATENATION, without its output.
    pub fn concatenation(&self) -> u64 {
        match self.library {
            Library::Arenaplan => WORD,
            _ => tail::bytes_of_concatenation(self.width),
        }
    }

    /// A tensor, constants included.
    pub fn tensor(&self) -> u64 {
        match self.library {
            Library::Arenaplan => WORD,
            _ => tail::bytes_of_tensor(self.width),
        }
    }
}

/// The runtime keeps a word for each tensor and for each operator (`runtime/src/run.rs`).
const WORD: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use crate::scratch::Scratch;
    use crate::target::Core;
    use arenaplan_schema::tflite::BuiltinOperator as Op;

    fn bytes(name: &str) -> Vec<u8> {
        let root = env!("CARGO_MANIFEST_DIR");
        std::fs::read(format!("{root}/testdata/models/{name}.tflite")).unwrap_or_default()
    }

    const WIDTHS: [Width; 2] = [Width::Bits32, Width::Bits64];
    const LIBRARIES: [Library; 2] = [Library::Reference, Library::CmsisNn(Core::Dsp)];

    /// All operators of a model, one by one, against the sections of the whole tail.
    #[test]
    fn sums() {
        for name in [
            "conv_int8",
            "mobilenet_v2_int8",
            "inception_int8",
            "unet_int8",
            "reductions_int8",
            "conv_float32",
        ] {
            let bytes = bytes(name);
            let graph = Model::parse(&bytes).and_then(Graph::read).unwrap();
            for (library, width) in LIBRARIES.iter().flat_map(|&l| WIDTHS.map(|w| (l, w))) {
                let kept = Tail::with(library, width);
                let scratch = Scratch::of(library, &graph);
                let whole = tail::tail_bytes_with(&graph, &scratch, width);
                let operators: u64 = graph.operators().map(|op| kept.operator(&graph, op)).sum();
                let sections =
                    whole.operators + whole.options + whole.kernels + whole.scratch_handles;
                assert!(
                    operators.abs_diff(sections) < 16,
                    "{name}: {operators} for {sections}"
                );
                let tensors = graph.tensors.len() as u64 * kept.tensor();
                // A subgraph has an entry, too.
                assert!(
                    (8..=24).contains(&(whole.tensors - tensors)),
                    "{name}: {tensors}"
                );
            }
        }
    }

    /// What stripes add is what operators of the same kinds in a file take.
    #[test]
    fn joins() {
        let bytes = bytes("inception_int8");
        let graph = Model::parse(&bytes).and_then(Graph::read).unwrap();
        let join = graph
            .operators()
            .find(|op| op.code == Op::CONCATENATION)
            .unwrap();
        for (library, width) in LIBRARIES.iter().flat_map(|&l| WIDTHS.map(|w| (l, w))) {
            let kept = Tail::with(library, width);
            assert_eq!(kept.concatenation(), kept.operator(&graph, join));
        }
        // Struct and options of 24 and 8 bytes beside the operator's entry of 32 (`concatenation.cc` on 32 bits).
        assert_eq!(
            Tail::with(Library::Reference, Width::Bits32).concatenation(),
            32 + 8 + 32
        );
        assert_eq!(Tail::of(Target::Tflm).slice(), 32);
    }

    /// The runtime's tail, which it knows exactly.
    #[test]
    fn runtime() {
        for name in ["conv_int8", "mobilenet_v2_int8", "resnet_int8"] {
            let bytes = bytes(name);
            let graph = Model::parse(&bytes).and_then(Graph::read).unwrap();
            let kept = Tail::of(Target::Arenaplan);
            let operators: u64 = graph.operators().map(|op| kept.operator(&graph, op)).sum();
            let sum = operators + graph.tensors.len() as u64 * kept.tensor();
            let kernels = arenaplan_runtime::ops::ALL;
            let exact = arenaplan_runtime::tail_bytes(&bytes, kernels).unwrap() as u64;
            assert_eq!(sum.next_multiple_of(16), exact, "{name}");
        }
    }
}

//! Operators with two inputs, whose dimensions of 1 are as long as they have to be.
//!
//! The output is written from its first element to its last, in runs: within a run each input goes on by one element at a
//! time, or stays where it is. Neighbouring dimensions that all inputs go through alike are one, so that inputs of one shape
//! are one run.

use crate::error::Fault;
use crate::memory::{Element, View, ViewMut};
use crate::node::{Node, Tensor};
use crate::types::Type;

/// Most dimensions, as TFLM's `RuntimeShape` has it.
const MAX_RANK: usize = 6;

/// A dimension of the output, or some that are one.
#[derive(Clone, Copy)]
struct Axis {
    len: usize,
    /// How far we are.
    index: usize,
    /// How many elements one step is, in each input.
    strides: [usize; 3],
}

/// The runs of an output, one after the other.
pub(super) struct Runs {
    /// Innermost first; the first is the run itself.
    axes: [Axis; MAX_RANK],
    rank: usize,
    /// Where the run starts in each input.
    pub(super) at: [usize; 3],
    /// Where the next run starts in the output.
    next: usize,
}

impl Runs {
    /// No runs yet.
    pub(super) const NONE: Self = Self {
        axes: [Axis {
            len: 0,
            index: 0,
            strides: [0; 3],
        }; MAX_RANK],
        rank: 0,
        at: [0; 3],
        next: 0,
    };

    /// Sets the runs of `output` when it is computed from `inputs`, at most three.
    ///
    /// # Errors
    /// [`Fault::Shape`] of an input that has not the output's dimensions, nor 1 in their place; or of the output, if it has
    /// too many.
    #[inline(never)]
    pub(super) fn set(&mut self, output: &Tensor<'_>, inputs: &[&Tensor<'_>]) -> Result<(), Fault> {
        // Where all dimensions are 1.
        self.axes[0].len = 1;
        let mut rank = output.shape().rank();
        for input in inputs {
            rank = rank.max(input.shape().rank());
        }
        if rank > MAX_RANK {
            return Err(output.wrong_shape());
        }
        let mut elements = [1usize; 3];
        for axis in 0..rank {
            let len = output.shape().dim_from_end(axis);
            let mut strides = [0; 3];
            for ((input, elements), stride) in inputs.iter().zip(&mut elements).zip(&mut strides) {
                let dim = input.shape().dim_from_end(axis);
                if dim != len && dim != 1 {
                    return Err(input.wrong_shape());
                }
                if dim == len {
                    *stride = *elements;
                }
                *elements = elements.wrapping_mul(dim);
            }
            if len != 1 {
                self.push(len, strides);
            }
        }
        Ok(())
    }

    /// Adds a dimension outside of the others.
    fn push(&mut self, len: usize, strides: [usize; 3]) {
        let last = self.axes.get_mut(self.rank.wrapping_sub(1));
        if let Some(last) = last {
            let on = last.strides.map(|stride| stride.wrapping_mul(last.len));
            if on == strides {
                last.len = last.len.wrapping_mul(len);
                return;
            }
        }
        if let Some(axis) = self.axes.get_mut(self.rank) {
            *axis = Axis {
                len,
                index: 0,
                strides,
            };
            self.rank += 1;
        }
    }

    /// Elements of a run.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.axes[0].len
    }

    /// By how much each input goes on within a run.
    #[inline(always)]
    pub(super) fn steps(&self) -> [usize; 3] {
        self.axes[0].strides
    }

    /// Goes to the next run, which is the first one at first, and says where it starts in `output`; `None` at the end.
    #[inline(never)]
    pub(super) fn next(&mut self, elements: usize) -> Option<usize> {
        let start = self.next;
        if start >= elements {
            return None;
        }
        self.next = start.wrapping_add(self.axes[0].len);
        if start == 0 {
            return Some(0);
        }
        for axis in self.axes.iter_mut().take(self.rank).skip(1) {
            let step = |at: &mut [usize; 3], sign: usize| {
                for (at, stride) in at.iter_mut().zip(axis.strides) {
                    *at = at.wrapping_add(stride.wrapping_mul(sign));
                }
            };
            axis.index += 1;
            if axis.index < axis.len {
                step(&mut self.at, 1);
                break;
            }
            step(&mut self.at, 1usize.wrapping_sub(axis.len));
            axis.index = 0;
        }
        Some(start)
    }
}

/// The tensors of an operator with two inputs.
pub(super) struct Operands<'a> {
    pub(super) a: Tensor<'a>,
    pub(super) b: Tensor<'a>,
    pub(super) output: Tensor<'a>,
}

impl<'a> Operands<'a> {
    /// The tensors of `node`.
    ///
    /// # Errors
    /// If one of them is missing.
    #[inline(never)]
    pub(super) fn new(node: &Node<'a>) -> Result<Self, Fault> {
        Ok(Self {
            a: node.input(0)?,
            b: node.input(1)?,
            output: node.output(0)?,
        })
    }

    /// The type of all three.
    ///
    /// # Errors
    /// [`Fault::ElementType`] if they differ.
    #[inline(never)]
    pub(super) fn one_type(&self) -> Result<Type, Fault> {
        let element_type = self.output.element_type();
        self.a.expect(element_type)?;
        self.b.expect(element_type)?;
        Ok(element_type)
    }

    /// Computes all elements of the output: `f` of the inputs' elements in their place. The types stand for those of the
    /// tensors.
    ///
    /// # Errors
    /// If shapes do not fit, or a tensor is not in memory.
    #[inline(always)]
    pub(super) fn compute<A: Element, B: Element, O: Element>(
        &self,
        f: impl Fn(A, B) -> O,
    ) -> Result<(), Fault> {
        self.each_run(&|run| {
            let (a, b) = (run.a.cast::<A>(), run.b.cast::<B>());
            if let (Some(a), Some(b), Some(output)) = (a, b, run.output.cast::<O>()) {
                output.zip((a, run.steps[0]), (b, run.steps[1]), &f);
            }
        })
    }

    /// Calls `f` with the bytes of each run. All but `f` is there once for all kernels and types.
    #[inline(never)]
    fn each_run(&self, f: &dyn Fn(&Run<'_>)) -> Result<(), Fault> {
        let shape = self.output.shape();
        match self.a.shape() == shape && self.b.shape() == shape {
            true => self.one_run(f),
            false => self.all_runs(f),
        }
    }

    /// Tensors of one shape are one run. With little on the stack, since this is the usual case.
    #[inline(never)]
    fn one_run(&self, f: &dyn Fn(&Run<'_>)) -> Result<(), Fault> {
        f(&Run {
            a: self.a.bytes()?,
            b: self.b.bytes()?,
            steps: [1; 3],
            output: self.output.bytes_mut()?,
        });
        Ok(())
    }

    #[inline(never)]
    fn all_runs(&self, f: &dyn Fn(&Run<'_>)) -> Result<(), Fault> {
        let (a, b) = (self.a.bytes()?, self.b.bytes()?);
        let output = self.output.bytes_mut()?;
        let size = |tensor: &Tensor<'_>| tensor.element_type().bytes().unwrap_or(1);
        let sizes = [size(&self.a), size(&self.b), size(&self.output)];
        let mut runs = Runs::NONE;
        runs.set(&self.output, &[&self.a, &self.b])?;
        while let Some(start) = runs.next(self.output.len()) {
            let start = start.wrapping_mul(sizes[2]);
            let len = runs.len().wrapping_mul(sizes[2]);
            let Some(output) = output.part(start, len) else {
                break;
            };
            f(&Run {
                a: a.skip(runs.at[0].wrapping_mul(sizes[0])),
                b: b.skip(runs.at[1].wrapping_mul(sizes[1])),
                steps: runs.steps(),
                output,
            });
        }
        Ok(())
    }
}

/// The bytes of a run, from its first element on.
struct Run<'a> {
    a: View<'a, u8>,
    b: View<'a, u8>,
    steps: [usize; 3],
    output: ViewMut<'a, u8>,
}

//! The device side that a plan is made for.

use std::fmt;
use std::str::FromStr;

/// What will run the planned model. It decides what a plan may assume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// TensorFlow Lite Micro with any kernel library: nothing is assumed that some kernel might not keep. Scratch
    /// memory is that of the reference kernels.
    Tflm,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Tflm => f.write_str("tflm"),
        }
    }
}

/// A target name that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTarget(String);

impl fmt::Display for UnknownTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown target {:?}; known: tflm", self.0)
    }
}

impl std::error::Error for UnknownTarget {}

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "tflm" => Ok(Target::Tflm),
            _ => Err(UnknownTarget(text.to_owned())),
        }
    }
}

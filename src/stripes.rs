//! Row stripes: layers that set the peak are computed a few rows at a time.
//!
//! Vision models peak in their first layers. A region of layers is rewritten: stock SLICEs take the rows of its input that a
//! part of its result needs, copies of the unchanged layers compute that part, and a CONCATENATION joins the parts.
//!
//! ```text
//! A --layers--> B         A --SLICE--> rows --layers--> part 1 --.
//!                         A --SLICE--> rows --layers--> part 2 ---CONCATENATION--> B
//! ```
//!
//! The outputs stay the same to the bit (`rows` says why), with any kernels. Rows at a cut are computed twice, which
//! costs time.

mod choose;
pub mod cost;
mod emit;
mod estimate;
mod found;
mod kernels;
mod meetings;
mod net;
mod place;
mod proof;
mod region;
mod rows;
mod search;
mod seen;
mod spent;
mod split;
pub mod tail;
#[cfg(test)]
mod tests;

pub(crate) use found::{Found, search};
pub use net::{Net, Reason};
pub(crate) use proof::{ProofError, prove};
pub use region::Region;
pub use rows::{Given, Rows, Window};
pub(crate) use search::WEIGHT;
pub use seen::{Seen, SeenLayers, seen};
pub use split::MAX_STRIPES;

//! Prepared data: what the host computed beforehand, which kernels then read from flash.
//!
//! It is the metadata entry [`PREPARED_NAME`], aligned to 4 bytes or more, little-endian:
//!
//! ```text
//! u32                version of this layout: 1
//! u32                operators of all subgraphs
//! u16 * operators    channels of each operator, one subgraph after another; 0 for one without data
//! padding            to a multiple of 4 bytes
//! for each operator with data, in the same order:
//!   i32 * channels   multipliers
//!   i8 * channels    shifts, all bits turned: -1 for none, one more for each bit to the right
//!   padding          to a multiple of 4 bytes
//! ```
//!
//! An operator's data are the factors of its output channels, `input scale * filter scale / output scale`, as
//! [`Multiplier`] has them. Nothing follows the last one.
//!
//! What is there saves a device the time to compute it, and the scratch memory to keep it in. It is compared with the
//! model's scales when a session is made: data of another model, or from before a change, are an error and no wrong
//! numbers. Afterwards the word of an operator says where in the file its data are. An operator without data has its
//! factors computed as it starts.
//!
//! Firmware whose kernels have no use for such data links nothing of this.

use arenaplan_schema::view::{Model, PREPARED_NAME};

use crate::contract::{unplaced, with};
use crate::error::Error;
use crate::fixed::Multiplier;
use crate::kernel::Kernel;
use crate::memory::View;
use crate::memory::columns::Columns;
use crate::node::Node;
use crate::ops::factors;
use crate::prepare::for_each_node;
use crate::run::{Place, Run};

/// The layout that is understood.
pub const VERSION: u32 = 1;

/// Bytes before the numbers of channels.
const HEADER: usize = 8;

/// Finds the model's prepared data, checks them, and notes where they are. Kernels have this beside them whose operators may
/// have such data.
pub(crate) type Find = fn(&Run<'_>) -> Result<(), Error>;

/// The function, if one of the kernels has it.
pub(crate) fn prepared(kernels: &[Kernel]) -> Option<Find> {
    kernels.iter().find_map(|kernel| kernel.prepared)
}

/// A [`Multiplier`] with all bits of its shift turned, which is what kernels shift to the right by, and one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turned {
    pub(crate) multiplier: i32,
    pub(crate) turned: i32,
}

impl From<Multiplier> for Turned {
    #[inline(always)]
    fn from(factor: Multiplier) -> Self {
        Self {
            multiplier: factor.multiplier,
            turned: !factor.shift,
        }
    }
}

/// The factors of the channels of one operator, in the file or in scratch memory: multipliers, and shifts with all bits turned.
#[derive(Clone, Copy, Default)]
pub(crate) struct Table<'a>(pub(crate) Columns<'a>);

impl Table<'_> {
    /// The factors of `len` channels from `channel` on.
    #[inline(always)]
    pub(crate) fn part(self, channel: usize, len: usize) -> Option<Self> {
        self.0.part(channel, len).map(Self)
    }

    /// The factor of a channel.
    #[inline(always)]
    pub(crate) fn get(self, channel: usize) -> Turned {
        let (multiplier, turned) = self.0.get(channel);
        Turned {
            multiplier,
            turned: i32::from(turned),
        }
    }
}

/// A factor as the layout has it: the multiplier, and the shift with all bits turned.
pub fn row(factor: Multiplier) -> (i32, i8) {
    (factor.multiplier, !factor.shift as i8)
}

impl<'a> Node<'a> {
    /// The operator's factors in the file, if they are there.
    #[inline(never)]
    pub(crate) fn prepared(&self, channels: usize) -> Option<Table<'a>> {
        let place = Place(self.run.operator_word(self.number())).as_file()?;
        let file = self.run.model.as_bytes().get(place..)?;
        Columns::of(View::of(file), channels).map(Table)
    }
}

/// As [`Find`].
pub(crate) fn find(run: &Run<'_>) -> Result<(), Error> {
    let Some(entry) = run.model.metadata_data(PREPARED_NAME)? else {
        return Ok(());
    };
    let wrong = Error::PreparedForm { bytes: entry.len() };
    let bytes = View::of(entry);
    let words = bytes.part(0, HEADER).and_then(View::cast::<u32>);
    let words = words.ok_or(wrong)?;
    if words.get(0) != VERSION {
        return Err(Error::PreparedVersion {
            version: words.get(0),
        });
    }
    let operators = words.get(1) as usize;
    let list = operators.checked_mul(2).ok_or(wrong)?;
    let channels = bytes.part(HEADER, list).and_then(View::cast::<u16>);
    let channels = channels.ok_or(wrong)?;
    // The list is within the file, whose bytes are fewer than addresses.
    let mut at = padded(HEADER + list);
    let mut seen = 0;
    for_each_node(run, &mut |node| {
        let count = usize::from(channels.get(seen));
        seen += 1;
        if count == 0 {
            return Ok(());
        }
        let other = Error::PreparedFactors {
            subgraph: node.subgraph(),
            operator: node.index,
        };
        let kernel = run.kernel(node).ok_or(other)?;
        if kernel.prepared.is_some() {
            let table = entry.get(at..);
            let table = table.and_then(|rest| Columns::of(View::of(rest), count));
            let table = Table(table.ok_or(wrong)?);
            if factors::equal(node, table, count) != Ok(true) {
                return Err(other);
            }
            let place = entry.as_ptr().addr().wrapping_add(at);
            let place = place.wrapping_sub(run.model.as_bytes().as_ptr().addr());
            let place = Place::file(place).ok_or(Error::TooLarge)?;
            run.set_operator_word(node.number(), place.0);
        } else if !factors::CODES.contains(&kernel.code) {
            // What is left is an application's own kernel, which has no use for them.
            return Err(other);
        }
        // Not above the file's bytes by more than a table has.
        at = padded(at.saturating_add(count * 5));
        Ok(())
    })?;
    match seen == operators && at == entry.len() {
        true => Ok(()),
        false => Err(wrong),
    }
}

/// Whether the model's prepared data, if it has any, are right for `kernels`: what a session checks.
///
/// The bytes of the model start at a multiple of 16.
///
/// # Errors
/// If the file is damaged, or one of those about prepared data ([`Error::is_about_prepared`]).
pub fn check(model: &[u8], kernels: &[Kernel]) -> Result<(), Error> {
    let model = Model::new(model)?;
    match prepared(kernels) {
        Some(find) => find(&unplaced(&model, kernels)),
        None => Ok(()),
    }
}

/// Shows the factors that may be prepared for operator `operator` in subgraph `subgraph` to `each`, by channel, and returns how
/// many they are; 0 for an operator that has no use for any. For compilers.
///
/// # Errors
/// If the file is damaged, there is no such operator or kernel, or the operator's scales are missing.
pub fn factors_of(
    model: &[u8],
    kernels: &[Kernel],
    (subgraph, operator): (usize, usize),
    each: &mut dyn FnMut(usize, Multiplier),
) -> Result<usize, Error> {
    with(
        model,
        kernels,
        (subgraph, operator),
        &mut |node, kernel| match kernel.prepared {
            Some(_) => factors::each(node, each),
            None => Ok(0),
        },
    )
}

fn padded(bytes: usize) -> usize {
    bytes.wrapping_add(3) & !3
}

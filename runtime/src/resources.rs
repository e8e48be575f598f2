//! What VAR_HANDLE names: a value for each name, in the tail.
//!
//! Firmware whose kernels have no VAR_HANDLE links nothing of this.

use arenaplan_schema::view::{Model, Operator, SubGraph};

use crate::error::Error;
use crate::kernel::{Code, Kernel};
use crate::prepare::{Sizes, add, byte_len, rounded};
use crate::run::{Numbers, Place, Run};

/// What is done with resources, reached through the kernel of VAR_HANDLE.
pub(crate) struct Resources {
    /// Adds their number and bytes.
    pub(crate) count: fn(&Model<'_>, &mut Sizes) -> Result<(), Error>,
    /// Gives each handle the number of its resource.
    pub(crate) number: fn(&Run<'_>) -> Result<(), Error>,
    /// Places the values in the tail from an offset on; the result is the offset behind them.
    pub(crate) place: fn(&Run<'_>, usize) -> Result<usize, Error>,
    /// Sets the values to what they are before the first inference.
    pub(crate) reset: fn(&Run<'_>) -> Result<(), Error>,
}

pub(crate) static RESOURCES: Resources = Resources {
    count,
    number,
    place,
    reset,
};

/// The functions, if one of the kernels needs them.
pub(crate) fn resources(kernels: &[Kernel]) -> Option<&'static Resources> {
    kernels.iter().find_map(|kernel| kernel.resources)
}

fn count(model: &Model<'_>, sizes: &mut Sizes) -> Result<(), Error> {
    for_each_resource(model, &mut |bytes, _| {
        sizes.resources += 1;
        sizes.state_bytes = add(sizes.state_bytes, rounded(bytes)?)?;
        Ok(())
    })
}

fn number(run: &Run<'_>) -> Result<(), Error> {
    let model = &run.model;
    let mut number = 0;
    for_each_operator(model, &mut |_, _, first| {
        if code(model, first)? != Code::VAR_HANDLE || !is_first(model, first)? {
            return Ok(());
        }
        let name = resource_name(first)?;
        for_each_operator(model, &mut |_, numbers, operator| {
            if code(model, operator)? == Code::VAR_HANDLE
                && resource_name(operator)? == name
                && let Some(tensor) = operator
                    .outputs()?
                    .get(0)
                    .and_then(|t| u32::try_from(t).ok())
            {
                let index = numbers.tensor.saturating_add(tensor);
                if index < run.tensors {
                    run.words.set(index as usize, Place::resource(number).0);
                }
            }
            Ok(())
        })?;
        number += 1;
        Ok(())
    })
}

fn place(run: &Run<'_>, mut next: usize) -> Result<usize, Error> {
    let first = run.tensors.saturating_add(run.operators) as usize;
    let mut number = 0;
    for_each_resource(run.model, &mut |bytes, _| {
        let place = Place::tail(next).ok_or(Error::TooLarge)?;
        run.words.set(first + number * 2, place.0);
        run.words.set(first + number * 2 + 1, bytes as u32);
        number += 1;
        next = add(next, rounded(bytes)?)?;
        Ok(())
    })?;
    Ok(next)
}

fn reset(run: &Run<'_>) -> Result<(), Error> {
    let mut number = 0;
    for_each_resource(run.model, &mut |_, zero| {
        if let Some(value) = run.resource(number) {
            value.fill(zero);
        }
        number += 1;
        Ok(())
    })
}

/// The name of the resource that a VAR_HANDLE stands for.
fn resource_name<'a>(operator: &Operator<'a>) -> Result<(&'a [u8], &'a [u8]), Error> {
    let Some(options) = operator.options()? else {
        return Ok((&[], &[]));
    };
    let text = |slot| -> Result<&'a [u8], Error> {
        Ok(options.text(slot)?.map_or(&[], |text| text.as_bytes()))
    };
    Ok((text(0)?, text(1)?))
}

fn code(model: &Model<'_>, operator: &Operator<'_>) -> Result<Code, Error> {
    let code = model
        .operator_codes()?
        .get(operator.opcode_index()? as usize)?;
    Ok(Code(code.builtin_code()?))
}

/// The VAR_HANDLE that makes tensor `tensor` of `subgraph`.
fn handle<'a>(
    model: &Model<'a>,
    subgraph: &SubGraph<'a>,
    tensor: i32,
) -> Result<Option<Operator<'a>>, Error> {
    for operator in subgraph.operators()? {
        let operator = operator?;
        if code(model, &operator)? == Code::VAR_HANDLE && operator.outputs()?.get(0) == Some(tensor)
        {
            return Ok(Some(operator));
        }
    }
    Ok(None)
}

/// Calls `with` for each VAR_HANDLE that is the first of its name, with the bytes of what is first assigned to it, and the byte
/// that stands for zero there.
fn for_each_resource<'a>(
    model: &Model<'a>,
    with: &mut dyn FnMut(usize, u8) -> Result<(), Error>,
) -> Result<(), Error> {
    for_each_operator(model, &mut |_, _, operator| {
        if code(model, operator)? != Code::VAR_HANDLE || !is_first(model, operator)? {
            return Ok(());
        }
        let name = resource_name(operator)?;
        let mut found = None;
        for_each_operator(model, &mut |subgraph, numbers, assign| {
            if found.is_some() || code(model, assign)? != Code::ASSIGN_VARIABLE {
                return Ok(());
            }
            let inputs = assign.inputs()?;
            let (Some(to), Some(from)) = (inputs.get(0), inputs.get(1)) else {
                return Ok(());
            };
            let Some(handle) = handle(model, subgraph, to)? else {
                return Ok(());
            };
            if resource_name(&handle)? == name {
                let at = usize::try_from(from).unwrap_or(usize::MAX);
                let id = numbers.tensor.saturating_add(at as u32);
                let table = subgraph.tensors()?.get(at)?;
                let zero = match table.quantization()? {
                    Some(quantization) => quantization.zero_point()?.get(0).unwrap_or(0),
                    None => 0,
                };
                found = Some((byte_len(&table, id)?, zero as u8));
            }
            Ok(())
        })?;
        let (bytes, zero) = found.unwrap_or((0, 0));
        with(bytes, zero)
    })
}

/// Whether no VAR_HANDLE before `operator` has its name.
fn is_first(model: &Model<'_>, operator: &Operator<'_>) -> Result<bool, Error> {
    let name = resource_name(operator)?;
    let mut first = None;
    for_each_operator(model, &mut |_, _, other| {
        if first.is_none()
            && code(model, other)? == Code::VAR_HANDLE
            && resource_name(other)? == name
        {
            first = Some(other.table().position());
        }
        Ok(())
    })?;
    Ok(first == Some(operator.table().position()))
}

type EachOperator<'f, 'a> =
    dyn FnMut(&SubGraph<'a>, Numbers, &Operator<'a>) -> Result<(), Error> + 'f;

fn for_each_operator<'a>(model: &Model<'a>, with: &mut EachOperator<'_, 'a>) -> Result<(), Error> {
    let mut numbers = Numbers::default();
    for subgraph in model.subgraphs()? {
        let subgraph = subgraph?;
        for (k, operator) in subgraph.operators()?.into_iter().enumerate() {
            let operator_number = numbers.operator.saturating_add(k as u32);
            let numbers = Numbers {
                operator: operator_number,
                ..numbers
            };
            with(&subgraph, numbers, &operator?)?;
        }
        numbers.skip(&subgraph)?;
    }
    Ok(())
}

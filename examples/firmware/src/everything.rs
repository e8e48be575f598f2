//! Calls all that the runtime offers to an application, so that all of it is linked; nothing here computes anything.

use core::fmt::Write;
use core::hint::black_box;
use core::ptr::addr_of_mut;

use arenaplan_runtime::contract::overlap;
use arenaplan_runtime::fixed::{
    Multiplier, activation_range, activation_range_f32, clamp, doubling_high, rounding_shift_right,
};
use arenaplan_runtime::self_test::{Expected, Output, Port, SelfTest, Signal};
use arenaplan_runtime::{
    Arena, Code, Contract, Error, Fault, Interpreter, Kernel, Node, Observer, Session, Tensor,
    Type, Value, View, ViewMut, ops, tail_bytes,
};

static mut HEAD: Arena<512> = Arena::new();
static mut TAIL: Arena<512> = Arena::new();

/// A kernel of an application, with options and scratch memory.
const OWN: Kernel = Kernel::custom("Own", own)
    .with_contract(Contract::Elementwise)
    .with_scratch(scratch);

/// To be called once.
///
/// # Errors
/// Whatever the first call gives that fails.
#[inline(never)]
pub fn everything(interpreter: &mut Interpreter<'_, '_>, model: &[u8]) -> Result<(), Error> {
    let any = black_box(0);
    typed::<i8>(interpreter, any)?;
    typed::<u8>(interpreter, any)?;
    typed::<i16>(interpreter, any)?;
    typed::<u16>(interpreter, any)?;
    typed::<i32>(interpreter, any)?;
    typed::<u32>(interpreter, any)?;
    typed::<i64>(interpreter, any)?;
    typed::<u64>(interpreter, any)?;
    typed::<f32>(interpreter, any)?;
    black_box(interpreter.recording()?.usage);
    let session = interpreter.session();
    black_box((session.inputs(), session.outputs()));
    black_box((
        session.head_bytes(),
        session.room_bytes(),
        session.tail_bytes(),
        session.head_offset(black_box(0)),
    ));
    for info in [session.input_info(any)?, session.output_info(any)?] {
        black_box(info.quantization());
        black_box((info.element_type, info.shape));
    }
    interpreter.invoke_observed(&Look)?;
    interpreter.reset()?;
    interpreter.input_bytes(any)?.fill(black_box(1));
    black_box(interpreter.output_bytes(any)?);
    self_test(interpreter);

    // SAFETY: called once, so that there is no other reference.
    let (head, tail) = unsafe { (&mut *addr_of_mut!(HEAD), &mut *addr_of_mut!(TAIL)) };
    let (head, tail) = (
        black_box(head.as_mut_slice()),
        black_box(tail.as_mut_slice()),
    );
    let kernels = black_box(&[OWN] as &[Kernel]);
    black_box(tail_bytes(model, kernels)?);
    black_box(ops::find(kernels, Code(black_box(3))).map(|kernel| kernel.code()));
    let mut session = Session::new(model, kernels, head, tail)?;
    session.input::<i16>(head, any)?.fill(black_box(1));
    session.invoke(head)?;
    session.invoke_observed(head, &Look)?;
    black_box(session.output::<f32>(head, any)?);
    black_box(session.recording()?.head_bytes);
    if let Err(error) = session.reset() {
        let _ = write!(Sink, "{error} {error:?}");
    }
    let recording = interpreter.recording()?;
    let _ = write!(Sink, "{recording} {recording:?} {session:?}");
    Ok(())
}

/// Tests of all forms, of which nothing is known beforehand.
#[inline(never)]
fn self_test(interpreter: &mut Interpreter<'_, '_>) {
    let port = Port {
        element_type: Type(black_box(0)),
        bytes: black_box(0),
    };
    let signal = Signal {
        seed: black_box(1),
        narrow: black_box(0),
        hold: black_box(0),
    };
    let bytes: &[u8] = black_box(&[1]);
    let numbers: &[f32] = black_box(&[1.0]);
    let near = Expected::Near {
        step: black_box(1),
        within: numbers,
        values: numbers,
    };
    let all = [
        Expected::Bytes(bytes),
        Expected::Digests(black_box(&[1])),
        near,
    ];
    let outputs = black_box(all).map(|expected| Output { port, expected });
    let (inputs, signals) = ([port], [signal]);
    let test = SelfTest {
        inputs: black_box(&inputs),
        outputs: black_box(&outputs),
        signals: black_box(&signals),
    };
    if let Err(failure) = test.run(interpreter) {
        let _ = write!(Sink, "{failure} {failure:?}");
    }
}

struct Sink;

impl Write for Sink {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        black_box(text);
        Ok(())
    }
}

fn typed<T: Value>(interpreter: &mut Interpreter<'_, '_>, index: usize) -> Result<(), Error> {
    interpreter.input::<T>(index)?.fill(T::default());
    interpreter.set_input::<T>(index, black_box(&[]))?;
    black_box(interpreter.output::<T>(index)?);
    Ok(())
}

struct Look;

impl Observer for Look {
    fn before(&self, subgraph: u32, operator: u32, head: ViewMut<'_, u8>) {
        black_box((subgraph, operator, head));
    }

    fn after(&self, subgraph: u32, operator: u32, head: ViewMut<'_, u8>) {
        black_box((subgraph, operator, head));
    }
}

fn scratch(node: &Node<'_>) -> Result<usize, Fault> {
    Ok(node.custom_options()?.first().copied().unwrap_or(0).into())
}

fn own(node: &Node<'_>) -> Result<(), Fault> {
    let any = black_box(0);
    black_box((node.inputs(), node.outputs(), node.intermediate(any)?.id()));
    let options = node.options()?;
    black_box((options.i8(1, 2)?, options.i32(1, 2)?, options.i64(1, 2)?));
    black_box((options.f32(1, 2.0)?, options.bool(1, true)?));
    black_box(options.table().is_some());
    node.scratch::<i32>()?.fill(black_box(1));
    node.scratch::<u8>()?.fill(black_box(1));

    let (input, output) = (node.input(any)?, node.output(any)?);
    if let Some(other) = node.optional_input(any)? {
        black_box((other.operand(), other.is_constant(), other.is_empty()));
    }
    input.expect(Type(black_box(9)))?;
    if black_box(false) {
        return Err(input.wrong_type());
    }
    if input.shape() != output.shape() {
        return Err(output.wrong_shape());
    }
    shapes(&input)?;
    black_box((input.scale()?, input.zero_point()));
    black_box((input.scales().get(any), input.zero_points().get(any)));
    black_box((input.packed()?, input.of(Type::INT8)?, input.table()));
    copy::<i8>(&input, &output)?;
    copy::<i16>(&input, &output)?;
    copy::<i32>(&input, &output)?;
    copy::<i64>(&input, &output)?;
    copy::<f32>(&input, &output)?;
    output.bytes_mut()?.copy_from(input.bytes()?);
    black_box(overlap(OWN.contract(), node, any, any)?.allows(black_box(16)));
    black_box(activation_range(&output, black_box(1), 0)?);
    black_box(activation_range_f32(black_box(1), 0)?);
    numbers();
    Ok(())
}

fn shapes(tensor: &Tensor<'_>) -> Result<(), Fault> {
    let (shape, any) = (tensor.shape(), black_box(1));
    black_box((shape.rank(), shape.dim(any), shape.dim_from_end(any)));
    black_box((shape.elements(), shape.product(any, black_box(3))));
    black_box((shape.extended::<4>(), shape.dims::<4>()));
    match tensor.len() {
        0 => Err(tensor.wrong_value()),
        _ => Ok(()),
    }
}

fn copy<T: arenaplan_runtime::Element>(
    input: &Tensor<'_>,
    output: &Tensor<'_>,
) -> Result<(), Fault> {
    let (from, to): (View<'_, T>, ViewMut<'_, T>) = (input.read()?, output.write()?);
    for (index, x) in from.iter().enumerate() {
        to.set(index, x);
    }
    let any = black_box(1);
    black_box((from.get(any), to.get(any), to.view(), to.address()));
    black_box((from.part(any, any), to.part(any, any), from.address()));
    black_box((from.cast::<i16>(), to.cast::<f32>()));
    to.copy_from(from);
    Ok(())
}

fn numbers() {
    let (a, b) = (black_box(1.5), black_box(-1));
    let multiplier = Multiplier::new(f64::from(a));
    black_box(Multiplier::of_scales(a, a, a).apply(b));
    black_box(Multiplier::of_scales_in_integers(a, a, a).shrink(b));
    black_box((multiplier.apply(b), multiplier.apply_wide(i64::from(b))));
    black_box((doubling_high(b, b), clamp(b, b, b)));
    black_box(rounding_shift_right(b, black_box(40)));
}

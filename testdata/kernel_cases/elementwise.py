"""Operators that go element by element."""
import numpy as np

from .builder import BOOL, F32, I8, I16, I32, I64, NAMES, NUMPY, LEFT_OUT, U8, U32, case, each

ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")
# Shapes of the inputs and of the output of operators with two inputs, all of them broadcasts but the first three.
SHAPES = [
    ([3, 5], [3, 5], [3, 5]),
    ([2, 3, 2, 3], [2, 3, 2, 3], [2, 3, 2, 3]),
    ([37], [37], [37]),
    ([2, 5], [5], [2, 5]),
    ([5], [2, 5], [2, 5]),
    ([2, 3, 4], [], [2, 3, 4]),
    ([], [7], [7]),
    ([2, 1, 3], [1, 4, 1], [2, 4, 3]),
    ([1, 3, 2, 5], [1, 1, 1, 5], [1, 3, 2, 5]),
    ([2, 3, 3, 2], [3, 1, 2], [2, 3, 3, 2]),
    ([2, 2, 1, 2, 3], [2, 1, 2, 1], [2, 2, 1, 2, 3]),
    ([1, 2, 1, 2, 1, 3], [2, 1, 2, 1, 2, 1], [2, 2, 2, 2, 2, 3]),
]
assert all(np.broadcast_shapes(a, b) == tuple(c) for a, b, c in SHAPES)
# Scales and zero points: of the inputs and of the output.
QUANTIZED = {
    I8: [((0.1, 5), (0.05, -7), (0.12, 1)), ((0.05, -128), (0.05, 100), (0.1, -3)), ((0.007, 3), (0.9, -100), (0.9, 60)),
         ((0.25, 0), (0.25, 0), (0.25, 0)), ((1.7, -9), (0.4, 40), (2.5, -60)), ((0.0625, -1), (0.125, 2), (0.25, -4)),
         ((0.3, 11), (0.3, 11), (0.6, 11)), ((0.5, -20), (0.031, 14), (0.02, 0))],
    I16: [((0.0003, 0), (0.0001, 0), (0.0004, 0)), ((0.001, 0), (0.001, 0), (0.0015, 0)), ((0.00002, 0), (0.002, 0), (0.002, 0)),
          ((2**-12, 0), (2**-12, 0), (2**-11, 0)), ((0.0005, 0), (0.0004, 0), (0.0001, 0)), ((0.0078125, 0), (0.015625, 0), (0.03125, 0))],
}


def scalar(invoke):
    """A number that leaves something to see in the middle of the range."""
    return np.array(1 - 3 * invoke)


def zero(invoke):
    """The middle of the range, for comparisons."""
    return np.array(0)


def pairs(g, name, dtype, feeds=(None, None), result=None, scales=None, shapes=SHAPES, activations=("NONE",), varies=True):
    """An operator with two inputs in all shapes, and all scales and activations among them."""
    scales = scales or QUANTIZED.get(dtype) or [((None, 0),) * 3]
    count = max(len(shapes), len(scales), len(activations))
    for i in range(count):
        a, b, out = shapes[i % len(shapes)]
        x, y, z = scales[i % len(scales)]
        options = {"fused_activation_function": activations[i % len(activations)]} if len(activations) > 1 else {}
        t = dtype if result is None else result
        single = scalar if result is None else zero
        first, second = (single if shape == [] and dtype != BOOL else feed for shape, feed in zip((a, b), feeds))
        g.op(name, [g.input(a, dtype, *x, data=first), g.input(b, dtype, *y, data=second)],
             [g.output(out, t, *(z if t == dtype else ()), varies=varies)], **options)
    return g


def multiplied(scales, factor):
    """The scales with coarser results, for products."""
    return [(x, y, (x[0] * y[0] * factor * (1 + i % 3), z[1])) for i, (x, y, z) in enumerate(scales)]


@each([F32, I32], "ADD_{}", invokes=1)
@each([I8, I16], "ADD_{}")
def add(g, t):
    pairs(g, "ADD", t, activations=ACTIVATIONS, feeds=((-1000, 1000),) * 2 if t == I32 else (None, None))
    constant(g, "ADD", t)


@each([F32, I32], "SUB_{}", invokes=1)
@each([I8, I16], "SUB_{}")
def sub(g, t):
    pairs(g, "SUB", t, activations=ACTIVATIONS, feeds=((-1000, 1000),) * 2 if t == I32 else (None, None))
    constant(g, "SUB", t)


@each([F32, I32], "MUL_{}", invokes=1)
@each([I8, I16], "MUL_{}")
def mul(g, t):
    scales = multiplied(QUANTIZED[t], 70 if t == I8 else 8000) if t in QUANTIZED else None
    if t == I8:
        # Fine enough for RELU_N1_TO_1 to leave something.
        scales[3] = ((0.25, 0), (0.25, 0), (0.25, 0))
        scales[7] = ((0.5, -20), (0.031, 14), (0.3, 5))
    if t == I8:
        # A multiplier above 1.
        scales += [((0.9, 1), (0.8, -2), (0.3, 0)), ((1.0, 0), (1.0, 0), (0.5, 0))]
    if t == I16:
        scales += [((0.5, 0), (0.25, 0), (0.0625, 0))]
    pairs(g, "MUL", t, activations=ACTIVATIONS, scales=scales,
          feeds=((-100, 100),) * 2 if t == I32 else (None, None))
    constant(g, "MUL", t)
    if t == I16:
        g.op("MUL", [g.input([24], I16, 0.5, data=(-60, 60)), g.input([24], I16, 0.25, data=(-60, 60))],
             [g.output([24], I16, 0.0625)])
    if t == I32:
        # Products that wrap.
        g.op("MUL", [g.input([24], I32), g.input([24], I32)], [g.output([24], I32)])


def constant(g, name, t):
    """An operator whose second, or first, input is a constant."""
    x, y, z = QUANTIZED[t][0] if t in QUANTIZED else ((None,),) * 3
    if name == "MUL" and t in QUANTIZED:
        z = (z[0] * (40 if t == I8 else 4), z[1])
    low, high = (-4, 4) if t == F32 else (-120, 120)
    feed = (low, high) if t in (F32, I32) else None
    c = g.constant(g.noise([3], t, low, high), t, *x)
    g.op(name, [g.input([4, 3], t, *y, data=feed), c], [g.output([4, 3], t, *z)])
    c = g.constant(g.noise([2, 4, 1], t, low, high), t, *x)
    g.op(name, [c, g.input([4, 3], t, *y, data=feed)], [g.output([2, 4, 3], t, *z)])
    # Both inputs are one tensor.
    one = g.input([9], t, *y, data=feed)
    g.op(name, [one, one], [g.output([9], t, *z, varies=name != "SUB")])


@each([F32, I8, I32], "DIV_{}", invokes=1)
def div(g, t):
    scales = [((0.1, 5), (0.05, 3), (0.2, 1)), ((0.05, -128), (0.05, 100), (0.1, -3)), ((0.5, 0), (0.01, -90), (1.5, 10)),
              ((0.25, 0), (0.25, 0), (0.03125, 0))] if t == I8 else [((None, 0),) * 3]
    for i, (a, b, out) in enumerate(SHAPES):
        x, y, z = scales[i % len(scales)]

        def divisor(_, b=b, zero=y[1], i=i):
            if t == F32:
                return g.noise(b, F32, 0.2, 4) * np.where(g.rng.integers(0, 2, b), 1, -1)
            limit = 127 if t == I8 else 9
            values = g.noise(b, I32, -limit, limit)
            return np.where(values == zero, zero + 1, values)
        g.op("DIV", [g.input(a, t, *x, data=(-1000, 1000) if t == I32 else None), g.input(b, t, *y, data=divisor)],
             [g.output(out, t, *z)], fused_activation_function=ACTIVATIONS[i % 4])


@case(invokes=1)
def FLOOR_DIV_float32(g):
    pairs(g, "FLOOR_DIV", F32, feeds=((-20, 20), (0.2, 3)))
    x = np.array([7, -7, 7, -7, 6, -6, 6, -6, 0.5, -0.5], np.float32)
    y = np.array([2, 2, -2, -2, 3, 3, -3, -3, 0.25, 1], np.float32)
    g.op("FLOOR_DIV", [g.input([10], F32, data=x), g.input([10], F32, data=y)], [g.output([10], F32)])


@case(invokes=1)
def FLOOR_MOD_float32(g):
    pairs(g, "FLOOR_MOD", F32, feeds=((-20, 20), (0.2, 3)))
    x = np.array([7, -7, 7, -7, 6, -6, 6, -6, 0.5, -0.5], np.float32)
    y = np.array([2, 2, -2, -2, 3, 3, -3, -3, 0.25, 1], np.float32)
    g.op("FLOOR_MOD", [g.input([10], F32, data=x), g.input([10], F32, data=y)], [g.output([10], F32)])


def same_scale(t):
    return [((0.1, 5),) * 3] if t == I8 else [((0.001, 0),) * 3] if t == I16 else None


for name in ("MAXIMUM", "MINIMUM"):
    @each([F32, I8, I16, I32, I64], name + "_{}", invokes=1)
    def extreme(g, t, name=name):
        pairs(g, name, t, scales=same_scale(t), shapes=[SHAPES[k] for k in (0, 4, 5, 7, 9)])
        pairs(g, name, t, feeds=((-2, 2),) * 2, scales=same_scale(t), shapes=SHAPES[3:4] + SHAPES[11:])


@each([F32, I8, I16, I32], "SQUARED_DIFFERENCE_{}", invokes=1)
def squared_difference(g, t):
    scales = {I8: [((0.1, 5), (0.05, -7), (2.0, -128)), ((0.05, -128), (0.05, 127), (1.0, -100)), ((0.007, 3), (0.03, -100), (0.05, 60)),
                   ((0.25, 0), (0.25, 0), (4.0, -128)), ((0.5, -20), (0.031, 14), (9.0, 0)), ((0.02, -10), (0.02, 20), (0.002, -120))],
              I16: [((0.0003, 0), (0.0001, 0), (0.004, 0)), ((0.001, 0), (0.001, 0), (0.05, 0)), ((0.0002, 0), (0.002, 0), (0.1, 0)),
                    ((0.25, 0), (0.25, 0), (9.0, 0))]}.get(t)
    feeds = {I32: ((-100, 100),) * 2, I16: ((-12000, 12000), (-9000, 9000))}.get(t, (None, None))
    pairs(g, "SQUARED_DIFFERENCE", t, scales=scales, feeds=feeds)


@each([F32, I8], "ADD_N_{}")
def add_n(g, t):
    for count, shape, x, z in ((2, [3, 5], (0.1, 5), (0.3, -4)), (3, [17], (0.05, -100), (0.05, 20)), (5, [2, 1, 2, 3], (0.5, 30), (1.1, 0)),
                               (4, [], (0.25, 0), (0.25, 0))):
        x, z = (x, z) if t == I8 else ((), ())
        g.op("ADD_N", [g.input(shape, t, *x) for _ in range(count)], [g.output(shape, t, *z)])


COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")


def compare(g, name, t):
    """A comparison of values that are often equal, and of the ends of the range."""
    shapes = [SHAPES[k] for k in (0, 4, 5, 7, 9, 11)]
    if t == I8:
        scales = [((0.1, 5), (0.1, 5), ()), ((0.1, 5), (0.2, -3), ()), ((0.125, 4), (0.25, 2), ())]
        feeds = [((2, 8), (2, 8)), ((1, 9), (-5, -1)), ((0, 8), (0, 4))]
        for k, (scale, feed) in enumerate(zip(scales, feeds)):
            pairs(g, name, t, feed, BOOL, [scale], [SHAPES[2], shapes[3 + k]])
        pairs(g, name, t, (None, None), BOOL, scales, SHAPES[3:6:2], varies=name not in ("EQUAL", "NOT_EQUAL"))
        x, y = g.noise([30], I8, 0, 7) * 30 - 100, g.noise([30], I8, 0, 7)
        g.op(name, [g.input([30], I8, 0.03, -100, data=x), g.input([30], I8, 0.9, 0, data=y)], [g.output([30], BOOL)])
    elif t == BOOL:
        pairs(g, name, t, (None, None), BOOL, shapes=shapes)
    elif t == F32:
        feed = lambda shape: lambda _: g.noise(shape, I32, -2, 2) / 4  # noqa: E731
        for a, b, out in shapes:
            g.op(name, [g.input(a, t, data=feed(a)), g.input(b, t, data=feed(b) if b else zero)], [g.output(out, BOOL)])
    else:
        pairs(g, name, t, ((-2, 2), (-2, 2)), BOOL, shapes=shapes)
        limits = np.iinfo(NUMPY[t])
        ends = np.array([limits.min, limits.min + 1, -1, 0, 1, limits.max - 1, limits.max], NUMPY[t])
        g.op(name, [g.input([7, 1], t, data=ends.reshape(7, 1)), g.input([7], t, data=ends)], [g.output([7, 7], BOOL)])


for name in COMPARISONS:
    types = [F32, I8, I32, I64, *([BOOL] if name in ("EQUAL", "NOT_EQUAL") else [])]
    for t in types:
        each([t], name + "_{}", invokes=1 if t in (I32, I64) else 2)(lambda g, t, name=name: compare(g, name, t))


@case
def LOGICAL_AND_bool(g):
    pairs(g, "LOGICAL_AND", BOOL, shapes=SHAPES[:5] + SHAPES[7:])
    g.op("LOGICAL_AND", [g.input([9], BOOL), g.input([], BOOL, data=[np.array(True), np.array(False)])], [g.output([9], BOOL)])


@case
def LOGICAL_OR_bool(g):
    pairs(g, "LOGICAL_OR", BOOL, shapes=SHAPES[:5] + SHAPES[7:])
    g.op("LOGICAL_OR", [g.input([9], BOOL), g.input([], BOOL, data=[np.array(True), np.array(False)])], [g.output([9], BOOL)])


@case
def LOGICAL_NOT_bool(g):
    for shape in ([3, 5], [17], [2, 1, 2, 3], []):
        g.op("LOGICAL_NOT", [g.input(shape, BOOL)], [g.output(shape, BOOL, varies=shape != [])])


# --- one input ---

ALL8 = np.arange(-128, 128).astype(np.int8)
ODD = ([3, 5], [17], [2, 1, 2, 3], [])


def thinned(data, index):
    """All values for the first of several scales, a third of them for the others."""
    return data if index == 0 else np.append(data[::3], data[-1])


def sixteen(count=90):
    """16-bit values: both ends, around 0, and some between."""
    near = np.arange(-8, 9)
    far = np.linspace(-32768, 32767, count - near.size).round()
    return np.concatenate([near, far]).astype(np.int16)


def whole(g, name, scales, t=I8, t2=None, **options):
    """An operator of integers on all their values (16 bits: on many), with several scales."""
    for i, (x, z) in enumerate(scales):
        data = thinned(ALL8, i) if t == I8 else sixteen()
        g.op(name, [g.input(data.shape, t, *x, data=data)], [g.output(data.shape, t2 or t, *z)], **options)
    x, z = scales[0]
    g.op(name, [g.input([2, 3, 1, 5], t, *x)], [g.output([2, 3, 1, 5], t2 or t, *z)], **options)


def floats(g, name, low, high, special=(), t2=F32):
    """An operator of floats on some shapes, and on special values."""
    for shape in ODD:
        g.op(name, [g.input(shape, F32, data=(low, high))], [g.output(shape, t2)])
    if len(special):
        data = np.array(special, np.float32)
        g.op(name, [g.input(data.shape, F32, data=data)], [g.output(data.shape, t2)])


@case
def RELU_float32(g):
    floats(g, "RELU", -4, 4, [0, -0.0, 1e-30, -1e-30, 1e30, -1e30])


@case(invokes=1)
def RELU_int8(g):
    whole(g, "RELU", [((0.1, 5), (0.1, 5)), ((0.1, 5), (0.05, -128)), ((0.05, -100), (0.2, 17)), ((0.5, 0), (0.06, -128)), ((0.01, 100), (0.01, 0)),
                      ((0.5, 3), (0.25, -9))])


@case(invokes=1)
def RELU_int16(g):
    whole(g, "RELU", [((0.001, 0), (0.001, 0)), ((0.001, 0), (0.0007, 0)), ((0.002, 0), (0.0305, 0)), ((0.5, 0), (0.25, 0))], I16)


@case
def RELU6_float32(g):
    floats(g, "RELU6", -4, 10, [0, -0.0, 6, 5.999999, 6.000001, 1e30, -1e30])


@case(invokes=1)
def RELU6_int8(g):
    whole(g, "RELU6", [((0.1, 5), (0.1, 5)), ((0.05, -100), (0.05, -100)), ((0.047, -128), (0.047, -128)), ((0.5, 0), (0.5, 0))])


@case(invokes=1)
def RELU6_int16(g):
    whole(g, "RELU6", [((0.001, 0), (0.001, 0)), ((0.0003, 0), (0.0003, 0)), ((0.01, 0), (0.01, 0))], I16)


@case
def LEAKY_RELU_float32(g):
    for alpha in (0.1, 0.0, 1.5, -0.25):
        for shape in ODD[:3]:
            g.op("LEAKY_RELU", [g.input(shape, F32)], [g.output(shape, F32)], alpha=alpha)


@case(invokes=1)
def LEAKY_RELU_int8(g):
    for alpha in (0.1, 1.5):
        whole(g, "LEAKY_RELU", [((0.1, 5), (0.1, 5)), ((0.1, -60), (0.04, -11)), ((0.5, 3), (0.25, 0))], alpha=alpha)
    whole(g, "LEAKY_RELU", [((0.1, 20), (0.08, 4))], alpha=-0.3)


@case(invokes=1)
def LEAKY_RELU_int16(g):
    for alpha in (0.1, 1.5):
        whole(g, "LEAKY_RELU", [((0.001, 0), (0.001, 0)), ((0.001, 0), (0.0004, 0)), ((0.5, 0), (0.25, 0))], I16, alpha=alpha)
    whole(g, "LEAKY_RELU", [((0.001, 12), (0.0008, -40))], I16, alpha=-0.3)


@case
def PRELU_float32(g):
    for shape, alpha in (([1, 2, 3, 4], [1, 1, 4]), ([2, 3], [3]), ([2, 2, 2, 3], [2, 2, 3]), ([7], [1]), ([3, 4], [3, 4])):
        a = g.constant(g.noise(alpha, F32, -1, 1))
        g.op("PRELU", [g.input(shape, F32), a], [g.output(shape, F32)])
    g.op("PRELU", [g.input([2, 5], F32), g.input([5], F32)], [g.output([2, 5], F32)])


def prelu(g, t, scales):
    shapes = (([1, 2, 3, 4], [1, 1, 4]), ([4, 9], [9]), ([2, 2, 2, 3], [2, 2, 3]), ([17], [1]), ([3, 4], [3, 4]), ([2, 4, 2, 5], [1, 1, 5]))
    for i, (shape, alpha) in enumerate(shapes):
        x, y, z = scales[i % len(scales)]
        a = g.constant(g.noise(alpha, I8), I8, *y)
        g.op("PRELU", [g.input(shape, t, *x), a], [g.output(shape, t, *z)])


@case
def PRELU_int8(g):
    prelu(g, I8, [((0.1, 5), (0.01, 0), (0.1, 5)), ((0.1, -60), (0.004, 100), (0.04, -11)), ((0.5, 3), (0.02, -4), (0.25, 0)), ((0.05, 40), (0.01, -128), (0.11, 2))])


@case
def PRELU_int16(g):
    prelu(g, I16, [((0.001, 0), (0.01, 0), (0.001, 0)), ((0.001, 0), (0.004, 0), (0.0004, 0)), ((0.5, 0), (0.02, 0), (0.75, 0))])


WIDE = [0, -0.0, 1e-6, -1e-6, 0.5, -0.5, 8, -8, 9.1, -9.1, 16, -16, 16.7, -16.7, 20, -20, 50, -50, 87, -87, 100, -100]


@case
def LOGISTIC_float32(g):
    floats(g, "LOGISTIC", -6, 6, WIDE)


@case(invokes=1)
def LOGISTIC_int8(g):
    out = (1 / 256, -128)
    whole(g, "LOGISTIC", [((0.05, 3), out), ((0.1, -100), out), ((0.0625, 0), out), ((0.3, 127), out), ((0.001, 0), out)])


@case(invokes=1)
def LOGISTIC_int16(g):
    out = (1 / 32768, 0)
    whole(g, "LOGISTIC", [((1 / 4096, 0), out), ((1 / 2048, 0), out), ((0.0003, 0), out), ((0.00007, 0), out), ((0.002, 0), out)], I16)


@case
def TANH_float32(g):
    floats(g, "TANH", -4, 4, WIDE)


@case(invokes=1)
def TANH_int8(g):
    out = (1 / 128, 0)
    whole(g, "TANH", [((0.05, 3), out), ((0.1, -100), out), ((0.03125, 0), out), ((0.3, 127), out), ((0.001, 0), out)])


@case(invokes=1)
def TANH_int16(g):
    out = (1 / 32768, 0)
    whole(g, "TANH", [((1 / 4096, 0), out), ((1 / 2048, 0), out), ((1 / 1024, 0), out), ((0.0003, 0), out), ((0.00007, 0), out), ((0.002, 0), out)], I16)


@case
def HARD_SWISH_float32(g):
    floats(g, "HARD_SWISH", -5, 5, [0, -0.0, 3, -3, 2.9999, -2.9999, 100, -100])


@case(invokes=1)
def HARD_SWISH_int8(g):
    whole(g, "HARD_SWISH", [((0.05, 3), (0.05, -100)), ((0.1, -60), (0.06, -120)), ((0.03, 0), (0.02, -90)), ((0.0234375, -128), (0.0234375, -128)), ((0.3, 11), (0.3, -5)),
                            ((0.001, 0), (0.001, 0))])


@case
def ELU_float32(g):
    floats(g, "ELU", -4, 4, WIDE)


@case(invokes=1)
def ELU_int8(g):
    whole(g, "ELU", [((0.05, 3), (0.05, -100)), ((0.1, -60), (0.06, -20)), ((0.03125, 0), (0.0078125, 0)), ((0.3, 11), (0.3, -5))])


@case
def EXP_float32(g):
    floats(g, "EXP", -4, 4, [v for v in WIDE if v < 90])


@case
def LOG_float32(g):
    floats(g, "LOG", 0.01, 9, [1, 1e-30, 1e30, 0.999999, 1.000001, 2, 10])


@case
def SQRT_float32(g):
    floats(g, "SQRT", 0, 9, [0, 1, 4, 2, 1e-30, 1e30])


@case
def RSQRT_float32(g):
    floats(g, "RSQRT", 0.01, 9, [1, 4, 2, 1e-30, 1e30])


@case(invokes=1)
def RSQRT_int8(g):
    for x, z in (((0.05, -128), (0.05, -128)), ((0.1, 0), (0.03, -100)), ((0.001, -20), (0.3, 4)), ((1.0, -128), (0.0078125, 0))):
        data = np.arange(x[1], 128).astype(np.int8)
        g.op("RSQRT", [g.input(data.shape, I8, *x, data=data)], [g.output(data.shape, I8, *z)])


@case(invokes=1)
def RSQRT_int16(g):
    for x, z in (((0.001, 0), (0.01, 0)), ((0.0003, 0), (0.003, 0)), ((0.5, 0), (0.0078125, 0))):
        data = np.unique(np.append(np.arange(x[1], x[1] + 20), np.linspace(0, 32767, 60).round())).astype(np.int16)
        g.op("RSQRT", [g.input(data.shape, I16, *x, data=data)], [g.output(data.shape, I16, *z)])


@case
def SQUARE_float32(g):
    floats(g, "SQUARE", -4, 4, [0, -0.0, 1e10, -1e10, 1e-10])


@case
def ABS_float32(g):
    floats(g, "ABS", -4, 4, [0, -0.0, 1e30, -1e30])


@case(invokes=1)
def ABS_int8(g):
    whole(g, "ABS", [((0.1, 5), (0.1, 5)), ((0.1, 5), (0.1, -128)), ((0.1, -60), (0.06, -20)), ((0.03, 100), (0.1, -128)), ((0.5, 0), (0.25, -3))])


@case(invokes=1)
def ABS_int16(g):
    whole(g, "ABS", [((0.001, 0), (0.001, 0)), ((0.001, 0), (0.0004, 0)), ((0.5, 0), (1.0, 0))], I16)
    # Without a scale; -32768 has no positive counterpart.
    whole(g, "ABS", [((), ())], I16)


@case
def NEG_float32(g):
    floats(g, "NEG", -4, 4, [0, -0.0, 1e30, -1e30])


TIES = [v + s for v in (0, 0.5, 1.5, 2.5, 3.5, 4.5, 1, 2) for s in (0, 1e-6, -1e-6)]
TIES += [-v for v in TIES] + [8388607.5, -8388607.5, 8388608, 16777216, 1e20, -1e20, 0.49999997, -0.49999997]


@case
def ROUND_float32(g):
    floats(g, "ROUND", -40, 40, TIES)


@case
def FLOOR_float32(g):
    floats(g, "FLOOR", -40, 40, TIES)


@case
def CEIL_float32(g):
    floats(g, "CEIL", -40, 40, TIES)


@case
def SIN_float32(g):
    floats(g, "SIN", -7, 7, [0, -0.0, 100, -100, 1e-6, 1.5707964, 3.1415927])


@case
def COS_float32(g):
    floats(g, "COS", -7, 7, [0, -0.0, 100, -100, 1e-6, 1.5707964, 3.1415927])


# --- kinds of numbers ---

@each([I8, I16], "QUANTIZE_float32_{}")
def quantize_floats(g, t):
    for z in (((0.1, 5), (0.05, -100), (1.5, 0), (0.0078125, 127)) if t == I8 else ((0.001, 0), (0.0003, 0), (0.01, -300), (0.0009765625, 7))):
        reach = z[0] * (200 if t == I8 else 50000)
        g.op("QUANTIZE", [g.input([5, 7], F32, data=(-reach, reach))], [g.output([5, 7], t, *z)])
    # Ties, at a scale without an error of its own.
    data = np.array(TIES[:-8], np.float32) * 0.25
    g.op("QUANTIZE", [g.input(data.shape, F32, data=data)], [g.output(data.shape, t, 0.25, 3)])
    g.op("QUANTIZE", [g.input([], F32)], [g.output([], t, 0.05 if t == I8 else 0.001, 1)])


def requantize(t, t2, scales):
    @case(name=f"QUANTIZE_{NAMES[t]}_{NAMES[t2]}", invokes=2 if t == I32 else 1)
    def make(g):
        for i, (x, z) in enumerate(scales):
            data = ALL8 if t == I8 else np.arange(256) if t == U8 else sixteen() if t == I16 else None
            if t == I32:
                data = (-int(40000 * z[0] / x[0]), int(40000 * z[0] / x[0])) if t2 == I16 else (-int(160 * z[0] / x[0]), int(160 * z[0] / x[0]))
            data = thinned(data, i) if t in (I8, U8) else data
            shape = [5, 9] if t == I32 else data.shape
            g.op("QUANTIZE", [g.input(shape, t, *x, data=data)], [g.output(shape, t2, *z)])
        x, z = scales[0]
        g.op("QUANTIZE", [g.input([2, 3, 5], t, *x)], [g.output([2, 3, 5], t2, *z, varies=t != I32)])


requantize(I8, I8, [((0.1, 5), (0.1, 5)), ((0.1, 5), (0.07, -20)), ((0.05, -128), (0.2, 3)), ((0.5, 0), (0.25, 0)), ((0.03125, 1), (0.0625, -1)), ((0.9, 9), (0.01, 0))])
requantize(I8, I16, [((0.1, 5), (0.001, 0)), ((0.05, -128), (0.0003, 20)), ((0.5, 0), (0.001953125, 0)), ((0.01, 3), (0.02, -1))])
requantize(I8, I32, [((0.1, 5), (0.001, 0)), ((0.05, -128), (0.00003, 20)), ((0.5, 0), (0.001953125, 0)), ((0.01, 3), (0.02, -1))])
requantize(I8, U8, [((0.1, 5), (0.1, 133)), ((0.1, 0), (0.1, 128)), ((0.1, 5), (0.07, 20)), ((0.03125, 1), (0.0625, 255))])
requantize(U8, I8, [((0.1, 133), (0.1, 5)), ((0.1, 128), (0.1, 0)), ((0.1, 20), (0.07, 5)), ((0.03125, 255), (0.0625, 1))])
requantize(I16, I8, [((0.001, 0), (0.1, 5)), ((0.0003, 0), (0.05, -128)), ((0.001953125, 0), (0.5, 0)), ((0.02, 40), (0.01, 3))])
requantize(I16, I16, [((0.001, 0), (0.001, 0)), ((0.0003, 0), (0.001, 0)), ((0.5, 0), (0.25, 0)), ((0.02, 40), (0.03, -7))])
requantize(I16, I32, [((0.001, 0), (0.00001, 5)), ((0.0003, 0), (0.0003, -100)), ((0.001953125, 0), (0.5, 0))])
requantize(I32, I8, [((0.001, 5), (0.1, 5)), ((0.0003, 0), (0.05, -100)), ((0.001953125, 0), (0.5, 0)), ((0.000001, 400), (0.01, 3))])
requantize(I32, I16, [((0.001, 5), (0.01, 5)), ((0.0003, 0), (0.05, 0)), ((0.001953125, 0), (0.5, 0)), ((0.000001, 400), (0.0001, 0))])


@each([I8, I16, U8], "DEQUANTIZE_{}", invokes=1)
def dequantize(g, t):
    for i, x in enumerate(((0.1, 5), (0.0078125, 127), (3.7, 0))):
        data = thinned(ALL8 if t == I8 else np.arange(256) if t == U8 else sixteen(), i)
        g.op("DEQUANTIZE", [g.input(data.shape, t, *x, data=data)], [g.output(data.shape, F32)])
    g.op("DEQUANTIZE", [g.input([2, 3, 5], t, 0.02, 40)], [g.output([2, 3, 5], F32)])
    g.op("DEQUANTIZE", [g.constant(g.noise([7], t), t, 0.5, 3)], [g.output([7], F32)])


@each([I8, I16, I32, U32, F32, BOOL], "CAST_{}", invokes=1)
def cast(g, t):
    """To all types. Floats stay within the range of integers: beyond it C says nothing."""
    for to in (I8, I16, I32, U32, F32):
        feed = None
        if t == F32:
            feed = {I8: (-127.9, 127.9), I16: (-32767, 32767), I32: (-1e9, 1e9), U32: (0, 3e9)}.get(to)
        for shape in ([3, 7], [2, 1, 5]):
            g.op("CAST", [g.input(shape, t, data=feed)], [g.output(shape, to)])


@each([F32, I8, I16], "SELECT_V2_{}")
def select_v2(g, t):
    q = (0.1, 5) if t == I8 else (0.001, 0) if t == I16 else ()
    for c, x, y, z in (([3, 5], [3, 5], [3, 5], [3, 5]), ([17], [17], [17], [17]), ([], [7], [7], [7]), ([3, 1], [3, 4], [4], [3, 4]),
                       ([4], [], [3, 4], [3, 4]), ([2, 3, 4], [1], [1, 4], [2, 3, 4]), ([2, 1, 3, 1], [1, 2, 1, 4], [2, 2, 3, 4], [2, 2, 3, 4]),
                       ([1, 2, 1, 2, 1], [2, 1, 2, 1, 3], [3], [2, 2, 2, 2, 3]), ([], [], [], [])):
        g.op("SELECT_V2", [g.input(c, BOOL), g.input(x, t, *q), g.input(y, t, *q)], [g.output(z, t, *q)])


@each([F32, I8, I32, I64], "ZEROS_LIKE_{}")
def zeros_like(g, t):
    for shape in ODD:
        q = (0.1, 5) if t == I8 else ()
        g.op("ZEROS_LIKE", [g.input(shape, t, *q)], [g.output(shape, t, *q, varies=False)])


# --- what TFLM has no kernel for ---

LEFT_OUT["GREATER_int16"] = "TFLM takes it, but compares by scales that only int8 sets: what comes out is undefined"

def refused(name, *types, inputs=1, text="", result=None):
    for t in types:
        @case(name=f"{name}_{NAMES[t]}", refused=text)
        def make(g, t=t):
            q = (0.1, 0) if t in (I8, I16, U8) else ()
            g.op(name, [g.input([4], t, *q, data=(1, 9)) for _ in range(inputs)], [g.output([4], result or t, *(q if result is None else ()))])


refused("ADD", I64, U8, inputs=2)
refused("SUB", I64, U8, inputs=2)
refused("MUL", I64, U8, inputs=2)
refused("DIV", I16, I64, U8, inputs=2)
refused("ADD_N", I16, I32, inputs=2)
refused("SQUARED_DIFFERENCE", I64, inputs=2)
for name in ("FLOOR_DIV", "FLOOR_MOD"):
    refused(name, I8, I16, I32, inputs=2)
for name in ("MAXIMUM", "MINIMUM"):
    refused(name, U8, inputs=2)
for name in COMPARISONS:
    refused(name, U8, *([] if name == "GREATER" else [I16]), *([] if name in ("EQUAL", "NOT_EQUAL") else [BOOL]), inputs=2, result=BOOL)
for name in ("EXP", "LOG", "SQRT", "SQUARE", "NEG", "ROUND", "FLOOR", "CEIL", "SIN", "COS"):
    refused(name, I8, I16, *([I32] if name in ("NEG", "SQUARE") else []))
refused("ABS", I32)
for name in ("HARD_SWISH", "ELU"):
    refused(name, I16)
for name in ("RELU", "LOGISTIC", "TANH"):
    refused(name, I32)
refused("ZEROS_LIKE", I16)
refused("DEQUANTIZE", I32, result=F32)
refused("CAST", I64, result=I32)


@each([I32, I64], "SELECT_V2_{}", refused="")
def select_v2_refused(g, t):
    g.op("SELECT_V2", [g.input([4], BOOL), g.input([4], t), g.input([4], t)], [g.output([4], t)])

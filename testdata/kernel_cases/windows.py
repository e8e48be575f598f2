"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED."""
import numpy as np

from .builder import F32, I4, I8, I16, I32, I64, LEFT_OUT, NUMPY, U8, case

SAME, VALID = "SAME", "VALID"
NONE, RELU, RELU6, RELU_N1 = "NONE", "RELU", "RELU6", "RELU_N1_TO_1"


class Kind:
    """Types of input, weights and bias."""

    def __init__(self, data, weights, bias):
        self.data, self.weights, self.bias = data, weights, bias
        self.quantized = data != F32
        # Of a product of two random numbers.
        self.spread = {I8: 74, I16: 18900}.get(data, 1) * {I8: 74, I4: 4}.get(weights, 1)
        self.limit = {I8: 127, I16: 32767}.get(data, 0)


INT8, INT4 = Kind(I8, I8, I32), Kind(I8, I4, I32)
INT16, INT16_32 = Kind(I16, I8, I64), Kind(I16, I8, I32)
FLOAT = Kind(F32, F32, F32)


def sums(g, kind, name, shape, weights, output, products, axis=0, per_channel=True, bias=True, zero=(3, -5), activation=NONE,
         exact=False, above=False, far=False, absent=False, variable=False, **options):
    """An operator that sums products, with scales for which results fill the range of their type and leave it at times.

    products: how many there are in one sum. exact: small numbers, and a multiplier that is a power of two, so that ties
    occur. above: small numbers, and multipliers above 1. far: a bias far beyond 32 bits. absent: a bias of index -1. variable: the weights are an input as well."""
    channels = weights[axis]
    if not kind.quantized:
        x = g.input(shape, F32, data=(-1, 1))
        w = g.input(weights, F32, data=(-1, 1)) if variable else g.constant(g.noise(weights, F32, -1, 1))
        inputs = [x, w] + ([g.constant(g.noise([channels], F32, -2, 2))] if bias else [])
        g.op(name, inputs + [-1] * absent, [g.output(output, F32)], fused_activation_function=activation, **options)
        return
    zeros = (0, 0) if kind.data == I16 else zero
    spread = kind.spread * products ** 0.5
    scales = np.float32(0.01) * 2.0 ** g.rng.uniform(-2.5, 2, channels) if per_channel else np.array([0.01])
    out = {NONE: 0.1, RELU: 0.11, RELU6: 0.06, RELU_N1: 0.013}[activation] * (1 if kind.data == I8 else 1 / 256)
    # One sum in some beyond the limit.
    scale = out * kind.limit * 0.6 / (spread * float(np.median(scales)))
    reach, low, high = spread, None, None
    feed = None
    if exact:
        scales = 2.0 ** -g.rng.integers(1, 4, channels) if per_channel else np.array([0.25])
        scale, out, reach = 0.5, 0.5, 8
        low, high = -3, 3
        feed = (zeros[0] - 9, zeros[0] + 9) if kind.data == I8 else (-900, 900)
    if above:
        scale, reach, low, high = 0.5, 8, -1, 1
        out = 0.5 * float(np.median(scales)) / 2.6
        feed = (zeros[0] - 3, zeros[0] + 3) if kind.data == I8 else (-900, 900)
    if far:
        reach = 2.0 ** 34
        scale = out * kind.limit * 0.6 / (reach * float(np.median(scales)))
    scales = scales.astype(np.float32)
    x = g.input(shape, kind.data, scale, zeros[0], data=feed)
    values = g.noise(weights, kind.weights, low, high)
    quantization = dict(scale=scales if per_channel else scales[0], zero=0, axis=axis)
    if variable:
        t = g.input(weights, kind.weights, float(scales[0]))
        w = t
    else:
        w = g.constant(values, kind.weights, **quantization)
    inputs = [x, w]
    if bias:
        content = np.round(g.rng.normal(0, reach, channels)).astype(NUMPY[kind.bias])
        inputs.append(g.constant(content, kind.bias, np.float32(scale) * scales))
    g.op(name, inputs + [-1] * absent, [g.output(output, kind.data, out, zeros[1])], fused_activation_function=activation, **options)


def out_size(size, window, stride, dilation, padding):
    span = (window - 1) * dilation + 1
    return -(-size // stride) if padding == SAME else (size - span) // stride + 1


def conv(g, kind, image, channels, window=(3, 3), stride=(1, 1), dilation=(1, 1), padding=SAME, groups=1, **more):
    n, h, w, ci = image
    result = [n, out_size(h, window[0], stride[0], dilation[0], padding), out_size(w, window[1], stride[1], dilation[1], padding), channels]
    sums(g, kind, "CONV_2D", image, [channels, *window, ci // groups], result, window[0] * window[1] * ci // groups, padding=padding,
         stride_h=stride[0], stride_w=stride[1], dilation_h_factor=dilation[0], dilation_w_factor=dilation[1], **more)


def depthwise(g, kind, image, multiplier=1, window=(3, 3), stride=(1, 1), dilation=(1, 1), padding=SAME, **more):
    n, h, w, ci = image
    co = ci * multiplier
    result = [n, out_size(h, window[0], stride[0], dilation[0], padding), out_size(w, window[1], stride[1], dilation[1], padding), co]
    sums(g, kind, "DEPTHWISE_CONV_2D", image, [1, *window, co], result, window[0] * window[1], axis=3, padding=padding,
         stride_h=stride[0], stride_w=stride[1], dilation_h_factor=dilation[0], dilation_w_factor=dilation[1],
         depth_multiplier=multiplier, **more)


def dense(g, kind, shape, units, inputs=None, output=None, **more):
    inputs = inputs or shape[-1]
    batches = int(np.prod(shape)) // inputs
    sums(g, kind, "FULLY_CONNECTED", shape, [units, inputs], output or [batches, units], inputs, **more)


def convolutions(g, kind):
    conv(g, kind, [1, 5, 6, 3], 4)
    conv(g, kind, [1, 5, 5, 2], 5, stride=(2, 2), activation=RELU, zero=(-128, -128))
    conv(g, kind, [2, 6, 5, 1], 3, window=(2, 4), padding=VALID, activation=RELU6, zero=(0, -128))
    conv(g, kind, [1, 7, 7, 1], 2, window=(3, 3), dilation=(2, 3), stride=(1, 1), activation=RELU_N1, zero=(127, 11))
    conv(g, kind, [1, 8, 7, 2], 2, window=(2, 3), dilation=(3, 2), padding=VALID, stride=(2, 1), bias=False, zero=(-7, 100))
    conv(g, kind, [1, 3, 3, 4], 3, window=(5, 5), stride=(3, 2), zero=(-100, 9))
    conv(g, kind, [1, 1, 9, 3], 3, window=(1, 3), stride=(1, 2), per_channel=False)
    conv(g, kind, [1, 10, 4, 1], 4, window=(10, 4), padding=VALID, activation=RELU, zero=(83, -128))
    conv(g, kind, [1, 4, 4, 3], 4, exact=True)
    conv(g, kind, [1, 3, 4, 2], 3, above=True)
    conv(g, kind, [1, 3, 3, 3], 2, window=(1, 2), above=True, per_channel=False)
    conv(g, kind, [1, 4, 4, 1], 3, window=(1, 1), exact=True, per_channel=False, stride=(3, 2))


def pointwise(g, kind):
    for image, channels, more in (([1, 3, 3, 16], 8, {}), ([2, 2, 3, 7], 5, dict(activation=RELU, zero=(-128, -128))), ([1, 1, 1, 33], 9, dict(zero=(12, -3))),
                                  ([1, 4, 3, 1], 3, dict(bias=False, activation=RELU6, zero=(5, -128))), ([1, 5, 5, 4], 4, dict(stride=(2, 2), padding=VALID)),
                                  ([1, 3, 2, 8], 16, dict(per_channel=False, activation=RELU_N1, zero=(-1, 1))), ([1, 2, 2, 20], 2, dict(absent=True, bias=False)),
                                  ([1, 2, 5, 12], 3, dict(exact=True))):
        conv(g, kind, image, channels, window=(1, 1), **more)


def grouped(g, kind):
    conv(g, kind, [1, 4, 4, 4], 6, groups=2)
    conv(g, kind, [2, 3, 4, 6], 3, groups=3, window=(2, 2), padding=VALID, activation=RELU, zero=(-128, -128))
    conv(g, kind, [1, 3, 3, 4], 8, groups=4, window=(1, 1), stride=(2, 1), bias=False)
    conv(g, kind, [1, 4, 3, 4], 4, groups=2, window=(3, 2), variable=True, per_channel=False)
    conv(g, kind, [1, 3, 4, 3], 4, window=(2, 2), variable=True, per_channel=False, activation=RELU6, zero=(-3, -128))


def depthwises(g, kind):
    depthwise(g, kind, [1, 5, 6, 4])
    depthwise(g, kind, [1, 6, 5, 3], stride=(2, 2), activation=RELU, zero=(-128, -128))
    depthwise(g, kind, [2, 5, 5, 2], multiplier=2, window=(2, 3), padding=VALID, activation=RELU6, zero=(0, -128))
    depthwise(g, kind, [1, 7, 7, 1], multiplier=3, dilation=(2, 3), activation=RELU_N1, zero=(127, 11))
    depthwise(g, kind, [1, 8, 7, 2], window=(2, 3), dilation=(3, 2), padding=VALID, stride=(2, 1), bias=False, zero=(-7, 100))
    depthwise(g, kind, [1, 3, 3, 5], window=(5, 5), stride=(3, 2), zero=(-100, 9))
    depthwise(g, kind, [1, 1, 9, 3], window=(1, 4), stride=(1, 2), per_channel=False)
    depthwise(g, kind, [1, 6, 4, 3], window=(6, 4), padding=VALID, activation=RELU, zero=(83, -128))
    depthwise(g, kind, [1, 3, 2, 17], window=(3, 3), zero=(31, -31))
    depthwise(g, kind, [1, 3, 3, 8], window=(1, 1), zero=(-128, 3))
    depthwise(g, kind, [1, 4, 4, 6], exact=True)
    depthwise(g, kind, [1, 3, 4, 2], multiplier=4, exact=True, per_channel=False, bias=False)
    depthwise(g, kind, [1, 4, 3, 3], above=True)
    depthwise(g, kind, [1, 3, 3, 2], above=True, per_channel=False, multiplier=2)
    depthwise(g, kind, [1, 4, 4, 3], variable=True, per_channel=False)


def wide(g, kind):
    """Channels that are enough for loops over several at once, and some too many."""
    conv(g, kind, [1, 4, 4, 8], 6, zero=(17, -17))
    conv(g, kind, [1, 5, 4, 13], 5, stride=(2, 2), activation=RELU, zero=(-128, -128))
    conv(g, kind, [1, 3, 6, 4], 11, window=(2, 2), padding=VALID)
    conv(g, kind, [1, 4, 3, 24], 12, window=(1, 1), activation=RELU6, zero=(-128, -128))
    conv(g, kind, [1, 3, 3, 31], 6, window=(1, 1), zero=(-4, 4))
    conv(g, kind, [1, 8, 5, 1], 8, window=(5, 3), stride=(2, 2), zero=(90, 0))


def wide_depthwise(g, kind):
    """The same."""
    depthwise(g, kind, [1, 4, 4, 24], zero=(-17, 17))
    depthwise(g, kind, [1, 6, 5, 13], stride=(2, 2), activation=RELU, zero=(-128, -128))
    depthwise(g, kind, [1, 3, 4, 8], window=(2, 2), padding=VALID, multiplier=2)
    depthwise(g, kind, [1, 7, 1, 16], window=(7, 1), padding=VALID, zero=(5, 6))
    depthwise(g, kind, [1, 7, 4, 9], window=(3, 1), dilation=(2, 1), activation=RELU6, zero=(-128, -128))


def denses(g, kind, per_channel):
    q = dict(per_channel=per_channel)
    dense(g, kind, [1, 12], 5, **q)
    dense(g, kind, [3, 7], 4, activation=RELU, zero=(-128, -128), **q)
    dense(g, kind, [2, 33], 9, activation=RELU6, zero=(4, -128), **q)
    dense(g, kind, [1, 16], 8, activation=RELU_N1, zero=(-9, 5), bias=False, **q)
    dense(g, kind, [2, 3, 5], 3, output=[2, 3, 3], keep_num_dims=True, zero=(127, 77), **q)
    dense(g, kind, [1, 2, 2, 3], 4, inputs=12, output=[1, 4], zero=(-60, -77), **q)
    dense(g, kind, [2, 1], 6, absent=True, bias=False, **q)
    dense(g, kind, [4, 6], 1 if not per_channel else 3, **q)
    dense(g, kind, [5, 4], 5, exact=True, **q)
    dense(g, kind, [4, 5], 4, above=True, **q)
    dense(g, kind, [2, 64], 10, zero=(-20, 9), **q)
    if kind is not INT4 and not per_channel:
        dense(g, kind, [2, 9], 4, variable=True, **q)


def register(operator, groups, kinds):
    """One file for each group of operators and each kind."""
    for kind, label in kinds:
        for suffix, make in groups:
            # Wide numbers take room; one invoke of them is enough.
            case(lambda g, make=make, kind=kind: make(g, kind), name=f"{operator}_{label}{suffix}",
                 invokes=2 if kind.data == I8 else 1)


KINDS = [(INT8, "int8"), (INT4, "int8_int4"), (INT16, "int16"), (FLOAT, "float32")]
register("CONV_2D", [("", convolutions), ("_pointwise", pointwise)], KINDS + [(INT16_32, "int16_bias32")])
register("CONV_2D", [("_grouped", grouped)], [k for k in KINDS if k[0] is not INT4])
register("DEPTHWISE_CONV_2D", [("", depthwises)], [k for k in KINDS if k[0] is not INT4])
register("CONV_2D", [("_wide", wide)], [(INT8, "int8"), (INT16, "int16")])
register("DEPTHWISE_CONV_2D", [("_wide", wide_depthwise)], [(INT8, "int8"), (INT16, "int16")])
register("FULLY_CONNECTED", [("", lambda g, kind: denses(g, kind, False))], KINDS + [(INT16_32, "int16_bias32")])
register("FULLY_CONNECTED", [("_channels", lambda g, kind: denses(g, kind, True))], [(INT8, "int8"), (INT16, "int16"), (INT16_32, "int16_bias32")])


@case
def DEPTHWISE_CONV_2D_int8_int4(g):
    depthwise(g, INT4, [1, 5, 6, 4])
    depthwise(g, INT4, [1, 6, 5, 3], stride=(2, 2), activation=RELU, zero=(-128, -128))
    depthwise(g, INT4, [2, 5, 5, 1], multiplier=3, window=(3, 3), padding=VALID, activation=RELU6, zero=(0, -128))
    depthwise(g, INT4, [1, 7, 7, 2], dilation=(2, 3), zero=(127, 11), bias=False, per_channel=False)
    depthwise(g, INT4, [1, 4, 4, 7], exact=True)


@case
def CONV_2D_int16_far(g):
    conv(g, INT16, [1, 4, 5, 3], 4, far=True)
    conv(g, INT16, [1, 3, 3, 8], 5, window=(1, 1), far=True, per_channel=False)


@case
def DEPTHWISE_CONV_2D_int16_far(g):
    depthwise(g, INT16, [1, 4, 5, 6], far=True)


@case
def FULLY_CONNECTED_int16_far(g):
    dense(g, INT16, [2, 9], 6, far=True, per_channel=False)
    dense(g, INT16, [2, 9], 6, far=True)


def bias_type(kind, label):
    """No bias: the accumulators' type is an option."""
    @case(name=f"CONV_2D_{label}_accumulators")
    def convolution(g):
        for t in (I32, I64, 0):
            conv(g, kind, [1, 3, 4, 3], 3, bias=False, quantized_bias_type=t)

    @case(name=f"FULLY_CONNECTED_{label}_accumulators")
    def connected(g):
        for t in (I32, I64, 0):
            dense(g, kind, [2, 9], 4, bias=False, per_channel=False, quantized_bias_type=t)


bias_type(INT16, "int16")


# --- what TFLM refuses ---

LEFT_OUT["DEPTHWISE_CONV_2D with a bias of index -1"] = "TFLM crashes; CONV_2D takes it, and so does either with two inputs"

@case(refused="")
def CONV_2D_float32_int8(g):
    w = g.constant(g.noise([2, 1, 1, 3], I8), I8, 0.1)
    g.op("CONV_2D", [g.input([1, 2, 2, 3], F32), w], [g.output([1, 2, 2, 2], F32)], padding=SAME, stride_h=1, stride_w=1,
         dilation_h_factor=1, dilation_w_factor=1)


@case(refused="")
def CONV_2D_int16_int4(g):
    w = g.constant(g.noise([2, 1, 1, 3], I4), I4, 0.1)
    g.op("CONV_2D", [g.input([1, 2, 2, 3], I16, 0.1), w], [g.output([1, 2, 2, 2], I16, 0.1)], padding=SAME, stride_h=1, stride_w=1,
         dilation_h_factor=1, dilation_w_factor=1)


@case(refused="")
def DEPTHWISE_CONV_2D_float32_int8(g):
    w = g.constant(g.noise([1, 1, 1, 3], I8), I8, 0.1)
    g.op("DEPTHWISE_CONV_2D", [g.input([1, 2, 2, 3], F32), w], [g.output([1, 2, 2, 3], F32)], padding=SAME, stride_h=1, stride_w=1,
         depth_multiplier=1, dilation_h_factor=1, dilation_w_factor=1)


@case(refused="")
def FULLY_CONNECTED_float32_int8(g):
    w = g.constant(g.noise([2, 3], I8), I8, 0.1)
    g.op("FULLY_CONNECTED", [g.input([2, 3], F32), w, -1], [g.output([2, 2], F32)])


@case(refused="")
def FULLY_CONNECTED_int8_int4_channels(g):
    dense(g, INT4, [2, 9], 4)


@case(refused="")
def FULLY_CONNECTED_uint8(g):
    w = g.constant(g.noise([2, 3], U8), U8, 0.1)
    g.op("FULLY_CONNECTED", [g.input([2, 3], U8, 0.1), w, -1], [g.output([2, 2], U8, 0.1)])

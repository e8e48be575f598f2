"""Random models for TensorFlow Lite Micro: branching graphs of operators whose kernels read and write in many orders.

Values keep their range from layer to layer (weights and scales see to that), since saturated results would hide errors.
The same seed gives the same file.
"""
import random

import flatbuffers
import numpy as np

from probe import schema as S

OP, TYPE = S.BuiltinOperator, S.TensorType
TYPES = {"f32": TYPE.FLOAT32, "i8": TYPE.INT8, "i16": TYPE.INT16, "i32": TYPE.INT32, "i64": TYPE.INT64, "bool": TYPE.BOOL}
NUMPY = {"f32": np.float32, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "bool": np.bool_}
SAME, VALID = S.Padding.SAME, S.Padding.VALID
# Scale and zero point of most tensors, and of those whose kernels want others.
SCALE = {"i8": (0.02, -3), "i16": (0.0001, 0)}
SOFTMAX = {"i8": (1 / 256, -128), "i16": (1 / 32768, 0)}
TANH = {"i8": (1 / 128, 0), "i16": (1 / 32768, 0)}
MOST = 3000         # elements of a tensor
NUMBERS = ("f32", "i8", "i16")


def elements(shape):
    return int(np.prod(shape, dtype=np.int64))


class Graph:
    """A model under construction; a tensor is known by its index."""

    def __init__(self, seed):
        self.random, self.numpy = random.Random(seed), np.random.default_rng(seed)
        # From chains to bushes: how often an operator reads one of the last results, and what nobody reads is a result.
        self.recent, self.kept = self.random.choice([(0.97, 0.3), (0.9, 0.5), (0.75, 0.7), (0.6, 0.9)])
        self.tensors, self.codes, self.operators = [], [], []
        self.buffers = [S.BufferT()]
        self.kinds, self.quantization, self.values, self.readers = [], [], [], {}

    # --- parts of the file

    def tensor(self, kind, shape, quantization=None, data=None):
        """Adds a tensor; with `data` a constant. Quantization is (scale or scales, zero point)."""
        t = S.TensorT()
        t.shape, t.type, t.buffer, t.name = [int(d) for d in shape], TYPES[kind], 0, f"t{len(self.tensors)}"
        if data is not None:
            b = S.BufferT()
            b.data = np.frombuffer(np.ascontiguousarray(np.asarray(data, NUMPY[kind])).tobytes(), np.uint8)
            self.buffers.append(b)
            t.buffer = len(self.buffers) - 1
        if quantization is None:
            quantization = SCALE.get(kind) if data is None else None
        if quantization:
            t.quantization = S.QuantizationParametersT()
            scales = np.atleast_1d(quantization[0]).astype(float)
            t.quantization.scale, t.quantization.zeroPoint = list(scales), [quantization[1]] * len(scales)
        self.tensors.append(t)
        self.kinds.append(kind)
        self.quantization.append(quantization)
        return len(self.tensors) - 1

    def words(self, *numbers):
        """A constant of 32-bit numbers."""
        return self.tensor("i32", [len(numbers)], data=numbers)

    def result(self, kind, shape, quantization=None):
        """A tensor that an operator writes, to be read by others."""
        self.values.append(self.tensor(kind, shape, quantization))
        return self.values[-1]

    def op(self, name, inputs, outputs, options=None):
        """Adds an operator."""
        builtin = getattr(OP, name)
        if builtin not in self.codes:
            self.codes.append(builtin)
        o = S.OperatorT()
        o.opcodeIndex, o.inputs, o.outputs = self.codes.index(builtin), list(inputs), list(outputs)
        if options is not None:
            o.builtinOptions = options
            o.builtinOptionsType = getattr(S.BuiltinOptions, type(options).__name__[:-1])
        for t in inputs:
            self.readers[t] = self.readers.get(t, 0) + 1
        self.operators.append(o)
        return True

    def file(self, inputs, outputs):
        """The bytes of the whole."""
        g = S.SubGraphT()
        g.name, g.tensors, g.operators, g.inputs, g.outputs = "main", self.tensors, self.operators, inputs, outputs
        m = S.ModelT()
        m.version, m.subgraphs, m.buffers, m.operatorCodes = 3, [g], self.buffers, []
        for builtin in self.codes:
            c = S.OperatorCodeT()
            c.builtinCode, c.deprecatedBuiltinCode, c.version = builtin, min(builtin, 127), 1
            m.operatorCodes.append(c)
        builder = flatbuffers.Builder(1 << 14)
        builder.Finish(m.Pack(builder), b"TFL3")
        return bytes(builder.Output())

    # --- choices

    def shape(self, t):
        return list(self.tensors[t].shape)

    def pick(self, *choices):
        return self.random.choice(choices)

    def value(self, kinds=NUMBERS, rank=None, good=lambda shape: True):
        """Some tensor of a kind, rather one of the last ones; None if there is none."""
        fitting = [t for t in self.values if self.kinds[t] in kinds and good(self.shape(t))
                   and (rank is None or len(self.shape(t)) == rank)]
        if not fitting:
            return None
        return self.random.choice(fitting[-2:] if self.random.random() < self.recent else fitting)

    def weights(self, kind, shape, fan, channels=None):
        """Random weights that keep the range of what they are multiplied with, one scale or one for each channel."""
        reach = 1.7 / fan ** 0.5
        if kind == "f32":
            return self.tensor("f32", shape, data=self.numpy.uniform(-reach, reach, shape))
        scale = reach / 127
        if channels and self.pick(True, False):
            scale = scale * self.numpy.uniform(0.6, 1.4, channels)
        t = self.tensor("i8", shape, (scale, 0), self.numpy.integers(-127, 128, shape))
        if np.ndim(scale):
            self.tensors[t].quantization.quantizedDimension = 3 if shape[0] == 1 and shape[3] == channels else 0
        return t

    def bias(self, x, weights, channels, needed=False):
        """Small random sums; -1 for none now and then, if not `needed`."""
        kind = self.kinds[x]
        if not needed and self.random.random() < 0.15:
            return -1
        if kind == "f32":
            return self.tensor("f32", [channels], data=self.numpy.uniform(-0.3, 0.3, channels))
        scale = self.quantization[x][0] * np.asarray(self.quantization[weights][0])
        reach = 10 * self.quantization[x][0] / scale
        values = self.numpy.uniform(-1, 1, channels) * np.broadcast_to(reach, [channels])
        return self.tensor("i32" if kind == "i8" else "i64", [channels], (scale, 0), values.astype(np.int64))

    def activation(self):
        return self.pick(*[S.ActivationFunctionType.NONE] * 3, S.ActivationFunctionType.RELU, S.ActivationFunctionType.RELU6)


def spans(size, window, stride, dilation, padding):
    """Outputs of a window along one dimension."""
    reach = (window - 1) * dilation + 1
    return -(-size // stride) if padding == SAME else (size + stride - reach) // stride


def window(g, x, dilated=True):
    """(window, stride, dilation, padding, output's height and width), or None."""
    _, h, w, _ = g.shape(x)
    kh, kw, sh, sw = g.pick(1, 2, 3, 3, 5), g.pick(1, 1, 2, 3, 3), g.pick(1, 1, 1, 2, 3), g.pick(1, 1, 2)
    dh, dw = (g.pick(1, 1, 1, 2), g.pick(1, 1, 1, 2)) if dilated and g.pick(True, False) else (1, 1)
    padding = g.pick(SAME, SAME, VALID)
    oh, ow = spans(h, kh, sh, dh, padding), spans(w, kw, sw, dw, padding)
    return None if oh < 1 or ow < 1 else ((kh, kw), (sh, sw), (dh, dw), padding, oh, ow)


def fill(options, **values):
    """The options with some values set."""
    for k, v in values.items():
        if not hasattr(options, k):
            raise AttributeError(k)
        setattr(options, k, v)
    return options


def convolution(g):
    x = g.value(rank=4)
    seen = window(g, x) if x is not None else None
    if not seen:
        return False
    (kh, kw), (sh, sw), (dh, dw), padding, oh, ow = seen
    (n, _, _, c), kind = g.shape(x), g.kinds[x]
    depthwise, groups = g.pick(True, False), 1
    if depthwise:
        multiplier = g.pick(1, 1, 1, 2, 3)
        co = c * multiplier
        weights = g.weights(kind, [1, kh, kw, co], kh * kw, co)
        options = fill(S.DepthwiseConv2DOptionsT(), depthMultiplier=multiplier)
    else:
        groups = 2 if c % 2 == 0 and g.random.random() < 0.15 else 1
        co = g.pick(1, 2, 3, 4, 6, 8, 12, 16) * groups
        weights = g.weights(kind, [co, kh, kw, c // groups], kh * kw * c // groups, co)
        options = S.Conv2DOptionsT()
    if n * oh * ow * co > MOST:
        return False
    fill(options, padding=padding, strideH=sh, strideW=sw, dilationHFactor=dh, dilationWFactor=dw,
         fusedActivationFunction=g.activation())
    y = g.result(kind, [n, oh, ow, co])
    # TFLM crashes over a depthwise convolution whose bias is left out.
    inputs = [x, weights, g.bias(x, weights, co, needed=depthwise)]
    return g.op("DEPTHWISE_CONV_2D" if depthwise else "CONV_2D", inputs, [y], options)


def transpose_convolution(g):
    x = g.value(rank=4)
    if x is None:
        return False
    (n, h, w, c), kind = g.shape(x), g.kinds[x]
    kh, kw, sh, sw, co = g.pick(1, 2, 3), g.pick(1, 2, 3), g.pick(1, 2), g.pick(1, 2), g.pick(1, 2, 3, 4)
    padding = g.pick(SAME, VALID)
    oh, ow = (h * sh, w * sw) if padding == SAME else ((h - 1) * sh + kh, (w - 1) * sw + kw)
    if n * oh * ow * co > MOST or padding == SAME and (kh < sh or kw < sw):
        return False
    weights = g.weights(kind, [co, kh, kw, c], kh * kw * c)
    y = g.result(kind, [n, oh, ow, co])
    return g.op("TRANSPOSE_CONV", [g.words(n, oh, ow, co), weights, x], [y],
                fill(S.TransposeConvOptionsT(), padding=padding, strideH=sh, strideW=sw))


def pooling(g):
    name = g.pick("AVERAGE_POOL_2D", "MAX_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
    x = g.value(("f32",) if name == "L2_POOL_2D" else NUMBERS, rank=4)
    seen = window(g, x, dilated=False) if x is not None else None
    if not seen:
        return False
    (kh, kw), (sh, sw), _, padding, oh, ow = seen
    n, _, _, c = g.shape(x)
    y = g.result(g.kinds[x], [n, oh, ow, c], g.quantization[x])
    return g.op(name, [x], [y], fill(S.Pool2DOptionsT(), padding=padding, strideH=sh, strideW=sw, filterHeight=kh,
                                     filterWidth=kw, fusedActivationFunction=g.activation()))


def fully_connected(g):
    x = g.value(good=lambda shape: len(shape) >= 2)
    if x is None:
        return False
    shape, kind, units = g.shape(x), g.kinds[x], g.pick(1, 2, 3, 5, 8, 16, 30)
    deep = shape[-1]
    keep = len(shape) > 2
    out = [*shape[:-1], units]
    if elements(out) > MOST:
        return False
    weights = g.weights(kind, [units, deep], deep)
    y = g.result(kind, out)
    return g.op("FULLY_CONNECTED", [x, weights, g.bias(x, weights, units)], [y],
                fill(S.FullyConnectedOptionsT(), keepNumDims=keep, fusedActivationFunction=g.activation()))


def memory(g):
    """SVDF, whose state lasts from one invoke to the next."""
    x = g.value(("f32", "i8"), rank=2)
    if x is None:
        return False
    (n, deep), kind = g.shape(x), g.kinds[x]
    units, rank, steps = g.pick(1, 2, 5), g.pick(1, 1, 2), g.pick(2, 3, 6)
    filters = units * rank
    features = g.weights(kind, [filters, deep], deep)
    if kind == "f32":
        times, state_of = g.weights(kind, [filters, steps], steps), ("f32", None)
    else:
        times = g.tensor("i16", [filters, steps], (1 / 32768, 0), g.numpy.integers(-25000, 25000, [filters, steps]))
        state_of = "i16", (0.0005, 0)
    sums = {"f32": None, "i8": (0.0005 / 32768, 0)}[kind]
    bias = g.tensor("f32" if kind == "f32" else "i32", [units], sums, g.numpy.integers(-1, 2, [units]))
    state = g.tensor(state_of[0], [n, steps * filters], state_of[1])
    g.tensors[state].isVariable = True
    return g.op("SVDF", [x, features, times, bias, state], [g.result(kind, [n, units])],
                fill(S.SVDFOptionsT(), rank=rank))


def matrices(g):
    a = g.value(good=lambda shape: 2 <= len(shape) <= 4)
    if a is None:
        return False
    shape = g.shape(a)
    b = g.value((g.kinds[a],), good=lambda s: len(s) == len(shape) and s[:-2] == shape[:-2] and
                (s[-2] == shape[-1] or s[-1] == shape[-1]))
    if b is None:
        return False
    other = g.shape(b)
    flip = other[-2] != shape[-1]
    out = [*shape[:-1], other[-2] if flip else other[-1]]
    if elements(out) > MOST:
        return False
    scaled = SCALE.get(g.kinds[a])
    y = g.result(g.kinds[a], out, scaled and (scaled[0] * 4, scaled[1]))
    return g.op("BATCH_MATMUL", [a, b], [y], fill(S.BatchMatMulOptionsT(), adjX=False, adjY=flip))


def unary(g):
    name = g.pick("RELU", "RELU6", "LOGISTIC", "TANH", "ABS", "NEG", "HARD_SWISH", "LEAKY_RELU", "ELU", "SIN", "COS", "FLOOR")
    kinds = {"NEG": ("f32",), "SIN": ("f32",), "COS": ("f32",), "FLOOR": ("f32",), "HARD_SWISH": ("f32", "i8"),
             "ELU": ("f32", "i8")}.get(name, NUMBERS)
    x = g.value(kinds)
    if x is None:
        return False
    kind = g.kinds[x]
    to = {"LOGISTIC": SOFTMAX, "TANH": TANH}.get(name, SCALE).get(kind)
    y = g.result(kind, g.shape(x), to)
    return g.op(name, [x], [y], fill(S.LeakyReluOptionsT(), alpha=0.3) if name == "LEAKY_RELU" else None)


def rows(g):
    name = g.pick("SOFTMAX", "SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION")
    x = g.value(NUMBERS if name == "SOFTMAX" else ("f32", "i8"), good=lambda shape: len(shape) <= 4)
    if x is None:
        return False
    kind = g.kinds[x]
    to = {"SOFTMAX": SOFTMAX, "LOG_SOFTMAX": {"i8": (0.0625, 127)}, "L2_NORMALIZATION": TANH}[name].get(kind)
    y = g.result(kind, g.shape(x), to)
    options = {"SOFTMAX": fill(S.SoftmaxOptionsT(), beta=1.0), "L2_NORMALIZATION": S.L2NormOptionsT()}.get(name)
    return g.op(name, [x], [y], options)


def binary(g):
    name = g.pick("ADD", "ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "PRELU")
    a = g.value(good=lambda shape: 1 <= len(shape) <= 4)
    if a is None:
        return False
    kind, shape = g.kinds[a], g.shape(a)
    same = []
    for t in g.values:
        if g.kinds[t] != kind or name in ("MAXIMUM", "MINIMUM") and g.quantization[t] != g.quantization[a]:
            continue
        try:
            if elements(np.broadcast_shapes(g.shape(t), shape)) <= MOST and len(g.shape(t)) <= 4:
                same.append(t)
        except ValueError:
            pass
    if name == "PRELU" or not same or g.random.random() < 0.2:
        small = [d if g.pick(True, False) else 1 for d in shape]
        small = [1] * (len(shape) - 1) + shape[-1:] if name == "PRELU" else small
        if kind == "f32":
            b = g.tensor(kind, small, data=g.numpy.uniform(-1, 1, small))
        else:
            data_kind = "i8" if name == "PRELU" else kind
            reach = 120 if data_kind == "i8" else 9000
            b = g.tensor(data_kind, small, g.quantization[a] if name in ("MAXIMUM", "MINIMUM") else (SCALE[data_kind][0], 0),
                         g.numpy.integers(-reach, reach, small))
    else:
        b = g.random.choice(same)
    out = [int(d) for d in np.broadcast_shapes(shape, g.shape(b))]
    to = g.quantization[a] if name in ("MAXIMUM", "MINIMUM") else None
    if name == "SQUARED_DIFFERENCE" and kind in SCALE:
        to = SCALE[kind][0] * 2, SCALE[kind][1]
    y = g.result(kind, out, to)
    inputs = [a, b] if name == "PRELU" or g.pick(True, False) else [b, a]
    options = {"ADD": S.AddOptionsT, "SUB": S.SubOptionsT, "MUL": S.MulOptionsT}.get(name)
    return g.op(name, inputs, [y], fill(options(), fusedActivationFunction=g.activation()) if options else None)


def add_n(g):
    a = g.value(("f32", "i8"))
    same = [t for t in g.values if a is not None and g.kinds[t] == g.kinds[a] and g.shape(t) == g.shape(a)
            and g.quantization[t] == g.quantization[a]]
    if len(same) < 2:
        return False
    y = g.result(g.kinds[a], g.shape(a))
    return g.op("ADD_N", [g.random.choice(same) for _ in range(g.pick(2, 3))], [y])


def conversion(g):
    x = g.value()
    if x is None:
        return False
    kind = g.kinds[x]
    if kind == "f32":
        y = g.result(g.pick("i8", "i8", "i16"), g.shape(x))
        return g.op("QUANTIZE", [x], [y])
    if g.pick(True, False):
        return g.op("DEQUANTIZE", [x], [g.result("f32", g.shape(x))])
    to = g.pick("i8", "i16")
    scale, zero = SCALE[to]
    return g.op("QUANTIZE", [x], [g.result(to, g.shape(x), (scale * g.pick(1, 1.3), zero))])


def compared(g):
    """A comparison, and a choice between two tensors by its result."""
    a = g.value(("f32", "i8"), good=lambda shape: len(shape) <= 4)
    same = [t for t in g.values if a is not None and g.kinds[t] == g.kinds[a] and g.shape(t) == g.shape(a)
            and g.quantization[t] == g.quantization[a]]
    if not same:
        return False
    b, c, d = (g.random.choice(same) for _ in range(3))
    flags = g.tensor("bool", g.shape(a))
    g.op(g.pick("LESS", "GREATER_EQUAL", "NOT_EQUAL"), [a, b], [flags])
    return g.op("SELECT_V2", [flags, c, d], [g.result(g.kinds[a], g.shape(a), g.quantization[a])])


def mean(g):
    x = g.value(("f32", "i8"), good=lambda shape: 2 <= len(shape) <= 4)
    if x is None:
        return False
    shape = g.shape(x)
    if len(shape) == 4 and g.pick(True, True, False):
        axes = [1, 2]
    else:
        axes = sorted(g.random.sample(range(len(shape)), g.random.randint(1, len(shape) - 1)))
    keep = g.pick(True, True, False)
    out = [1 if k in axes else d for k, d in enumerate(shape) if keep or k not in axes]
    y = g.result(g.kinds[x], out, g.quantization[x])
    name = g.pick("MEAN", "MEAN", "SUM", "REDUCE_MAX")
    return g.op(name, [x, g.words(*axes)], [y], fill(S.ReducerOptionsT(), keepDims=keep))


def copy_of(g, x, shape):
    return g.result(g.kinds[x], shape, g.quantization[x])


def reshape(g):
    x = g.value()
    if x is None:
        return False
    shape = g.shape(x)
    form = g.pick("RESHAPE", "RESHAPE", "RESHAPE", "SQUEEZE", "EXPAND_DIMS")
    if form == "SQUEEZE" and 1 in shape and elements(shape) > 1:
        return g.op("SQUEEZE", [x], [copy_of(g, x, [d for d in shape if d != 1])], S.SqueezeOptionsT())
    if form == "EXPAND_DIMS" and len(shape) < 4:
        at = g.random.randint(0, len(shape))
        return g.op("EXPAND_DIMS", [x, g.words(at)], [copy_of(g, x, [*shape[:at], 1, *shape[at:]])])
    rest, out = elements(shape), []
    for _ in range(g.pick(1, 2, 3, 3)):
        out.append(g.random.choice([d for d in range(1, min(rest, 24) + 1) if rest % d == 0]))
        rest //= out[-1]
    out.append(rest)
    g.random.shuffle(out)
    return g.op("RESHAPE", [x, g.words(*out)], [copy_of(g, x, out)])


def pad(g):
    x = g.value(good=lambda shape: len(shape) <= 4)
    if x is None:
        return False
    shape, kind = g.shape(x), g.kinds[x]
    around = [(g.pick(0, 0, 1, 2), g.pick(0, 0, 1)) for _ in shape]
    mirror = g.random.random() < 0.2 and kind in ("f32", "i8") and all(max(p) < d for p, d in zip(around, shape))
    out = [d + a + b for d, (a, b) in zip(shape, around)]
    if elements(out) > MOST:
        return False
    paddings = g.tensor("i32", [len(shape), 2], data=around)
    y = copy_of(g, x, out)
    if mirror:
        return g.op("MIRROR_PAD", [x, paddings], [y], fill(S.MirrorPadOptionsT(), mode=g.pick(0, 1)))
    if kind != "i16" and g.random.random() < 0.3:
        return g.op("PADV2", [x, paddings, g.tensor(kind, [1], g.quantization[x], [1])], [y])
    return g.op("PAD", [x, paddings], [y], S.PadOptionsT())


def part(g):
    """SLICE or STRIDED_SLICE."""
    x = g.value(good=lambda shape: len(shape) <= 4 and max(shape) > 1)
    if x is None:
        return False
    shape = g.shape(x)
    outermost = g.pick(True, False)
    begin, size, steps = [], [], []
    for d in shape:
        cut = d > 1 and (not outermost or not any(s < e for s, e in zip(size, shape)))
        b = g.random.randrange(d) if cut else 0
        begin.append(b)
        size.append(g.random.randint(1, d - b) if cut else d)
        steps.append(g.pick(1, 1, 1, 2) if not outermost else 1)
    if g.pick(True, False):
        return g.op("SLICE", [x, g.words(*begin), g.words(*size)], [copy_of(g, x, size)], S.SliceOptionsT())
    ends = [b + s for b, s in zip(begin, size)]
    out = [-(-s // k) for s, k in zip(size, steps)]
    return g.op("STRIDED_SLICE", [x, g.words(*begin), g.words(*ends), g.words(*steps)], [copy_of(g, x, out)],
                S.StridedSliceOptionsT())


def concatenation(g):
    x = g.value(good=lambda shape: 1 <= len(shape) <= 4)
    if x is None:
        return False
    shape = g.shape(x)
    axis = g.pick(0, 1, len(shape) - 1, g.random.randrange(len(shape))) % len(shape)
    fit = [t for t in g.values if g.kinds[t] == g.kinds[x] and g.quantization[t] == g.quantization[x]
           and len(g.shape(t)) == len(shape) and all(a == b for k, (a, b) in enumerate(zip(g.shape(t), shape)) if k != axis)]
    inputs = [x] + [g.random.choice(fit) for _ in range(g.pick(1, 1, 2, 3))]
    g.random.shuffle(inputs)
    out = list(shape)
    out[axis] = sum(g.shape(t)[axis] for t in inputs)
    if elements(out) > MOST:
        return False
    return g.op("CONCATENATION", inputs, [copy_of(g, x, out)],
                fill(S.ConcatenationOptionsT(), axis=g.pick(axis, axis - len(shape))))


def pack(g):
    x = g.value(good=lambda shape: len(shape) <= 3)
    if x is None:
        return False
    shape = g.shape(x)
    fit = [t for t in g.values if g.kinds[t] == g.kinds[x] and g.quantization[t] == g.quantization[x]
           and g.shape(t) == shape]
    inputs = [g.random.choice(fit) for _ in range(g.pick(2, 2, 3))]
    axis = g.random.randint(0, len(shape))
    out = [*shape[:axis], len(inputs), *shape[axis:]]
    if elements(out) > MOST:
        return False
    return g.op("PACK", inputs, [copy_of(g, x, out)], fill(S.PackOptionsT(), valuesCount=len(inputs), axis=axis))


def split(g):
    x = g.value(good=lambda shape: len(shape) <= 4 and max(shape) > 1)
    if x is None:
        return False
    shape = g.shape(x)
    axis = g.random.choice([k for k, d in enumerate(shape) if d > 1])
    form, d = g.pick("SPLIT", "SPLIT", "SPLIT_V", "UNPACK"), shape[axis]
    if form == "UNPACK" and len(shape) > 1 and d <= 6:
        ys = [copy_of(g, x, shape[:axis] + shape[axis + 1:]) for _ in range(d)]
        return g.op("UNPACK", [x], ys, fill(S.UnpackOptionsT(), num=d, axis=axis))
    if form == "SPLIT_V":
        first = g.random.randint(1, d - 1)
        sizes = [first, d - first]
    else:
        count = g.random.choice([n for n in range(1, 5) if d % n == 0])
        sizes = [d // count] * count
    ys = [copy_of(g, x, [*shape[:axis], s, *shape[axis + 1:]]) for s in sizes]
    if form == "SPLIT_V":
        return g.op("SPLIT_V", [x, g.words(*sizes), g.words(axis)], ys, fill(S.SplitVOptionsT(), numSplits=2))
    return g.op("SPLIT", [g.words(axis), x], ys, fill(S.SplitOptionsT(), numSplits=len(sizes)))


def transpose(g):
    x = g.value(good=lambda shape: 2 <= len(shape) <= 4)
    if x is None:
        return False
    shape = g.shape(x)
    order = list(range(len(shape)))
    g.random.shuffle(order)
    return g.op("TRANSPOSE", [x, g.words(*order)], [copy_of(g, x, [shape[k] for k in order])], S.TransposeOptionsT())


def resize(g):
    name = g.pick("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
    x = g.value(("f32", "i8") if name == "RESIZE_BILINEAR" else NUMBERS, rank=4)
    if x is None:
        return False
    n, h, w, c = g.shape(x)
    oh, ow = g.random.randint(1, 2 * h + 1), g.random.randint(1, 2 * w + 1)
    if n * oh * ow * c > MOST:
        return False
    options = S.ResizeBilinearOptionsT() if name == "RESIZE_BILINEAR" else S.ResizeNearestNeighborOptionsT()
    corners = g.pick(False, False, True)
    fill(options, alignCorners=corners, halfPixelCenters=not corners and g.pick(True, False))
    return g.op(name, [x, g.words(oh, ow)], [copy_of(g, x, [n, oh, ow, c])], options)


def blocks(g):
    x = g.value(("f32", "i8"), rank=4)
    if x is None:
        return False
    n, h, w, c = g.shape(x)
    name = g.pick("DEPTH_TO_SPACE", "SPACE_TO_DEPTH", "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
    if name == "DEPTH_TO_SPACE" and c % 4 == 0:
        return g.op(name, [x], [copy_of(g, x, [n, 2 * h, 2 * w, c // 4])], fill(S.DepthToSpaceOptionsT(), blockSize=2))
    if name == "SPACE_TO_DEPTH" and h % 2 == w % 2 == 0:
        return g.op(name, [x], [copy_of(g, x, [n, h // 2, w // 2, 4 * c])], fill(S.SpaceToDepthOptionsT(), blockSize=2))
    crops = g.tensor("i32", [2, 2], data=[[0, 0], [0, 0]])
    if name == "SPACE_TO_BATCH_ND" and h % 2 == w % 2 == 0:
        return g.op(name, [x, g.words(2, 2), crops], [copy_of(g, x, [4 * n, h // 2, w // 2, c])], S.SpaceToBatchNDOptionsT())
    if name == "BATCH_TO_SPACE_ND" and n % 4 == 0:
        return g.op(name, [x, g.words(2, 2), crops], [copy_of(g, x, [n // 4, 2 * h, 2 * w, c])], S.BatchToSpaceNDOptionsT())
    return False


def picked(g):
    """GATHER, ARG_MAX or CUMSUM."""
    x = g.value(("f32", "i8"), good=lambda shape: 1 <= len(shape) <= 4)
    if x is None:
        return False
    shape, form = g.shape(x), g.pick("GATHER", "ARG_MAX", "CUMSUM")
    axis = g.random.randrange(len(shape))
    if form == "GATHER":
        count = g.random.randint(1, 4)
        indices = g.words(*(g.random.randrange(shape[axis]) for _ in range(count)))
        return g.op(form, [x, indices], [copy_of(g, x, [*shape[:axis], count, *shape[axis + 1:]])],
                    fill(S.GatherOptionsT(), axis=axis))
    if form == "ARG_MAX" and len(shape) > 1:
        y = g.tensor("i32", shape[:axis] + shape[axis + 1:])
        g.values.append(y)
        return g.op(form, [x, g.words(axis)], [y], fill(S.ArgMaxOptionsT(), outputType=TYPE.INT32))
    return g.op("CUMSUM", [x, g.tensor("i32", [], data=axis)], [g.result(g.kinds[x], shape)],
                fill(S.CumsumOptionsT(), exclusive=g.pick(True, False), reverse=g.pick(True, False)))


MAKERS = [convolution] * 5 + [pooling] * 2 + [binary] * 3 + [concatenation] * 2 + [unary] * 2 + [
    transpose_convolution, fully_connected, memory, matrices, blocks, rows, add_n, conversion, compared, mean, reshape, reshape, pad, pad, part,
    part, pack, split, split, transpose, resize, blocks, picked]


def build(seed):
    """The bytes of the model of a seed."""
    g = Graph(seed)
    inputs = []
    for _ in range(g.pick(1, 1, 1, 2, 3)):
        shape = [g.pick(1, 1, 1, 2, 4), g.random.randint(1, 12), g.random.randint(1, 12), g.pick(1, 2, 3, 4, 8, 16)]
        inputs.append(g.result(g.pick("f32", "i8", "i8", "i8", "i16"), shape))
    wanted, tries = g.random.randint(2, 20), 0
    while len(g.operators) < wanted and tries < 300:
        g.random.choice(MAKERS)(g)
        tries += 1
    made = [k for k, t in enumerate(g.tensors) if t.buffer == 0 and not t.isVariable and k not in inputs]
    # What nobody reads is a result, as a rule; some are read and results, too.
    outputs = [t for t in made if g.random.random() < (0.05 if t in g.readers else g.kept)]
    outputs = outputs if made[-1] in outputs else outputs + made[-1:]
    if g.random.random() < 0.03:
        outputs.append(inputs[0])
    g.random.shuffle(outputs)
    return g.file(inputs, outputs)

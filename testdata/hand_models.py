"""Models built by hand, table by table: what TensorFlow's converter cannot make, and files that are wrong.

`GOOD` are odd but valid files, `MALFORMED` are wrong ones. Both map a file's name to its maker and to a line about it.
A maker gets `converted`, a function from the name of a model of tf_models.py to its bytes, and returns bytes.
"""
import random

import flatbuffers
import numpy as np
from flatbuffers import flexbuffers
from tensorflow.lite.python import schema_py_generated as S

GOOD, MALFORMED = {}, {}
OP, TYPE = S.BuiltinOperator, S.TensorType
F32, I8, I32, BOOL = TYPE.FLOAT32, TYPE.INT8, TYPE.INT32, TYPE.BOOL
PLAN = "OfflineMemoryAllocation"
ONLINE = -1


def good(about):
    """Registers the maker of an odd but valid model."""
    def register(make):
        GOOD[make.__name__] = (make, about)
        return make
    return register


def malformed(about):
    """Registers the maker of a wrong file."""
    def register(make):
        MALFORMED[make.__name__] = (make, about)
        return make
    return register


# --- writing ----------------------------------------------------------------------------------------------------

class AlignedBuffer(S.BufferT):
    """A buffer whose data starts at a multiple of `align` in the file, as the schema asks for (16)."""
    align = 16

    def Pack(self, builder):
        vector = None
        if self.data is not None:
            data = np.asarray(self.data, np.uint8).tobytes()
            builder.StartVector(1, len(data), self.align)
            builder.head = builder.head - len(data)
            builder.Bytes[builder.head:builder.head + len(data)] = data
            vector = builder.EndVector()
        S.BufferStart(builder)
        if vector is not None:
            S.BufferAddData(builder, vector)
        S.BufferAddOffset(builder, self.offset)
        S.BufferAddSize(builder, self.size)
        return S.BufferEnd(builder)


def buffer(data=None, align=16):
    """A buffer of bytes, or without data."""
    b = AlignedBuffer()
    b.align = align
    b.data = None if data is None else np.frombuffer(bytes(data), np.uint8)
    return b


def write(m, identifier=b"TFL3", align=16):
    """The file of a model in object form."""
    packed = []
    for b in m.buffers or []:
        c = buffer(None if b.data is None else bytes(bytearray(b.data)), align)
        c.offset, c.size = b.offset, b.size
        packed.append(c)
    m.buffers = packed
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(m.Pack(builder), identifier)
    return bytes(builder.Output())


def read(data):
    """A model in object form."""
    return S.ModelT.InitFromPackedBuf(data, 0)


class Net:
    """A model under construction. Tensors are named by their index in the current subgraph."""

    def __init__(self):
        self.m = S.ModelT()
        self.m.version = 3
        self.m.buffers = [buffer()]
        self.m.operatorCodes, self.m.subgraphs = [], []
        self.subgraph("main")

    def subgraph(self, name):
        """Starts the next subgraph and returns its index."""
        g = S.SubGraphT()
        g.name, g.tensors, g.operators, g.inputs, g.outputs = name, [], [], [], []
        self.m.subgraphs.append(g)
        self.g = g
        return len(self.m.subgraphs) - 1

    def tensor(self, shape, dtype=F32, data=None, scale=None, zero=0, variable=False, name=None, signature=None):
        """Adds a tensor; with `data` (an array) a constant; with `scale` quantized."""
        t = S.TensorT()
        t.shape, t.type, t.isVariable, t.shapeSignature = list(shape), dtype, variable, signature
        t.name = name or f"t{len(self.g.tensors)}"
        t.buffer = 0
        if data is not None:
            self.m.buffers.append(buffer(np.ascontiguousarray(data).tobytes()))
            t.buffer = len(self.m.buffers) - 1
        if scale is not None:
            t.quantization = S.QuantizationParametersT()
            t.quantization.scale, t.quantization.zeroPoint = [scale], [zero]
        self.g.tensors.append(t)
        return len(self.g.tensors) - 1

    def code(self, builtin, custom=None):
        """The index of an operator code, added when new."""
        for i, c in enumerate(self.m.operatorCodes):
            if (c.builtinCode, c.customCode) == (builtin, custom):
                return i
        c = S.OperatorCodeT()
        c.builtinCode, c.deprecatedBuiltinCode, c.customCode, c.version = builtin, min(builtin, 127), custom, 1
        self.m.operatorCodes.append(c)
        return len(self.m.operatorCodes) - 1

    def op(self, builtin, inputs, outputs, options=None, custom=None):
        """Adds an operator; `options` is the object of its options table."""
        o = S.OperatorT()
        o.opcodeIndex, o.inputs, o.outputs = self.code(builtin, custom), list(inputs), list(outputs)
        if options is not None:
            o.builtinOptions = options
            o.builtinOptionsType = getattr(S.BuiltinOptions, type(options).__name__[:-1])
        self.g.operators.append(o)
        return o

    def unary(self, builtin, x, options=None):
        """Adds an operator from x to a new tensor of the same kind."""
        t = self.g.tensors[x]
        y = self.tensor(t.shape, t.type)
        self.g.tensors[y].quantization = t.quantization
        self.op(builtin, [x], [y], options)
        return y

    def binary(self, builtin, a, b):
        """Adds ADD, SUB or MUL."""
        y = self.tensor(self.g.tensors[a].shape, self.g.tensors[a].type)
        options = {OP.ADD: S.AddOptionsT, OP.SUB: S.SubOptionsT, OP.MUL: S.MulOptionsT}[builtin]()
        self.op(builtin, [a, b], [y], options)
        return y

    def ends(self, inputs, outputs):
        """Sets the inputs and outputs of the current subgraph."""
        self.g.inputs, self.g.outputs = list(inputs), list(outputs)

    def write(self):
        return write(self.m)


def noise(shape, seed=1, scale=0.5):
    """Seeded float32 noise."""
    return np.random.default_rng(seed).normal(0, scale, shape).astype(np.float32)


def noise8(shape, seed=1, bound=127):
    """Seeded int8 noise."""
    return np.random.default_rng(seed).integers(-bound, bound + 1, shape).astype(np.int8)


# --- plans ------------------------------------------------------------------------------------------------------

def add_plan(m, offsets, words=None, name=PLAN, data=None):
    """Appends a metadata entry with a plan; `words` or `data` replace the regular content."""
    if words is None and data is None:
        words = [1, len(m.subgraphs), len(offsets)] + list(offsets)
    content = data if data is not None else np.array(words, "<i4").tobytes()
    m.buffers.append(buffer(content))
    entry = S.MetadataT()
    entry.name, entry.buffer = name, len(m.buffers) - 1
    m.metadata = list(m.metadata or []) + [entry]
    return entry


def rounded(t):
    """Bytes of a tensor in the arena: a multiple of 16."""
    width = {F32: 4, I8: 1, I32: 4, BOOL: 1, TYPE.INT16: 2}[t.type]
    n = int(np.prod(t.shape)) * width if t.shape is not None else width
    return (n + 15) // 16 * 16


def lifetimes(m):
    """(tensor, bytes, first, last) of each planned tensor of a model with one subgraph, by TFLM's clock."""
    g = m.subgraphs[0]
    first, last = {}, {}
    for t in g.inputs:
        first[t] = last[t] = 0
    for clock, o in enumerate(g.operators, 1):
        for t in o.outputs:
            first.setdefault(t, clock)
        for t in list(o.inputs) + list(o.outputs):
            last[t] = clock
    for t in g.outputs:
        last[t] = len(g.operators)
    constant = {i for i, t in enumerate(g.tensors) if m.buffers[t.buffer].data is not None}
    return [(int(t), rounded(g.tensors[t]), first[t], last[t]) for t in sorted(first) if t not in constant]


def bound(live):
    """The liveness bound: no plan without aliasing can be lower."""
    return max(sum(b for _, b, f, l in live if f <= t <= l) for _, _, t, _ in live)


def first_fit(live):
    """Offsets by tensor, each at the lowest place that is free."""
    placed = []
    for item in live:
        _, size, first, last = item
        offset = 0
        for start, end in sorted((o, o + b) for (_, b, f, l), o in placed if f <= last and first <= l):
            if offset + size <= start:
                break
            offset = max(offset, end)
        placed.append((item, offset))
    return {item[0]: o for item, o in placed}


def height(live, offsets):
    """The head that a plan needs."""
    return max(offsets[t] + b for t, b, _, _ in live)


def optimal(m):
    """A plan at the liveness bound, found by first fit in random orders."""
    live, rng = lifetimes(m), random.Random(1)
    for _ in range(100_000):
        rng.shuffle(live)
        offsets = first_fit(live)
        if height(live, offsets) == bound(live):
            return offsets
    raise ValueError("no order reaches the bound")


def linear(m):
    """A plan without any reuse."""
    offsets, at = {}, 0
    for t, size, _, _ in lifetimes(m):
        offsets[t], at = at, at + size
    return offsets


def entries(m, offsets):
    """The plan's list for all tensors of the model, from offsets of subgraph 0."""
    n = sum(len(g.tensors) for g in m.subgraphs)
    return [offsets.get(i, ONLINE) for i in range(n)]


# --- odd but valid: foreign plans -------------------------------------------------------------------------------

@good("diamond_c_int8 with a foreign plan at the bound, lower than TFLM's own")
def plan_optimal_int8(converted):
    m = read(converted("diamond_c_int8"))
    add_plan(m, entries(m, optimal(m)))
    return write(m)


@good("diamond_c_int8 with a foreign plan that reuses nothing: right, but larger than no plan")
def plan_linear_int8(converted):
    m = read(converted("diamond_c_int8"))
    add_plan(m, entries(m, linear(m)))
    return write(m)


@good("two plans: the first puts all tensors at 0, the last, which counts, is right")
def plan_twice_int8(converted):
    m = read(converted("diamond_c_int8"))
    add_plan(m, entries(m, {t: 0 for t in linear(m)}))
    add_plan(m, entries(m, optimal(m)))
    return write(m)


@good("a right plan with version 7, subgraph count 9, offsets for constants (all ignored) and two spare words behind")
def plan_odd_header_int8(converted):
    m = read(converted("diamond_c_int8"))
    offsets = entries(m, optimal(m))
    constants = {i for i, t in enumerate(m.subgraphs[0].tensors) if m.buffers[t.buffer].data is not None}
    offsets = [4 if i in constants else o for i, o in enumerate(offsets)]
    add_plan(m, None, words=[7, 9, len(offsets)] + offsets + [5, 5])
    return write(m)


@good("metadata whose name only begins like a plan's, with nonsense inside: to be left alone")
def plan_other_name_int8(converted):
    m = read(converted("dynamic_batch_int8"))
    add_plan(m, None, words=[1, 1, 999, 0, 0], name=PLAN + "V2")
    add_plan(m, None, words=[1, 1, 999, 0, 0], name=PLAN[:-1])
    return write(m)


@good("half of the tensors planned by another tool, the rest left to the device")
def plan_partial_int8(converted):
    m = read(converted("diamond_a_int8"))
    offsets = optimal(m)
    add_plan(m, entries(m, {t: o for k, (t, o) in enumerate(sorted(offsets.items())) if k % 2}))
    return write(m)


# --- odd but valid: operators -----------------------------------------------------------------------------------

def insert_after_first(m, builtin, custom=None):
    """Puts an operator between the first operator and its readers."""
    g = m.subgraphs[0]
    source = int(g.operators[0].outputs[0])
    t = S.TensorT()
    old = g.tensors[source]
    t.shape, t.type, t.quantization, t.name, t.buffer = old.shape, old.type, old.quantization, "inserted", 0
    g.tensors.append(t)
    for o in g.operators[1:]:
        o.inputs = [len(g.tensors) - 1 if i == source else int(i) for i in o.inputs]
    c = S.OperatorCodeT()
    c.builtinCode, c.deprecatedBuiltinCode, c.customCode, c.version = builtin, min(builtin, 127), custom, 1
    m.operatorCodes.append(c)
    o = S.OperatorT()
    o.opcodeIndex, o.inputs, o.outputs = len(m.operatorCodes) - 1, [source], [len(g.tensors) - 1]
    g.operators.insert(1, o)
    return o


@good("a custom operator that nobody knows between two convolutions")
def custom_operator_int8(converted):
    m = read(converted("two_inputs_int8"))
    o = insert_after_first(m, OP.CUSTOM, "ExampleFilter")
    o.customOptions = list(b"example options")
    return write(m)


@good("a builtin operator code (250) newer than any known one between two convolutions")
def newer_operator_int8(converted):
    m = read(converted("two_inputs_int8"))
    insert_after_first(m, 250)
    return write(m)


@good("operator codes in the old field only (deprecated_builtin_code), as in files before 2020")
def old_operator_codes_int8(converted):
    m = read(converted("conv_int8"))
    for c in m.operatorCodes:
        c.deprecatedBuiltinCode, c.builtinCode = c.builtinCode, 0
    return write(m)


def svdf(net, x, units, memory, rank=1, seed=1, activation=0):
    """Adds a float SVDF with its state; returns the output."""
    width = net.g.tensors[x].shape[1]
    filters = units * rank
    feature = net.tensor([filters, width], data=noise((filters, width), seed))
    time = net.tensor([filters, memory], data=noise((filters, memory), seed + 1))
    bias = net.tensor([units], data=noise((units,), seed + 2))
    state = net.tensor([1, filters * memory], variable=True, name="state")
    y = net.tensor([1, units])
    options = S.SVDFOptionsT()
    options.rank, options.fusedActivationFunction = rank, activation
    net.op(OP.SVDF, [x, feature, time, bias, state], [y], options)
    return y


@good("two streaming SVDF layers in float32, each with a variable tensor and scratch")
def svdf_float32(_):
    net = Net()
    x = net.tensor([1, 12], name="frame")
    y = svdf(net, x, 10, 6, rank=2, activation=S.ActivationFunctionType.RELU)
    y = svdf(net, y, 5, 8, seed=7)
    y = net.unary(OP.SOFTMAX, y, softmax())
    net.ends([x], [y])
    return net.write()


@good("a streaming SVDF layer in int8 with 16-bit state: one variable tensor and two scratch buffers")
def svdf_int8(_):
    net = Net()
    units, width, memory, rank = 8, 16, 10, 2
    filters = units * rank
    x = net.tensor([1, width], I8, scale=0.05, name="frame")
    feature = net.tensor([filters, width], I8, noise8((filters, width), 3), scale=0.01)
    time = net.tensor([filters, memory], TYPE.INT16,
                      np.random.default_rng(4).integers(-9000, 9000, (filters, memory)).astype(np.int16), scale=1e-4)
    bias = net.tensor([units], I32, np.arange(units, dtype=np.int32) * 900 - 3000, scale=1e-7)
    state = net.tensor([1, filters * memory], TYPE.INT16, scale=1e-3, variable=True, name="state")
    y = net.tensor([1, units], I8, scale=0.05)
    options = S.SVDFOptionsT()
    options.rank = rank
    net.op(OP.SVDF, [x, feature, time, bias, state], [y], options)
    net.ends([x], [net.unary(OP.SOFTMAX, y, softmax())])
    net.g.tensors[-1].quantization = S.QuantizationParametersT()
    net.g.tensors[-1].quantization.scale, net.g.tensors[-1].quantization.zeroPoint = [1 / 256], [-128]
    return net.write()


def softmax():
    """Options of SOFTMAX."""
    options = S.SoftmaxOptionsT()
    options.beta = 1.0
    return options


def dense(net, x, units, bias=True, seed=1):
    """Adds a float FULLY_CONNECTED; without a bias its input is -1."""
    width = net.g.tensors[x].shape[1]
    w = net.tensor([units, width], data=noise((units, width), seed))
    b = net.tensor([units], data=noise((units,), seed + 1)) if bias else -1
    y = net.tensor([1, units])
    net.op(OP.FULLY_CONNECTED, [x, w, b], [y], S.FullyConnectedOptionsT())
    return y


@good("optional inputs: FULLY_CONNECTED without a bias (index -1)")
def optional_input_float32(_):
    net = Net()
    x = net.tensor([1, 10], name="x")
    y = dense(net, net.unary(OP.TANH, dense(net, x, 16, bias=False)), 3, bias=False, seed=5)
    net.ends([x], [y])
    return net.write()


@good("4-bit weights, which the reference kernel unpacks into scratch")
def int4_weights_int8(_):
    net = Net()
    width, units = 32, 12
    x = net.tensor([1, width], I8, scale=0.1, zero=3, name="x")
    packed = np.random.default_rng(9).integers(0, 256, width * units // 2).astype(np.uint8)
    w = net.tensor([units, width], TYPE.INT4, packed, scale=0.05)
    b = net.tensor([units], I32, np.arange(units, dtype=np.int32) * 50 - 300, scale=0.005)
    y = net.tensor([1, units], I8, scale=0.2)
    net.op(OP.FULLY_CONNECTED, [x, w, b], [y], S.FullyConnectedOptionsT())
    net.ends([x], [net.unary(OP.RELU, y)])
    return net.write()


@good("ADD_N of four tensors and MIRROR_PAD: two operators with scratch that are easily forgotten")
def add_n_mirror_pad_float32(_):
    net = Net()
    x = net.tensor([2, 6], name="x")
    parts = [net.unary(k, x) for k in (OP.TANH, OP.LOGISTIC, OP.RELU)] + [x]
    y = net.tensor([2, 6])
    net.op(OP.ADD_N, parts, [y], S.AddNOptionsT())
    pads = net.tensor([2, 2], I32, np.array([[1, 0], [2, 3]], np.int32))
    z = net.tensor([3, 11])
    options = S.MirrorPadOptionsT()
    options.mode = S.MirrorPadMode.REFLECT
    net.op(OP.MIRROR_PAD, [y, pads], [z], options)
    net.ends([x], [z])
    return net.write()


@good("TFLite_Detection_PostProcess: a custom operator that TFLM knows, with ten scratch buffers and four outputs")
def detection_float32(_):
    net = Net()
    boxes, classes, found = 12, 3, 5
    rng = np.random.default_rng(11)
    encodings = net.tensor([1, boxes, 4], name="boxes")
    scores = net.tensor([1, boxes, classes + 1], name="scores")
    anchors = net.tensor([boxes, 4], data=rng.uniform(0.1, 0.6, (boxes, 4)).astype(np.float32), scale=1.0)
    for t in net.g.tensors[:2]:
        t.quantization = net.g.tensors[anchors].quantization
    outputs = [net.tensor(s) for s in ([1, found, 4], [1, found], [1, found], [1])]
    o = net.op(OP.CUSTOM, [encodings, net.unary(OP.LOGISTIC, scores), anchors], outputs,
               custom="TFLite_Detection_PostProcess")
    fields = {"max_detections": found, "max_classes_per_detection": 1, "detections_per_class": 10,
              "use_regular_nms": True, "nms_score_threshold": 0.2, "nms_iou_threshold": 0.5, "num_classes": classes,
              "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0}
    o.customOptions = list(flexbuffers.Dumps(fields))
    net.ends([encodings, scores], outputs)
    return net.write()


# --- odd but valid: tensors and buffers -------------------------------------------------------------------------

@good("constants behind the flatbuffer, found by absolute Buffer.offset and size; TFLM does not read them")
def absolute_buffers_float32(_):
    net = Net()
    x = net.tensor([1, 16], name="x")
    y = dense(net, net.unary(OP.RELU, dense(net, x, 24)), 4, seed=3)
    net.ends([x], [y])
    return behind(net.m)


def behind(m):
    """Moves the data of all buffers behind the flatbuffer, each to a multiple of 16."""
    data = {i: bytes(b.data) for i, b in enumerate(m.buffers) if b.data is not None}
    end = 1 << 20
    for _ in range(2):  # the size of the flatbuffer does not depend on the offsets: the second round has it right
        at = end
        for i, content in data.items():
            b = m.buffers[i]
            b.data, b.offset, b.size = None, at, len(content)
            at = (at + len(content) + 15) // 16 * 16
        front = write(m)
        end = (len(front) + 15) // 16 * 16
    out = bytearray(front)
    for i, content in data.items():
        out.extend(bytes(m.buffers[i].offset - len(out)))
        out.extend(content)
    return bytes(out)


@good("a custom operator whose options lie behind the flatbuffer (large_custom_options_offset)")
def large_custom_options_float32(_):
    net = Net()
    x = net.tensor([1, 16], name="x")
    y = net.tensor([1, 16])
    o = net.op(OP.CUSTOM, [net.unary(OP.RELU, x)], [y], custom="ExampleLarge")
    net.ends([x], [net.unary(OP.TANH, y)])
    options = bytes(range(64))
    o.largeCustomOptionsOffset, o.largeCustomOptionsSize = 1 << 20, len(options)
    o.largeCustomOptionsOffset = (len(write(net.m)) + 15) // 16 * 16
    front = write(net.m)
    return front + bytes(o.largeCustomOptionsOffset - len(front)) + options


@good("a tensor whose shape holds -1: its bytes are unknown, it cannot be planned")
def unknown_shape_float32(_):
    net = Net()
    x = net.tensor([1, 16], name="x")
    y = net.unary(OP.RELU, x)
    z = net.tensor([-1, 16], signature=[-1, 16], name="unknown")
    net.op(OP.TANH, [y], [z])
    w = net.tensor([1, 16])
    net.op(OP.LOGISTIC, [z], [w])
    net.ends([x], [net.unary(OP.RELU, w)])
    return net.write()


@good("RESHAPE with one open dimension in its output's shape: TFLM fills it in and gives the tensor memory")
def reshape_open_float32(_):
    net = Net()
    x = net.tensor([1, 128], name="x")
    shape = net.tensor([2], I32, np.array([-1, 32], np.int32))
    y = net.tensor([-1, 32], name="open")
    options = S.ReshapeOptionsT()
    options.newShape = [-1, 32]
    net.op(OP.RESHAPE, [net.unary(OP.RELU, x), shape], [y], options)
    z = net.tensor([1, 128])
    back = net.tensor([2], I32, np.array([1, 128], np.int32))
    options = S.ReshapeOptionsT()
    options.newShape = [1, 128]
    net.op(OP.RESHAPE, [y, back], [z], options)
    net.ends([x], [net.unary(OP.TANH, z)])
    return net.write()


@good("DEPTH_TO_SPACE stored with half the channels its kernel makes: TFLM goes by the kernel")
def stored_shape_float32(_):
    net = Net()
    x = net.tensor([1, 4, 4, 8], name="x")
    a = net.unary(OP.TANH, x)
    wide = net.tensor([1, 8, 8, 1], name="stored")
    options = S.DepthToSpaceOptionsT()
    options.blockSize = 2
    net.op(OP.DEPTH_TO_SPACE, [a], [wide], options)
    b = net.unary(OP.RELU, a)
    y = net.tensor([1, 8, 8, 2])
    net.op(OP.LOGISTIC, [wide], [y])
    net.ends([x], [y, b])
    return net.write()


@good("L2_POOL_2D without padding and GATHER with a batch dimension, whose kernels set the shapes of their outputs")
def prepared_shapes_float32(_):
    net = Net()
    x = net.tensor([1, 7, 7, 8], name="x")
    pooled = net.tensor([1, 3, 3, 8])
    pool = S.Pool2DOptionsT()
    pool.padding, pool.strideH, pool.strideW, pool.filterHeight, pool.filterWidth = S.Padding.VALID, 2, 2, 3, 3
    net.op(OP.L2_POOL_2D, [x], [pooled], pool)
    rows = net.tensor([2, 4, 9])
    shape = net.tensor([3], I32, np.array([2, 4, 9], np.int32))
    options = S.ReshapeOptionsT()
    options.newShape = [2, 4, 9]
    net.op(OP.RESHAPE, [pooled, shape], [rows], options)
    indices = net.tensor([2, 3], I32, np.array([[0, 1, 3], [2, 1, 0]], np.int32))
    picked = net.tensor([2, 3, 9])
    gather = S.GatherOptionsT()
    gather.axis, gather.batchDims = 1, 1
    net.op(OP.GATHER, [net.unary(OP.RELU, rows), indices], [picked], gather)
    net.ends([x], [net.unary(OP.TANH, picked)])
    return net.write()


@good("RESHAPE to [0] without a shape input, as old files write a scalar: TFLM gives it one element")
def legacy_scalar_float32(_):
    net = Net()
    x, z = net.tensor([1], name="x"), net.tensor([1, 24], name="z")
    y = net.tensor([0], name="scalar")
    net.op(OP.RESHAPE, [net.unary(OP.TANH, x)], [y], S.ReshapeOptionsT())
    w = net.unary(OP.SIN, z)
    v = net.tensor([1, 24])
    net.op(OP.ADD, [w, y], [v], S.AddOptionsT())
    net.ends([x, z], [v])
    return net.write()


@good("a variable tensor with data in the file: TFLM gives it memory of its own all the same")
def variable_with_data_float32(_):
    net = Net()
    x = net.tensor([1, 12], name="frame")
    y = svdf(net, x, 10, 6, rank=2)
    state = next(t for t in net.g.tensors if t.isVariable)
    net.m.buffers.append(buffer(np.zeros(state.shape, np.float32).tobytes()))
    state.buffer = len(net.m.buffers) - 1
    net.ends([x], [net.unary(OP.SOFTMAX, y, softmax())])
    return net.write()


@good("an idle tensor with two open dimensions, whose product comes out positive: TFLM gives it memory")
def idle_open_shape_float32(_):
    net = Net()
    x = net.tensor([1, 16], name="x")
    net.tensor([-1, -1, 100], name="idle")
    net.ends([x], [net.unary(OP.TANH, net.unary(OP.RELU, x))])
    return net.write()


@good("a zero-size tensor (CONCATENATION with an empty input)")
def zero_size_float32(_):
    net = Net()
    x, empty = net.tensor([1, 5], name="x"), net.tensor([1, 0], name="empty")
    y = net.tensor([1, 10])
    options = S.ConcatenationOptionsT()
    options.axis = 1
    net.op(OP.CONCATENATION, [net.unary(OP.RELU, x), empty, x], [y], options)
    net.ends([x, empty], [net.unary(OP.TANH, y)])
    return net.write()


@good("a scalar input (no shape at all), and neither tensors nor subgraph have names")
def scalar_float32(_):
    net = Net()
    x, factor = net.tensor([1, 8]), net.tensor([])
    net.g.tensors[factor].shape = None
    y = net.binary(OP.MUL, x, factor)
    for t in net.g.tensors:
        t.name = None
    net.ends([x, factor], [net.unary(OP.RELU, y)])
    net.g.name = None
    return net.write()


@good("a STRING tensor beside the graph: TFLM refuses it")
def string_tensor_float32(_):
    net = Net()
    x = net.tensor([1, 8], name="x")
    net.tensor([3], TYPE.STRING, name="labels")
    net.ends([x], [net.unary(OP.TANH, net.unary(OP.RELU, x))])
    return net.write()


@good("tensors that nobody touches; TFLM gives them memory all the same, and they set the head")
def idle_tensors_float32(_):
    net = Net()
    x = net.tensor([1, 20], name="x")
    net.tensor([1, 50], name="idle_a")
    y = net.unary(OP.RELU, x)
    net.tensor([1, 40], name="idle_b")
    net.ends([x], [net.unary(OP.TANH, net.binary(OP.ADD, x, y))])
    return net.write()


@good("a subgraph that is never called and whose tensors are larger than the main graph's")
def idle_subgraph_float32(_):
    net = Net()
    x = net.tensor([1, 20], name="x")
    net.ends([x], [net.unary(OP.TANH, net.unary(OP.RELU, x))])
    net.subgraph("idle")
    a = net.tensor([1, 64], name="a")
    net.ends([a], [net.unary(OP.RELU, net.unary(OP.TANH, a))])
    return net.write()


@good("conv_int8 with weights at odd multiples of 4 in the file, never at multiples of 8")
def weights_align4_int8(converted):
    m = read(converted("conv_int8"))
    # A vector's data follows its length of 4 bytes: aligning the length to 8 leaves the data at 4 modulo 8.
    class Odd(AlignedBuffer):
        def Pack(self, builder):
            vector = None
            if self.data is not None:
                data = np.asarray(self.data, np.uint8).tobytes()
                builder.Prep(8, len(data) + 4)
                while (builder.Offset() + len(data)) % 8 != 4:
                    builder.PrependByte(0)
                builder.StartVector(1, len(data), 1)
                builder.head = builder.head - len(data)
                builder.Bytes[builder.head:builder.head + len(data)] = data
                vector = builder.EndVector()
            S.BufferStart(builder)
            if vector is not None:
                S.BufferAddData(builder, vector)
            return S.BufferEnd(builder)
    packed = []
    for b in m.buffers:
        o = Odd()
        o.data = b.data
        packed.append(o)
    m.buffers = packed
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(m.Pack(builder), b"TFL3")
    return bytes(builder.Output())


@good("an input that is also an output, one output listed twice, ADD of a tensor with itself, a constant output")
def passthrough_float32(_):
    net = Net()
    x = net.tensor([1, 16], name="x")
    c = net.tensor([4], data=np.arange(4, dtype=np.float32), name="constant")
    y = net.binary(OP.ADD, x, x)
    z = net.unary(OP.TANH, y)
    net.ends([x], [x, z, z, c])
    return net.write()


@good("an operator that writes two outputs, one of them never read")
def unread_output_float32(_):
    net = Net()
    x = net.tensor([1, 24], name="x")
    axis = net.tensor([], I32, np.array(1, np.int32))
    a, b, c = (net.tensor([1, 8]) for _ in range(3))
    options = S.SplitOptionsT()
    options.numSplits = 3
    net.op(OP.SPLIT, [axis, x], [a, b, c], options)
    net.ends([x], [net.unary(OP.TANH, net.binary(OP.SUB, a, c))])
    return net.write()


# --- odd but valid: control flow and state ----------------------------------------------------------------------

def branch(net, name, make, width=16):
    """Adds a subgraph from one float tensor to one and returns its index."""
    index = net.subgraph(name)
    x = net.tensor([1, width], name="x")
    net.ends([x], [make(x)])
    return index


def if_options(then, otherwise):
    """Options of IF."""
    options = S.IfOptionsT()
    options.thenSubgraphIndex, options.elseSubgraphIndex = then, otherwise
    return options


@good("one pair of subgraphs called by two IF operators: their tensors live across both calls")
def subgraph_called_twice_float32(_):
    net = Net()
    main = net.g
    run, x = net.tensor([1], BOOL, name="run"), net.tensor([1, 16], name="x")
    y, z = net.tensor([1, 16]), net.tensor([1, 16])
    net.op(OP.IF, [run, x], [y], if_options(1, 2))
    w = net.unary(OP.TANH, y)
    net.op(OP.IF, [run, w], [z], if_options(1, 2))
    net.ends([run, x], [net.binary(OP.ADD, z, w)])
    branch(net, "then", lambda a: net.binary(OP.MUL, net.unary(OP.RELU, a), a))
    branch(net, "else", lambda a: net.binary(OP.SUB, net.unary(OP.LOGISTIC, a), a))
    net.g = main
    return net.write()


def state_in_branch():
    """A model whose IF branch has an SVDF with its variable at local index 0. TFLM looks entry 0 of the *first*
    subgraph up for it, which is the graph's input x."""
    net = Net()
    x, run = net.tensor([1, 16], name="x"), net.tensor([1], BOOL, name="run")
    y = net.unary(OP.RELU, x)
    z = net.tensor([1, 16])
    net.op(OP.IF, [run, y], [z], if_options(1, 2))
    net.ends([x, run], [net.binary(OP.ADD, z, y)])
    net.subgraph("then")
    state = net.tensor([1, 16 * 4], variable=True, name="state")
    a = net.tensor([1, 16], name="a")
    feature = net.tensor([16, 16], data=noise((16, 16), 1))
    time = net.tensor([16, 4], data=noise((16, 4), 2))
    bias = net.tensor([16], data=noise((16,), 3))
    b = net.tensor([1, 16])
    options = S.SVDFOptionsT()
    options.rank = 1
    net.op(OP.SVDF, [a, feature, time, bias, state], [b], options)
    net.ends([a], [b])
    branch(net, "else", lambda t: net.unary(OP.TANH, t))
    return net


@good("a variable in subgraph 1 at local index 0: entry 0 of subgraph 0 (the input) must stay -1 in any plan")
def state_in_branch_float32(_):
    return state_in_branch().write()


@good("IF in deprecated_builtin_code only; a tensor lives across it, so a planner that misses the branches spoils it")
def if_old_code_float32(_):
    net = Net()
    run, x = net.tensor([1], BOOL, name="run"), net.tensor([1, 16], name="x")
    y, z = net.unary(OP.RELU, x), net.tensor([1, 16])
    net.op(OP.IF, [run, x], [z], if_options(1, 2))
    net.ends([run, x], [net.binary(OP.ADD, z, net.binary(OP.MUL, y, x))])
    branch(net, "then", lambda a: net.unary(OP.SIN, net.unary(OP.EXP, net.unary(OP.TANH, a))))
    branch(net, "else", lambda a: net.binary(OP.SUB, net.unary(OP.LOGISTIC, a), a))
    for c in net.m.operatorCodes:
        if c.builtinCode == OP.IF:
            c.builtinCode = 0
    return net.write()


@good("CALL_ONCE whose subgraph computes what it assigns: tensors live across it, at the first invoke only")
def call_once_float32(_):
    net = Net()
    main = net.g
    x = net.tensor([1, 16], name="x")
    y = net.unary(OP.TANH, x)
    options = S.CallOnceOptionsT()
    options.initSubgraphIndex = 1
    net.op(OP.CALL_ONCE, [], [], options)

    def handle():
        """Adds VAR_HANDLE of the one variable."""
        h, options = net.tensor([], TYPE.RESOURCE), S.VarHandleOptionsT()
        options.container, options.sharedName = "", "level"
        net.op(OP.VAR_HANDLE, [], [h], options)
        return h

    h, level = handle(), net.tensor([1, 16], name="level")
    net.op(OP.READ_VARIABLE, [h], [level], S.ReadVariableOptionsT())
    z = net.binary(OP.MUL, level, y)
    net.op(OP.ASSIGN_VARIABLE, [h, z], [], S.AssignVariableOptionsT())
    net.ends([x], [net.binary(OP.ADD, z, x)])
    net.subgraph("init")
    a = net.tensor([1, 16], data=noise((1, 16), 5))
    b = net.unary(OP.EXP, net.unary(OP.TANH, net.binary(OP.ADD, a, a)))
    net.op(OP.ASSIGN_VARIABLE, [handle(), b], [], S.AssignVariableOptionsT())
    net.g = main
    return net.write()


@good("WHILE whose condition has its result before its last operator")
def while_condition_float32(_):
    net = Net()
    main = net.g
    x, start = net.tensor([1, 16], name="x"), net.tensor([1], I32, np.array([0], np.int32))
    k, y = net.tensor([1], I32), net.tensor([1, 16])
    options = S.WhileOptionsT()
    options.condSubgraphIndex, options.bodySubgraphIndex = 1, 2
    net.op(OP.WHILE, [start, x], [k, y], options)
    net.ends([x], [net.binary(OP.MUL, y, x)])
    net.subgraph("cond")
    i, a = net.tensor([1], I32), net.tensor([1, 16])
    most, less = net.tensor([1], I32, np.array([3], np.int32)), net.tensor([1], BOOL)
    net.op(OP.LESS, [i, most], [less], S.LessOptionsT())
    net.unary(OP.ABS, a)
    net.ends([i, a], [less])
    net.subgraph("body")
    i, a = net.tensor([1], I32), net.tensor([1, 16])
    step, j = net.tensor([1], I32, np.array([1], np.int32)), net.tensor([1], I32)
    net.op(OP.ADD, [i, step], [j], S.AddOptionsT())
    net.ends([i, a], [j, net.unary(OP.SIN, a)])
    net.g = main
    return net.write()


@good("WHILE inside a branch of an IF inside the body of a WHILE")
def three_levels_float32(_):
    net = Net()
    one = np.array([1], np.int32)

    def loop_parts(limit, make):
        """Adds a condition (i < limit) and a body (i + 1, make(a)) and returns the options of their WHILE."""
        cond = net.subgraph("cond")
        i, a = net.tensor([1], I32), net.tensor([1, 16])
        most, less = net.tensor([1], I32, np.array([limit], np.int32)), net.tensor([1], BOOL)
        net.op(OP.LESS, [i, most], [less], S.LessOptionsT())
        net.ends([i, a], [less])
        body = net.subgraph("body")
        g = net.g
        i, a = net.tensor([1], I32), net.tensor([1, 16])
        step, j = net.tensor([1], I32, one), net.tensor([1], I32)
        net.op(OP.ADD, [i, step], [j], S.AddOptionsT())
        b = make(a)
        net.g = g
        net.ends([i, a], [j, b])
        options = S.WhileOptionsT()
        options.condSubgraphIndex, options.bodySubgraphIndex = cond, body
        return options

    def looped(x, limit, make):
        """Adds WHILE over a counter from 0 and a tensor; returns the tensor."""
        g = net.g
        start = net.tensor([1], I32, np.array([0], np.int32))
        k, y = net.tensor([1], I32), net.tensor([1, 16])
        options = loop_parts(limit, make)
        net.g = g
        net.op(OP.WHILE, [start, x], [k, y], options)
        return y

    def choose(x):
        """Adds IF on the first element of x being positive."""
        g = net.g
        zero, positive = net.tensor([1, 16], data=np.zeros((1, 16), np.float32)), net.tensor([1, 16], BOOL)
        net.op(OP.GREATER, [x, zero], [positive], S.GreaterOptionsT())
        axis, any_positive = net.tensor([2], I32, np.array([0, 1], np.int32)), net.tensor([1], BOOL)
        net.op(OP.REDUCE_ALL, [positive, axis], [any_positive], S.ReducerOptionsT())
        y = net.tensor([1, 16])
        then = branch(net, "then", lambda a: looped(a, 2, lambda t: net.unary(OP.TANH, t)))
        otherwise = branch(net, "else", lambda a: net.binary(OP.ADD, net.unary(OP.LOGISTIC, a), a))
        net.g = g
        net.op(OP.IF, [any_positive, x], [y], if_options(then, otherwise))
        return y

    x = net.tensor([1, 16], name="x")
    main = net.g
    y = looped(x, 3, choose)
    net.g = main
    net.ends([x], [net.binary(OP.MUL, y, x)])
    return net.write()


# --- compiled for an NPU ----------------------------------------------------------------------------------------

def ethos_u(across):
    """Two operators for the CPU around one of Vela's: `ethos-u`, whose inputs are command stream, weights, the arena it
    works in, a second one that is not used, and the data. Data lies inside the arena scratch, at the offsets that are
    compiled into the command stream. `across` is the offset of a tensor that the NPU must not touch."""
    net = Net()
    x = net.tensor([1, 128], I8, scale=0.1, name="x")
    fed = net.unary(OP.RELU, x)
    kept = net.unary(OP.TANH, x)
    commands = net.tensor([64], TYPE.UINT8, np.frombuffer(b"COP1" + bytes(60), np.uint8), name="command_stream")
    weights = net.tensor([96], TYPE.UINT8, noise8((96,), 8).view(np.uint8), name="read_only")
    arena = net.tensor([512], TYPE.UINT8, name="scratch")
    fast = net.tensor([0], TYPE.UINT8, name="scratch_fast")
    result = net.tensor([1, 128], I8, scale=0.1, name="result")
    net.op(OP.CUSTOM, [commands, weights, arena, fast, fed], [result], custom="ethos-u").customOptions = [1, 4, 1]
    y = net.binary(OP.ADD, result, kept)
    net.g.tensors[y].quantization = net.g.tensors[x].quantization
    net.ends([x], [y])
    offsets = {x: 640, kept: across, fed: 0, arena: 0, result: 256, y: 0}
    add_plan(net.m, entries(net.m, offsets))
    return net.write()


@good("an operator compiled for the Ethos-U NPU between two for the CPU, with the plan that its command stream relies on")
def ethos_u_int8(_):
    return ethos_u(512)


# --- wrong files ------------------------------------------------------------------------------------------------

def base():
    """A small float net that the wrong files start from: tensors 0 (input) to 4 (output), 128 bytes each."""
    net = Net()
    x = net.tensor([1, 32], name="x")
    a = net.unary(OP.RELU, x)
    b = net.unary(OP.LOGISTIC, a)
    c = net.binary(OP.ADD, a, b)
    net.ends([x], [net.binary(OP.MUL, c, x)])
    return net.m


RIGHT = [0, 128, 256, 384, 256]


@good("the net that the files in malformed/ start from")
def base_float32(_):
    return write(base())


@good("the same net with the plan that the files in malformed/ spoil")
def base_planned_float32(_):
    m = base()
    add_plan(m, RIGHT)
    return write(m)


@good("a metadata entry without a name: no plan, to be left alone")
def metadata_no_name_float32(_):
    m = base()
    add_plan(m, RIGHT).name = None
    return write(m)


def spoiled(about, name, change):
    """Registers a file that is `base` with the plan entry that `change(m)` adds."""
    def make(_):
        m = base()
        change(m)
        return write(m)
    make.__name__ = name
    malformed(about)(make)


def no_data(m):
    add_plan(m, RIGHT)
    m.buffers[-1].data = None


def bad_buffer(index):
    def change(m):
        add_plan(m, RIGHT).buffer = index
    return change


def right_then_wrong(m):
    add_plan(m, RIGHT)
    add_plan(m, [0] * 5)


def plan_words(*words):
    return lambda m: add_plan(m, None, words=list(words))


spoiled("the plan's buffer has no data", "plan_no_data", no_data)
spoiled("the plan's buffer has data of length 0", "plan_empty", lambda m: add_plan(m, None, data=b""))
spoiled("8 bytes only: version and subgraphs, no count", "plan_short_header", plan_words(1, 1))
spoiled("3 offsets where the count says 5", "plan_short", plan_words(1, 1, 5, 0, 128, 256))
spoiled("the last offset is cut in the middle (30 bytes)", "plan_odd_length",
        lambda m: add_plan(m, None, data=np.array([1, 1, 5] + RIGHT, "<i4").tobytes()[:30]))
spoiled("4 entries, and a count of 4, for 5 tensors", "plan_count_low", plan_words(1, 1, 4, 0, 128, 256, 384))
spoiled("6 entries, and a count of 6, for 5 tensors", "plan_count_high", plan_words(1, 1, 6, *RIGHT, 0))
spoiled("a count of -1", "plan_count_negative", plan_words(1, 1, -1, *RIGHT))
spoiled("an offset of -2", "plan_offset_minus2", plan_words(1, 1, 5, 0, -2, 256, 384, 256))
spoiled("an offset of -2147483648", "plan_offset_lowest", plan_words(1, 1, 5, 0, -2**31, 256, 384, 256))
spoiled("an offset of 1 GiB: legal, but no arena is that large", "plan_offset_large",
        plan_words(1, 1, 5, 0, 128, 256, 384, 1 << 30))
spoiled("an offset of 2147483632: offset + size overflows 32 bits", "plan_offset_overflow",
        plan_words(1, 1, 5, 0, 128, 256, 384, 2**31 - 16))
spoiled("offsets that are not multiples of 16", "plan_misaligned", plan_words(1, 1, 5, 4, 140, 268, 396, 268))
spoiled("two tensors that live at the same time overlap (1 and 2, by 64 bytes)", "plan_overlap",
        plan_words(1, 1, 5, 0, 128, 192, 384, 256))
spoiled("all tensors at 0", "plan_all_zero", plan_words(1, 1, 5, 0, 0, 0, 0, 0))
spoiled("a right plan, and behind it a wrong one, which counts", "plan_twice_last_wrong", right_then_wrong)
spoiled("the metadata's buffer index is out of range", "plan_buffer_range", bad_buffer(99))
spoiled("the metadata's buffer is buffer 0, the empty one", "plan_buffer_zero", bad_buffer(0))


@malformed("entry 0 of subgraph 0 is planned while subgraph 1 has a variable at local index 0 that is -1")
def plan_subgraph0_entry(_):
    m = state_in_branch().m
    n = sum(len(g.tensors) for g in m.subgraphs)
    add_plan(m, [256] + [ONLINE] * (n - 1))
    return write(m)


@malformed("the variable tensor has an offset at which scratch may be placed: the state is lost")
def plan_variable_offset(_):
    m = read(svdf_float32(None))
    variables = [i for i, t in enumerate(m.subgraphs[0].tensors) if t.isVariable]
    add_plan(m, entries(m, {t: 0 for t in variables}))
    return write(m)


@malformed("ethos_u_int8 with a tensor inside the memory in which the NPU works; no other tensor is in its place")
def ethos_u_wrong(_):
    return ethos_u(384)


def broken(about, name, change):
    """Registers a file that is `base` after `change(m, main subgraph)`; no plan."""
    def make(_):
        m = base()
        change(m, m.subgraphs[0])
        return write(m)
    make.__name__ = name
    malformed(about)(make)


def setting(get, field, value):
    return lambda m, g: setattr(get(m, g), field, value)


broken("an operator reads tensor 77 of 5", "tensor_range", setting(lambda m, g: g.operators[1], "inputs", [77]))
broken("an operator reads tensor -3", "tensor_negative", setting(lambda m, g: g.operators[1], "inputs", [-3]))
broken("an operator writes tensor -1", "output_missing", setting(lambda m, g: g.operators[1], "outputs", [-1]))
broken("an operator code index out of range", "opcode_range", setting(lambda m, g: g.operators[2], "opcodeIndex", 9))
broken("a tensor's buffer index out of range", "buffer_range", setting(lambda m, g: g.tensors[2], "buffer", 1000))
broken("a graph output out of range", "graph_output_range", setting(lambda m, g: g, "outputs", [4, 5]))
broken("a graph input out of range", "graph_input_range", setting(lambda m, g: g, "inputs", [-1]))
broken("a dimension of -5", "dimension_negative", setting(lambda m, g: g.tensors[2], "shape", [1, -5]))
broken("bytes that overflow 64 bits", "dimension_overflow",
       setting(lambda m, g: g.tensors[2], "shape", [2**31 - 1] * 4))
broken("bytes that overflow 32 bits", "dimension_large", setting(lambda m, g: g.tensors[2], "shape", [65536, 65536]))
broken("an unknown tensor type (99)", "tensor_type", setting(lambda m, g: g.tensors[2], "type", 99))
broken("operators out of order: one reads what a later one writes", "order",
       lambda m, g: g.operators.reverse())
broken("a tensor written by two operators", "written_twice", setting(lambda m, g: g.operators[2], "outputs", [2]))
broken("an operator that writes its own input", "self_cycle", setting(lambda m, g: g.operators[1], "inputs", [2]))
broken("no subgraph", "no_subgraph", lambda m, g: setattr(m, "subgraphs", []))
broken("no operator codes", "no_operator_codes", lambda m, g: setattr(m, "operatorCodes", []))
broken("no buffers", "no_buffers", lambda m, g: setattr(m, "buffers", []))
broken("schema version 4", "version", lambda m, g: setattr(m, "version", 4))


@malformed("IF names a subgraph that is not there")
def subgraph_range(_):
    m = read(subgraph_called_twice_float32(None))
    m.subgraphs[0].operators[0].builtinOptions.elseSubgraphIndex = 7
    return write(m)


@malformed("an IF without options")
def if_no_options(_):
    m = read(subgraph_called_twice_float32(None))
    o = m.subgraphs[0].operators[0]
    o.builtinOptions, o.builtinOptionsType = None, 0
    return write(m)


@malformed("a subgraph whose IF calls the subgraph itself: endless recursion")
def recursion(_):
    net = Net()
    run, x, y = net.tensor([1], BOOL, name="run"), net.tensor([1, 16], name="x"), net.tensor([1, 16])
    net.op(OP.IF, [run, x], [y], if_options(1, 1))
    net.ends([run, x], [y])
    net.subgraph("again")
    run = net.tensor([1], BOOL, np.array([True]))
    x, y = net.tensor([1, 16], name="x"), net.tensor([1, 16])
    net.op(OP.IF, [run, x], [y], if_options(1, 1))
    net.ends([x], [y])
    return net.write()


@malformed("an IF with one input more than its branches take")
def if_inputs(_):
    m = read(if_old_code_float32(None))
    o = next(o for o in m.subgraphs[0].operators if len(o.inputs) == 2 and o.builtinOptions is not None
             and isinstance(o.builtinOptions, S.IfOptionsT))
    o.inputs = [*o.inputs, o.inputs[-1]]
    return write(m)


@malformed("a WHILE whose condition has no output")
def while_condition_output(_):
    m = read(while_condition_float32(None))
    options = next(o.builtinOptions for o in m.subgraphs[0].operators if isinstance(o.builtinOptions, S.WhileOptionsT))
    m.subgraphs[options.condSubgraphIndex].outputs = []
    return write(m)


@malformed("forty subgraphs, each an IF that calls the next one in both branches: a million million operators to walk")
def doubling(_):
    net = Net()
    for level in range(41):
        if level > 0:
            net.subgraph(f"level {level}")
        run, x, y = net.tensor([1], BOOL, name="run"), net.tensor([1, 16], name="x"), net.tensor([1, 16])
        if level < 40:
            net.op(OP.IF, [run, run, x], [y], if_options(level + 1, level + 1))
        else:
            net.op(OP.TANH, [x], [y])
        net.ends([run, x], [y])
    return net.write()


@malformed("constants behind the flatbuffer, beyond the end of the file")
def absolute_buffer_range(converted):
    return absolute_buffers_float32(converted)[:-64]


@malformed("another file identifier")
def identifier(_):
    return write(base(), b"TFL2")


@malformed("an empty file")
def empty(_):
    return b""


@malformed("text")
def text(_):
    return b"This is not a model.\n"


@malformed("half of a file")
def half(_):
    data = write(base())
    return data[:len(data) // 2]

"""Builds the models of `kernels/`: one file holds several independent operators of one kind and type.

    @case
    def ADD_int8(g):
        x, y = g.input([2, 3], I8, 0.1, 5), g.input([3], I8, 0.05, -7)
        g.op("ADD", [x, y], [g.output([2, 3], I8, 0.2, 1)], fused_activation_function="RELU")

The function's name is the file's. `@case(refused="text")` says that the wheel refuses the model, with that text in its log.
Inputs and outputs of the graph are in the order of their making. Everything random comes from `g.rng`, seeded by the name.
"""
import functools
import zlib

import flatbuffers
import numpy as np
from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as S

OP, TYPE = S.BuiltinOperator, S.TensorType
F32, I4, I8, I16, I32, I64 = TYPE.FLOAT32, TYPE.INT4, TYPE.INT8, TYPE.INT16, TYPE.INT32, TYPE.INT64
U8, U16, U32, BOOL, RESOURCE = TYPE.UINT8, TYPE.UINT16, TYPE.UINT32, TYPE.BOOL, TYPE.RESOURCE
NUMPY = {F32: np.float32, I4: np.int8, I8: np.int8, I16: np.int16, I32: np.int32, I64: np.int64, U8: np.uint8,
         U16: np.uint16, U32: np.uint32, BOOL: np.bool_, RESOURCE: np.int32}
NAMES = {F32: "float32", I4: "int4", I8: "int8", I16: "int16", I32: "int32", I64: "int64", U8: "uint8", U16: "uint16",
         U32: "uint32", BOOL: "bool"}
GOLDEN = "golden"
ALIGN = 16

# Options tables whose names do not follow from the operator's.
OPTIONS = {"AVERAGE_POOL_2D": "Pool2D", "MAX_POOL_2D": "Pool2D", "L2_POOL_2D": "Pool2D", "MEAN": "Reducer", "SUM": "Reducer",
           "REDUCE_MAX": "Reducer", "REDUCE_MIN": "Reducer", "REDUCE_ALL": "Reducer", "REDUCE_PROD": "Reducer",
           "L2_NORMALIZATION": "L2Norm"}
BY_NAME = {k.upper(): k for k, v in vars(S.BuiltinOptions).items() if isinstance(v, int) and k != "NONE"}
# Options given by their names in the schema.
ENUMS = {"fused_activation_function": S.ActivationFunctionType, "padding": S.Padding, "mode": S.MirrorPadMode}

CASES = {}     # name of the file -> Case
LEFT_OUT = {}  # what the wheel takes, but what has no file -> why


class Case:
    """What makes one file."""

    def __init__(self, name, make, invokes, refused, reference):
        self.name, self.make, self.invokes, self.refused, self.reference = name, make, invokes, refused, reference

    def graph(self):
        g = Graph(self.name)
        self.make(g)
        return g


def case(make=None, *, name=None, invokes=2, refused=None, reference="wheel"):
    """Registers the maker of a file. `reference` is "litert" for operators that the wheel lacks.

    `name` (default: the function's) is of the form OPERATOR_type[_variant]."""
    if make is None:
        return lambda f: case(f, name=name, invokes=invokes, refused=refused, reference=reference)
    key = name or make.__name__
    if key in CASES:
        raise ValueError(f"{key} is there twice")
    CASES[key] = Case(key, make, invokes, refused, reference)
    return make


def each(types, pattern, **options):
    """Registers a maker `f(g, type)` once for each type; `pattern` is the name with {} for the type's."""
    def register(f):
        for t in types:
            case(functools.partial(f, t=t), name=pattern.format(NAMES[t]), **options)
        return f
    return register


class Writer(flatbuffers.Builder):
    """Writes what is the same only once: vectors without offsets, and the tables of `once`. Half of a file would be these."""

    def __init__(self):
        super().__init__(1 << 14)
        self.written = {}

    def StartVector(self, size, count, alignment):
        self.before, self.bytes, self.alignment, self.plain = self.Offset(), size * count, alignment, True
        return super().StartVector(size, count, alignment)

    def PrependUOffsetTRelative(self, offset):
        self.plain = False
        super().PrependUOffsetTRelative(offset)

    def CreateString(self, *text):
        self.plain = False
        return super().CreateString(*text)

    def EndVector(self):
        end = super().EndVector()
        if not self.plain:
            return end
        key = self.alignment, bytes(self.Bytes[self.head:self.head + 4 + self.bytes])
        if key in self.written:
            self.head = len(self.Bytes) - self.before
        return self.written.setdefault(key, end)


def once(table):
    """Has a table in object form written only once if there are several with the same content."""
    pack, key = table.Pack, (type(table).__name__, repr(sorted(vars(table).items())))

    def Pack(writer):
        if key not in writer.written:
            writer.written[key] = pack(writer)
        return writer.written[key]
    table.Pack = Pack
    return table


class Buffer(S.BufferT):
    """A buffer whose data starts at a multiple of 16 in the file."""

    def Pack(self, builder):
        vector = None
        if self.data is not None:
            data = bytes(self.data)
            builder.StartVector(1, len(data), ALIGN)
            builder.head = builder.head - len(data)
            builder.Bytes[builder.head:builder.head + len(data)] = data
            vector = builder.EndVector()
        S.BufferStart(builder)
        if vector is not None:
            S.BufferAddData(builder, vector)
        return S.BufferEnd(builder)


class Graph:
    """A model under construction. Tensors are named by their index in the current subgraph."""

    def __init__(self, name):
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))
        self.m = S.ModelT()
        self.m.version = 3
        self.m.buffers, self.m.operatorCodes, self.m.subgraphs = [], [], []
        self.buffer(None)
        self.feeds = []      # of each input of the main graph: (shape, type, what makes its data)
        self.results = []    # of each output of the main graph: (shape, type, whether it must vary)
        self.subgraph("main")

    # --- parts ---

    def subgraph(self, name):
        """Starts the next subgraph, to which all that follows belongs, and returns its index. Go back with `select`."""
        g = S.SubGraphT()
        g.name, g.tensors, g.operators, g.inputs, g.outputs = name, [], [], [], []
        self.m.subgraphs.append(g)
        self.g = g
        return len(self.m.subgraphs) - 1

    def select(self, index):
        """Makes a subgraph the current one."""
        self.g = self.m.subgraphs[index]

    def buffer(self, data):
        """Adds a buffer with bytes, or without data."""
        b = Buffer()
        b.data = data
        self.m.buffers.append(b)
        return len(self.m.buffers) - 1

    def tensor(self, shape, dtype, scale=None, zero=0, axis=0, variable=False, data=None):
        """Adds a tensor between operators. A list of scales: per channel along `axis`. `data`: bytes of a constant."""
        t = S.TensorT()
        t.shape, t.type, t.isVariable = list(shape), dtype, variable
        t.buffer = 0 if data is None else self.buffer(data)
        if scale is not None:
            scales = np.atleast_1d(np.asarray(scale, np.float32))
            q = t.quantization = S.QuantizationParametersT()
            q.scale = scales.tolist()
            q.zeroPoint = np.broadcast_to(np.asarray(zero, np.int64), scales.shape).tolist()
            q.quantizedDimension = axis
            once(q)
        self.g.tensors.append(t)
        return len(self.g.tensors) - 1

    def input(self, shape, dtype, scale=None, zero=0, data=None):
        """Adds an input of the current graph.

        data: what it holds, in the main graph: None (noise over the whole range, with the ends in it), (low, high) for noise
        in this range, an array (or a list of arrays, one for each invoke, the last one again and again), or a function
        from an invoke's number to one."""
        t = self.tensor(shape, dtype, scale, zero)
        if self.g is self.m.subgraphs[0]:
            self.feeds.append((tuple(shape), dtype, data))
        self.g.inputs.append(t)
        return t

    def output(self, shape, dtype, scale=None, zero=0, varies=True):
        """Adds an output of the current graph. `varies=False` lets it be constant."""
        t = self.tensor(shape, dtype, scale, zero)
        self.give(t, varies)
        return t

    def give(self, t, varies=True):
        """Makes a tensor that is there an output of the current graph."""
        if self.g is self.m.subgraphs[0]:
            self.results.append((tuple(self.g.tensors[t].shape), self.g.tensors[t].type, varies))
        self.g.outputs.append(t)

    def constant(self, data, dtype=None, scale=None, zero=0, axis=0):
        """Adds a constant from an array; int4 values are packed two to a byte, the first in the lower half."""
        data = np.asarray(data)
        if dtype is None:
            dtype = next(k for k in NAMES if k != I4 and np.dtype(NUMPY[k]) == data.dtype)
        values = data.astype(NUMPY[dtype])
        if not np.array_equal(values, data) and dtype != F32:
            raise ValueError("the constant does not fit its type")
        content = values.tobytes()
        if dtype == I4:
            flat = np.append(values.ravel(), [0] * (values.size % 2)).astype(np.uint8) & 15
            content = (flat[0::2] | flat[1::2] << 4).astype(np.uint8).tobytes()
        return self.tensor(data.shape, dtype, scale, zero, axis, data=content)

    def words(self, *numbers):
        """Adds a constant vector of int32."""
        return self.constant(np.array(numbers, np.int32))

    def noise(self, shape, dtype, low=None, high=None):
        """A random array; without limits over the whole range of the type, floats from -4 to 4."""
        if dtype == BOOL:
            return self.rng.integers(0, 2, shape).astype(bool)
        if dtype == F32:
            low, high = (-4, 4) if low is None else (low, high)
            return self.rng.uniform(low, high, shape).astype(np.float32)
        if low is None:
            low, high = (-7, 7) if dtype == I4 else (np.iinfo(NUMPY[dtype]).min, np.iinfo(NUMPY[dtype]).max)
        return self.rng.integers(low, high, shape, NUMPY[dtype], endpoint=True)

    def op(self, name, inputs, outputs, table=None, **options):
        """Adds an operator; -1 is an input that is not there. Options by their names in the schema; `table` names their
        table where it must be there without any, or where an operator has another one."""
        o = S.OperatorT()
        o.opcodeIndex, o.inputs, o.outputs = self.code(getattr(OP, name)), list(inputs), list(outputs)
        table = table or OPTIONS.get(name) or name.replace("_", "")
        kind = BY_NAME.get(f"{table}Options".upper())
        if kind:
            o.builtinOptionsType, o.builtinOptions = getattr(S.BuiltinOptions, kind), getattr(S, kind + "T")()
        for key, value in options.items():
            field = "".join(w if i == 0 else w.capitalize() for i, w in enumerate(key.split("_")))
            if not kind or not hasattr(o.builtinOptions, field):
                raise ValueError(f"{name} has no option {key}")
            setattr(o.builtinOptions, field, getattr(ENUMS[key], value) if isinstance(value, str) else value)
        if kind:
            once(o.builtinOptions)
        self.g.operators.append(o)

    def code(self, builtin):
        """The index of an operator code, added when new."""
        for i, c in enumerate(self.m.operatorCodes):
            if c.builtinCode == builtin:
                return i
        c = S.OperatorCodeT()
        c.builtinCode, c.deprecatedBuiltinCode, c.version = builtin, min(builtin, 127), 1
        self.m.operatorCodes.append(c)
        return len(self.m.operatorCodes) - 1

    # --- results ---

    def inputs_of(self, invoke):
        """The arrays that the graph gets at an invoke, from 0. Call in order."""
        arrays = []
        for shape, dtype, data in self.feeds:
            if callable(data):
                data = data(invoke)
            elif isinstance(data, list):
                data = data[min(invoke, len(data) - 1)]
            if data is None:
                data = self.noise(shape, dtype)
                if dtype not in (BOOL, F32) and data.size > 3:
                    limits = np.iinfo(NUMPY[dtype])
                    data.ravel()[self.rng.choice(data.size, 2, replace=False)] = limits.min, limits.max
            elif isinstance(data, tuple):
                data = self.noise(shape, dtype, *data)
            data = np.asarray(data)
            if data.shape != shape:
                raise ValueError(f"an input of shape {data.shape} for {shape}")
            arrays.append(np.array(data.astype(NUMPY[dtype]), order="C"))
        return arrays

    def write(self, golden=None):
        """The file; `golden` is the content of the metadata entry of this name."""
        count = len(self.m.buffers)
        self.m.metadata = None
        if golden is not None:
            entry = S.MetadataT()
            entry.name, entry.buffer = GOLDEN, self.buffer(golden)
            self.m.metadata = [entry]
        builder = Writer()
        builder.Finish(self.m.Pack(builder), b"TFL3")
        del self.m.buffers[count:]
        return bytes(builder.Output())

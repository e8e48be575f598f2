"""Operators that make sums, maxima and the like over windows without weights, rows or axes, or with state."""
import numpy as np

from .builder import F32, I8, I16, I32, I64, case, each

BETWEEN = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")


def out_size(size, window, stride, padding):
    """Positions of a window along an axis."""
    return -(-size // stride) if padding == "SAME" else -(-(size - window + 1) // stride)


def pool(g, name, t, shape, window, stride=(1, 1), padding="SAME", act="NONE", scale=None, zero=0):
    """A pooling operator."""
    b, h, w, c = shape
    size = [out_size(n, k, s, padding) for n, k, s in zip((h, w), window, stride)]
    g.op(name, [g.input(shape, t, scale, zero)], [g.output([b, *size, c], t, scale, zero)], padding=padding,
         filter_height=window[0], filter_width=window[1], stride_h=stride[0], stride_w=stride[1],
         fused_activation_function=act)


def pools(g, name, t):
    """The shapes that every pooling operator is tried with."""
    scale, zero = {F32: (None, 0), I8: (0.05, 11), I16: (0.001, 0)}[t]
    quantized = dict(scale=scale, zero=zero)
    for act in BETWEEN[1:]:
        pool(g, name, t, [1, 3, 3, 4], (2, 2), (1, 1), "SAME", act, **quantized)
    pool(g, name, t, [1, 4, 4, 3], (2, 2), (2, 2), **quantized)
    pool(g, name, t, [2, 5, 7, 2], (3, 2), (2, 3), **quantized)
    pool(g, name, t, [2, 5, 7, 2], (3, 2), (2, 3), "VALID", **quantized)
    if name == "L2_POOL_2D":
        return
    pool(g, name, t, [1, 3, 5, 5], (5, 3), **quantized)
    pool(g, name, t, [1, 6, 1, 4], (6, 1), (1, 1), "VALID", **quantized)
    pool(g, name, t, [1, 5, 5, 9], (5, 5), (5, 5), "VALID", **quantized)
    pool(g, name, t, [3, 2, 3, 1], (1, 1), (2, 2), **quantized)
    pool(g, name, t, [1, 8, 8, 1], (2, 3), (3, 1), **quantized)


@each((F32, I8, I16), "AVERAGE_POOL_2D_{}")
def _(g, t):
    pools(g, "AVERAGE_POOL_2D", t)


@each((F32, I8, I16), "MAX_POOL_2D_{}")
def _(g, t):
    pools(g, "MAX_POOL_2D", t)


@case
def L2_POOL_2D_float32(g):
    pools(g, "L2_POOL_2D", F32)


@each((I8, I16), "AVERAGE_POOL_2D_{}_ends")
def _(g, t):
    """Sums at the ends of the range, and between two integers."""
    limits = {I8: (-128, 127), I16: (-32768, 32767)}[t]
    for act, zero in (("NONE", 0), ("RELU6", -20), ("RELU", 127), ("RELU_N1_TO_1", -128)):
        zero = 0 if t == I16 else zero
        scale = 0.1 if t == I8 else 0.01
        data = g.rng.choice(limits, [1, 5, 5, 4])
        low = np.full([1, 5, 5, 4], limits[0])
        half = np.concatenate([np.full([1, 5, 5, 2], -3), np.full([1, 5, 5, 2], 3)], 3)
        half[:, ::2] += 1
        x = g.input([1, 5, 5, 4], t, scale, zero, data=[data, low, half])
        g.op("AVERAGE_POOL_2D", [x], [g.output([1, 2, 2, 4], t, scale, zero, varies=act == "NONE")], padding="VALID",
             filter_height=2, filter_width=2, stride_h=2, stride_w=2, fused_activation_function=act)


def transpose_conv(g, t, shape, channels, window, stride=(1, 1), padding="SAME", act="NONE", bias=True, per_channel=True,
                   zeros=(3, -4), size=None, out_scale=0.1):
    """A TRANSPOSE_CONV; `bias` is its type, or whether there is one."""
    b, h, w, c = shape
    if size is None:
        size = [n * s if padding == "SAME" else (n - 1) * s + k for n, k, s in zip((h, w), window, stride)]
    out = [b, *size, channels]
    quantized = t != F32
    zeros = zeros if t == I8 else (0, 0)
    x_scale, o_scale = (0.03, out_scale) if t == I8 else (0.0002, out_scale / 100)
    w_scale = g.rng.uniform(0.002, 0.02, channels if per_channel else 1).astype(np.float32)
    x = g.input(shape, t, x_scale if quantized else None, zeros[0])
    if quantized:
        weights = g.constant(g.noise([channels, *window, c], I8, -127, 127), I8, w_scale, 0, 0)
    else:
        weights = g.constant(g.noise([channels, *window, c], F32, -1, 1))
    inputs = [g.words(*out), weights, x]
    if bias:
        kind = {F32: F32, I8: I32, I16: I64}[t] if bias is True else bias
        if t == F32:
            inputs.append(g.constant(g.noise([channels], F32)))
        else:
            limit = 30000 if kind == I16 else 40000
            inputs.append(g.constant(g.noise([channels], kind, -limit, limit), kind, w_scale * np.float32(x_scale), 0, 0))
    y = g.output(out, t, o_scale if quantized else None, zeros[1])
    g.op("TRANSPOSE_CONV", inputs, [y], padding=padding, stride_h=stride[0], stride_w=stride[1],
         fused_activation_function=act)


@each((F32, I8, I16), "TRANSPOSE_CONV_{}")
def _(g, t):
    transpose_conv(g, t, [1, 3, 3, 2], 3, (3, 3))
    transpose_conv(g, t, [2, 2, 3, 1], 2, (3, 2), (2, 3))
    transpose_conv(g, t, [1, 3, 2, 4], 1, (2, 3), (2, 1), "VALID", bias=False)
    transpose_conv(g, t, [1, 4, 4, 3], 4, (4, 4), (2, 2), per_channel=False)
    transpose_conv(g, t, [1, 2, 2, 5], 3, (1, 1), (3, 3), bias=False)
    transpose_conv(g, t, [1, 1, 5, 2], 2, (1, 3), (1, 2), "VALID", "RELU")
    transpose_conv(g, t, [1, 2, 2, 2], 2, (2, 2), (2, 2), "SAME", "RELU6")


@each((F32, I8, I16), "TRANSPOSE_CONV_{}_size")
def _(g, t):
    """Output sizes that several inputs could have, and saturated outputs."""
    transpose_conv(g, t, [1, 2, 3, 2], 2, (3, 3), (2, 2), size=[3, 5])
    transpose_conv(g, t, [1, 2, 2, 3], 3, (3, 3), (2, 2), "VALID", size=[6, 6])
    transpose_conv(g, t, [1, 3, 3, 8], 4, (3, 3), out_scale=0.02, zeros=(-128, 127))
    transpose_conv(g, t, [1, 3, 3, 8], 4, (3, 3), act="RELU_N1_TO_1", zeros=(127, 0))


@case
def TRANSPOSE_CONV_int16_bias16(g):
    """Biases of 16 bits, which TFLM widens."""
    transpose_conv(g, I16, [1, 3, 3, 2], 3, (3, 3), (2, 2), bias=I16)


AXES = (([2, 3, 4], [1], False), ([2, 3, 4], [-1], True), ([2, 3, 4], [0, -1], False), ([2, 3, 4], [2, 0, 2, -1], True),
        ([3, 5, 2, 4], [1, 2], True), ([3, 5, 2, 4], [2, 1], False), ([3, 5, 2, 4], [1, 2], False), ([7], [0], False),
        ([7], [-1], True), ([2, 2, 3, 2], [0, 1, 2, 3], False), ([5, 3], 1, False), ([5, 3], -2, True),
        ([2, 3, 2, 1, 3], [1, 4], False), ([2, 3, 2, 1, 3], [3], True), ([1, 9, 9, 3], [-3, -2], True))


def reduced(shape, axes, keep):
    """Shape of a reduction's result."""
    axes = {a % len(shape) for a in np.atleast_1d(axes)}
    return [1 if k in axes else n for k, n in enumerate(shape) if keep or k not in axes]


def reduction(g, name, t, shape, axes, keep, given=(None, 0), made=(None, 0), data=None):
    """A reduction; a scalar of axes is a tensor without dimensions."""
    x = g.input(shape, t, *given, data=data)
    axes_tensor = g.constant(np.array(axes, np.int32))
    g.op(name, [x, axes_tensor], [g.output(reduced(shape, axes, keep), t, *made)], keep_dims=keep)


@each((F32, I8, I16), "MEAN_{}")
def _(g, t):
    for k, (shape, axes, keep) in enumerate(AXES if t == I8 else AXES[::2] if t == I16 else AXES):
        given, made = {F32: ((None, 0), (None, 0)), I8: ((0.1, 7), (0.1, 7) if k % 3 == 0 else (0.047 + 0.02 * k, -9)),
                       I16: ((0.001, 0), (0.001, 0) if k % 3 == 0 else (0.0008, 0))}[t]
        reduction(g, "MEAN", t, shape, axes, keep, given, made)


@each((F32, I8, I16), "SUM_{}")
def _(g, t):
    for k, (shape, axes, keep) in enumerate(AXES if t == I8 else AXES[1::2] if t == I16 else AXES[::2]):
        given, made = {F32: ((None, 0), (None, 0)), I8: ((0.1, 7), (0.1 + 0.1 * k, -9)),
                       I16: ((0.001, 0), (0.001 + 0.002 * k, 0))}[t]
        reduction(g, "SUM", t, shape, axes, keep, given, made)


def reductions_at_ends(g, name, t, scales):
    """Many elements, ends of the range, scales far from each other."""
    zero = 5 if t == I16 else -128
    low, high = {I8: (-128, 127), I16: (-32768, 32767)}[t]
    for given, made in scales:
        shape = [1, 7, 9, 2]
        data = [g.rng.choice([low, high], shape), np.full(shape, high), g.noise(shape, t, zero, zero + 1)]
        reduction(g, name, t, shape, [1, 2], True, (given, zero), (made, 0), data)
        data = [np.stack([np.full(67, low), g.rng.choice([low, high], 67), np.full(67, high)]), g.noise([3, 67], t, -3, 9)]
        reduction(g, name, t, [3, 67], [1], False, (given, 0), (made, zero // 2), data)


@each((I8, I16), "MEAN_{}_ends", invokes=3)
def _(g, t):
    reductions_at_ends(g, "MEAN", t, ((0.1, 0.1), (0.1, 0.001), (0.02, 0.9), (1e-4, 9e-5)))


@each((I8, I16), "SUM_{}_ends", invokes=3)
def _(g, t):
    reductions_at_ends(g, "SUM", t, ((0.1, 0.1), (0.1, 9.0), (0.02, 0.9), (1e-4, 3e-3)))


@each((F32, I8), "REDUCE_MAX_{}")
@each((I16,), "REDUCE_MAX_{}", refused="support")
def _(g, t):
    for shape, axes, keep in AXES:
        both = (None, 0) if t == F32 else (0.1, -3)
        reduction(g, "REDUCE_MAX", t, shape, axes, keep, both, both, (-100, 100) if t == I8 else None)


@each((F32, I8), "REDUCE_MIN_{}")
@each((I16,), "REDUCE_MIN_{}", refused="support")
def _(g, t):
    for shape, axes, keep in AXES[::2]:
        both = (None, 0) if t == F32 else (0.1, -3)
        reduction(g, "REDUCE_MIN", t, shape, axes, keep, both, both, (-100, 100) if t == I8 else None)


ROWS = ([5], [1, 1, 1, 10], [3, 7], [2, 1, 4], [2, 3, 2, 5], [1, 12])


def softmax(g, given, made, shape, beta=1.0, scale=None, zero=0, data=None):
    """A SOFTMAX with the output's scale that TFLM demands."""
    out = {(F32, F32): (None, 0), (I8, I8): (1 / 256, -128), (I8, I16): (1 / 65536, -32768), (I16, I16): (1 / 32768, 0)}
    x = g.input(shape, given, scale, zero, data=data)
    g.op("SOFTMAX", [x], [g.output(shape, made, *out[given, made])], beta=beta)


@case
def SOFTMAX_float32(g):
    for k, shape in enumerate(ROWS):
        softmax(g, F32, F32, shape, (1.0, 0.5, 2.5)[k % 3], data=(-9, 9))
    softmax(g, F32, F32, [3, 4], data=(-300, 300))
    softmax(g, F32, F32, [2, 6], 0.1, data=(1000, 1040))


@case(name="SOFTMAX_int8", invokes=3)
def _(g):
    softmax_rows(g, I8, I8)


@case(name="SOFTMAX_int8_to_int16", invokes=3)
def _(g):
    softmax_rows(g, I8, I16)


def softmax_rows(g, given, made):
    """Narrow and wide scales, long rows, rows of equal elements."""
    for k, shape in enumerate(ROWS):
        softmax(g, given, made, shape, (1.0, 0.5, 2.5)[k % 3], (0.1, 0.03, 0.6, 0.0039)[k % 4], (0, -128, 127, 5)[k % 4])
    for k, scale in enumerate((0.001, 0.11, 3.0)):
        softmax(g, given, made, [2, 33], 1.0, scale, 0)
    softmax(g, given, made, [1, 500], 1.0, 0.05, 3)
    rows = [np.full([2, 90], -128), np.array([[127] + [-128] * 89, [-128] * 89 + [126]]), np.zeros([2, 90])]
    softmax(g, given, made, [2, 90], 1.0, 0.1, 3, rows)
    softmax(g, given, made, [1, 256], 1.0, 0.1, 0, [np.arange(-128, 128)[None], np.full([1, 256], 9)])


@case(invokes=3)
def SOFTMAX_int16(g):
    for k, shape in enumerate(ROWS):
        softmax(g, I16, I16, shape, (1.0, 0.5, 2.5)[k % 3], (0.0003, 0.0001, 0.0011, 0.00003)[k % 4])
    for scale in (2e-5, 3e-3):
        softmax(g, I16, I16, [2, 33], 1.0, scale)
    softmax(g, I16, I16, [1, 300], 1.0, 1e-4, data=(-3000, 3000))
    softmax(g, I16, I16, [2, 64], 1.0, 3e-4,
            data=[np.full([2, 64], -32768), np.array([[32767] + [-32768] * 63, [-32768] * 63 + [32766]]), np.zeros([2, 64])])


@case
def LOG_SOFTMAX_float32(g):
    for shape in ROWS:
        x = g.input(shape, F32, data=(-9, 9))
        g.op("LOG_SOFTMAX", [x], [g.output(shape, F32)])
    x = g.input([3, 4], F32, data=(-300, 300))
    g.op("LOG_SOFTMAX", [x], [g.output([3, 4], F32)])


@case(invokes=3)
def LOG_SOFTMAX_int8(g):
    scales = (0.1, 0.03, 0.6, 0.0039, 0.01, 1.5)
    for k, shape in enumerate([*ROWS, [2, 40], [1, 300]]):
        x = g.input(shape, I8, scales[k % 6], (0, -128, 127)[k % 3])
        g.op("LOG_SOFTMAX", [x], [g.output(shape, I8, 16 / 256, 127)])
    rows = [np.full([2, 64], -128), np.array([[127] + [-128] * 63, [-128] * 63 + [126]]), np.zeros([2, 64])]
    x = g.input([2, 64], I8, 0.1, 0, data=rows)
    g.op("LOG_SOFTMAX", [x], [g.output([2, 64], I8, 16 / 256, 127)])


@case
def L2_NORMALIZATION_float32(g):
    for shape in ROWS:
        g.op("L2_NORMALIZATION", [g.input(shape, F32)], [g.output(shape, F32)])
    x = g.input([2, 3], F32, data=np.array([[0, 0, 0], [1e-8, 0, -1e-8]]))
    g.op("L2_NORMALIZATION", [x], [g.output([2, 3], F32)])


@case
def L2_NORMALIZATION_int8(g):
    for k, shape in enumerate([*ROWS, [1, 300]]):
        x = g.input(shape, I8, 0.1, (0, -128, 127, 5)[k % 4])
        g.op("L2_NORMALIZATION", [x], [g.output(shape, I8, 1 / 128, 0)])
    x = g.input([3, 4], I8, 0.1, 7, data=np.array([[7, 7, 7, 7], [8, 7, 7, 7], [127, -128, -128, 6]]))
    g.op("L2_NORMALIZATION", [x], [g.output([3, 4], I8, 1 / 128, 0)])


def arg(g, name, t):
    """ARG_MAX or ARG_MIN, with ties."""
    for shape, axis in (([7], 0), ([3, 5], 1), ([3, 5], -2), ([2, 3, 4], 1), ([2, 3, 4], -1), ([2, 3, 2, 5], 2), ([1, 1, 1, 9], 3)):
        scale = (None, 0) if t == F32 else (0.1, 4)
        out = [n for k, n in enumerate(shape) if k != axis % len(shape)]
        data = None if len(shape) % 2 else lambda _, shape=shape: g.rng.integers(-2, 3, shape)
        axis = g.constant(np.int32(axis)) if len(shape) % 2 else g.words(axis)
        g.op(name, [g.input(shape, t, *scale, data=data), axis], [g.output(out, I32)], output_type=I32)
    x, axis = g.input([3, 3], t, *scale), g.input([1], I32, data=[np.array([0]), np.array([-1])])
    g.op(name, [x, axis], [g.output([3], I32)], output_type=I32)


@each((F32, I8), "ARG_MAX_{}", invokes=4)
@each((I16,), "ARG_MAX_{}", refused="support")
def _(g, t):
    arg(g, "ARG_MAX", t)


@each((F32, I8), "ARG_MIN_{}", invokes=4)
@each((I16,), "ARG_MIN_{}", refused="support")
def _(g, t):
    arg(g, "ARG_MIN", t)


@each((F32, I8), "CUMSUM_{}")
@each((I16,), "CUMSUM_{}", refused="kTfLiteInt8")
def _(g, t):
    k = 0
    for shape, axis in (([6], 0), ([3, 5], 1), ([3, 5], -2), ([2, 3, 4], 1), ([2, 3, 2, 5], -1), ([2, 3, 2, 5], 0)):
        for exclusive, reverse in ((False, False), (True, False), (False, True), (True, True))[k % 2::2]:
            given, made = ((None, 0), (None, 0)) if t == F32 else ((0.1, 5), ((0.1, 5), (0.23, -7), (0.05, 100))[k % 3])
            tensor = g.constant(np.int32(axis)) if k % 2 else g.words(axis)
            g.op("CUMSUM", [g.input(shape, t, *given), tensor], [g.output(shape, t, *made)], exclusive=exclusive,
                 reverse=reverse)
        k += 1
    x, axis = g.input([3, 3], t, *given), g.input([1], I32, data=[np.array([0]), np.array([-1])])
    g.op("CUMSUM", [x, axis], [g.output([3, 3], t, *made)])


def batch_matmul(g, t, left, right, adj_x=False, adj_y=False, constant=False, zeros=(3, -5, 7), scale=None):
    """A BATCH_MATMUL."""
    zeros = zeros if t == I8 else (0, 0, 0)
    scales = {F32: (None,) * 3, I8: (0.05, 0.02, scale or 0.3), I16: (1e-4, 2e-4, scale or 3e-3)}[t]
    rows, columns = (left[-1] if adj_x else left[-2]), (right[-2] if adj_y else right[-1])
    batches = np.broadcast_shapes(tuple(left[:-2]), tuple(right[:-2]))
    x = g.input(left, t, scales[0], zeros[0])
    y = (g.constant(g.noise(right, t), t, scales[1], zeros[1]) if constant else g.input(right, t, scales[1], zeros[1]))
    z = g.output([*batches, rows, columns], t, scales[2], zeros[2])
    g.op("BATCH_MATMUL", [x, y], [z], adj_x=adj_x, adj_y=adj_y)


@each((F32, I8, I16), "BATCH_MATMUL_{}")
def _(g, t):
    batch_matmul(g, t, [3, 4], [4, 5])
    batch_matmul(g, t, [4, 3], [4, 5], adj_x=True)
    batch_matmul(g, t, [3, 4], [5, 4], adj_y=True)
    batch_matmul(g, t, [4, 3], [5, 4], adj_x=True, adj_y=True)
    batch_matmul(g, t, [2, 3, 7], [2, 7, 2])
    batch_matmul(g, t, [2, 7, 3], [2, 2, 7], adj_x=True, adj_y=True)
    batch_matmul(g, t, [1, 2, 9], [9, 1], constant=True)
    batch_matmul(g, t, [1, 17], [3, 17], adj_y=True, constant=True)


@each((F32, I8, I16), "BATCH_MATMUL_{}_broadcast")
def _(g, t):
    batch_matmul(g, t, [3, 2, 4], [1, 4, 2])
    batch_matmul(g, t, [1, 2, 4], [3, 4, 2])
    batch_matmul(g, t, [2, 1, 3, 4], [1, 3, 4, 2])
    batch_matmul(g, t, [2, 3, 4], [4, 3])
    batch_matmul(g, t, [3, 4], [2, 4, 3])
    batch_matmul(g, t, [2, 1, 2, 2, 3], [1, 2, 1, 3, 2])
    batch_matmul(g, t, [2, 3, 2, 4], [2, 3, 4, 3], constant=True)
    batch_matmul(g, t, [3, 4, 2], [1, 3, 4], adj_x=True, adj_y=True)


@each((I8, I16), "BATCH_MATMUL_{}_ends")
def _(g, t):
    """Saturated outputs, zero points at the ends."""
    batch_matmul(g, t, [4, 30], [30, 4], zeros=(-128, 0, 127), scale={I8: 0.02, I16: 1e-4}[t])
    batch_matmul(g, t, [4, 30], [4, 30], adj_y=True, zeros=(127, -128, 127), scale={I8: 3.0, I16: 0.1}[t])
    batch_matmul(g, t, [2, 4, 5], [2, 5, 3], zeros=(0, 127, 0), scale={I8: 0.0005, I16: 1e-6}[t])


def svdf(g, kind, batch, inputs, units, rank, memory, act="NONE", bias=True, zeros=(3, 5), out_scale=0.1):
    """An SVDF; `kind` is the type of the weights over time and of the state."""
    filters = units * rank
    quantized = kind != F32
    t = I8 if quantized else F32
    if quantized:
        x_scale, f_scale, s_scale, w_scale = 0.05, 0.01, (0.0005 if kind == I16 else 0.03), (0.0002 if kind == I16 else 0.01)
        x = g.input([batch, inputs], I8, x_scale, zeros[0])
        feature = g.constant(g.noise([filters, inputs], I8), I8, f_scale)
        time = g.constant(g.noise([filters, memory], kind, *((-127, 127) if kind == I8 else (-9000, 9000))), kind, w_scale)
        state = g.tensor([batch, memory * filters], kind, s_scale, 0 if kind == I16 else -4, variable=True)
        b = g.constant(g.noise([units], I32, -20000, 20000), I32, np.float32(s_scale) * np.float32(w_scale))
        y = g.output([batch, units], I8, out_scale, zeros[1])
    else:
        x = g.input([batch, inputs], F32)
        feature, time = g.constant(g.noise([filters, inputs], F32, -1, 1)), g.constant(g.noise([filters, memory], F32, -1, 1))
        state = g.tensor([batch, memory * filters], F32, variable=True)
        b = g.constant(g.noise([units], F32)) if bias else -1
        y = g.output([batch, units], F32)
    g.op("SVDF", [x, feature, time, b, state], [y], rank=rank, fused_activation_function=act)


@each((F32, I8), "SVDF_{}", invokes=6)
def _(g, t):
    kind = t
    svdf(g, kind, 1, 3, 4, 1, 4, bias=True)
    svdf(g, kind, 2, 5, 3, 2, 3, act="RELU", zeros=(-128, -10))
    svdf(g, kind, 1, 8, 2, 3, 5, out_scale=0.02, zeros=(0, 127))
    svdf(g, kind, 3, 1, 1, 1, 1)
    svdf(g, kind, 1, 16, 8, 1, 2, act="RELU", zeros=(127, 0))


@case(invokes=6)
def SVDF_int8_state16(g):
    """State and weights over time of 16 bits."""
    svdf(g, I16, 1, 3, 4, 1, 4)
    svdf(g, I16, 2, 5, 3, 2, 3, act="RELU", zeros=(-128, -10))
    svdf(g, I16, 1, 8, 2, 3, 5, out_scale=0.02, zeros=(0, 127))
    svdf(g, I16, 3, 1, 1, 1, 1)
    svdf(g, I16, 1, 16, 8, 1, 2, act="RELU", zeros=(127, 0))


@case(refused="crashes")
def SVDF_float32_no_bias(g):
    svdf(g, F32, 1, 3, 4, 1, 4, bias=False)


@case(invokes=5)
def SVDF_float32_activations(g):
    for act in ("RELU6", "RELU_N1_TO_1", "TANH", "SIGN_BIT"):
        svdf(g, F32, 2, 3, 4, 1, 3, act=act)


def lstm(g, t, batch, time, inputs, units, time_major=False, clip=0.0, hidden_zero=4, cell_scale=2.0 ** -11, sequence=None):
    """A UNIDIRECTIONAL_SEQUENCE_LSTM without peepholes, projection and layer normalization."""
    shape = [time, batch, inputs] if time_major else [batch, time, inputs]
    out = shape[:2] + [units]
    if t == F32:
        def weights(columns):
            return g.constant(g.noise([units, columns], F32, -0.7, 0.7))

        def bias():
            return g.constant(g.noise([units], F32, -1, 1))
        x, y = g.input(shape, F32), g.output(out, F32)
        hidden = g.tensor([batch, units], F32, variable=True)
        cell = g.tensor([batch, units], F32, variable=True)
    else:
        x_scale = 0.03 if t == I8 else 0.0001
        zeros = (-7, hidden_zero) if t == I8 else (0, 0)
        h_scale = 1 / 128 if t == I8 else 1 / 32768
        scale = 0.006

        def weights(columns):
            nonlocal scale
            scale = float(np.float32(g.rng.uniform(0.004, 0.009)))
            return g.constant(g.noise([units, columns], I8, -127, 127), I8, scale)

        def bias():
            return g.constant(g.noise([units], I32, -3000, 3000), I32 if t == I8 else I64, np.float32(x_scale) * np.float32(scale))
        x, y = g.input(shape, t, x_scale, zeros[0]), g.output(out, t, h_scale, zeros[1])
        hidden = g.tensor([batch, units], t, h_scale, zeros[1], variable=True)
        cell = g.tensor([batch, units], I16, cell_scale, 0, variable=True)
    tensors = [x] + [weights(inputs) for _ in range(4)] + [weights(units) for _ in range(4)] + [-1] * 3
    tensors += [bias() for _ in range(4)] + [-1, -1, hidden, cell] + [-1] * 4
    g.op("UNIDIRECTIONAL_SEQUENCE_LSTM", tensors, [y], fused_activation_function="TANH", cell_clip=clip,
         time_major=time_major)


@each((F32, I8, I16), "UNIDIRECTIONAL_SEQUENCE_LSTM_{}", invokes=3)
def _(g, t):
    lstm(g, t, 1, 3, 2, 4)
    lstm(g, t, 2, 2, 5, 3)
    lstm(g, t, 3, 4, 1, 2, time_major=True, hidden_zero=-128)
    lstm(g, t, 1, 1, 7, 9, hidden_zero=0)
    lstm(g, t, 1, 2, 3, 3, clip=0.3, cell_scale=2.0 ** -13)
    lstm(g, t, 2, 5, 3, 2, time_major=True, cell_scale=2.0 ** -9, hidden_zero=127)

"""Operators that move elements, or name them anew."""
import numpy as np

from .builder import BOOL, F32, I8, I16, I32, I64, LEFT_OUT, U8, case, each

Q = {F32: (None, 0), I8: (0.1, -3), I16: (0.001, 0)}


def given(g, shape, t, **options):
    """An input with a scale where the type has one."""
    return g.input(shape, t, *Q.get(t, (None, 0)), **options)


def made(g, shape, t, **options):
    """An output with the scale of `given`."""
    return g.output(shape, t, *Q.get(t, (None, 0)), **options)


def some(t, cases):
    """All cases for the types that models mostly have, every other one for the rest, which share code with them."""
    return cases if t in (F32, I8) else cases[::2]


@each((F32, I8, I16, I32, I64, BOOL), "RESHAPE_{}", invokes=1)
def _(g, t):
    for old, new, words in (([2, 6], [3, 4], [3, 4]), ([1, 2, 3, 2], [12], [-1]), ([5], [1, 5, 1], [1, -1, 1])):
        g.op("RESHAPE", [given(g, old, t), g.words(*words)], [made(g, new, t)], new_shape=words)
    g.op("RESHAPE", [given(g, [2, 3, 2], t)], [made(g, [4, 3], t)], new_shape=[4, 3])
    g.op("RESHAPE", [given(g, [3, 4], t), g.input([2], I32, data=np.array([6, 2]))], [made(g, [6, 2], t)], "RESHAPE")


@each((F32, I8, I16, I32, BOOL), "SQUEEZE_{}")
def _(g, t):
    for old, new, axes in (([1, 5, 1], [5], []), ([1, 5, 1, 2], [5, 1, 2], [0]), ([3, 1, 2, 1], [3, 2], [-1, 1])):
        g.op("SQUEEZE", [given(g, old, t)], [made(g, new, t)], squeeze_dims=axes)


@each((F32, I8, I16), "EXPAND_DIMS_{}")
@each((I32,), "EXPAND_DIMS_{}", refused="support")
def _(g, t):
    for axis, new in ((0, [1, 3, 2]), (1, [3, 1, 2]), (2, [3, 2, 1]), (-1, [3, 2, 1]), (-3, [1, 3, 2])):
        g.op("EXPAND_DIMS", [given(g, [3, 2], t), g.constant(np.int32(axis)) if axis % 2 else g.words(axis)],
             [made(g, new, t)])


@each((F32, I8, I16, I32, I64, BOOL), "CONCATENATION_{}", invokes=1)
def _(g, t):
    for shape, axis, sizes in some(t, (([4], 0, (4, 1, 2)), ([2, 3], 1, (3, 1)), ([2, 3], 0, (1, 2, 3)), ([2, 3, 2], -2, (1, 4)),
                               ([1, 2, 2, 5], 3, (5, 2, 1)), ([2, 2, 1, 3], -4, (2, 1)), ([3], 0, (3,)),
                               ([2, 2], 1, (1,) * 10), ([2, 1, 2, 2, 2], 2, (1, 2)))):
        shapes = [[n if k == axis % len(shape) else m for k, m in enumerate(shape)] for n in sizes]
        whole = [sum(sizes) if k == axis % len(shape) else m for k, m in enumerate(shape)]
        g.op("CONCATENATION", [given(g, s, t) for s in shapes], [made(g, whole, t)], axis=axis)
    constant = g.constant(g.noise([2, 2], t), t, *Q.get(t, (None, 0)))
    x = given(g, [2, 3], t)
    g.op("CONCATENATION", [x, constant, x], [made(g, [2, 8], t)], axis=-1)


@each((F32, I8, I16, I32), "SPLIT_{}", invokes=1)
@each((I64,), "SPLIT_{}", refused="support")
def _(g, t):
    for shape, axis, parts in some(t, (([6], 0, 3), ([2, 4], 1, 2), ([4, 3], -2, 4), ([2, 2, 6], 2, 3), ([1, 4, 3, 2], 1, 2),
                               ([2, 3, 1, 4], -1, 1), ([2, 2, 2, 1, 2], 1, 2))):
        part = [n // parts if k == axis % len(shape) else n for k, n in enumerate(shape)]
        g.op("SPLIT", [g.constant(np.int32(axis)) if axis < 0 else g.words(axis), given(g, shape, t)],
             [made(g, part, t) for _ in range(parts)], num_splits=parts)


@each((F32, I8, I16, I32), "SPLIT_V_{}")
@each((I64,), "SPLIT_V_{}", refused="support")
def _(g, t):
    for shape, axis, sizes, words in some(t, (([6], 0, (1, 3, 2), None), ([2, 5], 1, (2, 3), (2, -1)), ([4, 3], -2, (1, 3), None),
                                      ([2, 2, 6], 2, (4, 1, 1), None), ([1, 5, 3, 2], 1, (4, 1), None),
                                      ([2, 3, 1, 4], -1, (4,), None))):
        parts = [[n if k == axis % len(shape) else m for k, m in enumerate(shape)] for n in sizes]
        g.op("SPLIT_V", [given(g, shape, t), g.words(*(words or sizes)), g.constant(np.int32(axis))],
             [made(g, part, t, varies=np.prod(part) > 1) for part in parts], num_splits=len(sizes))


@each((F32, I8, I16, I32, I64), "PACK_{}", invokes=1)
@each((BOOL,), "PACK_{}", refused="support")
def _(g, t):
    for shape, axis, count in some(t, (([3], 0, 2), ([3], 1, 3), ([2, 3], -1, 2), ([2, 3], -3, 1), ([2, 1, 3], 2, 4), ([], 0, 3))):
        whole = list(shape)
        whole.insert(axis % (len(shape) + 1), count)
        g.op("PACK", [given(g, shape, t) for _ in range(count)], [made(g, whole, t)], values_count=count, axis=axis)


@each((F32, I8, I16, I32), "UNPACK_{}")
@each((I64,), "UNPACK_{}", refused="support")
def _(g, t):
    for shape, axis in some(t, (([3], 0), ([2, 3], 1), ([2, 3], -2), ([2, 3, 2], -1), ([2, 1, 3, 2], 1), ([3, 2, 2], 0))):
        part = [n for k, n in enumerate(shape) if k != axis % len(shape)]
        # A scalar has the same element at two invokes now and then.
        parts = [made(g, part, t, varies=len(shape) > 1) for _ in range(shape[axis])]
        g.op("UNPACK", [given(g, shape, t)], parts, num=shape[axis], axis=axis)


@each((F32, I8, I16, I32, BOOL), "SLICE_{}")
@each((I64,), "SLICE_{}", refused="support")
def _(g, t):
    for shape, begin, size in some(t, (([7], [2], [3]), ([7], [3], [-1]), ([4, 5], [1, 0], [2, 5]), ([4, 5], [0, 2], [-1, 3]),
                               ([2, 3, 4], [1, 1, 1], [1, 2, 3]), ([2, 3, 3, 4], [0, 1, 0, 2], [2, 1, -1, 2]),
                               ([2, 2, 3, 2, 3], [1, 0, 1, 0, 1], [1, 2, 2, -1, 2]))):
        out = [n - b if s < 0 else s for n, b, s in zip(shape, begin, size)]
        kind = np.int64 if len(shape) == 3 else np.int32
        g.op("SLICE", [given(g, shape, t), g.constant(np.array(begin, kind)), g.constant(np.array(size, kind))],
             [made(g, out, t)], "SLICE")
    begin = g.input([2], I32, data=[np.array([0, 2]), np.array([2, 1])])
    g.op("SLICE", [given(g, [4, 4], t), begin, g.words(2, 2)], [made(g, [2, 2], t)], "SLICE")


def strided_slice(g, t, shape, begin, end, strides, begin_mask=0, end_mask=0, shrink=0):
    """A STRIDED_SLICE; the output's shape comes from numpy's slices."""
    parts = []
    for k, n in enumerate(shape):
        b = None if begin_mask >> k & 1 else begin[k]
        e = None if end_mask >> k & 1 else end[k]
        parts.append(begin[k] if shrink >> k & 1 else slice(b, e, strides[k]))
    out = list(np.empty(shape)[tuple(parts)].shape)
    g.op("STRIDED_SLICE", [given(g, shape, t), g.words(*begin), g.words(*end), g.words(*strides)],
         [made(g, out, t, varies=int(np.prod(out)) > 1)], begin_mask=begin_mask, end_mask=end_mask, shrink_axis_mask=shrink)


@each((F32, I8, I16, I32, BOOL), "STRIDED_SLICE_{}")
@each((I64,), "STRIDED_SLICE_{}", refused="support")
def _(g, t):
    strided_slice(g, t, [9], [1], [8], [2])
    strided_slice(g, t, [9], [-2], [-8], [-3])
    strided_slice(g, t, [9], [7], [0], [-1], end_mask=1)
    strided_slice(g, t, [4, 5], [0, 1], [4, 4], [2, 1])
    strided_slice(g, t, [4, 5], [3, 4], [0, 0], [-1, -2], begin_mask=1, end_mask=2)
    strided_slice(g, t, [4, 5], [1, 1], [2, 4], [1, 1], shrink=1)
    strided_slice(g, t, [4, 5], [-100, 1], [100, 200], [3, 2])
    strided_slice(g, t, [2, 3, 4], [1, -1, 0], [2, 0, 4], [1, 1, 2], shrink=3)
    strided_slice(g, t, [2, 3, 4], [0, 0, 3], [0, 0, 0], [1, 2, -1], begin_mask=3, end_mask=7)
    strided_slice(g, t, [2, 3, 3, 4], [0, 1, 2, 1], [2, 3, 0, 4], [1, 1, -1, 3])
    strided_slice(g, t, [2, 3, 3, 4], [1, 0, 2, 0], [2, 3, 3, 4], [1, 2, 1, 1], begin_mask=2, end_mask=10, shrink=5)


@case(refused="input dim should not exceed 4")
def STRIDED_SLICE_int8_rank5(g):
    strided_slice(g, I8, [1, 2, 2, 3, 2], [0] * 5, [1, 2, 2, 2, 2], [1] * 5)


PADDINGS = (([5], [[1, 2]]), ([2, 3], [[0, 1], [2, 0]]), ([2, 3, 2], [[1, 0], [0, 0], [2, 1]]),
            ([1, 3, 3, 2], [[0, 0], [1, 1], [2, 0], [0, 0]]), ([2, 2, 3, 1], [[1, 0], [0, 2], [1, 1], [3, 1]]),
            ([2, 2, 2, 2], [[0, 0]] * 4), ([1, 2, 3, 2, 2], [[0, 1], [1, 0], [0, 0], [2, 1], [0, 1]]))


def padded(shape, paddings):
    """The shape with what is added before and behind."""
    return [n + a + b for n, (a, b) in zip(shape, paddings)]


@each((F32, I8, I16, I32), "PAD_{}", invokes=1)
@each((I64,), "PAD_{}", refused="support")
def _(g, t):
    for k, (shape, paddings) in enumerate(some(t, PADDINGS)):
        quantized = {I8: (0.1, (-3, 127, -128)[k % 3]), I16: (0.001, 0)}.get(t, (None, 0))
        g.op("PAD", [g.input(shape, t, *quantized), g.constant(np.array(paddings, np.int32))],
             [g.output(padded(shape, paddings), t, *quantized)], "PAD")


@each((F32, I8, I16, I32), "PADV2_{}", invokes=1)
@each((I64,), "PADV2_{}", refused="support")
def _(g, t):
    for k, (shape, paddings) in enumerate(some(t, PADDINGS)[:5]):
        quantized = Q.get(t, (None, 0))
        value = g.noise([] if k % 2 else [1], t)
        value = g.input([], t, *quantized) if k == 2 else g.constant(value, t, *quantized)
        g.op("PADV2", [g.input(shape, t, *quantized), g.constant(np.array(paddings, np.int32)), value],
             [g.output(padded(shape, paddings), t, *quantized)], "PADV2")


@each((F32, I8), "MIRROR_PAD_{}", invokes=1)
@each((I16,), "MIRROR_PAD_{}", refused="failed to invoke")
def _(g, t):
    for k, (shape, paddings) in enumerate((([5], [[4, 2]]), ([3, 4], [[0, 2], [3, 0]]), ([3, 3, 2], [[1, 0], [2, 2], [0, 1]]),
                                           ([1, 3, 4, 2], [[0, 0], [1, 2], [2, 1], [0, 0]]), ([2, 2, 2, 2], [[1, 1]] * 4))):
        for mode, more in (("REFLECT", 0), ("SYMMETRIC", 1)):
            amounts = np.array(paddings, np.int64 if k % 2 else np.int32)
            amounts[amounts > 1] += more
            g.op("MIRROR_PAD", [given(g, shape, t), g.constant(amounts)], [made(g, padded(shape, amounts), t)], mode=mode)


@each((F32, I8, I16), "TRANSPOSE_{}", invokes=1)
@each((I32,), "TRANSPOSE_{}", refused="support")
def _(g, t):
    for shape, order in some(t, (([5], [0]), ([3, 4], [1, 0]), ([2, 3, 4], [2, 0, 1]), ([2, 3, 4], [0, 2, 1]), ([2, 3, 4], [1, 0, 2]),
                         ([2, 3, 2, 4], [0, 3, 1, 2]), ([2, 3, 2, 4], [3, 2, 1, 0]), ([1, 5, 1, 3], [2, 1, 0, 3]),
                         ([2, 1, 3, 2, 2], [4, 2, 0, 1, 3]), ([2, 3], [0, 1]))):
        g.op("TRANSPOSE", [given(g, shape, t), g.words(*order)], [made(g, [shape[k] for k in order], t)], "TRANSPOSE")


def gather(g, t, shape, positions, axis=0, batch=0):
    """A GATHER of random positions, which are an input."""
    size = shape[axis]
    axis_at = axis % len(shape)
    out = shape[:axis_at] + list(positions[batch:]) + shape[axis_at + 1:]
    x = given(g, shape, t)
    g.op("GATHER", [x, g.input(list(positions), I32, data=(0, size - 1))], [made(g, out, t, varies=int(np.prod(out)) > 1)],
         axis=axis, batch_dims=batch)


@each((F32, I8), "GATHER_{}")
@each((I16,), "GATHER_{}", refused="support")
def _(g, t):
    gather(g, t, [7], [3])
    gather(g, t, [7], [])
    gather(g, t, [4, 3], [2, 2])
    gather(g, t, [4, 3], [5], 1)
    gather(g, t, [2, 5, 3], [4], -2)
    gather(g, t, [2, 3, 4], [2, 3], -1)
    gather(g, t, [2, 5, 3], [2, 4], 1, 1)
    gather(g, t, [2, 3, 4, 2], [2, 2, 2], 2, 1)
    g.op("GATHER", [given(g, [6, 2], t), g.words(5, 0, 0, 3)], [made(g, [4, 2], t)])


def gather_nd(g, t, shape, leading, depth):
    """A GATHER_ND of random positions, which are an input."""
    def positions(_):
        return np.stack([g.rng.integers(0, n, leading) for n in shape[:depth]], -1)
    out = list(leading) + shape[depth:]
    g.op("GATHER_ND", [given(g, shape, t), g.input([*leading, depth], I32, data=positions)], [made(g, out, t)], "GatherNd")


@each((F32, I8), "GATHER_ND_{}")
@each((I16,), "GATHER_ND_{}", refused="support")
def _(g, t):
    gather_nd(g, t, [7], [4], 1)
    gather_nd(g, t, [3, 4], [5], 2)
    gather_nd(g, t, [3, 4], [2, 2], 1)
    gather_nd(g, t, [2, 3, 4], [3], 2)
    gather_nd(g, t, [2, 3, 2, 2], [2, 1, 2], 3)
    gather_nd(g, t, [2, 2, 2, 2, 3], [6], 5)


@each((F32, I8, I16, I32, I64, BOOL), "TILE_{}", invokes=1, reference="litert")
def _(g, t):
    for k, (shape, times) in enumerate(some(t, (([3], [2]), ([2, 3], [1, 3]), ([2, 3], [3, 1]), ([2, 1, 3], [2, 3, 2]),
                                        ([1, 2, 2, 3], [3, 1, 2, 1]), ([2, 3], [1, 1])))):
        times_tensor = g.constant(np.array(times, np.int64 if k % 2 else np.int32))
        out = [n * m for n, m in zip(shape, times)]
        g.op("TILE", [given(g, shape, t), times_tensor], [made(g, out, t)], "Tile")


@each((F32, I8, I16, I32, I64, BOOL), "BROADCAST_TO_{}")
def _(g, t):
    for k, (shape, new) in enumerate(some(t, (([3], [2, 3]), ([1, 3], [4, 3]), ([2, 1], [3, 2, 4]), ([], [2, 2]), ([2, 3], [2, 3]),
                                      ([2, 1, 1, 3], [2, 2, 2, 3]), ([1, 2, 1, 2, 1], [2, 2, 3, 2, 2]), ([3, 1], [2, 1, 3, 2])))):
        words = g.constant(np.array(new, np.int64 if k % 2 else np.int32))
        g.op("BROADCAST_TO", [given(g, shape, t), words], [made(g, new, t)], "BroadcastTo")


@each((F32, I8, I32), "FILL_{}", invokes=3)
@each((I16,), "FILL_{}", refused="support")
def _(g, t):
    for k, shape in enumerate(some(t, ([5], [2, 3], [1, 2, 3, 2], [1]))):
        words = g.constant(np.array(shape, np.int64 if k % 2 else np.int32))
        g.op("FILL", [words, given(g, [], t)], [made(g, shape, t)], "FILL")
    value = g.constant(g.noise([], t), t, *Q.get(t, (None, 0)))
    g.op("FILL", [g.words(3), value], [made(g, [3], t, varies=False)], "FILL")


@case(invokes=1)
def SHAPE_int32(g):
    for t, shape in ((F32, [2, 3]), (I8, [1, 5, 2, 7]), (I16, [4, 1, 2]), (I32, [2, 1, 1, 3, 1]), (BOOL, [3, 2]), (U8, [6, 1])):
        g.op("SHAPE", [given(g, shape, t)], [g.output([len(shape)], I32)], out_type=I32)
    g.op("SHAPE", [given(g, [9], F32)], [g.output([1], I32, varies=False)], out_type=I32)


RESIZES = (([1, 2, 3, 2], (4, 6)), ([2, 5, 4, 1], (3, 3)), ([1, 3, 3, 3], (7, 5)), ([1, 1, 4, 2], (3, 1)), ([1, 4, 4, 2], (4, 4)),
           ([1, 6, 2, 1], (1, 5)))


def resizes(g, name, t, flags):
    for shape, size in some(t, RESIZES):
        g.op(name, [given(g, shape, t), g.words(*size)], [made(g, [shape[0], *size, shape[3]], t)], align_corners=flags[0],
             half_pixel_centers=flags[1])


@each((F32, I8), "RESIZE_BILINEAR_{}", invokes=1)
@each((I16,), "RESIZE_BILINEAR_{}", refused="requires float or int8")
def _(g, t):
    resizes(g, "RESIZE_BILINEAR", t, (False, False))


@each((F32, I8), "RESIZE_BILINEAR_{}_corners", invokes=1)
def _(g, t):
    resizes(g, "RESIZE_BILINEAR", t, (True, False))


@each((F32, I8), "RESIZE_BILINEAR_{}_centers", invokes=1)
def _(g, t):
    resizes(g, "RESIZE_BILINEAR", t, (False, True))


@each((F32, I8, I16), "RESIZE_NEAREST_NEIGHBOR_{}", invokes=1)
@each((I32,), "RESIZE_NEAREST_NEIGHBOR_{}", refused="support")
def _(g, t):
    resizes(g, "RESIZE_NEAREST_NEIGHBOR", t, (False, False))


@each((F32, I8, I16), "RESIZE_NEAREST_NEIGHBOR_{}_corners", invokes=1)
def _(g, t):
    resizes(g, "RESIZE_NEAREST_NEIGHBOR", t, (True, False))


@each((F32, I8, I16), "RESIZE_NEAREST_NEIGHBOR_{}_centers", invokes=1)
def _(g, t):
    resizes(g, "RESIZE_NEAREST_NEIGHBOR", t, (False, True))


@each((F32, I8, I16), "RESIZE_NEAREST_NEIGHBOR_{}_both", invokes=1)
def _(g, t):
    resizes(g, "RESIZE_NEAREST_NEIGHBOR", t, (True, True))


BLOCKS = (([1, 4, 4, 1], 2), ([2, 2, 6, 3], 2), ([1, 3, 6, 2], 3), ([2, 2, 3, 2], 1))


@each((F32, I8), "SPACE_TO_DEPTH_{}", invokes=1)
@each((I16,), "SPACE_TO_DEPTH_{}", refused="kTfLiteInt8")
def _(g, t):
    for (b, h, w, c), n in BLOCKS:
        g.op("SPACE_TO_DEPTH", [given(g, [b, h, w, c], t)], [made(g, [b, h // n, w // n, c * n * n], t)], block_size=n)


@each((F32, I8), "DEPTH_TO_SPACE_{}", invokes=1)
@each((I16,), "DEPTH_TO_SPACE_{}", refused="kTfLiteInt8")
def _(g, t):
    for (b, h, w, c), n in BLOCKS:
        g.op("DEPTH_TO_SPACE", [given(g, [b, h // n, w // n, c * n * n], t)], [made(g, [b, h, w, c], t)], block_size=n)


@each((F32, I8), "SPACE_TO_BATCH_ND_{}", invokes=1)
@each((I16,), "SPACE_TO_BATCH_ND_{}", refused="support")
def _(g, t):
    for shape, block, pads in (([1, 4, 4, 2], (2, 2), ((0, 0), (0, 0))), ([2, 4, 6, 1], (2, 3), ((0, 0), (0, 0))),
                               ([1, 3, 5, 2], (2, 2), ((1, 0), (1, 2))), ([2, 5, 4, 1], (3, 1), ((0, 1), (0, 0))),
                               ([2, 6, 3], (2,), ((0, 0),)), ([1, 5, 2], (3,), ((2, 2),))):
        size = [(n + sum(p)) // b for n, b, p in zip(shape[1:], block, pads)]
        out = [shape[0] * int(np.prod(block)), *size, shape[-1]]
        quantized = (None, 0) if t == F32 else (0.1, 0 if np.any(pads) else -3)
        g.op("SPACE_TO_BATCH_ND", [g.input(shape, t, *quantized), g.words(*block), g.constant(np.array(pads, np.int32))],
             [g.output(out, t, *quantized)], "SpaceToBatchND")


@each((F32, I8), "BATCH_TO_SPACE_ND_{}", invokes=1)
@each((I16,), "BATCH_TO_SPACE_ND_{}", refused="support")
def _(g, t):
    for shape, block, crops in (([4, 2, 2, 2], (2, 2), ((0, 0), (0, 0))), ([12, 2, 1, 1], (2, 3), ((0, 0), (0, 0))),
                                ([4, 3, 2, 2], (2, 2), ((1, 0), (0, 2))), ([6, 2, 3, 1], (3, 1), ((1, 2), (0, 1))),
                                ([4, 3, 3], (2,), ((0, 0),)), ([6, 2, 2], (3,), ((2, 1),))):
        size = [n * b - sum(c) for n, b, c in zip(shape[1:], block, crops)]
        out = [shape[0] // int(np.prod(block)), *size, shape[-1]]
        g.op("BATCH_TO_SPACE_ND", [given(g, shape, t), g.words(*block), g.constant(np.array(crops, np.int32))],
             [made(g, out, t)], "BatchToSpaceND")


LEFT_OUT["SPACE_TO_BATCH_ND with padding and a zero point"] = "TFLM pads with a number that it never sets"

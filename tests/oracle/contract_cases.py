"""Operators of many shapes, types and options, as lines of `tests/contracts.txt`: position of the input and of the output
in question, then the operator as `tests/common/single.rs` reads it. The same lines each time.
"""
import random

SAME, VALID = 0, 1


class Cases:
    """Collects the lines."""

    def __init__(self):
        self.random, self.lines = random.Random(4), []

    def add(self, operator, inputs, outputs, pairs=((0, 0),), **options):
        rest = [operator, *inputs, ">", *outputs, *(f"{k}={str(v).lower()}" for k, v in options.items())]
        for i, o in pairs:
            line = f"{i}>{o} {' '.join(rest)}"
            if line not in self.lines:
                self.lines.append(line)

    def pick(self, *choices):
        return self.random.choice(choices)

    def dims(self, rank, most=6):
        return [self.random.randint(1, most) for _ in range(rank)]

    def channels(self, most):
        """Few, or enough for a compiler's vector loops."""
        return self.random.randint(20, 50) if self.random.random() < 0.15 else self.random.randint(1, most)

    def wide(self, shape):
        """The shape with a last dimension that vector loops are made for."""
        return shape[:-1] + [self.random.randint(40, 90)]


def tensor(kind, shape, scale=None, zero=0, data=None):
    """A tensor's text. Integers get a scale; `data` makes it a constant, with `r` for random numbers."""
    text = f"{kind}:{','.join(map(str, shape))}"
    if kind in ("i8", "i16", "u8", "i4") or scale and kind != "f32":
        text += f"/1*{scale or 0.05}" + (f"@{zero}" if zero else "")
    if data is not None:
        text += "!" + (data if data == "r" else ",".join(map(str, data)))
    return text


def words(*numbers):
    """A constant of 32-bit numbers, one for each."""
    return tensor("i32", [len(numbers)], data=numbers)


def elements(shape):
    n = 1
    for d in shape:
        n *= d
    return n


def out(size, window, stride, dilation, padding):
    span = (window - 1) * dilation + 1
    return (size + stride - 1) // stride if padding == SAME else (size + stride - span) // stride


def images(c, count, most=7):
    """Images and windows over them."""
    done = 0
    while done < count:
        n, h, w = c.pick(1, 1, 1, 2, 3), c.random.randint(1, most), c.random.randint(1, most)
        kh, kw = c.pick(1, 1, 2, 3, 4), c.pick(1, 1, 2, 3, 5)
        sh, sw = c.pick(1, 1, 2, 3), c.pick(1, 1, 2, 3)
        dh, dw = c.pick(1, 1, 1, 2), c.pick(1, 1, 1, 2, 3)
        padding = c.pick(SAME, VALID)
        yield_ = n, h, w, kh, kw, sh, sw, dh, dw, padding
        oh, ow = out(h, kh, sh, dh, padding), out(w, kw, sw, dw, padding)
        if oh < 1 or ow < 1:
            continue
        done += 1
        yield yield_, oh, ow


def convolutions(c):
    kinds = [("i8", "i8", "i32"), ("i8", "i8", "i32"), ("i16", "i8", "i64"), ("f32", "f32", "f32"), ("i8", "i4", "i32")]
    for (n, h, w, kh, kw, sh, sw, dh, dw, padding), oh, ow in images(c, 260):
        kind, weights, sums = c.pick(*kinds)
        groups, ci, f = c.pick(1, 1, 1, 2, 3), c.channels(4), c.channels(5)
        co = f * groups
        c.add("CONV_2D", [tensor(kind, [n, h, w, ci * groups]), tensor(weights, [co, kh, kw, ci], 0.01, data="r"),
                          tensor(sums, [co], 0.0005, data="r")],
              [tensor(kind, [n, oh, ow, co], 0.4)], padding=padding, stride_h=sh, stride_w=sw,
              dilation_h_factor=dh, dilation_w_factor=dw)
    for (n, h, w, kh, kw, sh, sw, dh, dw, padding), oh, ow in images(c, 180):
        kind, weights, sums = c.pick(*kinds)
        ci, multiplier = c.channels(5), c.pick(1, 1, 2, 3)
        co = ci * multiplier
        c.add("DEPTHWISE_CONV_2D", [tensor(kind, [n, h, w, ci]), tensor(weights, [1, kh, kw, co], 0.01, data="r"),
                                    tensor(sums, [co], 0.0005, data="r")],
              [tensor(kind, [n, oh, ow, co], 0.3)], depth_multiplier=multiplier, padding=padding, stride_h=sh,
              stride_w=sw, dilation_h_factor=dh, dilation_w_factor=dw)
    for (n, h, w, kh, kw, sh, sw, _, _, padding), _, _ in images(c, 150):
        oh, ow = out(h, kh, sh, 1, padding), out(w, kw, sw, 1, padding)
        operator = c.pick("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
        kind = "f32" if operator == "L2_POOL_2D" else c.pick("i8", "i16", "f32")
        if oh > 0 and ow > 0:
            ci = c.channels(4)
            c.add(operator, [tensor(kind, [n, h, w, ci])], [tensor(kind, [n, oh, ow, ci])], padding=padding,
                  filter_height=kh, filter_width=kw, stride_h=sh, stride_w=sw)
    for (n, h, w, kh, kw, sh, sw, _, _, padding), _, _ in images(c, 24, most=4):
        if padding == VALID:
            oh, ow = (h - 1) * sh + kh, (w - 1) * sw + kw
        else:
            oh, ow = h * sh, w * sw
        kind, ci, co = c.pick("i8", "i16", "f32"), c.random.randint(1, 3), c.random.randint(1, 3)
        weights = tensor("f32" if kind == "f32" else "i8", [co, kh, kw, ci], 0.01, data="r")
        c.add("TRANSPOSE_CONV", [words(n, oh, ow, co), weights, tensor(kind, [n, h, w, ci])],
              [tensor(kind, [n, oh, ow, co], 0.3)], pairs=[(2, 0)], padding=padding, stride_h=sh, stride_w=sw)


def rows(c):
    for _ in range(60):
        batch, inputs, outputs = c.random.randint(1, 6), c.channels(12), c.channels(12)
        kind, weights, sums = c.pick(("i8", "i8", "i32"), ("i8", "i4", "i32"), ("i16", "i8", "i64"), ("f32", "f32", "f32"))
        bias = [tensor(sums, [outputs], 0.0005, data="r")] if c.pick(True, True, False) else ["-"]
        c.add("FULLY_CONNECTED", [tensor(kind, [batch, inputs]), tensor(weights, [outputs, inputs], 0.01, data="r"), *bias],
              [tensor(kind, [batch, outputs], 0.3)])
    for _ in range(50):
        kind, rank = c.pick("i8", "i16", "f32"), c.pick(2, 3, 3, 4)
        batch = c.dims(rank - 2, 3)
        m, k, n = c.random.randint(1, 5), c.random.randint(1, 5), c.random.randint(1, 5)
        x, y = c.pick(False, True), c.pick(False, True)
        left, right = [*batch, *((k, m) if x else (m, k))], [*batch, *((n, k) if y else (k, n))]
        if batch and c.pick(False, True):
            side = c.pick(left, right)
            side[0] = 1
        scale, to = (0.0005, 0.005) if kind == "i16" else (0.05, 0.2)
        c.add("BATCH_MATMUL", [tensor(kind, left, scale), tensor(kind, right, scale)], [tensor(kind, [*batch, m, n], to)],
              pairs=[(0, 0), (1, 0)], adj_x=x, adj_y=y)
    for _ in range(24):
        shape, kind = c.dims(c.pick(2, 3, 4), 7), c.pick("i8", "i8", "i8", "f32")
        at = c.random.randrange(len(shape))
        c.add(c.pick("ARG_MAX", "ARG_MIN"), [tensor(kind, shape), words(c.pick(at, at - len(shape)))],
              [tensor("i32", shape[:at] + shape[at + 1:])])
    for _ in range(14):
        n, h, w, ch = c.dims(4, 5)
        kind, keep = c.pick("f32", "f32", "f32", "i8"), c.pick(True, True, True, False)
        axes = c.pick((1, 2), (2, 1), (-3, -2))
        c.add("MEAN", [tensor(kind, [n, h, w, ch]), words(*axes)], [tensor(kind, [n, 1, 1, ch] if keep else [n, ch])],
              keep_dims=keep)
    for _ in range(24):
        shape, kind = c.dims(c.pick(1, 2, 3), 5), c.pick("i8", "f32")
        c.add("CUMSUM", [tensor(kind, shape), tensor("i32", [1], data=[c.random.randrange(len(shape))])],
              [tensor(kind, shape, 0.2)], exclusive=c.pick(False, True), reverse=c.pick(False, True))
    for operator in ("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION"):
        for _ in range(14):
            shape = c.dims(c.pick(1, 2, 3, 4), 6)
            shape = c.pick(shape, shape, c.wide(shape))
            kind = c.pick("i8", "f32", *(["i16"] if operator == "SOFTMAX" else []))
            scale, zero, to = {"SOFTMAX": (0.00390625, -128, kind), "LOG_SOFTMAX": (0.0625, 127, kind),
                               "L2_NORMALIZATION": (0.0078125, 0, kind)}[operator]
            if operator == "SOFTMAX" and kind == "i16":
                scale, zero = 0.000030517578125, 0
            elif operator == "SOFTMAX" and kind == "i8" and c.pick(True, False):
                scale, zero, to = 0.0000152587890625, -32768, "i16"
            c.add(operator, [tensor(kind, shape, 0.003 if kind == "i16" else 0.05)], [tensor(to, shape, scale, zero)],
                  **({"beta": 1.0} if operator == "SOFTMAX" else {}))
    for _ in range(12):
        batch, inputs, units, rank, memory = c.pick(1, 1, 2), *c.dims(4, 4)
        filters, floats = units * rank, c.pick(False, True)
        if floats:
            texts = [tensor("f32", [batch, inputs]), tensor("f32", [filters, inputs], data="r"),
                     tensor("f32", [filters, memory], data="r"), tensor("f32", [units], data="r"),
                     tensor("f32", [batch, memory * filters]) + "~"]
            result = tensor("f32", [batch, units])
        else:
            texts = [tensor("i8", [batch, inputs]), tensor("i8", [filters, inputs], 0.01, data="r"),
                     tensor("i16", [filters, memory], 0.001, data="r"), tensor("i32", [units], 0.000001, data="r"),
                     tensor("i16", [batch, memory * filters], 0.001) + "~"]
            result = tensor("i8", [batch, units], 0.0005)
        c.add("SVDF", texts, [result], rank=rank, fused_activation_function=0)
    for _ in range(16):
        a, b, inputs, hidden = c.pick(1, 1, 2, 3), c.random.randint(1, 4), *c.dims(2, 5)
        time_major = c.pick(False, True)
        batch, floats = b if time_major else a, c.pick(False, True)
        kind, weights, sums, cell = ("f32",) * 4 if floats else ("i8", "i8", "i32", "i16")
        texts = [tensor(kind, [a, b, inputs], 0.008), *[tensor(weights, [hidden, inputs], 0.01, data="r")] * 4,
                 *[tensor(weights, [hidden, hidden], 0.01, data="r")] * 4, "-", "-", "-",
                 *[tensor(sums, [hidden], 0.00008, data="r")] * 4, "-", "-",
                 tensor(kind, [batch, hidden], 0.004) + "~", tensor(cell, [batch, hidden], 0.000030517578125) + "~",
                 "-", "-", "-", "-"]
        c.add("UNIDIRECTIONAL_SEQUENCE_LSTM", texts, [tensor(kind, [a, b, hidden], 0.004)], time_major=time_major,
              cell_clip=10.0, fused_activation_function=4)


def elementwise(c):
    unary = {"ABS": "i8 i16 f32", "CEIL": "f32", "COS": "f32", "ELU": "i8 f32", "EXP": "f32", "FLOOR": "f32",
             "HARD_SWISH": "i8 f32", "LEAKY_RELU": "i8 i16 f32", "LOG": "f32", "LOGICAL_NOT": "bool",
             "LOGISTIC": "i8 i16 f32", "NEG": "f32", "RELU": "i8 i16 f32", "RELU6": "i8 i16 f32", "ROUND": "f32",
             "RSQRT": "i8 f32", "SIN": "f32", "SQRT": "f32", "SQUARE": "f32", "TANH": "i8 i16 f32",
             "ZEROS_LIKE": "i8 i32 f32"}
    for operator, kinds in unary.items():
        for kind in kinds.split():
            for wide in (False, True):
                shape, scale, zero = c.dims(c.pick(1, 2, 3, 4), 5), 0.05, 0
                shape = c.wide(shape) if wide else shape
                to = 0.04
                if operator == "LOGISTIC":
                    to, zero = (0.00390625, -128) if kind == "i8" else (0.000030517578125, 0)
                elif operator == "TANH":
                    to = 0.0078125 if kind == "i8" else 0.000030517578125
                elif operator == "RSQRT":
                    to = 0.01
                if kind == "i16":
                    scale, to = 0.0005, 0.0004 if operator not in ("LOGISTIC", "TANH") else to
                options = {"alpha": 0.3} if operator == "LEAKY_RELU" else {}
                input_zero = -128 if operator == "RSQRT" else 0
                c.add(operator, [tensor(kind, shape, scale if kind[0] == "i" and kind != "i32" else None, input_zero)],
                      [tensor(kind, shape, to if kind in ("i8", "i16") else None, zero)], **options)
    pairs = {"QUANTIZE": "f32>i8 f32>i16 i8>i8 i8>i16 i8>i32 i16>i8 i16>i16 i16>i32 i32>i8 i32>i16 i8>u8 u8>i8",
             "DEQUANTIZE": "i8>f32 i16>f32 u8>f32",
             "CAST": "i8>f32 i8>i32 i8>i16 i16>i8 i32>i8 i32>f32 f32>i32 f32>i8 bool>i8 bool>f32 i16>i32 u32>i32 f32>f32"}
    for operator, types in pairs.items():
        for both in types.split():
            for wide in (False, True):
                kind, to = both.split(">")
                shape = c.dims(c.pick(1, 2, 3), 6)
                shape = c.wide(shape) if wide else shape
                scaled = operator != "CAST"
                zero = -128 if "u8" == kind else 128 if to == "u8" else 0
                c.add(operator, [tensor(kind, shape, {"i32": 0.0001, "i16": 0.0002}.get(kind, 0.05) if scaled else None,
                                        128 if kind == "u8" else 0)],
                      [tensor(to, shape, {"i16": 0.0002, "i32": 0.0001}.get(to, 0.06) if scaled and to != "f32" else None,
                              zero if to == "u8" else 0)])
    binary = {"ADD": "i8 i16 i32 f32", "SUB": "i8 i16 i32 f32", "MUL": "i8 i16 i32 f32", "DIV": "i8 i32 f32",
              "FLOOR_DIV": "f32", "FLOOR_MOD": "f32", "MAXIMUM": "i8 i16 i32 f32",
              "MINIMUM": "i8 i16 i32 f32", "SQUARED_DIFFERENCE": "i8 i16 i32 f32", "PRELU": "i8 i16 f32", "LOGICAL_AND": "bool",
              "LOGICAL_OR": "bool", "EQUAL": "i8 i32 f32 bool", "NOT_EQUAL": "i8 f32", "GREATER": "i8 i32 f32",
              "GREATER_EQUAL": "i8 f32", "LESS": "i8 f32", "LESS_EQUAL": "i8 f32"}
    compare = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
    for operator, kinds in binary.items():
        for kind in kinds.split():
            for turn in range(6):
                shape = c.dims(c.pick(1, 2, 3, 4), 4)
                shape = c.wide(shape) if turn in (1, 2) else shape
                a, b = list(shape), list(shape)
                if turn > 1:
                    # Broadcasting: some dimensions of one or the other are 1, or missing in front.
                    for side in (b,) if operator == "PRELU" else (a, b):
                        for k in range(len(shape)):
                            if c.pick(True, False):
                                side[k] = 1
                    if c.pick(True, False):
                        del b[0]
                result = [max(x, y) for x, y in zip(a, [1] * (len(a) - len(b)) + b)]
                if operator == "PRELU":
                    result = a
                scale = {"i8": (0.05, 0.07, 0.1), "i16": (0.0005, 0.0007, 0.001)}.get(kind, (None,) * 3)
                if operator in ("MUL", "SQUARED_DIFFERENCE") and kind == "i16":
                    scale = 0.0005, 0.0005, 0.002
                if operator in ("MAXIMUM", "MINIMUM"):
                    scale = (scale[0],) * 3
                # Divisors are no less than one above the zero point.
                zero = -128 if operator == "DIV" and kind == "i8" else 0
                to = "bool" if operator in compare else kind
                options = {"fused_activation_function": 0} if operator in ("ADD", "SUB", "MUL", "DIV") else {}
                second = "i8" if operator == "PRELU" and kind == "i16" else kind
                # A divisor that is overwritten may become 0.
                pairs = [(0, 0)] if operator == "DIV" and kind == "i32" else [(0, 0), (1, 0)]
                c.add(operator, [tensor(kind, a, scale[0], zero), tensor(second, b, scale[1], zero)],
                      [tensor(to, result, scale[2])], pairs=pairs, **options)
    for _ in range(8):
        shape, count, kind = c.dims(c.pick(1, 2, 3), 5), c.pick(2, 3, 4), c.pick("i8", "f32")
        shape = c.pick(shape, c.wide(shape))
        c.add("ADD_N", [tensor(kind, shape)] * count, [tensor(kind, shape, 0.2)], pairs=[(k, 0) for k in range(count)])
    for _ in range(8):
        shape, kind = c.dims(c.pick(1, 2, 3), 5), c.pick("i8", "i16", "f32")
        shape = c.pick(shape, c.wide(shape))
        c.add("SELECT_V2", [tensor("bool", shape), tensor(kind, shape), tensor(kind, shape)], [tensor(kind, shape)],
              pairs=[(0, 0), (1, 0), (2, 0)])


def copies(c):
    for _ in range(10):
        shape, kind = c.dims(c.pick(2, 3, 4), 5), c.pick("i8", "i16", "f32", "i32")
        shape = c.pick(shape, shape, shape, c.wide(shape))
        flat = [elements(shape)]
        c.add("RESHAPE", [tensor(kind, shape), words(*flat)], [tensor(kind, flat)])
        at = c.random.randint(0, len(shape))
        if kind != "i32":
            c.add("EXPAND_DIMS", [tensor(kind, shape), words(at)], [tensor(kind, shape[:at] + [1] + shape[at:])])
        c.add("SQUEEZE", [tensor(kind, [1] + shape)], [tensor(kind, [d for d in shape if d != 1])])
    for _ in range(40):
        shape, kind, count = c.dims(c.pick(1, 2, 3, 4), 4), c.pick("i8", "i16", "f32", "i32", "bool"), c.pick(1, 2, 3)
        shape = c.pick(shape, shape, shape, c.wide(shape))
        at = c.random.randrange(len(shape))
        if c.pick(True, False):
            shape[:at] = [1] * at
        parts = [shape[:at] + [c.random.randint(1, 4)] + shape[at + 1:] for _ in range(count)]
        whole = shape[:at] + [sum(p[at] for p in parts)] + shape[at + 1:]
        all_parts = [tensor(kind, p) for p in parts]
        c.add("CONCATENATION", all_parts, [tensor(kind, whole)], pairs=[(k, 0) for k in range(count)],
              axis=c.pick(at, at - len(shape)))
        if kind != "bool":
            c.add("SPLIT_V", [tensor(kind, whole), words(*(p[at] for p in parts)), tensor("i32", [1], data=[at])],
                  all_parts, pairs=[(0, k) for k in range(count)], num_splits=count)
            c.add("SPLIT", [tensor("i32", [1], data=[at]), tensor(kind, parts[0][:at] + [parts[0][at] * count] + parts[0][at + 1:])],
                  [all_parts[0]] * count, pairs=[(1, k) for k in range(count)], num_splits=count)
            stacked = shape[:at] + [count] + shape[at:]
            c.add("PACK", [tensor(kind, shape)] * count, [tensor(kind, stacked)], pairs=[(k, 0) for k in range(count)],
                  values_count=count, axis=at)
            c.add("UNPACK", [tensor(kind, stacked)], [tensor(kind, shape)] * count, pairs=[(0, k) for k in range(count)],
                  num=count, axis=c.pick(at, at - len(shape) - 1))
    for _ in range(40):
        shape, kind = c.dims(c.pick(1, 2, 3, 4), 6), c.pick("i8", "i16", "f32", "i32")
        shape = c.pick(shape, shape, shape, c.wide(shape))
        whole = c.random.randrange(len(shape) + 1)
        begin = [c.random.randrange(d) if k < whole else 0 for k, d in enumerate(shape)]
        size = [c.random.randint(1, d - b) if k < whole else d for k, (b, d) in enumerate(zip(begin, shape))]
        c.add("SLICE", [tensor(kind, shape), words(*begin), words(*(c.pick(s, s if b + s < d else -1) for b, s, d in zip(begin, size, shape)))],
              [tensor(kind, size)])
    for _ in range(60):
        shape, kind = c.dims(c.pick(1, 2, 3, 4), 6), c.pick("i8", "i16", "f32", "i32")
        shape = c.pick(shape, shape, shape, c.wide(shape))
        begin, end, stride, result, masks = [], [], [], [], [0, 0, 0]
        for k, d in enumerate(shape):
            step = c.pick(1, 1, 1, 2, 3, -1, -2)
            at = c.random.randrange(d)
            if c.random.random() < 0.15:
                masks[2] |= 1 << k
                begin.append(c.pick(at, at - d)), end.append(at + 1), stride.append(1)
                continue
            last = c.random.randint(at, d - 1) if step > 0 else c.random.randint(0, at)
            count = (last - at) // step + 1
            first_whole = step > 0 and at == 0 or step < 0 and at == d - 1
            masks[0] |= (1 << k) if first_whole and c.pick(True, False) else 0
            to_end = last == (d - 1 if step > 0 else 0)
            if to_end and (step < 0 or c.pick(True, False)):
                masks[1] |= 1 << k
            begin.append(at), end.append(last + (1 if step > 0 else -1)), stride.append(step), result.append(count)
        c.add("STRIDED_SLICE", [tensor(kind, shape), words(*begin), words(*end), words(*stride)], [tensor(kind, result)],
              begin_mask=masks[0], end_mask=masks[1], shrink_axis_mask=masks[2])
    for _ in range(36):
        shape, kind = c.dims(c.pick(1, 2, 3, 4), 4), c.pick("i8", "i16", "f32", "i32")
        shape = c.pick(shape, shape, shape, c.wide(shape))
        margins = [[c.pick(0, 0, 1, 2), c.pick(0, 0, 1, 3)] for _ in shape]
        result = [d + a + b for d, (a, b) in zip(shape, margins)]
        text = tensor("i32", [len(shape), 2], data=[m for pair in margins for m in pair])
        if c.pick(True, False):
            c.add("PAD", [tensor(kind, shape), text], [tensor(kind, result)])
        else:
            c.add("PADV2", [tensor(kind, shape), text, tensor(kind, [1], data=[7])], [tensor(kind, result)])
    for _ in range(24):
        shape, kind = c.dims(c.pick(1, 2, 3, 4), 5), c.pick("i8", "f32")
        shape = c.pick(shape, shape, shape, c.wide(shape))
        mode = c.pick(0, 1)
        margins = [[c.random.randint(0, d - (1 - mode)) for _ in "ab"] for d in shape]
        c.add("MIRROR_PAD", [tensor(kind, shape), tensor("i32", [len(shape), 2], data=[m for p in margins for m in p])],
              [tensor(kind, [d + a + b for d, (a, b) in zip(shape, margins)])], mode=mode)
    for _ in range(24):
        shape, kind = c.dims(c.pick(2, 3, 4), 5), c.pick("i8", "i16", "f32")
        shape = c.pick(shape, shape, shape, c.wide(shape))
        order = list(range(len(shape)))
        c.random.shuffle(order)
        c.add("TRANSPOSE", [tensor(kind, shape), words(*order)], [tensor(kind, [shape[k] for k in order])])
    for _ in range(16):
        (n, h, w, d), block, kind = c.dims(4, 4), c.pick(1, 2, 2, 3), c.pick("i8", "f32")
        wide, deep = [n, h * block, w * block, d], [n, h, w, d * block * block]
        c.add("SPACE_TO_DEPTH", [tensor(kind, wide)], [tensor(kind, deep)], block_size=block)
        c.add("DEPTH_TO_SPACE", [tensor(kind, deep)], [tensor(kind, wide)], block_size=block)


def sampling(c):
    for _ in range(24):
        shape, kind = c.dims(c.pick(1, 2, 3), 6), c.pick("i8", "f32")
        at, count = c.random.randrange(len(shape)), c.random.randint(1, 6)
        positions = [c.random.randrange(shape[at]) for _ in range(count)]
        if c.pick(True, False):
            positions.sort()
        c.add("GATHER", [tensor(kind, shape), words(*positions)], [tensor(kind, shape[:at] + [count] + shape[at + 1:])],
              axis=at, batch_dims=0)
    for _ in range(20):
        result, kind = c.dims(c.pick(1, 2, 3, 4), 5), c.pick("i8", "i16", "f32")
        shape = [c.pick(d, 1) for d in result][c.random.randrange(len(result)):]
        c.add("BROADCAST_TO", [tensor(kind, shape), words(*result)], [tensor(kind, result)])
    for _ in range(60):
        n, h, w, d = c.pick(1, 1, 2), *c.dims(2, 6), c.random.randint(1, 3)
        oh, ow = c.random.randint(1, 10), c.random.randint(1, 10)
        if c.pick(True, False):
            oh, ow = h * 2, w * 2
        corners, centers = c.pick((False, False), (False, True), (True, False))
        options = {"align_corners": corners, "half_pixel_centers": centers}
        operator = c.pick("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
        kind = c.pick("i8", "f32", *(["i16"] if operator[7] == "N" else []))
        c.add(operator, [tensor(kind, [n, h, w, d]), words(oh, ow)], [tensor(kind, [n, oh, ow, d])], **options)
    for _ in range(24):
        (n, h, w, d), kind = c.dims(4, 3), c.pick("i8", "f32")
        bh, bw = c.pick(1, 2, 2, 3), c.pick(1, 2, 2, 3)
        space, batch = [n, h * bh, w * bw, d], [n * bh * bw, h, w, d]
        # No padding: the kernel never sets what it pads with.
        none = tensor("i32", [2, 2], data=[0])
        c.add("SPACE_TO_BATCH_ND", [tensor(kind, space), words(bh, bw), none], [tensor(kind, batch)])
        crops = [[c.random.randint(0, (s - 1) // 2) for _ in "ab"] for s in space[1:3]]
        cropped = [n, *(s - a - b for s, (a, b) in zip(space[1:3], crops)), d]
        c.add("BATCH_TO_SPACE_ND", [tensor(kind, batch), words(bh, bw), tensor("i32", [2, 2], data=[x for p in crops for x in p])],
              [tensor(kind, cropped)])
        c.add("SPACE_TO_BATCH_ND", [tensor(kind, [n, h * bh, d]), words(bh), tensor("i32", [1, 2], data=[0])],
              [tensor(kind, [n * bh, h, d])])


def all_lines():
    c = Cases()
    for group in (convolutions, rows, elementwise, copies, sampling):
        group(c)
    return c.lines

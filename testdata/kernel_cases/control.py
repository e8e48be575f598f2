"""Control flow and resources, over several invokes."""
import numpy as np

from .builder import BOOL, F32, I8, I16, I32, I64, LEFT_OUT, RESOURCE, case, each

Q = {F32: (None, 0), I8: (0.1, -5), I16: (0.001, 0)}


def handle(g, name, container=b""):
    """A handle of a resource, made in the current subgraph."""
    t = g.tensor([], RESOURCE)
    g.op("VAR_HANDLE", [], [t], shared_name=name, container=container)
    return t


def read(g, to, name, container=b""):
    g.op("READ_VARIABLE", [handle(g, name, container)], [to], "ReadVariable")


def assign(g, value, name, container=b""):
    g.op("ASSIGN_VARIABLE", [handle(g, name, container), value], [], "AssignVariable")


@each((F32, I8, I16, I32, I64, BOOL), "ASSIGN_VARIABLE_{}", invokes=4)
def _(g, t):
    """Delays by one invoke, and by two."""
    quantized = Q.get(t, (None, 0))
    for name, container, shape in ((b"a", b"", [3]), (b"ab", b"c", [2, 2])):
        x, y = g.input(shape, t, *quantized), g.output(shape, t, *quantized)
        read(g, y, name, container)
        assign(g, x, name, container)
    first, second = g.input([4], t, *quantized), g.output([4], t, *quantized)
    between = g.tensor([4], t, *quantized)
    one, two = handle(g, b"one"), handle(g, b"two")
    g.op("READ_VARIABLE", [two], [second], "ReadVariable")
    g.op("READ_VARIABLE", [one], [between], "ReadVariable")
    g.op("ASSIGN_VARIABLE", [two, between], [], "AssignVariable")
    g.op("ASSIGN_VARIABLE", [one, first], [], "AssignVariable")


@case(invokes=3)
def READ_VARIABLE_int8_zeros(g):
    """What is read first stands for zero by the quantization of what is assigned first, whatever is assigned later."""
    x, other = g.input([3], I8, 0.1, -3), g.input([3], I8, 0.1, -7)
    read(g, g.output([3], I8, 0.1, -3), b"a")
    assign(g, x, b"a")
    assign(g, other, b"a")


@each((F32, I8), "READ_VARIABLE_{}_sums", invokes=5)
def _(g, t):
    """A sum that grows, read before and after it is set, and set twice."""
    quantized = Q[t]
    x, before, after = g.input([3], t, *quantized), g.output([3], t, *quantized), g.output([3], t, *quantized)
    v = handle(g, b"sum")
    g.op("READ_VARIABLE", [v], [before], "ReadVariable")
    sum_, more = g.tensor([3], t, *quantized), g.tensor([3], t, *quantized)
    g.op("ADD", [before, x], [sum_])
    g.op("ASSIGN_VARIABLE", [v, sum_], [], "AssignVariable")
    g.op("ADD", [sum_, x], [more])
    assign(g, more, b"sum")
    g.op("READ_VARIABLE", [v], [after], "ReadVariable")


@each((F32, I8), "CALL_ONCE_{}", invokes=4)
def _(g, t):
    """A resource that starts with a constant; one that starts with a sum; a start that comes again later in the graph."""
    quantized = Q[t]
    start = g.subgraph("start")
    assign(g, g.constant(g.noise([3], t), t, *quantized), b"a")
    begin = g.subgraph("begin")
    left, right = (g.constant(g.noise([2], t), t, *quantized) for _ in range(2))
    sum_ = g.tensor([2], t, *quantized)
    g.op("ADD", [left, right], [sum_])
    assign(g, sum_, b"b")
    g.select(0)
    g.op("CALL_ONCE", [], [], init_subgraph_index=start)
    g.op("CALL_ONCE", [], [], init_subgraph_index=begin)
    for name, shape in ((b"a", [3]), (b"b", [2])):
        x, y, next_ = g.input(shape, t, *quantized), g.output(shape, t, *quantized), g.tensor(shape, t, *quantized)
        read(g, y, name)
        g.op("ADD", [x, y], [next_])
        assign(g, next_, name)
    g.op("CALL_ONCE", [], [], init_subgraph_index=start)
    read(g, g.output([3], t, *quantized), b"a")


def branch(g, name, make, shapes, t, quantized):
    """A subgraph with an input for each shape."""
    index = g.subgraph(name)
    make([g.input(shape, t, *quantized) for shape in shapes])
    g.select(0)
    return index


def flags(*pattern):
    """A condition that changes from invoke to invoke."""
    return [np.array(flag) for flag in pattern]


@each((F32, I8, I16), "IF_{}", invokes=4)
def _(g, t):
    q = Q[t]

    def two(name):
        def make(inputs):
            g.op(name, inputs, [g.output([2, 2], t, *q)])
            if name == "MAXIMUM":
                g.op("MINIMUM", inputs, [g.output([2, 2], t, *q)])
            else:
                g.op(name, inputs[::-1], [g.output([2, 2], t, *q)])
        return make

    def same(inputs):
        for x in inputs:
            g.give(x)

    def crossed(inputs):
        for x in inputs[::-1]:
            g.give(x)

    def fixed(_):
        g.give(g.constant(g.noise([2], t), t, *q))
    bodies = [branch(g, "b", make, [[2, 2], [2, 2]], t, q) for make in (two("MAXIMUM"), two("SUB"), same, crossed)]
    bodies += [branch(g, "c", fixed, [], t, q) for _ in range(2)]

    condition = g.input([], BOOL, data=flags(True, False, False, True))
    other = g.input([1], BOOL, data=flags([False], [False], [True], [True]))
    x, y = (g.input([2, 2], t, *q) for _ in range(2))
    for flag, (then, else_) in ((condition, bodies[:2]), (other, bodies[2:4]), (condition, bodies[1:3]), (other, bodies[0:4:3])):
        g.op("IF", [flag, x, y], [g.output([2, 2], t, *q) for _ in range(2)], then_subgraph_index=then,
             else_subgraph_index=else_)
    g.op("IF", [other], [g.output([2], t, *q)], then_subgraph_index=bodies[4], else_subgraph_index=bodies[5])


@case(invokes=6)
def IF_float32_nested(g):
    """A branch within a branch, and tensors that live across both."""
    inner = []
    for name in ("ADD", "MUL"):
        k = g.subgraph(name)
        x, y = g.input([3], F32), g.input([3], F32)
        g.op(name, [x, y], [g.output([3], F32)])
        inner.append(k)
    outer = g.subgraph("outer")
    flag, x, y = g.input([], BOOL), g.input([3], F32), g.input([3], F32)
    kept, got = g.tensor([3], F32), g.tensor([3], F32)
    g.op("SUB", [x, y], [kept])
    g.op("IF", [flag, kept, y], [got], then_subgraph_index=inner[0], else_subgraph_index=inner[1])
    g.op("MUL", [kept, got], [g.output([3], F32)])
    straight = g.subgraph("straight")
    flag, x, y = g.input([], BOOL), g.input([3], F32), g.input([3], F32)
    g.op("MAXIMUM", [x, y], [g.output([3], F32)])
    g.select(0)
    first = g.input([], BOOL, data=flags(True, True, False, True, False, True))
    second = g.input([], BOOL, data=flags(True, False, True, False, False, True))
    x, y = g.input([3], F32), g.input([3], F32)
    kept, got, again = g.tensor([3], F32), g.tensor([3], F32), g.tensor([3], F32)
    g.op("MUL", [x, y], [kept])
    g.op("IF", [first, second, x, y], [got], then_subgraph_index=outer, else_subgraph_index=straight)
    g.op("IF", [second, first, got, kept], [again], then_subgraph_index=outer, else_subgraph_index=straight)
    g.op("ADD", [kept, got], [g.output([3], F32)])
    g.op("ADD", [kept, again], [g.output([3], F32)])


@case(invokes=6)
def IF_float32_state(g):
    """State in branches: a variable tensor in one, a resource in the other and outside."""
    with_variable = g.subgraph("with a variable")
    x = g.input([1, 3], F32)
    state = g.tensor([1, 8], F32, variable=True)
    weights = [g.constant(g.noise(shape, F32, -1, 1)) for shape in ([4, 3], [4, 2], [4])]
    g.op("SVDF", [x, *weights, state], [g.output([1, 4], F32)], rank=1)
    with_resource = g.subgraph("with a resource")
    x = g.input([1, 3], F32)
    old, new = g.tensor([1, 4], F32), g.output([1, 4], F32)
    read(g, old, b"r")
    g.op("ADD", [old, g.constant(g.noise([4], F32))], [new])
    assign(g, new, b"r")
    g.select(0)
    flag = g.input([], BOOL, data=flags(True, False, True, False, False, True))
    x = g.input([1, 3], F32)
    g.op("IF", [flag, x], [g.output([1, 4], F32)], then_subgraph_index=with_variable, else_subgraph_index=with_resource)
    read(g, g.output([1, 4], F32), b"r")


def loop(g, t, shape, make, quantized):
    """Subgraphs of a WHILE that counts up to its second value and changes the third one: (condition, body)."""
    condition = g.subgraph("condition")
    count, limit, _ = g.input([1], I32), g.input([1], I32), g.input(shape, t, *quantized)
    g.op("LESS", [count, limit], [g.output([1], BOOL)], "Less")
    body = g.subgraph("body")
    count, limit, x = g.input([1], I32), g.input([1], I32), g.input(shape, t, *quantized)
    g.op("ADD", [count, g.words(1)], [g.output([1], I32)])
    g.give(limit)
    make(x)
    g.select(0)
    return condition, body


def counts(*pattern):
    return [np.array([n]) for n in pattern]


@each((F32, I8), "WHILE_{}", invokes=5)
def _(g, t):
    """Loops that run from no times to five times; the result, and all values at the end."""
    q = Q[t]
    shape = [2, 3]
    addend = None

    def add(x):
        nonlocal addend
        addend = g.constant(g.noise([3], t, *((-1, 1) if t == F32 else (-12, 9))), t, *q)
        g.op("ADD", [x, addend], [g.output(shape, t, *q)])

    def twice(x):
        middle = g.tensor(shape, t, *q)
        g.op("ADD", [x, x], [middle])
        g.op("SUB", [middle, g.constant(g.noise(shape, t), t, *q)], [g.output(shape, t, *q)])
    for make in (add, twice):
        condition, body = loop(g, t, shape, make, q)
        count, limit = g.input([1], I32, data=counts(0, 1, 3, 0, 7)), g.input([1], I32, data=counts(3, 6, 2, 0, 8))
        x = g.input(shape, t, *q, data=(-2, 2) if t == F32 else (-20, 20))
        outputs = [g.output([1], I32), g.output([1], I32), g.output(shape, t, *q)]
        g.op("WHILE", [count, limit, x], outputs, cond_subgraph_index=condition, body_subgraph_index=body)


@case(invokes=4)
def WHILE_float32_swap(g):
    """A body that gives its inputs back in another order."""
    condition = g.subgraph("condition")
    count, *_ = g.input([1], I32), g.input([2], F32), g.input([2], F32), g.input([2], F32)
    g.op("GREATER", [count, g.words(0)], [g.output([1], BOOL)], "Greater")
    body = g.subgraph("body")
    count, a, b, c = g.input([1], I32), g.input([2], F32), g.input([2], F32), g.input([2], F32)
    g.op("SUB", [count, g.words(1)], [g.output([1], I32)])
    for t in (b, c, a):
        g.give(t)
    g.select(0)
    inputs = [g.input([1], I32, data=counts(1, 2, 0, 3))] + [g.input([2], F32) for _ in range(3)]
    outputs = [g.output([1], I32, varies=False)] + [g.output([2], F32) for _ in range(3)]
    g.op("WHILE", inputs, outputs, cond_subgraph_index=condition, body_subgraph_index=body)


@case(invokes=5)
def WHILE_float32_nested(g):
    """A loop in a loop, with a branch and a resource in its body, and tensors that live across all of it."""
    branches = []
    for name in ("ADD", "SUB"):
        branches.append(g.subgraph(name))
        x = g.input([2], F32)
        g.op(name, [x, g.constant(g.noise([2], F32))], [g.output([2], F32)])

    def inner_body(x):
        kept = g.tensor([2], F32)
        g.op("MUL", [x, g.constant(np.array([0.5, -0.75], np.float32))], [kept])
        flag = g.tensor([], BOOL)
        first = g.tensor([], F32)
        g.op("RESHAPE", [g.constant(np.array([1.5], np.float32))], [first], new_shape=[])
        g.op("GREATER", [first, g.constant(np.float32(1))], [flag], "Greater")
        got = g.tensor([2], F32)
        g.op("IF", [flag, kept], [got], then_subgraph_index=branches[0], else_subgraph_index=branches[1])
        g.op("ADD", [got, kept], [g.output([2], F32)])
    inner = loop(g, F32, [2], inner_body, (None, 0))

    def outer_body(x):
        sum_, kept, next_ = g.tensor([2], F32), g.tensor([2], F32), g.tensor([2], F32)
        read(g, sum_, b"sum")
        g.op("ADD", [sum_, x], [next_])
        assign(g, next_, b"sum")
        g.op("ADD", [x, x], [kept])
        outputs = [g.tensor([1], I32), g.tensor([1], I32), g.tensor([2], F32)]
        g.op("WHILE", [g.words(0), g.words(2), x], outputs, cond_subgraph_index=inner[0], body_subgraph_index=inner[1])
        g.op("SUB", [kept, outputs[2]], [g.output([2], F32)])
    outer = loop(g, F32, [2], outer_body, (None, 0))
    x = g.input([2], F32)
    kept, end = g.tensor([2], F32), g.tensor([2], F32)
    g.op("MUL", [x, x], [kept])
    limit = g.input([1], I32, data=counts(2, 0, 1, 3, 2))
    outputs = [g.output([1], I32), g.output([1], I32), end]
    g.op("WHILE", [g.words(0), limit, x], outputs, cond_subgraph_index=outer[0], body_subgraph_index=outer[1])
    g.op("ADD", [kept, end], [g.output([2], F32)])
    read(g, g.output([2], F32), b"sum")


LEFT_OUT["VAR_HANDLE of one name in two containers"] = "the wheel has room for as many resources as there are names"

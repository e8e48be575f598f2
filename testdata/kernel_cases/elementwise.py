"""Operators that go element by element."""
from .builder import F32, I8, case


@case
def ADD_int8(g):
    x, y = g.input([2, 3], I8, 0.1, 5), g.input([3], I8, 0.05, -7)
    g.op("ADD", [x, y], [g.output([2, 3], I8, 0.2, 1)], fused_activation_function="RELU")


@case
def ADD_float32(g):
    x, y = g.input([2, 3], F32), g.input([], F32)
    g.op("ADD", [x, y], [g.output([2, 3], F32)], fused_activation_function="RELU6")

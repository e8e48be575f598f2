#!/usr/bin/env python3
"""usage: prefixes.py MODEL [--seed N] [--most N]

Compares what each operator of a planned model computes with what it computes without the plan, in the TFLM wheel: for
each operator of subgraph 0, both files are cut off behind it and its outputs made the outputs of the graph. A difference
is seen where it arises, also in models whose last layers give the same result for every input.

Prints one JSON object: `operators` that were looked at, those of them whose results `vary` over the inputs, and
`different`: [operator, output] of each result that is not the same. --most looks at so many operators, spread evenly.
"""
import argparse
import json

import numpy as np

from probe import PLENTY, Model, noise, quietly, schema, signal_of
from wheel import without_plan

ROUNDS = 3          # invokes, each with other inputs
CALLS = (schema.BuiltinOperator.IF, schema.BuiltinOperator.WHILE, schema.BuiltinOperator.CALL_ONCE)



class Cutter:
    """A file of which subgraph 0 can be cut off behind an operator."""

    def __init__(self, data):
        self.data = bytes(data)
        graph = schema.Model.GetRootAs(self.data, 0).Subgraphs(0)
        table = graph._tab
        # Fields `outputs` and `operators` of a SubGraph; a vector's length is in the 4 bytes before its elements.
        self.outputs, self.operators = (table.Vector(table.Offset(field)) for field in (8, 10))
        self.room = graph.OutputsLength()
        codes = [schema.Model.GetRootAs(self.data, 0).OperatorCodes(graph.Operators(k).OpcodeIndex()).BuiltinCode()
                 for k in range(graph.OperatorsLength())]
        # TFLM crashes where a subgraph has variables and is called by nobody, so that nothing is cut off that calls one.
        self.first = max((k for k, code in enumerate(codes) if code in CALLS), default=0)
        self.results = [[int(t) for t in graph.Operators(k).OutputsAsNumpy()] if graph.Operators(k).OutputsLength() else []
                        for k in range(graph.OperatorsLength())]

    def cut(self, count, outputs):
        """The file with its first `count` operators, whose graph outputs are `outputs`."""
        data = bytearray(self.data)

        def put(at, value):
            data[at:at + 4] = value.to_bytes(4, "little")
        put(self.operators - 4, count)
        put(self.outputs - 4, len(outputs))
        for k, tensor in enumerate(outputs):
            put(self.outputs + 4 * k, tensor)
        return bytes(data)


def invoked(it, model, count, seed, inputs="fresh"):
    """Bytes of the first `count` graph outputs at each invoke. Inputs are fresh each time, the `same`, or set `once`."""
    found = [[] for _ in range(count)]
    for number in range(ROUNDS):
        rng = np.random.default_rng([seed, 0 if inputs == "same" else number])
        make = signal_of if number and inputs == "fresh" else noise
        for k in range(0 if inputs == "once" and number else model.inputs):
            it.set_input(make(it.get_input_details(k), rng), k)
        quietly(it.invoke)
        for k in range(count):
            found[k].append(np.ascontiguousarray(it.get_output(k)).tobytes())
    return found


def results(data, count, seed):
    """The same of a file."""
    model = Model.of(data)
    it, _ = quietly(model.interpreter, PLENTY)
    return invoked(it, model, count, seed)


def compare(data, seed=1, most=None):
    """The object that is printed."""
    planned, plain = Cutter(data), Cutter(without_plan(data))
    wanted = range(planned.first, len(planned.results))
    if most is not None and most < len(wanted):
        wanted = [wanted[k * len(wanted) // most] for k in range(most)]
    looked, vary, different = 0, 0, []
    for k in wanted:
        outputs = planned.results[k]
        groups = [outputs[i:i + planned.room] for i in range(0, len(outputs), planned.room)] if planned.room else []
        varies = False
        for group in groups:
            try:
                want = results(plain.cut(k + 1, group), len(group), seed)
            except (RuntimeError, ValueError):
                continue  # a resource handle, say, is nothing that can be read
            got = results(planned.cut(k + 1, group), len(group), seed)
            different += [[k, t] for t, a, b in zip(group, want, got) if a != b]
            varies |= any(len(set(a)) > 1 for a in want)
            looked += group is groups[0]
        vary += varies
    return {"operators": looked, "vary": vary, "different": different}


def answer(words=None):
    """What is printed, for the words of a command line."""
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("model")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--most", type=int)
    a = p.parse_args(words)
    with open(a.model, "rb") as f:
        return compare(f.read(), a.seed, a.most)


if __name__ == "__main__":
    print(json.dumps(answer()))

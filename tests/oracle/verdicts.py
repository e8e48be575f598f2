#!/usr/bin/env python3
"""usage: verdicts.py [--check]  -- writes testdata/verdicts.txt: plans, right and wrong, and what TFLM makes of them.

`cargo test` asks the checker about each of them: it must find a fault wherever the wheel's outputs were wrong. Models are
those with control flow, state or scratch, and some without. Lines of the file:

    model NAME
    plan BASE SEEN OFFSETS...     one offset per tensor of all subgraphs
    move BASE SEEN TENSOR=OFFSET...     the base with some tensors elsewhere

`SEEN`: `same` when the outputs of all invokes are those of the model without a plan, `wrong` when not, or how TFLM ended.
Bases: `apart` gives each tensor memory of its own, `packed` is first fit over TFLM's lifetimes; both are right. `state` is
`apart` with the variables at the bottom of the arena, where scratch and online tensors may come to lie over them.
With --check compares with the committed file instead. The same wheel gives the same file.
"""
import argparse
import os
import random
import signal
import sys
from concurrent.futures import ProcessPoolExecutor
from math import prod
from pathlib import Path

from wheel import PLAN, check_installed

check_installed()

import flatbuffers
import numpy as np
import probe
from probe import schema

TESTDATA = Path(__file__).resolve().parents[2] / "testdata"
MODELS = """add_n_mirror_pad_float32 base_float32 call_once_float32 counter_float32 detection_float32
    idle_subgraph_float32 if_float32 if_in_while_float32 if_old_code_float32 int4_weights_int8 lstm_float32 lstm_int8
    output_reused_int8 passthrough_float32 reductions_float32 reductions_int8 reshape_open_float32 softmax_int8
    split_pack_float32 state_in_branch_float32 streaming_float32 streaming_int8 subgraph_called_twice_float32
    svdf_float32 svdf_int8 three_levels_float32 transpose_conv_int16x8 transpose_conv_int8 two_inputs_int8
    two_signatures_float32 unread_output_float32 while_condition_float32
    while_float32""".split()
INVOKES = 6
TRIES = 140          # plans tried per model
KEEP = {True: 10, False: 24}  # most that are written: with the same outputs, with others
HANG = 5             # seconds: a loop whose counter is overwritten may not end
ONLINE = -1


def align(n):
    """Rounded up to the arena's granule."""
    return (n + 15) // 16 * 16


class Subject:
    """A model, its tensors numbered through all subgraphs, and a file of it whose plan can be exchanged."""

    def __init__(self, name):
        S = schema
        self.name, path = name, TESTDATA / f"models/{name}.tflite"
        self.model, self.plain = probe.Model(path), path.read_bytes()
        self.m = m = S.ModelT.InitFromPackedBuf(self.plain, 0)
        self.first = [sum(len(g.tensors) for g in m.subgraphs[:k]) for k in range(len(m.subgraphs))]
        self.tensors = [t for g in m.subgraphs for t in g.tensors]
        self.subgraph = [k for k, g in enumerate(m.subgraphs) for _ in g.tensors]
        code = [max(c.builtinCode, c.deprecatedBuiltinCode) for c in m.operatorCodes]
        self.code = lambda o: code[o.opcodeIndex]
        self.ops = S.BuiltinOperator
        width = {S.TensorType.FLOAT32: 4, S.TensorType.INT32: 4, S.TensorType.INT16: 2, S.TensorType.INT8: 1,
                 S.TensorType.UINT8: 1, S.TensorType.BOOL: 1}
        handles = {self.first[k] + t for k, g in enumerate(m.subgraphs) for o in g.operators
                   if self.code(o) == self.ops.VAR_HANDLE for t in o.outputs}
        # TFLM looks the i-th variable of a later subgraph up in entry i of the whole list.
        self.reserved = {i for g in m.subgraphs[1:] for i, t in enumerate(g.tensors) if t.isVariable}
        self.bytes, self.variables = {}, {}
        for i, t in enumerate(self.tensors):
            shape = [int(d) for d in t.shape] if t.shape is not None else []
            size = align(prod(shape) * width.get(t.type, 0))
            if m.buffers[t.buffer].data is None and i not in handles and size > 0:
                (self.variables if t.isVariable else self.bytes)[i] = size
        self.planned, self.at = self.with_room()

    def with_room(self):
        """A file with a plan for all tensors, and where in it the first offset is."""
        m, n = self.m, len(self.tensors)
        words = np.arange(0x51A50000, 0x51A50000 + n, dtype="<i4").tobytes()
        buffer, entry = schema.BufferT(), schema.MetadataT()
        buffer.data = np.frombuffer(np.array([1, len(m.subgraphs), n], "<i4").tobytes() + words, np.uint8)
        entry.name, entry.buffer = PLAN.decode(), len(m.buffers)
        m.buffers.append(buffer)
        m.metadata = list(m.metadata or []) + [entry]
        builder = flatbuffers.Builder(1 << 16)
        builder.Finish(m.Pack(builder), b"TFL3")
        data = bytes(builder.Output())
        assert data.count(words) == 1
        return data, data.index(words)

    def spans(self):
        """First and last clock of each tensor, as TFLM counts."""
        first, last, clock = {}, {}, 0

        def touch(t):
            first.setdefault(t, clock)
            last[t] = clock

        def run(k):
            nonlocal clock
            g, base = self.m.subgraphs[k], self.first[k]
            here = lambda ts: [base + int(t) for t in (ts if ts is not None else []) if t >= 0]
            for t in here(g.inputs):
                touch(t)
            for o in g.operators:
                clock += 1
                for t in here(o.outputs):
                    touch(t)
                for called in self.calls(o):
                    clock += 1
                    run(called)
                for t in here(o.inputs) + here(o.outputs):
                    touch(t)
            for t in here(g.outputs):
                touch(t)
        run(0)
        return {t: (first[t], last[t]) for t in first}

    def calls(self, o):
        """Subgraphs that an operator runs."""
        x = o.builtinOptions
        return {self.ops.IF: lambda: [x.thenSubgraphIndex, x.elseSubgraphIndex],
                self.ops.WHILE: lambda: [x.condSubgraphIndex, x.bodySubgraphIndex],
                self.ops.CALL_ONCE: lambda: [x.initSubgraphIndex]}.get(self.code(o), list)()

    def bases(self):
        """The plans to start from, by name."""
        mine = {t: size for t, size in self.bytes.items() if t not in self.reserved}
        apart = self.stack(mine, 0)
        out = {"apart": apart, "packed": self.packed(mine)}
        if self.variables:
            state = self.stack(self.variables, 0)
            out["state"] = state | self.stack(mine, sum(self.variables.values()))
        return {k: [v.get(i, ONLINE) for i in range(len(self.tensors))] for k, v in out.items()}

    def stack(self, sizes, at):
        """One after the other."""
        offsets = {}
        for t, size in sizes.items():
            offsets[t], at = at, at + size
        return offsets

    def packed(self, sizes):
        """First fit, largest first. Tensors that nothing touches live when no other does."""
        spans, placed, offsets = self.spans(), [], {}
        for t, size in sorted(sizes.items(), key=lambda x: (-x[1], x[0])):
            first, last = spans.get(t, (-1, -1))
            offset = 0
            for start, end, f, l in sorted(placed):
                if f <= last and first <= l:
                    if offset + size <= start:
                        break
                    offset = max(offset, end)
            placed.append((offset, offset + size, first, last))
            offsets[t] = offset
        return offsets

    def moves(self, base, rng):
        """One or two tensors elsewhere: onto another one, often of another subgraph; anywhere; or left to the device."""
        size = self.bytes | self.variables
        places = {t: o for t, o in enumerate(base) if o != ONLINE}
        head = max(o + size[t] for t, o in places.items())
        moves = {}
        for _ in range(rng.choice((1, 1, 2))):
            rare = sorted(set(self.variables) | self.reserved & set(size))
            t = rng.choice(rare) if rare and rng.random() < 0.2 else rng.choice(sorted(places))
            others = [o for o in sorted(places) if o != t]
            foreign = [o for o in others if self.subgraph[o] != self.subgraph[t]]
            if foreign and rng.random() < 0.5:
                others = foreign
            kind = rng.random()
            if kind < 0.1 or not others:
                moves[t] = ONLINE
            elif kind < 0.25:
                moves[t] = 16 * rng.randrange(head // 16)
            else:
                on = rng.choice(others)
                inside = 16 * rng.randrange(size[on] // 16) if kind < 0.45 else 0
                moves[t] = places[on] + inside
        return {t: o for t, o in sorted(moves.items()) if o != base[t]}

    def seen(self, offsets, expected):
        """What TFLM does with a plan."""
        words = np.array(offsets, "<i4").tobytes()
        data = self.planned[:self.at] + words + self.planned[self.at + len(words):]
        outputs = self.outputs(data)
        return outputs if isinstance(outputs, str) else "same" if outputs == expected else "wrong"

    def outputs(self, data):
        """Digests of the outputs of all invokes, from a child that may crash; else a word for how it ended."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                signal.alarm(HANG)
                self.model.data = data
                it, _ = probe.quietly(self.model.interpreter, probe.PLENTY)
                rng = np.random.default_rng(1)
                said = " ".join(probe.invoke(it, self.model, rng) for _ in range(INVOKES))
            except BaseException:
                said = "fails"
            os.write(write, said.encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            said = pipe.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status:
            return "hangs" if status == -signal.SIGALRM else "crashes"
        return said if said == "fails" else said.split()


def lines(name):
    """The lines about one model."""
    subject = Subject(name)
    expected = subject.outputs(subject.plain)
    if isinstance(expected, str) or len(set(expected)) == 1:
        sys.exit(f"{name}: no use without a plan: {expected}")
    rng, bases, out = random.Random(name), subject.bases(), [f"model {name}"]
    for base, offsets in bases.items():
        seen = subject.seen(offsets, expected)
        if base != "state" and seen != "same":
            sys.exit(f"{name}: the plan {base} must be right, but is {seen}")
        out.append(f"plan {base} {seen} {' '.join(map(str, offsets))}")
    tried, kept, found = set(), {True: 0, False: 0}, []
    for _ in range(TRIES):
        if kept == KEEP:
            break
        base = rng.choice(sorted(bases))
        moves = subject.moves(bases[base], rng)
        text = " ".join(f"{t}={o}" for t, o in moves.items())
        if not moves or (base, text) in tried:
            continue
        tried.add((base, text))
        seen = subject.seen([moves.get(t, o) for t, o in enumerate(bases[base])], expected)
        if kept[seen == "same"] < KEEP[seen == "same"]:
            kept[seen == "same"] += 1
            found.append(f"move {base} {seen} {text}")
    return out + sorted(found)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--check", action="store_true", help="compare with the committed file")
    a = p.parse_args()
    with ProcessPoolExecutor(2) as pool:
        text = "\n".join(line for part in pool.map(lines, MODELS) for line in part) + "\n"
    header = "# Plans and what TFLM makes of them: written by tests/oracle/verdicts.py, where the lines are explained.\n"
    path = TESTDATA / "verdicts.txt"
    words = [line.split()[2] for line in text.splitlines() if not line.startswith("model")]
    print({w: words.count(w) for w in sorted(set(words))}, file=sys.stderr)
    if a.check:
        sys.exit(0 if path.read_text() == header + text else f"{path.name} is not what the wheel says")
    path.write_text(header + text)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Runs one model in the TFLM wheel and prints what it saw as one JSON object.

A model can crash the interpreter, so each run of this script looks at one file, and what may crash is tried in a child
of its own. Keys: `error` (why it does not run) or

- `head`, `tail`: bytes, by TFLM's recording allocator; `sections`: its breakdown of the tail, name -> [bytes used,
  bytes requested, count]
- `outputs`: a digest per invoke, all on one interpreter, so that state is seen; `vary`: whether they differ
- `invokes`: how many were done (few for slow models), `seconds`: of one
- `min_arena` (with --smallest): the smallest arena_size, a multiple of 16, in which the model still runs
- `fits` (with --arena N): whether the model runs, with the same outputs, in N bytes
"""
import argparse
import hashlib
import json
import os
import re
import signal
import sys
import tempfile
import time

import numpy as np
from tflite_micro import runtime
from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as schema

PLENTY = 16 << 20   # bytes: more than any model here needs
STEP = 16           # bytes: TFLM aligns both ends of the arena to 16
INVOKES = 7         # of a fast model
BUDGET = 1.5        # seconds for the invokes of a slow one
HANG = 40           # seconds: no invoke of a model here takes that long


def quietly(f, *args):
    """f's result and what the C side printed to file descriptor 2. Exceptions carry that text as `log`."""
    sys.stderr.flush()
    keep, text = os.dup(2), tempfile.TemporaryFile()
    os.dup2(text.fileno(), 2)

    def log():
        text.seek(0)
        return text.read().decode(errors="replace").strip()
    try:
        result = f(*args)
        return result, log()
    except Exception as e:
        e.log = log()
        raise
    finally:
        os.dup2(keep, 2)
        os.close(keep)


class Model:
    """A file and the number of its inputs and outputs."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.read(f.read())

    @classmethod
    def of(cls, data):
        """The model of a file's bytes."""
        model = cls.__new__(cls)
        model.read(data)
        return model

    def read(self, data):
        """Takes a file's bytes."""
        self.data = data
        model = schema.Model.GetRootAs(self.data, 0)
        if model.SubgraphsLength() == 0:
            raise ValueError("no subgraph")
        main = model.Subgraphs(0)
        self.inputs, self.outputs = main.InputsLength(), main.OutputsLength()
        for i in range(model.BuffersLength()):
            b = model.Buffers(i)
            if b is not None and b.Offset() > 1:
                raise ValueError("constants behind the flatbuffer (Buffer.offset), which TFLM does not read")

    def interpreter(self, arena):
        return runtime.Interpreter.from_bytes(self.data, arena_size=arena)


def noise(details, rng):
    """A random tensor for an input."""
    kind, shape = np.dtype(details["dtype"]), tuple(int(d) for d in details["shape"])
    if kind.kind == "f":
        return rng.uniform(-1, 1, shape).astype(kind)
    if kind == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    limits = np.iinfo(kind)
    low, high = max(limits.min, -2**15), min(limits.max, 2**15 - 1)
    return rng.integers(low, high + 1, shape).astype(kind)


def signal_of(details, rng):
    """A tensor of another kind each time: noise over a wide or a narrow range, or a slow ramp with a little noise."""
    kind, shape = np.dtype(details["dtype"]), tuple(int(d) for d in details["shape"])
    form = rng.integers(3)
    if kind == np.bool_ or form == 0:
        return noise(details, rng)
    # Floats go beyond the -1 to 1 of most inputs now and then, so that activations are cut off.
    limits = (-4.0, 4.0) if kind.kind == "f" else (np.iinfo(kind).min, np.iinfo(kind).max)
    limits = max(limits[0], -2**15), min(limits[1], 2**15 - 1)
    reach, ends = (limits[1] - limits[0]) / 16, rng.uniform(*limits, 2)
    size = int(np.prod(shape, dtype=np.int64))
    base = np.linspace(*ends, size).reshape(shape) if form == 1 else ends[0]
    values = rng.uniform(-reach, reach, shape) + base
    return np.clip(values, *limits).astype(kind)


def invoke(it, model, rng, make=noise):
    """Sets all inputs (without rng: leaves them as they are), invokes, and returns a digest of all outputs."""
    for k in range(model.inputs if rng else 0):
        it.set_input(make(it.get_input_details(k), rng), k)
    quietly(it.invoke)
    digest = hashlib.sha256()
    for k in range(model.outputs):
        digest.update(np.ascontiguousarray(it.get_output(k)).tobytes())
    return digest.hexdigest()[:16]


def report(it):
    """Head, tail and the sections of the tail."""
    _, log = quietly(it.print_allocations)
    out = {k: int(re.search(rf"Arena allocation {k} (\d+) bytes", log).group(1)) for k in ("head", "tail")}
    line = r"'(.+)' used (\d+) bytes with alignment overhead \(requested (\d+) bytes for (\d+) "
    out["sections"] = {name: [int(n) for n in numbers] for name, *numbers in re.findall(line, log)}
    return out


def in_child(f):
    """Whether f() returns true, tried in a fork: a crash is a no."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if f() else 1)
        except BaseException:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def allocates(model, arena):
    """Whether the interpreter can be made: all memory is allocated then."""
    def attempt():
        quietly(model.interpreter, arena)
        return True
    return in_child(attempt)


def feeder(a):
    """How the invoke of a number is done: with a seed of its own where inputs are to vary, else from one stream."""
    stream = np.random.default_rng(a.seed)

    def feed(it, model, number):
        if a.inputs == "varied":
            return invoke(it, model, np.random.default_rng([a.seed, number]), signal_of if number else noise)
        if a.inputs == "once":
            return invoke(it, model, None if number else stream)
        return invoke(it, model, np.random.default_rng(a.seed) if a.inputs == "same" else stream)
    return feed


def runs_in(model, arena, a, outputs):
    """Whether the model also runs in `arena` bytes, with the outputs it has in a large arena."""
    def attempt():
        it, _ = quietly(model.interpreter, arena)
        feed = feeder(a)
        return all(feed(it, model, k) == o for k, o in enumerate(outputs))
    return in_child(attempt)


def smallest(model, total, a, outputs):
    """The smallest arena, by bisection. `total` is head + tail, a first guess."""
    low, high = 0, (total + STEP - 1) // STEP
    while not allocates(model, high * STEP):
        low, high = high, high + high // 2 + 8
        if high * STEP > 2 * PLENTY:
            raise ValueError("no arena is large enough")
    while high - low > 1:
        middle = (low + high) // 2
        if allocates(model, middle * STEP):
            high = middle
        else:
            low = middle
    if not runs_in(model, high * STEP, a, outputs[:2]):
        raise ValueError(f"allocates, but does not run, in {high * STEP} bytes")
    return high * STEP


def look(a):
    """The whole of it."""
    model = Model(a.model)
    it, _ = quietly(model.interpreter, PLENTY)
    feed, outputs, count = feeder(a), [], a.invokes or 1
    out = {}
    while len(outputs) < count:
        start = time.monotonic()
        signal.alarm(HANG)  # ends the process when TFLM loops for ever
        outputs.append(feed(it, model, len(outputs)))
        signal.alarm(0)
        if len(outputs) == 1:
            out["seconds"] = round(time.monotonic() - start, 3)
            count = a.invokes or max(2, min(INVOKES, int(BUDGET / max(out["seconds"], 1e-6))))
    out.update(report(it))
    del it
    out.update(outputs=outputs, vary=len(set(outputs)) > 1, invokes=count)
    if a.smallest:
        out["min_arena"] = smallest(model, out["head"] + out["tail"], a, outputs)
    if a.arena:
        out["fits"] = runs_in(model, a.arena, a, outputs[:2])
    return out


def answer(words=None):
    """What is printed, for the words of a command line."""
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("model")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--inputs", choices=["fresh", "varied", "same", "once"], default="fresh",
                   help="set before each invoke: new noise, or noise and other signals with a seed for each, or the same "
                        "noise; or only before the first one")
    p.add_argument("--invokes", type=int, help="exactly so many")
    p.add_argument("--smallest", action="store_true", help="search for the smallest arena")
    p.add_argument("--arena", type=int, help="also try an arena of this size")
    a = p.parse_args(words)
    try:
        return look(a)
    except Exception as e:
        # TFLM's own last words say more than the exception.
        log = getattr(e, "log", "").splitlines()
        said = log[0] if log else str(e) or repr(e)
        if not log and not isinstance(e, (RuntimeError, ValueError)):
            said = "Python: " + said
        return {"error": said[:200]}


if __name__ == "__main__":
    print(json.dumps(answer()))

#!/usr/bin/env python3
"""usage: runs.py [--check]  -- writes testdata/runs.bin: inputs and outputs of the models of testdata/models in the TFLM wheel.

The runtime's tests run the same models on these inputs. For each model that runs, sorted by name, the file has (numbers of
4 bytes, little-endian) the length of the name and the name, the length of the rest, the number of invokes, and for each
invoke the elements of all inputs and of all outputs. The invokes follow each other on one interpreter, so state is seen.
With --check compares integers with the committed file to the bit, floats to 1e-6.
"""
import argparse
import json
import struct
import sys
import zlib
from pathlib import Path

import numpy as np

from probe import PLENTY, Model, noise, quietly, signal_of
from wheel import check_installed

TESTDATA = Path(__file__).resolve().parents[2] / "testdata"
FILE = TESTDATA / "runs.bin"
MANY, FEW, SMALL = 6, 3, 256  # invokes of a model with at most SMALL bytes of inputs and outputs, and of others


def run(path):
    """Arrays of one model's invokes: [(inputs, outputs)]."""
    model, rng = Model(path), np.random.default_rng(zlib.crc32(path.stem.encode()))
    it, _ = quietly(model.interpreter, PLENTY)
    runs = []
    while len(runs) < FEW or (len(runs) < MANY and size(runs) <= SMALL * len(runs)):
        make = (noise, signal_of)[len(runs) % 2]
        inputs = [np.asarray(make(it.get_input_details(k), rng)) for k in range(model.inputs)]
        for k, values in enumerate(inputs):
            it.set_input(values, k)
        quietly(it.invoke)
        runs.append((inputs, [np.array(it.get_output(k)) for k in range(model.outputs)]))
    return runs


def size(runs):
    """Bytes of all arrays."""
    return sum(a.nbytes for inputs, outputs in runs for a in inputs + outputs)


def entry(name, runs):
    """One model's part of the file."""
    content = struct.pack("<I", len(runs)) + b"".join(a.tobytes() for inputs, outputs in runs for a in inputs + outputs)
    return struct.pack("<I", len(name)) + name.encode() + struct.pack("<I", len(content)) + content


def same(old, name, runs):
    """The bytes of `old` behind an entry that is this one up to the last bits of computed floats, or None."""
    new = entry(name, runs)
    part, at = old[:len(new)], len(new) - size(runs)
    if part[:at] != new[:at]:
        return None
    for inputs, outputs in runs:
        for k, a in enumerate(inputs + outputs):
            b = np.frombuffer(part, a.dtype, a.size, at).reshape(a.shape)
            at += a.nbytes
            exact = a.dtype.kind != "f" or k < len(inputs)
            if not (a.tobytes() == b.tobytes() if exact else np.allclose(a, b, 1e-6, 1e-7, equal_nan=True)):
                return None
    return old[len(new):]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--check", action="store_true")
    a = p.parse_args()
    check_installed()
    wheel = json.loads((TESTDATA / "wheel.json").read_text())["models"]
    names = sorted(name for name, record in wheel.items() if record["runs"])
    parts, left = [], FILE.read_bytes() if a.check else b""
    for name in names:
        runs = run(TESTDATA / f"models/{name}.tflite")
        parts.append(entry(name, runs))
        if a.check:
            left = same(left, name, runs)
            if left is None:
                sys.exit(f"{FILE.name} differs at {name}; make it anew with {sys.argv[0]}")
    if left:
        sys.exit(f"{FILE.name} has more than {len(names)} models")
    if not a.check:
        FILE.write_bytes(b"".join(parts))
    print(f"{len(names)} models, {sum(map(len, parts))} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()

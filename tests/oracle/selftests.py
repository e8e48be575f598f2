#!/usr/bin/env python3
"""usage: selftests.py --arenaplan PROGRAM [--models DIR]... [--only TEXT]

Self-tests (`arenaplan export --as c-selftest`) in TensorFlow Lite Micro (the tflite-micro wheel, reference kernels). For each
model and each of TARGETS, the planned file must pass its own self-test: inputs are made here from the seeds in the header,
and the outputs must be those that it has.

Then the plan is damaged: one tensor after the other is put where another one lies, at most DAMAGES of a model. The wheel
computes something else with many of these files, and its outputs over other noise tell which; a self-test must fail with at least
CAUGHT of those.

Skipped, and said so: models that the wheel does not run, those for which arenaplan has no self-test because its own runtime
does not run them, and those of which it says that a self-test would prove nothing. Ends with one summary line; exit status 1 if
anything fails.
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from probe import PLENTY, quietly, schema
from tflite_micro import runtime
from wheel import PLAN

ROOT = Path(__file__).resolve().parents[2]
TARGETS = "tflm-reference", "tflm"
# TFLM computes with whatever lies where it expects their constants, which are outside of the FlatBuffer.
LEFT_OUT = "absolute_buffers_float32",
DAMAGES = 6
CAUGHT = 0.95
NOISE = 4           # runs with other noise that tell whether a damaged plan computes something else
TIMEOUT = 120       # seconds for a model
HANG = 3            # seconds for one with a damaged plan: loops may not end
WORDS = {"kTfLiteFloat32": "<f4", "kTfLiteInt8": "i1", "kTfLiteUInt8": "u1", "kTfLiteInt16": "<i2", "kTfLiteUInt16": "<u2",
         "kTfLiteInt32": "<i4", "kTfLiteUInt32": "<u4", "kTfLiteInt64": "<i8", "kTfLiteUInt64": "<u8", "kTfLiteBool": "?"}


class Header:
    """What a generated header says."""

    def __init__(self, text):
        self.text = text
        self.signals = [tuple(int(n, 0) for n in s) for s in
                        re.findall(r"\{(0x[0-9a-f]+)u, (\d+), (\d+)\},", self.table("kSignals"))]
        self.invokes = int(re.search(r"kInvokes = (\d+);", text)[1])
        assert len(self.signals) == self.invokes > 1
        ports = [re.findall(r"\{(\w+), (\d+)\}", self.table(name)) for name in ("kInputs", "kOutputs")]
        self.inputs, self.outputs = ([(np.dtype(WORDS[kind]), int(size)) for kind, size in p] for p in ports)

    def table(self, name):
        """The braces of a table; nothing if it is not there."""
        found = re.search(rf"\b{name}(?:\[[^\]]*\])* = \{{(.*?)\}};", self.text, re.S)
        return found[1] if found else ""

    def numbers(self, name):
        return [float(n.rstrip("fu")) if "x" not in n else int(n.rstrip("u"), 16)
                for n in re.findall(r"-?[0-9][0-9a-fA-Fx.+-]*[fu]?", self.table(name))]

    def failure(self, invoke, found):
        """What is wrong with the outputs of an invoke, or nothing."""
        for k, output in enumerate(found):
            kind, size = self.outputs[k]
            raw = output.tobytes()
            assert output.dtype == kind and len(raw) == size, (output.dtype, kind, len(raw), size)
            if table := self.numbers(f"kBytes{k}"):
                if list(raw) != table[invoke * size:][:size]:
                    return f"invoke {invoke}: bytes of output {k}"
            elif table := self.numbers(f"kDigests{k}"):
                digest = 0x811C9DC5
                for byte in raw:
                    digest = (digest ^ byte) * 0x01000193 & 0xFFFFFFFF
                if digest != table[invoke]:
                    return f"invoke {invoke}: digest of output {k}"
            elif table := self.numbers(f"kNumbers{k}"):
                step = int(re.search(rf"kStep{k} = (\d+);", self.text)[1])
                values = output.reshape(-1)[::step].astype(np.float64)
                expected = np.array(table[invoke * len(values):][:len(values)])
                off = np.abs(values - expected)
                if not (off <= self.numbers(f"kWithin{k}")[invoke] * 1.0000001).all():
                    return f"invoke {invoke}: numbers of output {k}, off by up to {off.max():.2e}"
            elif size:
                raise AssertionError(f"the header has nothing of output {k}")
        return None


def noise(signal_, ports):
    """The inputs of an invoke."""
    word, narrow, hold = signal_
    for kind, size in ports:
        count = size // kind.itemsize
        words = np.empty(-(-count // hold), np.uint32)
        for k in range(len(words)):
            word ^= word << 13 & 0xFFFFFFFF
            word ^= word >> 17
            word ^= word << 5 & 0xFFFFFFFF
            words[k] = word
        words = np.repeat(words, hold)[:count]
        signed = words.view(np.int32).astype(np.int64)
        if kind.kind == "f":
            yield ((signed >> 8) * 2.0 ** (-20 - narrow)).astype(kind)
        elif kind.kind == "b":
            yield words >> 31 == 1
        elif kind.itemsize > 2:
            yield (words >> 16 >> narrow).astype(kind)
        else:
            middle = 0 if kind.kind == "i" else 1 << 8 * kind.itemsize - 1
            yield ((signed >> 32 - 8 * kind.itemsize >> narrow) + middle).astype(kind)


def interpreter(data):
    return quietly(lambda: runtime.Interpreter.from_bytes(bytes(data), arena_size=PLENTY))[0]


def outputs(it, header, signal_):
    for k, values in enumerate(noise(signal_, header.inputs)):
        it.set_input(values.reshape(it.get_input_details(k)["shape"]), k)
    quietly(it.invoke)
    return [it.get_output(k) for k in range(len(header.outputs))]


def failure(data, header):
    """Why a file fails its self-test; nothing if it passes."""
    it = interpreter(data)
    for invoke, signal_ in enumerate(header.signals):
        if wrong := header.failure(invoke, outputs(it, header, signal_)):
            return wrong
    return None


def prints(data, header):
    """Digests of outputs over other noise."""
    it, rng = interpreter(data), np.random.default_rng(1)
    signals = [(int(rng.integers(1, 1 << 32)), narrow, hold) for narrow, hold in [(0, 1), (1, 3), (3, 1), (0, 40)] * NOISE]
    return [[o.tobytes() for o in outputs(it, header, s)] for s in signals]


def damaged(data):
    """Copies of a planned file in each of which one tensor lies where another one does."""
    model = schema.Model.GetRootAs(data, 0)
    entries = [m for m in map(model.Metadata, range(model.MetadataLength())) if m.Name() == PLAN]
    if not entries:
        return
    words = model.Buffers(entries[-1].Buffer()).DataAsNumpy()
    start = bytes(data).rindex(words.tobytes())
    offsets = np.frombuffer(words.tobytes(), "<i4")[3:]
    planned = np.flatnonzero(offsets >= 0)
    rng = np.random.default_rng(len(data))
    pairs = [(a, b) for a in planned for b in planned if offsets[a] != offsets[b]]
    for k in rng.permutation(len(pairs))[:DAMAGES]:
        tensor, other = pairs[k]
        at = start + 12 + 4 * int(tensor)
        yield bytes(data[:at]) + int(offsets[other]).to_bytes(4, "little") + bytes(data[at + 4:])


def check(program, path, target, folder):
    """(verdict, words, damages that matter, damages that are caught) of a model."""
    if path.stem in LEFT_OUT:
        return "skip", "not run by TFLM", 0, 0
    planned = folder / "planned.tflite"
    planned.unlink(missing_ok=True)
    p = subprocess.run([program, "plan", path, "-o", planned, "--target", target], capture_output=True, text=True)
    if not planned.exists():
        planned = path
    data = planned.read_bytes()
    p = subprocess.run([program, "export", planned, "--as", "c-selftest"], capture_output=True, text=True)
    if p.returncode != 0:
        said = p.stderr.strip().splitlines()[-1]
        known = "computed on this machine" in said or "would prove nothing" in said
        return "skip" if known else "FAIL", said[:160], 0, 0
    header = Header(p.stdout)
    try:
        interpreter(data)
    except RuntimeError as e:
        return "skip", "not run by TFLM: " + (getattr(e, "log", "") or repr(e)).splitlines()[0][:120], 0, 0
    if wrong := failure(data, header):
        return "FAIL", wrong, 0, 0
    matter = caught = 0
    if planned != path:
        right = prints(data, header)
        for file in damaged(data):
            if isolated(lambda: prints(file, header) == right, HANG) is not True:
                matter += 1
                caught += isolated(lambda: failure(file, header) is None, HANG) is not True
    return "ok", "passes" + (f", {caught} of {matter} damaged plans fail" if matter else ""), matter, caught


def isolated(f, seconds=TIMEOUT):
    """f's JSON result, from a process of its own; None if that crashes or hangs."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(seconds)
            os.write(write, json.dumps(f()).encode())
            status = 0
        except Exception as e:
            os.write(write, json.dumps(["FAIL", f"the check itself failed: {e!r}"[:300], 0, 0]).encode())
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if text else None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--arenaplan", required=True, help="the program")
    p.add_argument("--models", action="append", type=Path, help="a folder [testdata/models]")
    p.add_argument("--only", default="", help="only files whose name contains this")
    a = p.parse_args()
    paths = [f for d in a.models or [ROOT / "testdata/models"] for f in sorted(d.glob("*.tflite")) if a.only in f.stem]
    width = max((len(f.stem) for f in paths), default=0)
    verdicts, matter, caught = [], 0, 0
    with tempfile.TemporaryDirectory() as temporary:
        for path in paths:
            for target in TARGETS:
                found = isolated(lambda: check(a.arenaplan, path, target, Path(temporary)))
                verdict, said, m, c = found or ("FAIL", "the wheel crashes, or takes too long", 0, 0)
                verdicts.append(verdict)
                matter, caught = matter + m, caught + c
                print(f"{verdict:4} {path.stem:{width}} {target:14} {said}", flush=True)
    passed, failed = verdicts.count("ok"), verdicts.count("FAIL")
    print(f"damaged plans that compute something else: {matter}, of which self-tests see {caught}")
    print(f"{passed} passed, {failed} failed, {verdicts.count('skip')} skipped")
    return 1 if failed or not passed or caught < CAUGHT * matter else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""usage: make_kernels.py [--check] [--only TEXT]

Writes kernels/*.tflite anew, in the oracle's environment (tests/oracle/requirements.txt); with --check compares with the
committed files instead. Each file holds several operators of one kind and, in its metadata entry `golden`, the inputs and
outputs of some invokes of TensorFlow Lite Micro (the tflite-micro wheel), each invoke after the other on one interpreter.
Operators that the wheel lacks are run by LiteRT with its reference kernels. Prints what the wheel refuses, and ends with a
summary line; exit status 1 on a difference, a result that proves nothing, or a refusal that was not expected.

With --check integers must be the same to the bit, floats to 1e-6: a C library's exp() may differ in the last bit.
"""
import argparse
import os
import pickle
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from kernel_cases import all_cases
from kernel_cases.builder import GOLDEN, LEFT_OUT, NUMPY, S
from tflite_micro import runtime

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "kernels"
ARENA = 1 << 20
LARGEST, TOTAL = 24 << 10, 1_200_000  # bytes of a file and of all


class Refused(Exception):
    """The interpreter does not take the model; says why."""


class Wheel:
    """A model in TFLM."""

    def __init__(self, data):
        self.it = runtime.Interpreter.from_bytes(data, arena_size=ARENA)

    def run(self, inputs, outputs):
        for i, x in enumerate(inputs):
            self.it.set_input(x, i)
        self.it.invoke()
        return [np.array(self.it.get_output(i)) for i in range(outputs)]


class LiteRT:
    """A model in LiteRT with its reference kernels."""

    def __init__(self, data):
        from ai_edge_litert import interpreter as litert
        self.it = litert.Interpreter(model_content=data,
                                     experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF)
        self.it.allocate_tensors()

    def run(self, inputs, outputs):
        for x, details in zip(inputs, self.it.get_input_details()):
            self.it.set_tensor(details["index"], x)
        self.it.invoke()
        return [np.array(self.it.get_tensor(d["index"])) for d in self.it.get_output_details()]


def in_child(f):
    """f's result, or Refused with what was printed to file descriptor 2, from a child: an interpreter can crash."""
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as log:
        pid = os.fork()
        if pid == 0:
            os.dup2(log.fileno(), 2)
            try:
                answer.write(pickle.dumps(f()))
                answer.flush()
                os._exit(0)
            except BaseException as e:
                os.write(2, f"\n{e!r}\n".encode())
                os._exit(1)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        answer.seek(0)
        log.seek(0)
        if code != 0:
            lines = [line.strip() for line in log.read().decode(errors="replace").splitlines() if line.strip()]
            raise Refused(lines[0] if lines and code > 0 else f"crashes ({code})")
        return pickle.loads(answer.read())


def weak(graph, runs):
    """Why outputs prove nothing, or None."""
    for i, (shape, dtype, varies) in enumerate(graph.results):
        arrays = [outputs[i] for _, outputs in runs]
        for a in arrays:
            if a.shape != shape or a.dtype != NUMPY[dtype]:
                return f"output {i} is {a.dtype}{list(a.shape)}, not {np.dtype(NUMPY[dtype])}{list(shape)}"
            if dtype == 0 and np.isnan(a).any():
                return f"output {i} is not a number"
        if varies and np.unique(np.concatenate([a.ravel() for a in arrays])).size < 2:
            return f"output {i} is constant"
    return None


def make(case):
    """The bytes of a case's file. Fails with Refused, or ValueError."""
    graph = case.graph()
    feeds = [graph.inputs_of(k) for k in range(case.invokes)]
    data = graph.write()
    outputs = len(graph.results)

    def invoke():
        model = (LiteRT if case.reference == "litert" else Wheel)(data)
        return [(inputs, model.run(inputs, outputs)) for inputs in feeds]
    runs = in_child(invoke)
    if reason := weak(graph, runs):
        raise ValueError(reason)
    parts = [np.uint32(case.invokes).tobytes()]
    for inputs, results in runs:
        parts += [a.tobytes() for a in inputs + results]
    return graph.write(b"".join(parts))


def golden_of(data):
    """(model, the golden entry's start and length in the file)."""
    m = S.Model.GetRootAs(data, 0)
    entry = next(m.Metadata(i) for i in range(m.MetadataLength()) if m.Metadata(i).Name() == GOLDEN.encode())
    array = m.Buffers(entry.Buffer()).DataAsNumpy()
    return m, array.ctypes.data - np.frombuffer(data, np.uint8).ctypes.data, array.size


def same(a, b):
    """Whether two files are the same, but for the last bits of floats that an interpreter made."""
    if a == b:
        return True
    if len(a) != len(b):
        return False
    m, start, size = golden_of(b)
    if golden_of(a)[1:] != (start, size) or a[:start + 4] != b[:start + 4] or a[start + size:] != b[start + size:]:
        return False
    g = m.Subgraphs(0)
    at = start + 4
    while at < start + size:
        for given, tensors in ((True, g.InputsAsNumpy()), (False, g.OutputsAsNumpy())):
            for t in map(g.Tensors, tensors if g.InputsLength() or not given else ()):
                kind = np.dtype(NUMPY[t.Type()])
                count = int(np.prod(t.ShapeAsNumpy())) if t.ShapeLength() else 1
                x, y = (np.frombuffer(d, kind, count, at) for d in (a, b))
                at += count * kind.itemsize
                close = np.allclose(x, y, 1e-6, 1e-7) if kind.kind == "f" and not given else x.tobytes() == y.tobytes()
                if not close:
                    return False
    return True


@cache
def cases():
    """All cases by name."""
    return all_cases()


def attempt(name):
    """make()'s bytes, or why there are none."""
    try:
        return make(cases()[name])
    except (Refused, ValueError) as e:
        return e


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--check", action="store_true", help="compare, write nothing")
    p.add_argument("--only", default="", help="only files whose names begin so")
    a = p.parse_args()
    made, changed, failed, refusals, total = set(), [], [], [], 0
    names = [name for name in cases() if name.startswith(a.only)]
    with ProcessPoolExecutor() as pool:
        results = list(pool.map(attempt, names))
    for name, data in zip(names, results):
        case, path = cases()[name], FOLDER / f"{name}.tflite"
        if isinstance(data, Refused):
            refusals.append(f"{name}: {data}")
            if case.refused is None or case.refused not in str(data):
                failed.append(f"{name} is refused: {data}")
            continue
        if isinstance(data, ValueError):
            failed.append(f"{name}: {data}")
            continue
        if case.refused is not None:
            failed.append(f"{name} is not refused")
            continue
        made.add(path)
        total += len(data)
        if len(data) > LARGEST:
            failed.append(f"{name} has {len(data)} bytes")
        if not path.exists() or not same(path.read_bytes(), data):
            changed.append(name)
            if not a.check:
                FOLDER.mkdir(exist_ok=True)
                path.write_bytes(data)
    for path in sorted(FOLDER.glob(f"{a.only}*.tflite")):
        if path not in made:
            changed.append(f"{path.stem} (not made by this script)")
            if not a.check:
                path.unlink()
    if total > TOTAL:
        failed.append(f"all files together have {total} bytes")
    for reason in refusals:
        print(f"refused by the wheel: {reason}")
    for name, reason in LEFT_OUT.items():
        print(f"left out: {name}: {reason}")
    for name in changed:
        print(("differs: " if a.check else "written: ") + name)
    for reason in failed:
        print(f"FAILED: {reason}")
    print(f"{len(made)} files, {total} bytes, {len(refusals)} refused, {len(changed)} changed, {len(failed)} failed")
    return 1 if failed or a.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())

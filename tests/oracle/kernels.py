#!/usr/bin/env python3
"""usage: kernels.py [--check] [--models DIR]

Measures the models of one operator that `tests/kernels.txt` describes, in TensorFlow Lite Micro itself (the
tflite-micro wheel, 64 bits, reference kernels): head, tail, and the smallest arena, a multiple of 16, in which the
model can be allocated and invoked. Writes these three columns of the table; with --check it compares them. The columns
for 32 bits are kept as they are: the wheel cannot make them.

`tests/kernels.rs` builds the models, so that what is run here is what is predicted there, to the byte. They are written
to a temporary folder by cargo, unless --models names one with `NNN_OPERATOR.tflite` for each line of the table.
Ends with one summary line; exit status 1 on any failure.
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from probe import HANG, PLENTY, STEP, Model, in_child, quietly, report

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests" / "kernels.txt"
# A line of the table: head, tail and arena on 64 bits, and the rest.
ROW = re.compile(r"\s*(\d+)\s+(\d+)\s+(\d+)( .*)")


def write_models(folder):
    """Has tests/kernels.rs write its models to a folder."""
    # With --workspace, so that what `cargo test --workspace` has built serves here.
    command = ["cargo", "test", "--quiet", "--workspace", "--test", "kernels", "--", "--exact", "models_are_whole"]
    environment = os.environ | {"KERNEL_MODELS": str(folder)}
    p = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if p.returncode != 0:
        sys.exit(f"the models were not built:\n{p.stdout}{p.stderr}")


def run(model, arena):
    """An interpreter in `arena` bytes that was invoked once.

    On ones, not noise: some operators read indices, shapes and divisors from their inputs. Outputs are not compared:
    some operators of TFLM's signal library leave a part of theirs as it was."""
    signal.alarm(HANG)  # ends the process when TFLM loops for ever
    it, _ = quietly(model.interpreter, arena)
    for k in range(model.inputs):
        details = it.get_input_details(k)
        it.set_input(np.ones(tuple(int(d) for d in details["shape"]), np.dtype(details["dtype"])), k)
    quietly(it.invoke)
    signal.alarm(0)
    return it


def smallest(model):
    """The smallest arena in which the model runs, by bisection."""
    low, high = 0, PLENTY // STEP
    while high - low > 1:
        middle = (low + high) // 2
        if in_child(lambda: run(model, middle * STEP) is not None):
            high = middle
        else:
            low = middle
    return high * STEP


def measure(path, answer):
    """Writes head, tail and smallest arena of a model to a file, or why it does not run."""
    try:
        model = Model(path)
        seen = report(run(model, PLENTY))
        found = [seen["head"], seen["tail"], smallest(model)]
    except Exception as e:
        found = {"error": (getattr(e, "log", "") or repr(e)).splitlines()[0]}
    answer.write_text(json.dumps(found))
    return True


def measured(path):
    """measure() in a process of its own, since a model can crash the interpreter. Three numbers, or a text."""
    answer = path.with_suffix(".json")
    if not in_child(lambda: measure(path, answer)):
        return "the interpreter crashed, or did not end"
    found = json.loads(answer.read_text())
    return found if isinstance(found, list) else found["error"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--check", action="store_true", help="compare, write nothing")
    p.add_argument("--models", type=Path, help="a folder with the models")
    a = p.parse_args()
    lines = TABLE.read_text().splitlines()
    rows = [i for i, line in enumerate(lines) if not line.startswith("#")]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = a.models or Path(temporary)
        if not a.models:
            write_models(folder)
        paths = sorted(folder.glob("*.tflite"))
        if len(paths) != len(rows):
            sys.exit(f"{len(paths)} models for {len(rows)} lines of {TABLE.name}")
        # The work is done by children; a thread waits for each.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            all_found = list(pool.map(measured, paths))
        for i, found in zip(rows, all_found):
            *written, rest = ROW.fullmatch(lines[i]).groups()
            if isinstance(found, str):
                problem = found
            elif a.check and found != [int(n) for n in written]:
                problem = f"head, tail, arena: {' '.join(map(str, found))} measured, {' '.join(written)} written"
            else:
                problem = None
                head, tail, arena = found
                lines[i] = f"{head:5} {tail:5} {arena:6}{rest}"
            passed += problem is None
            failed += problem is not None
            if problem:
                print(f"FAIL {rest.split(maxsplit=2)[2]}: {problem}")
    if not a.check:
        TABLE.write_text("\n".join(lines) + "\n")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""usage: runtime.py --arenaplan PROGRAM [--models DIR]... [--target TARGET] [--only TEXT]

Compares arenaplan's own runtime with TensorFlow Lite Micro (the tflite-micro wheel, reference kernels) on whole models.
Each model that the wheel runs is run by `arenaplan run` as it is, and with a plan of `arenaplan plan --target arenaplan`:

- for several sets of inputs (noise over the whole range, then over a narrow range, or a ramp; then a square wave from one end
  of the range to the other, where floats go beyond what most models expect), each on a new interpreter;
- over INVOKES invokes with the same inputs, all of which are compared, so that state is seen.

Outputs must have the wheel's shapes and types. Integers must be equal, and floats within 1e-5 of the larger of the value
and the largest value of its output: a sum whose terms cancel out keeps the error of its terms. The table shows the largest
error in those terms, the head in bytes without and with the plan, and whether outputs depend on the inputs at all: where
they do not, equality proves little.

With the target `arenaplan`, heads must also be at most those of OWN in bars.py, be the models compared or skipped.

Skipped, and said so: models that the wheel does not run, those of LEFT_OUT, and those with operators that are no builtin ones (TFLM's Signal
library and others), which the runtime leaves to applications. Ends with one summary line; exit status 1 on any difference.
"""
import argparse
import json
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

import numpy as np

import bars
from probe import HANG, PLENTY, Model, noise, quietly, schema, signal_of
from wheel import check_installed, in_fork, without_plan

ROOT = Path(__file__).resolve().parents[2]
INVOKES = 3
CLOSE = 1e-5
TIMEOUT = 300       # seconds for a run of a program
# Models that TFLM runs and the runtime refuses -> a part of what it says. The reasons are in runtime/tests/models.rs.
LEFT_OUT = {
    "idle_open_shape_float32": "the size of tensor 1",
    "legacy_scalar_float32": "the shape of output 0 does not fit",
    "plan_odd_header_int8": "unknown version 7",
    "reshape_open_float32": "the size of tensor 2",
    "stored_shape_float32": "the shape of input 0 does not fit",
    "three_levels_float32": "REDUCE_ALL",
}


def square(details, rng):
    """A square wave for an input, from one end of its range to the other."""
    kind, shape = np.dtype(details["dtype"]), tuple(int(d) for d in details["shape"])
    size = int(np.prod(shape, dtype=np.int64))
    if kind == np.bool_:
        low, high = False, True
    elif kind.kind == "f":
        low, high = -10.0, 10.0
    else:
        low, high = max(np.iinfo(kind).min, -2**15), min(np.iinfo(kind).max, 2**15 - 1)
    period = max(2, int(size * rng.uniform(0.02, 0.6)))
    up = (np.arange(size) + rng.integers(period)) % period < period // 2
    return np.where(up, high, low).reshape(shape).astype(kind)


# What makes the inputs of each set.
SETS = noise, signal_of, signal_of, square


class Difference(Exception):
    """What is wrong with a model, in words."""


def custom_operators(data):
    """Names of the operators that are no builtin ones, sorted."""
    model = schema.Model.GetRootAs(data, 0)
    codes = [model.OperatorCodes(k) for k in range(model.OperatorCodesLength())]
    return sorted({(c.CustomCode() or b"CUSTOM").decode(errors="replace") for c in codes
                   if max(c.BuiltinCode(), c.DeprecatedBuiltinCode()) == schema.BuiltinOperator.CUSTOM})


def record(path, folder):
    """Runs a model in the wheel. Writes SET/input_K.npy and SET/INVOKE/output_K.npy below a folder."""
    model = Model.of(without_plan(path.read_bytes()))
    for k, make in enumerate(SETS):
        it, _ = quietly(model.interpreter, PLENTY)
        rng = np.random.default_rng([k, len(model.data)])
        place = folder / str(k)
        inputs = [make(it.get_input_details(i), rng) for i in range(model.inputs)]
        for n in range(1, INVOKES + 1):
            (place / str(n)).mkdir(parents=True)
            for i, values in enumerate(inputs):
                it.set_input(values, i)
                np.save(place / f"input_{i}.npy", values)
            signal.alarm(HANG)
            quietly(it.invoke)
            signal.alarm(0)
            for i in range(model.outputs):
                np.save(place / str(n) / f"output_{i}.npy", it.get_output(i))


def tried(words):
    """record(), of a path and a folder; an object that has an `error` if the model does not run."""
    try:
        record(*map(Path, words))
    except Exception as e:
        # TFLM's own first words say more than the exception.
        return {"error": (getattr(e, "log", "") or repr(e)).splitlines()[0]}
    return {}


def call(program, *arguments):
    """The JSON object that a subcommand prints about one model."""
    command = [str(c) for c in (program, *arguments, "--format", "json")]
    try:
        p = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        raise Difference(f"{arguments[0]}: no end after {TIMEOUT} s") from None
    if p.returncode != 0:
        raise Difference(f"{arguments[0]} ends with {p.returncode}: {(p.stderr.strip().splitlines() or ['nothing said'])[-1][:200]}")
    return json.loads(p.stdout)[0]


def error(ours, theirs):
    """The largest error of an output, or Difference."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        raise Difference(f"{ours.dtype}{list(ours.shape)} instead of {theirs.dtype}{list(theirs.shape)}")
    if ours.dtype.kind != "f":
        wrong = np.flatnonzero(ours.ravel() != theirs.ravel())
        if wrong.size:
            at = wrong[0]
            raise Difference(f"{wrong.size} of {ours.size} numbers differ, first number {at}: {ours.ravel()[at]} instead of "
                             f"{theirs.ravel()[at]}")
        return 0.0
    x, y = ours.ravel().astype(np.float64), theirs.ravel().astype(np.float64)
    finite = np.isfinite(y)
    if not np.array_equal(x[~finite], y[~finite], equal_nan=True) or not np.isfinite(x[finite]).all():
        raise Difference("other numbers are infinite, or none")
    if not finite.any():
        return 0.0
    x, y = x[finite], y[finite]
    found = float(np.abs(x - y).max() / max(np.abs(y).max(), 1e-30))
    if found > CLOSE:
        raise Difference(f"an error of {found:.1e}")
    return found


def compare(program, path, recording, folder):
    """(head, largest error, whether outputs vary) of a file in arenaplan's runtime against the recording."""
    head, worst, seen = 0, 0.0, set()
    for place in sorted(recording.iterdir()):
        inputs = sorted(place.glob("input_*.npy"), key=number)
        for n in range(1, INVOKES + 1):
            outputs = folder / place.name / str(n)
            outputs.mkdir(parents=True)
            given = ("--input", *inputs) if inputs else ()
            said = call(program, "run", path, "--invokes", n, "--output", outputs, *given)
            head = said["head_bytes"]
            expected = sorted((place / str(n)).glob("output_*.npy"), key=number)
            if len(list(outputs.iterdir())) != len(expected):
                raise Difference(f"{len(list(outputs.iterdir()))} outputs instead of {len(expected)}")
            for k, file in enumerate(expected):
                try:
                    worst = max(worst, error(np.load(outputs / f"output_{k}.npy"), np.load(file)))
                except Difference as e:
                    raise Difference(f"inputs {place.name}, invoke {n}, output {k}: {e}") from None
            seen.add(tuple(file.read_bytes() for file in expected))
    return head, worst, len(seen) > 1


def number(path):
    """The K of input_K.npy."""
    return int(path.stem.rsplit("_", 1)[1])


def check(program, path, target):
    """(verdict, what the table says) of a model; the verdict is `ok`, `FAIL` or `skip`."""
    verdict, said = comparison(program, path, target)
    if target == "arenaplan" and path.stem in bars.OWN and verdict != "FAIL":
        plan = call(program, "plan", path, "--dry-run", "--target", target)
        if missed := bars.missed_own(path.stem, plan["head_bytes"]):
            return "FAIL", f"{missed} ({said})"
        said += f", bar {bars.OWN[path.stem]:,}"
    return verdict, said


def comparison(program, path, target):
    """What check() gives, without the bars."""
    custom = custom_operators(path.read_bytes())
    if any(name.startswith("Signal") for name in custom):
        return "skip", f"TFLM's Signal operators: {', '.join(custom)}"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        recording = folder / "wheel"
        recording.mkdir()
        if reason := in_fork(tried, path, recording).get("error"):
            return "skip", f"not run by TFLM: {reason[:120]}"
        if custom:
            return "skip", f"operators that an application must bring: {', '.join(custom)}"
        said = []
        try:
            what = "as it is"
            head, worst, vary = compare(program, path, recording, folder / "plain")
            what, file = "planned", folder / "planned.tflite"
            plan = call(program, "plan", path, "-o", file, "--target", target)
            if file.exists():
                head_planned, worst_planned, _ = compare(program, file, recording, folder / "planned")
                if head_planned != plan["head_bytes"]:
                    raise Difference(f"the head is {head_planned:,} instead of {plan['head_bytes']:,}")
                said.append(f"head {head:,} -> {head_planned:,}")
                worst = max(worst, worst_planned)
            else:
                said.append(f"head {head:,}, {plan['outcome']}")
        except Difference as e:
            if path.stem in LEFT_OUT and what == "as it is" and LEFT_OUT[path.stem] in str(e):
                return "skip", f"refused by the runtime: {e}"
            return "FAIL", f"{what}: {e}"
        if path.stem in LEFT_OUT:
            return "FAIL", "runs, though it is written that the runtime refuses it"
        said += [f"error {worst:.0e}"] if worst else ["equal"]
        said += [] if vary else ["OUTPUTS DO NOT VARY"]
        return "ok", ", ".join(said)


def guarded(*arguments):
    """check(); an exception (a key that is missing from the JSON, say) is a failure of this file only."""
    try:
        return check(*arguments)
    except Exception as e:
        return "FAIL", f"the check itself failed: {e!r}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--arenaplan", help="the program")
    p.add_argument("--models", action="append", type=Path, help="a folder [testdata/models, ../shared/models]")
    p.add_argument("--target", default="arenaplan", help="of the plans")
    p.add_argument("--only", default="", help="only files whose name contains this")
    p.add_argument("--jobs", type=int, default=2)
    a = p.parse_args()
    check_installed()
    if not a.arenaplan or not Path(a.arenaplan).is_file():
        sys.exit(f"no program {a.arenaplan}")
    folders = a.models or [d for d in (ROOT / "testdata/models", ROOT.parent / "shared/models") if d.is_dir()]
    paths = [f for d in folders for f in sorted(d.glob("*.tflite")) if a.only in f.stem]
    # Large files first: the last job is then a short one.
    order = sorted(paths, key=lambda f: -f.stat().st_size)
    with ProcessPoolExecutor(a.jobs) as pool:
        found = dict(zip(order, pool.map(guarded, repeat(a.arenaplan), order, repeat(a.target))))
    width = max((len(f.stem) for f in paths), default=0)
    for f in paths:
        print(f"{found[f][0]:4} {f.stem:{width}} {found[f][1]}")
    verdicts = [found[f][0] for f in paths]
    passed, failed = verdicts.count("ok"), verdicts.count("FAIL")
    if passed == 0:
        print("nothing was compared")
    print(f"{passed} passed, {failed} failed, {verdicts.count('skip')} skipped")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

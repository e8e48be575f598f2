#!/usr/bin/env python3
"""usage: stripes.py --arenaplan PROGRAM [--count N] [--graphs DIR] [--models DIR]... [--only TEXT]

Row stripes in TensorFlow Lite Micro (the tflite-micro wheel, reference kernels), by `arenaplan plan --stripes`:

1. Random vision models, which `tests/vision.rs` writes unless --graphs names a folder with them: planned for several targets,
   and with stripes alone (`--plan no`). Outputs over varying inputs are those of the model as it was, the head is the one that
   was predicted, `verify` accepts the file, and `strip` gives back the bytes of the model.
2. The control: with one SLICE moved by a row in the file, outputs of nearly all models differ.
3. Public models, where --models names a folder: the same, with heads at most those of `bars.py` and a search that ends in time.

Ends with one summary line; exit status 1 on any failure.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import bars
from probe import PLENTY, Model, in_child, noise, quietly, report, schema, signal_of
from runtime import square
from wheel import check_installed

ROOT = Path(__file__).resolve().parents[2]
# Options of `plan` for random models, which are small: more work than anybody would want is worth a test.
WAYS = [("--target", "tflm", "--stripes", "30%"), ("--target", "tflm-reference", "--stripes", "30%"),
        ("--target", "tflm", "--stripes", "200%"), ("--target", "tflm", "--stripes", "200%", "--plan", "no")]
PUBLIC = {"tflm": ("--target", "tflm", "--stripes", "10%"), "tflm-reference": ("--target", "tflm-reference", "--stripes", "10%")}
SEEN = 0.9          # of the moved slices, in models whose outputs vary
ENOUGH = 0.25       # of the random models get stripes in some way
TIMEOUT = 300       # seconds for a run of the program


def patches(details, rng):
    """An image of large patches, each of one value, as detectors want them: some see nothing in noise."""
    kind, shape = np.dtype(details["dtype"]), tuple(int(d) for d in details["shape"])
    if len(shape) != 4 or kind == np.bool_:
        return signal_of(details, rng)
    low, high = (-1, 1) if kind.kind == "f" else (max(np.iinfo(kind).min, -2**15), min(np.iinfo(kind).max, 2**15 - 1))
    n, h, w, c = shape
    some = rng.integers(2, 12)
    values = rng.uniform(low, high, (n, some, some, c))
    return values[:, np.arange(h) * some // h][:, :, np.arange(w) * some // w].astype(kind)


# What makes the inputs of each invoke.
INPUTS = noise, signal_of, patches, square, patches


def call(program, *words):
    """Exit status, and what the program printed."""
    p = subprocess.run([str(w) for w in (program, *words)], capture_output=True, text=True, timeout=TIMEOUT)
    return p.returncode, p.stdout, (p.stderr.strip().splitlines() or ["nothing said"])[-1]


def planned(program, source, output, options):
    """The figures of `plan`, with the seconds of a processor that it took, or an `error`. Not to be called by several threads."""
    output.unlink(missing_ok=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    status, said, error = call(program, "plan", source, "-o", output, "--format", "json", "--bits", 64, *options)
    if status != 0:
        return {"error": error}
    return json.loads(said)[0] | {"seconds": resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before}


def run(data):
    """The head, and the bytes of all outputs for each of several inputs."""
    model = Model.of(data)
    it, _ = quietly(model.interpreter, PLENTY)
    results = []
    for number, make in enumerate(INPUTS):
        rng = np.random.default_rng([number, model.inputs])
        for k in range(model.inputs):
            it.set_input(make(it.get_input_details(k), rng), k)
        quietly(it.invoke)
        results.append([np.ascontiguousarray(it.get_output(k)).tobytes() for k in range(model.outputs)])
    return report(it)["head"], results


def main_graph(data):
    """The file's model and its first subgraph."""
    model = schema.Model.GetRootAs(data, 0)
    return model, model.Subgraphs(0)


def is_striped(data):
    """Whether a file has SLICEs of rows."""
    return bool(row_slices(data))


def row_slices(data):
    """SLICEs of rows: for each, where in the file the number of the first row is, and the values to which it can be moved."""
    model, graph = main_graph(data)
    found = []
    for k in range(graph.OperatorsLength()):
        op = graph.Operators(k)
        code = model.OperatorCodes(op.OpcodeIndex())
        if max(code.BuiltinCode(), code.DeprecatedBuiltinCode()) != schema.BuiltinOperator.SLICE:
            continue
        source, begin, size = (graph.Tensors(int(t)) for t in op.InputsAsNumpy())
        places = [words(model, t) for t in (begin, size)]
        if source.ShapeLength() != 4 or None in places:
            continue
        (at, first), (_, count) = ((p, np.frombuffer(data, "<i4", 4, p)[1]) for p in places)
        choices = [row for row in (first - 1, first + 1) if 0 <= row and row + count <= source.Shape(1)]
        found.append((at + 4, [int(row) for row in choices]))
    return found


def words(model, tensor):
    """Where in the file a constant's data is, or None."""
    table = model.Buffers(tensor.Buffer())._tab
    field = table.Offset(4)
    return table.Vector(field) if field else None


def moved(data, rng):
    """The file with one SLICE a row away from where it was; None where there is none to be moved. SLICEs that share the
    constant move with it."""
    choices = [(at, row) for at, rows in row_slices(data) for row in rows]
    if not choices:
        return None
    at, row = choices[rng.integers(len(choices))]
    return data[:at] + row.to_bytes(4, "little") + data[at + 4:]


def check_file(program, source, output, plan, want):
    """The head of a striped file, and what is wrong with it, in words; `want` has the outputs of the model as it was."""
    data, problems = output.read_bytes(), []
    head, got = run(data)
    if got != want:
        wrong = [k for k, (a, b) in enumerate(zip(want, got)) if a != b]
        problems.append(f"outputs differ for inputs {wrong}")
    predicted = next((h["head_bytes"] for h in plan["libraries"] if h["library"] == "reference"), plan["head_bytes"])
    if head != predicted:
        problems.append(f"predicted head {predicted}, TFLM's is {head}")
    # Else there are no offsets to be verified.
    if plan["outcome"] == "planned":
        status, _, error = call(program, "verify", output)
        if status != 0:
            problems.append(f"verify: {error}")
    # Where nothing is gained, the file is the model as it was.
    if plan["outcome"] == "planned" or is_striped(data):
        back = output.with_name("stripped.tflite")
        back.unlink(missing_ok=True)
        status, _, error = call(program, "strip", output, "-o", back)
        if status != 0 or back.read_bytes() != source.read_bytes():
            problems.append(f"strip does not give back the model: {error}")
    return head, problems


def check_random(program, source, folder):
    """What was found of one random model."""
    out = {"problems": [], "striped": 0, "moved": 0, "seen": 0, "saved": []}
    head, want = run(source.read_bytes())
    vary = any(w != want[0] for w in want)
    rng = np.random.default_rng(len(source.read_bytes()))
    for options in WAYS:
        name, output = " ".join(options), folder / "striped.tflite"
        plan = planned(program, source, output, options)
        if "error" in plan:
            out["problems"].append(f"{name}: not planned: {plan['error']}")
            continue
        if not output.exists() or not is_striped(output.read_bytes()):
            continue
        out["striped"] += 1
        got, problems = check_file(program, source, output, plan, want)
        out["problems"] += [f"{name}: {p}" for p in problems]
        out["saved"].append(got / head)
        other = moved(output.read_bytes(), rng) if vary else None
        if other is not None:
            out["moved"] += 1
            out["seen"] += run(other)[1] != want
    return out


def check_public(program, source, folder):
    """What was found of a public model: {name of the plan: (head without, head with it, seconds)}, and problems."""
    out = {"problems": [], "plans": {}}
    head, want = run(source.read_bytes())
    for name, options in PUBLIC.items():
        output = folder / "striped.tflite"
        plan = planned(program, source, output, options)
        plain = planned(program, source, folder / "plain.tflite", options[:2])
        if "error" in plan or "error" in plain:
            out["problems"].append(f"{name}: not planned: {plan.get('error') or plain.get('error')}")
            continue
        got, problems = head, []
        if output.exists():
            got, problems = check_file(program, source, output, plan, want)
        out["problems"] += [f"{name}: {p}" for p in problems]
        unstriped = next((h["head_bytes"] for h in plain["libraries"] if h["library"] == "reference"), plain["head_bytes"])
        cost = (plan.get("stripes") or {}).get("extra_cost_percent")
        striped = output.exists() and is_striped(output.read_bytes())
        out["plans"][name] = {"before": head, "unstriped": unstriped, "head": got, "seconds": plan["seconds"],
                              "cost": cost, "striped": striped}
    out["vary"] = any(w != want[0] for w in want)
    return out


def guarded(check, program, source):
    """The result of a check, done in a process of its own, since a model can crash the interpreter."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        answer = folder / "answer.json"

        def attempt():
            try:
                found = check(program, source, folder)
            except Exception as e:
                log = (getattr(e, "log", "") or repr(e)).splitlines()[0]
                found = {"problems": [], "skipped": log} if isinstance(e, (RuntimeError, ValueError)) else {
                    "problems": [f"the check itself failed: {e!r}"]}
            answer.write_text(json.dumps(found))
            return True
        if not in_child(attempt):
            return {"problems": ["the interpreter crashed"]}
        return json.loads(answer.read_text())


def write_graphs(folder):
    """Has tests/vision.rs write its large models to a folder."""
    # With --workspace, so that what `cargo test --workspace` has built serves here.
    command = ["cargo", "test", "--quiet", "--workspace", "--test", "vision", "--", "--exact",
               "models_run_and_their_outputs_vary"]
    p = subprocess.run(command, cwd=ROOT, env=os.environ | {"VISION_MODELS": str(folder)}, capture_output=True, text=True)
    if p.returncode != 0:
        sys.exit(f"the models were not built:\n{p.stdout}{p.stderr}")


class Verdicts:
    """Counts, and prints what failed."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def add(self, name, problems):
        """One more check; it failed if there are problems."""
        for problem in problems:
            print(f"FAIL {name}: {problem}")
        self.passed += not problems
        self.failed += bool(problems)


def random_models(a, pool, verdicts):
    """Part 1 and 2."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = a.graphs or Path(temporary)
        if not a.graphs:
            write_graphs(folder)
        paths = sorted(folder.glob("*.tflite"))[:a.count]
        results = list(pool.map(lambda p: guarded(check_random, a.arenaplan, p), paths))
    for path, found in zip(paths, results):
        # All of these are for TFLM.
        skipped = found.get("skipped")
        verdicts.add(path.stem, found["problems"] + ([f"TFLM does not run it: {skipped}"] if skipped else []))
    total = {key: sum(found.get(key, 0) for found in results) for key in ("striped", "moved", "seen")}
    models = sum(found.get("striped", 0) > 0 for found in results)
    saved = [s for found in results for s in found.get("saved", [])]
    mean = float(np.exp(np.mean(np.log(saved)))) if saved else 1.0
    print(f"{len(paths)} random models, {models} of them with stripes, in {total['striped']} files; their heads in parts of TFLM's: "
          f"{mean:.3f}; {total['seen']} of {total['moved']} moved slices seen")
    verdicts.add("random models", [] if models >= ENOUGH * len(paths) else [f"only {models} of {len(paths)} get stripes"])
    verdicts.add("moved slices", [] if total["moved"] and total["seen"] >= SEEN * total["moved"] else
                 [f"{total['seen']} of {total['moved']} are seen"])


def public_models(a, pool, verdicts):
    """Part 3."""
    paths = [p for d in a.models for p in sorted(d.glob("*.tflite")) if a.only in p.stem]
    found = dict(zip(paths, pool.map(lambda p: guarded(check_public, a.arenaplan, p), paths)))
    heads = {}
    for path, result in found.items():
        if "skipped" in result:
            verdicts.skipped += 1
            print(f"skip {path.stem}: {result['skipped'][:100]}")
            continue
        verdicts.add(path.stem, result["problems"])
        for name, p in result.get("plans", {}).items():
            heads.setdefault(name, {})[path.stem] = p
            cost = "" if p["cost"] is None else f", {p['cost']:.1f} % more work"
            form = f"{p['unstriped']:,} -> {p['head']:,}" if p["striped"] else f"{p['head']:,}, no stripes"
            print(f"     {path.stem} {name}: {p['before']:,}; {form}{cost}; {p['seconds']:.1f} s"
                  f"{'' if result.get('vary') else '; OUTPUTS DO NOT VARY'}")

    def bar(name, missed, note=""):
        if note:
            print(f"     {name}: {note}")
        verdicts.add(name, [missed] if missed else [])
    bars.check_stripes(heads, bar)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--arenaplan", required=True, type=Path, help="the program")
    p.add_argument("--count", type=int, default=60, help="how many random models")
    p.add_argument("--graphs", type=Path, help="a folder with random models")
    p.add_argument("--models", type=Path, action="append", default=[], help="a folder with public models")
    p.add_argument("--only", default="", help="only public models whose name contains this")
    p.add_argument("--jobs", type=int, default=2)
    a = p.parse_args()
    check_installed()
    if not a.arenaplan.is_file():
        sys.exit(f"no program {a.arenaplan}")
    verdicts = Verdicts()
    # The work is done by children; a thread waits for each.
    with ThreadPoolExecutor(a.jobs) as pool:
        if a.count:
            random_models(a, pool, verdicts)
        if a.models:
            public_models(a, pool, verdicts)
    print(f"{verdicts.passed} passed, {verdicts.failed} failed, {verdicts.skipped} skipped")
    return 1 if verdicts.failed or not verdicts.passed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""usage: random_models.py --arenaplan PROGRAM [--first SEED] [--count N] [--keep DIR]

Plans random models (`random_graphs.py`) for several targets and runs them in TensorFlow Lite Micro, the tflite-micro wheel:

1. outputs over random inputs are those without a plan, and so are the results of every single operator; with
   `--keep-inputs` also where inputs are set once;
2. the predicted heads, with the plan and without, are TFLM's;
3. `verify` agrees with the plan;
4. of plans of which one tensor was then moved by some bytes, those with which TFLM computes something else are refused by
   `verify`: it sees what the wheel sees.

--keep writes what failed to a folder. Ends with one summary line; exit status 1 on any failure.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import prefixes
from probe import PLENTY, Model, in_child, quietly, report, schema
from random_graphs import build
from wheel import PLAN, check_installed

REFERENCE = ("--target", "tflm-reference")
# Options of `plan`, for all models; and of one more plan, which goes by the seed.
PLANS = [REFERENCE, ("--target", "tflm")]
MORE = [(*REFERENCE, "--keep-inputs"), (*REFERENCE, "--alias", "in-place"), ("--target", "tflm", "--alias", "overlap"),
        (*REFERENCE, "--reorder", "no"), (*REFERENCE, "--align", "64"), (*REFERENCE, "--online", "0"),
        ("--target", "tflm-cmsis-nn"), ("--target", "tflm-esp-nn")]
CHUNK = 20          # seeds that one child runs
FEW = 0.05          # of all models may be ones that TFLM does not take


def planned(program, source, output, options):
    """The figures of `arenaplan plan`, or an error."""
    p = subprocess.run([program, "plan", source, "-o", output, "--format", "json", "--bits", "64", *options],
                       capture_output=True, text=True, timeout=120)
    return json.loads(p.stdout)[0] if p.returncode == 0 else {"error": (p.stderr.strip().splitlines() or ["failed"])[-1]}


def accepted(program, data, folder, *options):
    """What `verify` says of a file: its exit status."""
    path = folder / "verified.tflite"
    path.write_bytes(data)
    return subprocess.run([program, "verify", path, *options], capture_output=True, timeout=120).returncode


def seen(data, inputs="fresh"):
    """The head, and the bytes of all outputs at each invoke."""
    model = Model.of(data)
    it, _ = quietly(model.interpreter, PLENTY)
    results = prefixes.invoked(it, model, model.outputs, 1, inputs)
    return report(it)["head"], results


def plan_words(data):
    """Where the offsets of a file's plan start, and their number."""
    model = schema.Model.GetRootAs(data, 0)
    entry = next(m for m in map(model.Metadata, range(model.MetadataLength())) if m.Name() == PLAN)
    buffer = model.Buffers(entry.Buffer())
    return buffer._tab.Vector(buffer._tab.Offset(4)) + 12, buffer.DataLength() // 4 - 3


def moved(data, rng):
    """The file with one planned tensor somewhere near its place."""
    start, count = plan_words(data)
    offsets = np.frombuffer(data, "<i4", count, start)
    fixed = np.flatnonzero(offsets >= 0)
    tensor = int(rng.choice(fixed))
    near = max(0, int(offsets[tensor]) + 16 * int(rng.choice([-4, -3, -2, -1, 1, 2, 3, 4])))
    at = start + 4 * tensor
    return data[:at] + near.to_bytes(4, "little") + data[at + 4:]


def differs(data, want):
    """Whether a file's outputs are others, or those of an operator."""
    return seen(data)[1] != want or bool(prefixes.compare(data)["different"])


def check(program, seed, folder):
    """What was found of one seed."""
    data = build(seed)
    source, problems, counts = folder / "model.tflite", [], Counter(models=1)
    source.write_bytes(data)
    found = {"seed": seed, "problems": problems}
    try:
        head, want = seen(data)
    except RuntimeError as e:
        return found | {"refused": (getattr(e, "log", "") or str(e)).splitlines()[0]}
    for options in [*PLANS, MORE[seed % len(MORE)]]:
        name, kept = " ".join(options), "--keep-inputs" in options
        output = folder / "planned.tflite"
        output.unlink(missing_ok=True)
        plan = planned(program, source, output, options)
        if "error" in plan:
            problems.append(f"{name}: not planned: {plan['error']}")
            continue
        heads = next((h for h in plan["libraries"] if h["library"] == "reference"), None)
        if heads and heads["greedy_head_bytes"] != head:
            problems.append(f"{name}: predicted {heads['greedy_head_bytes']} without a plan, TFLM's head is {head}")
        if heads and heads["head_bytes"] > head and not kept:
            problems.append(f"{name}: head {heads['head_bytes']} is above {head} without a plan")
        if plan["outcome"] != "planned":
            continue
        file = output.read_bytes()
        got_head, got = seen(file)
        if heads and got_head != heads["head_bytes"]:
            problems.append(f"{name}: predicted {heads['head_bytes']} with the plan, TFLM's head is {got_head}")
        if got != want:
            problems.append(f"{name}: outputs differ: {[k for k, (a, b) in enumerate(zip(want, got)) if a != b]}")
        if kept and seen(file, "once")[1] != seen(data, "same")[1]:
            problems.append(f"{name}: inputs do not last to the next invoke")
        operators = prefixes.compare(file)
        if operators["different"]:
            problems.append(f"{name}: results of operators differ: {operators['different']}")
        if accepted(program, file, folder) != 0:
            problems.append(f"{name}: verify refuses the plan")
        counts += Counter(plans=1, smaller=plan["head_bytes"] < head, shared=plan["needs"] is not None,
                          reordered=plan["reordered"], operators=operators["operators"], varying=operators["vary"])
        rng = np.random.default_rng(seed)
        for _ in range(2):
            other = moved(file, rng)
            if differs(other, want):
                counts["wrong"] += 1
                # For the kernels that the wheel has: others read more before they write, and stand what these do not.
                if accepted(program, other, folder, *REFERENCE) == 0:
                    problems.append(f"{name}: verify accepts a moved tensor with which TFLM's results differ")
                    (folder / "moved.tflite").write_bytes(other)
            counts["moved"] += 1
    return found | {"counts": counts}


def check_all(program, seeds, answer, keep):
    """Writes what was found of some seeds to a file, one JSON object a line."""
    with open(answer, "w") as f:
        for seed in seeds:
            with tempfile.TemporaryDirectory() as temporary:
                folder = Path(temporary)
                print(json.dumps({"started": seed}), file=f, flush=True)
                try:
                    found = check(program, seed, folder)
                except Exception as e:
                    found = {"seed": seed, "problems": [f"the check itself failed: {e!r} {getattr(e, 'log', '')[:300]}"]}
                if found["problems"] and keep:
                    for path in folder.glob("*.tflite"):
                        path.replace(keep / f"{seed}_{path.name}")
                print(json.dumps(found), file=f, flush=True)
    return True


def run(program, seeds, keep):
    """check_all() in a process of its own, since a model can crash the interpreter; then on with the next."""
    results = []
    with tempfile.NamedTemporaryFile() as answer:
        while len(results) < len(seeds):
            in_child(lambda: check_all(program, seeds[len(results):], answer.name, keep))
            lines = [json.loads(line) for line in Path(answer.name).read_text().splitlines()]
            done = [line for line in lines if "seed" in line]
            results += done
            if len(results) < len(seeds):
                results.append({"seed": seeds[len(results)], "problems": ["the interpreter crashed"]})
    return results


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--arenaplan", required=True, help="the program")
    p.add_argument("--first", type=int, default=0, help="the first seed")
    p.add_argument("--count", type=int, default=60, help="the number of seeds")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--keep", type=Path, help="a folder for models that fail")
    a = p.parse_args()
    check_installed()
    if a.keep:
        a.keep.mkdir(parents=True, exist_ok=True)
    seeds = list(range(a.first, a.first + a.count))
    chunks = [seeds[k:k + CHUNK] for k in range(0, len(seeds), CHUNK)]
    with ThreadPoolExecutor(a.jobs) as pool:
        results = [r for chunk in pool.map(lambda c: run(a.arenaplan, c, a.keep), chunks) for r in chunk]
    total, refused = Counter(), [r for r in results if "refused" in r]
    for r in results:
        total += Counter(r.get("counts", {}))
        for problem in r["problems"]:
            print(f"FAIL seed {r['seed']}: {problem}")
    for r in refused:
        print(f"skip seed {r['seed']}: {r['refused']}")
    failed = sum(bool(r["problems"]) for r in results)
    print(f"{total['plans']} plans, {total['smaller']} smaller than without, {total['shared']} for some kernels only, "
          f"{total['reordered']} with another order; results of {total['operators']} operators alike, {total['varying']} of "
          f"them vary; {total['moved']} plans with a moved tensor, {total['wrong']} of them seen to be wrong")
    few = len(refused) <= FEW * len(results)
    if not few:
        print("too many models that TFLM does not run")
    print(f"{len(results) - failed - len(refused)} passed, {failed} failed, {len(refused)} not run by TFLM")
    sys.exit(0 if few and not failed and total["wrong"] else 1)


if __name__ == "__main__":
    main()

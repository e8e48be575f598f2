#!/usr/bin/env python3
"""usage: oracle.py --arenaplan PROGRAM [--models DIR]... [--only TEXT] [--verbose]

Compares arenaplan with TensorFlow Lite Micro itself (the tflite-micro wheel, reference kernels). Each model is run as
it is without a plan, planned with `arenaplan plan`, and run again:

1. the head that arenaplan predicted without a plan and with its plan is the head that TFLM reports, to the byte;
2. outputs are equal bit for bit over several random inputs and repeated invokes of one interpreter (state);
3. the head and the smallest arena in which the model runs did not grow, against the model without a plan and against
   the right plan of another tool that it may have carried;
4. in `arena_bytes` (for 64-bit pointers, as here) it runs, and that is at most 5 % or 256 bytes above the smallest arena;
5. where nothing is written, nothing is claimed; where a file is written, `verify` agrees with it, `strip` gives back
   the original, and planning it again changes nothing;
6. of a plan that the model came with, `verify` says what TFLM's outputs say;
7. with `--keep-inputs`, inputs set once give the outputs of inputs set before every invoke;
8. real models end at the liveness bound that their README gives, or, with scratch on top of it, not above no plan.

The same, but for 6 and 8, with each of `PLANS`: other kernels, more or less that tensors may share. Where tensors share
bytes that not every kernel library leaves alone, results of single operators are compared too (`prefixes.py`). Inputs are
noise and other signals, with a seed for each invoke; models whose outputs do not vary over them are named, since equality
proves little there, and all of their operators are compared.

A model that TFLM does not run is listed with the reason; arenaplan must plan it or refuse it, not crash. Files in a
`malformed` folder beside a models folder must be refused or handled by every subcommand, without a crash.
`bars.py` has figures that real models must reach. Ends with one summary line; exit status 1 on any failure.
"""
import argparse
import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

import bars
from prefixes import ROUNDS
from wheel import check_installed, compare_operators, has_plan, probe, probe_bytes, schedule_and_offsets, without_plan

ROOT = Path(__file__).resolve().parents[2]
# Name -> options of `plan`. The first one is checked in every way.
PLANS = {
    "tflm": (),
    "tflm, nothing shared": ("--alias", "none"),
    "tflm, overlap": ("--alias", "overlap"),
    "tflm-reference": ("--target", "tflm-reference"),
}
OPERATORS = 12      # of a model, whose results are compared one by one; all, if its outputs do not vary
BUDGET = 4          # seconds for the invokes which that takes; fewer operators of slow models
# Wrong files whose plan is odd, but right: no arena is large enough for it.
VERIFY_MAY_PASS = {"plan_offset_large"}
# Wrong files with a plan that only the NPU's compiler can repair.
LEFT_AS_IT_IS = {"ethos_u_wrong"}
NO_CRASH = (0, 1, 2)
# What `outcome` says when the written file carries a plan of ours; else it is the file that came in.
PLANNED = ("planned", "replaced")


class Result:
    """What was found about one file."""

    def __init__(self, name):
        self.name, self.failures, self.notes, self.skipped = name, [], [], None
        self.before = None
        self.plans = {}     # name -> what arenaplan says of the plan; and what TFLM says of the planned file
        self.after = {}
        self.seconds = 0.0

    def expect(self, truth, message):
        """Records a failure unless `truth`."""
        if not truth:
            self.failures.append(message)


def run(command):
    """A finished process, with its output as text; a hang counts as exit status 124."""
    try:
        return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", "no end after 120 s")


def last_line(text):
    """The last line of a text, for a message."""
    return (text.strip().splitlines() or ["nothing said"])[-1][:200]


def planned(program, path, output, options, result):
    """The JSON object of `arenaplan plan`, or None. Fails the result when the program crashes or contradicts itself."""
    p = run([program, "plan", path, "-o", output, "--format", "json", "--bits", "64", *options])
    result.expect(p.returncode in NO_CRASH, f"plan crashed ({p.returncode}): {last_line(p.stderr)}")
    if p.returncode != 0:
        result.notes.append(f"refused ({p.returncode}): {last_line(p.stderr)}")
        return None
    try:
        rows = json.loads(p.stdout)
        plan = rows[0]
        assert len(rows) == 1
    except (ValueError, IndexError, KeyError, AssertionError):
        result.expect(False, f"plan's JSON is not an array of one object: {p.stdout[:100]!r}")
        return None
    result.expect((plan["output"] is not None) == output.exists(), f"output is {plan['output']!r}, file written: "
                  f"{output.exists()}")
    result.expect(plan["head_bytes"] <= plan["greedy_head_bytes"],
                  f"plans {plan['head_bytes']} above {plan['greedy_head_bytes']} without a plan")
    return plan


def guarded(f, program, path):
    """f's result; an exception (a key that is missing from the JSON, say) is a failure of this file only."""
    try:
        return f(program, path)
    except Exception as e:
        result = Result(path.stem)
        result.expect(False, f"the check itself failed: {e!r}")
        return result


def check(program, path):
    """All checks of one model."""
    result, start = Result(path.stem), time.monotonic()
    original = path.read_bytes()
    before = result.before = probe_bytes(without_plan(original), "--smallest", "--inputs", "varied")
    runs = "error" not in before
    if not runs:
        result.skipped = "not run by TFLM: " + before["error"]
    known = known_heads(program, path, original, before, result) if runs else []
    seen = {}
    for name, options in PLANS.items():
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / path.name
            part = Result(name)
            plan = planned(program, path, output, options, part)
            written = plan is not None and plan["outcome"] in PLANNED
            if plan is None:
                part.expect(not runs, "TFLM runs it, arenaplan does not plan it: " + (part.notes or [""])[-1])
            elif runs:
                compare(path, output, before, known, plan, seen, part)
                result.plans[name], result.after[name] = plan, part.after
            if output.exists() and not written:
                part.expect(output.read_bytes() == original, f"{plan['outcome']}, yet the file differs")
                part.notes.append(plan["outcome"])
            elif written:
                check_written(program, original, output, options, part)
                if runs and plan["needs"]:
                    check_operators(output, before, seen, part)
        result.failures += [f"{name}: {f}" for f in part.failures]
        result.notes += [n if name == "tflm" else f"{name}: {n}" for n in part.notes]
    if runs:
        check_kept_inputs(program, path, before, result)
        result.notes.append("outputs vary" if before["vary"] else "OUTPUTS DO NOT VARY")
    result.seconds = time.monotonic() - start
    return result


def known_heads(program, path, original, before, result):
    """What TFLM says of the model without a plan and, if it came with a right one, with that."""
    if not has_plan(original):
        return [before]
    foreign = probe(path, "--smallest", "--inputs", "varied", "--invokes", before["invokes"])
    right = foreign.get("outputs") == before["outputs"]
    expect_status(program, ["verify", path], 0 if right else 1, result)
    result.notes.append("came with a plan that is " + ("right" if right else "wrong"))
    return [before, foreign] if right else [before]


def expect_status(program, arguments, status, result):
    """Runs a subcommand and fails the result unless it ends with `status`."""
    p = run([program, *arguments])
    result.expect(p.returncode == status, f"{arguments[0]} ends with {p.returncode}, not {status}: "
                  f"{last_line(p.stderr + p.stdout)}")


def check_operators(output, before, seen, result):
    """Results of single operators, with the plan and without, of a layout that was not seen before."""
    layout = schedule_and_offsets(output.read_bytes())
    if layout in seen:
        return
    few = max(2, min(OPERATORS, int(BUDGET / (ROUNDS * max(before["seconds"], 1e-6)))))
    most = ("--most", few) if before["vary"] else ()
    found = seen[layout] = compare_operators(output, *most)
    if "error" in found:
        result.expect(False, "operators one by one: " + found["error"])
        return
    result.expect(not found["different"], f"results of operators differ: {found['different'][:5]}")
    result.notes.append(f"{found['vary']} of {found['operators']} operators' results vary")


def check_written(program, original, output, options, result):
    """verify, strip and a second plan of a planned file."""
    expect_status(program, ["verify", output], 0, result)
    other = output.with_name("other.tflite")
    if not has_plan(original):
        expect_status(program, ["strip", output, "-o", other], 0, result)
        result.expect(other.exists() and other.read_bytes() == original, "strip does not give back the original file")
        other.unlink(missing_ok=True)
    p = run([program, "plan", output, "-o", other, *options])
    again = other.read_bytes() if other.exists() else output.read_bytes()
    result.expect(p.returncode == 0 and again == output.read_bytes(), "planning twice gives another file")


def compare(path, output, before, known, plan, seen, result):
    """The model without a plan against the model with one. `seen`: layouts that were run, and what TFLM said."""
    file = output if output.exists() else path
    layout, arena = schedule_and_offsets(file.read_bytes()), plan["arena_bytes"]
    after = seen.get((layout, arena)) or probe(file, "--smallest", "--inputs", "varied", "--invokes", before["invokes"],
                                               "--arena", arena)
    seen[layout, arena] = result.after = after
    if "error" in after:
        result.expect(False, "the planned file does not run: " + after["error"])
        return
    expect = result.expect
    expect(plan["before_head_bytes"] == known[-1]["head"],
           f"predicted {plan['before_head_bytes']} as it came, TFLM's head is {known[-1]['head']}")
    expect(plan["greedy_head_bytes"] == before["head"],
           f"predicted {plan['greedy_head_bytes']} without a plan, TFLM's head is {before['head']}")
    expect(plan["head_bytes"] == after["head"],
           f"predicted {plan['head_bytes']} with the plan, TFLM's head is {after['head']}")
    expect(after["outputs"] == before["outputs"],
           f"outputs differ from invoke {first_difference(before['outputs'], after['outputs'])} on")
    for key, what in (("head", "head"), ("min_arena", "smallest arena")):
        least = min(k[key] for k in known)
        expect(after[key] <= least, f"{what} grew from {least} to {after[key]}")
    least = after["min_arena"]
    expect(after["fits"], f"does not run in arena_bytes = {arena} (smallest arena: {least})")
    expect(arena <= max(least * 1.05, least + 256), f"arena_bytes = {arena}, but {least} is enough")
    if output.exists() and plan["outcome"] in PLANNED:
        expect(has_plan(output.read_bytes()), "the written file has no plan")
    else:
        expect(plan["head_bytes"] in (k["head"] for k in known), "no file is written, but another head is claimed")


def check_kept_inputs(program, path, before, result):
    """With --keep-inputs, inputs set once serve for every invoke; where that cannot be, no file may say it can."""
    invokes, want = min(3, before["invokes"]), None
    for target in ("tflm", "tflm-reference"):
        with tempfile.TemporaryDirectory() as folder:
            kept = Path(folder) / path.name
            p = run([program, "plan", path, "-o", kept, "--keep-inputs", "--target", target])
            if p.returncode != 0:
                result.expect("cannot be kept" in p.stderr, f"--keep-inputs: {last_line(p.stderr)}")
                result.expect(not kept.exists(), "--keep-inputs failed, yet a file is written")
                result.notes.append("inputs cannot be kept")
                return
            want = want or probe_bytes(without_plan(path.read_bytes()), "--inputs", "same", "--invokes", invokes)
            got = probe(kept, "--inputs", "once", "--invokes", invokes)
            result.expect(got.get("outputs") == want["outputs"],
                          f"--keep-inputs, {target}: inputs do not last to the next invoke")


def first_difference(a, b):
    """The number of the first unequal element."""
    return next((k for k, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def check_malformed(program, path):
    """Every subcommand ends with an exit status of its own; a wrong plan is not called right; and a file whose only
    fault is its plan is repaired by planning it."""
    result = Result("malformed/" + path.stem)
    original = path.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.tflite"
        for command in (["inspect", path], ["verify", path], ["strip", path, "-o", out], ["plan", path, "-o", out]):
            out.unlink(missing_ok=True)
            p = run([program, *command])
            result.expect(p.returncode in NO_CRASH, f"{command[0]} crashed ({p.returncode}): {last_line(p.stderr)}")
            wrong_plan = path.stem.startswith("plan_") or path.stem in LEFT_AS_IT_IS
            if command[0] == "verify" and wrong_plan and path.stem not in VERIFY_MAY_PASS:
                result.expect(p.returncode != 0, "verify calls the plan right")
        if p.returncode == 0 and out.exists() and has_plan(original) and path.stem not in LEFT_AS_IT_IS:
            plain = probe_bytes(without_plan(original))
            repaired = probe(out, "--invokes", plain.get("invokes", 2))
            result.expect("error" not in plain and repaired.get("outputs") == plain["outputs"],
                          f"the plan put in its place is not right: {repaired.get('error', 'outputs differ')}")
    return result


def check_bars(results):
    """The figures of bars.py, for those of the models that were run."""
    found = {r.name: {name: (r.before["head"], after["head"], r.plans[name]) for name, after in r.after.items()
                      if "head" in after} for r in results if r.after}
    seen = []

    def bar(name, missed, note=None):
        seen.append(Result("bar " + name))
        seen[-1].notes += [note] if note else []
        seen[-1].expect(not missed, missed)
    bars.check_bars(found, bar)
    for name in PLANS:
        value, count = bars.mean(found, name)
        if count:
            print(f"geometric mean against TFLM alone, {name}: {value:.4f} over {count} public models")
        if name == "tflm-reference" and count >= bars.MEAN_OF:
            bar(f"geometric mean, {name}", None if value <= bars.MEAN else f"{value:.4f} is above {bars.MEAN}")
    return seen


def readme_bounds(folder):
    """The column `bound` of the table in a folder's README.md: model -> bytes. Empty without such a table."""
    readme = folder / "README.md"
    rows = [[c.strip() for c in line.split("|")] for line in readme.read_text().splitlines() if line.startswith("|")] \
        if readme.exists() else []
    header = next((r for r in rows if "model" in r and "bound" in r), None)
    if header is None:
        return {}
    model, bound = header.index("model"), header.index("bound")
    return {r[model]: int(r[bound]) for r in rows if len(r) == len(header) and r[bound].isdigit()}


def check_bounds(results, bounds):
    """Real models end at the bound of their README. What is above it must be what arenaplan proves to be needed with
    scratch memory, which that bound does not count, and not above no plan."""
    for r in results:
        after = r.after.get("tflm")
        if r.name in bounds and after and "head" in after:
            reason = bars.above(after["head"], bounds[r.name], r.plans["tflm"])
            r.expect(reason != "", f"head {after['head']} is above the bound {bounds[r.name]}, and scratch is not the reason")
            r.notes += [reason] if reason else []


def line(r):
    """One line about a result."""
    state = "FAIL" if r.failures else "skip" if r.skipped else "ok"
    text = f"{state:4} {r.name}"
    ran = {name: after for name, after in r.after.items() if after and "head" in after} if r.after else {}
    if ran:
        def row(key):
            return " / ".join(str(after[key]) for after in ran.values())
        text += (f": head {r.before['head']} -> {row('head')}, smallest arena {r.before['min_arena']} -> "
                 f"{row('min_arena')}, {r.before['invokes']} invokes")
    for extra in filter(None, [r.skipped, *r.notes]):
        text += f"; {extra}"
    for failure in r.failures:
        text += f"\n     - {failure}"
    return text


def main():
    p = argparse.ArgumentParser(description="Compares arenaplan with TensorFlow Lite Micro.")
    p.add_argument("--arenaplan", required=True, help="the program")
    p.add_argument("--models", action="append", type=Path, help="a folder [testdata/models, ../shared/models]")
    p.add_argument("--only", help="only files whose name contains this")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--verbose", action="store_true", help="a line for each file, not only for those that fail")
    a = p.parse_args()
    check_installed()
    if not Path(a.arenaplan).is_file():
        sys.exit(f"no program {a.arenaplan}")
    folders = a.models or [d for d in (ROOT / "testdata/models", ROOT.parent / "shared/models") if d.is_dir()]
    wanted = [f for d in folders for f in sorted(d.glob("*.tflite")) if not a.only or a.only in f.stem]
    wrong = [f for d in folders for f in sorted((d.parent / "malformed").glob("*.tflite"))
             if not a.only or a.only in f.stem]
    # Large files first: the last job is then a short one.
    jobs = sorted(wanted, key=lambda f: -f.stat().st_size)
    with ProcessPoolExecutor(a.jobs) as pool:
        results = []
        for result in pool.map(guarded, repeat(check), repeat(a.arenaplan), jobs):
            if a.verbose:
                print(f"{result.name}: {result.seconds:.0f} s", file=sys.stderr, flush=True)
            results.append(result)
        results.sort(key=lambda r: r.name)
        results += pool.map(guarded, repeat(check_malformed), repeat(a.arenaplan), wrong)
    for d in folders:
        check_bounds(results, readme_bounds(d))
    results += check_bars(results)
    for r in results:
        if a.verbose or r.failures or r.skipped:
            print(line(r))
    failed = sum(bool(r.failures) for r in results)
    skipped = sum(bool(r.skipped) and not r.failures for r in results)
    passed = len(results) - failed - skipped
    alike = [r.name for r in results if r.before and "vary" in r.before and not r.before["vary"]]
    print(f"outputs vary over the inputs in {sum(1 for r in results if r.before and r.before.get('vary'))} models, not in "
          f"{len(alike)}: {', '.join(alike)}")
    slowest = max(results, key=lambda r: r.seconds, default=None)
    if slowest:
        print(f"slowest: {slowest.name}, {slowest.seconds:.0f} s")
    if passed == 0:
        print("nothing was tested")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed or passed == 0 else 0)


if __name__ == "__main__":
    main()

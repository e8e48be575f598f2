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

A model that TFLM does not run is listed with the reason; arenaplan must plan it or refuse it, not crash. Files in a
`malformed` folder beside a models folder must be refused or handled by every subcommand, without a crash.
`BARS` are figures that certain real models must reach. Ends with one summary line; exit status 1 on any failure.
"""
import argparse
import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from wheel import check_installed, has_plan, probe, probe_bytes, without_plan

ROOT = Path(__file__).resolve().parents[2]
# Heads in bytes: model -> (without a plan, most that is allowed with one).
BARS = {
    "vww_96_int8": (73_728, 55_296),
    "esphome_v1_alexa": (21_216, 14_208),
    "esphome_v2_vad": (1_536, 1_248),
    "esphome_v2_okay_nabu": (4_096, 2_944),
    "lyra_soundstream_encoder": (48_896, 41_472),
    "hand_recrop": (1_572_864, 1_310_720),
    "audio_preprocessor_int8": (3_040, 3_040),
    "keyword_scrambled_8bit": (672, 672),
    "blazeface_front_128": (442_368, 344_064),
}
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
        self.before = self.after = self.plan = None
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


def planned(program, path, output, result):
    """The JSON object of `arenaplan plan`, or None. Fails the result when the program crashes or contradicts itself."""
    p = run([program, "plan", path, "-o", output, "--format", "json", "--bits", "64"])
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
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / path.name
        original = path.read_bytes()
        before = result.before = probe_bytes(without_plan(original), "--smallest")
        plan = result.plan = planned(program, path, output, result)
        if "error" in before:
            result.skipped = "not run by TFLM: " + before["error"]
        elif plan is None:
            result.expect(False, "TFLM runs it, arenaplan does not plan it: " + (result.notes or [""])[-1])
        else:
            compare(program, path, original, output, before, plan, result)
            check_kept_inputs(program, path, before, result)
        if output.exists() and plan["outcome"] in PLANNED:
            check_written(program, original, output, result)
        elif output.exists():
            result.expect(output.read_bytes() == original, f"{plan['outcome']}, yet the file differs")
            result.notes.append(plan["outcome"])
    result.seconds = time.monotonic() - start
    return result


def expect_status(program, arguments, status, result):
    """Runs a subcommand and fails the result unless it ends with `status`."""
    p = run([program, *arguments])
    result.expect(p.returncode == status, f"{arguments[0]} ends with {p.returncode}, not {status}: "
                  f"{last_line(p.stderr + p.stdout)}")


def check_written(program, original, output, result):
    """verify, strip and a second plan of a planned file."""
    expect_status(program, ["verify", output], 0, result)
    other = output.with_name("other.tflite")
    if not has_plan(original):
        expect_status(program, ["strip", output, "-o", other], 0, result)
        result.expect(other.exists() and other.read_bytes() == original, "strip does not give back the original file")
        other.unlink(missing_ok=True)
    p = run([program, "plan", output, "-o", other])
    again = other.read_bytes() if other.exists() else output.read_bytes()
    result.expect(p.returncode == 0 and again == output.read_bytes(), "planning twice gives another file")


def compare(program, path, original, output, before, plan, result):
    """The model without a plan against the model with one."""
    foreign = None
    if has_plan(original):
        foreign = probe(path, "--smallest", "--invokes", before["invokes"])
        right = foreign.get("outputs") == before["outputs"]
        expect_status(program, ["verify", path], 0 if right else 1, result)
        result.notes.append("came with a plan that is " + ("right" if right else "wrong"))
        foreign = foreign if right else None
    written = output.exists()
    after = probe(output if written else path, "--smallest", "--invokes", before["invokes"],
                  "--arena", plan["arena_bytes"])
    result.after = after
    if not before["vary"]:
        result.notes.append("outputs do not vary: equality proves little")
    if "error" in after:
        result.expect(False, "the planned file does not run: " + after["error"])
        return
    expect = result.expect
    expect(plan["greedy_head_bytes"] == before["head"],
           f"predicted {plan['greedy_head_bytes']} without a plan, TFLM's head is {before['head']}")
    expect(plan["head_bytes"] == after["head"],
           f"predicted {plan['head_bytes']} with the plan, TFLM's head is {after['head']}")
    expect(after["outputs"] == before["outputs"],
           f"outputs differ from invoke {first_difference(before['outputs'], after['outputs'])} on")
    known = [before] + ([foreign] if foreign else [])
    for key, what in (("head", "head"), ("min_arena", "smallest arena")):
        least = min(k[key] for k in known)
        expect(after[key] <= least, f"{what} grew from {least} to {after[key]}")
    arena, least = plan["arena_bytes"], after["min_arena"]
    expect(after["fits"], f"does not run in arena_bytes = {arena} (smallest arena: {least})")
    expect(arena <= max(least * 1.05, least + 256), f"arena_bytes = {arena}, but {least} is enough")
    if written and plan["outcome"] in PLANNED:
        expect(has_plan(output.read_bytes()), "the written file has no plan")
    else:
        expect(plan["head_bytes"] == before["head"] or foreign is not None and plan["head_bytes"] == foreign["head"],
               "no file is written, but another head is claimed")


def check_kept_inputs(program, path, before, result):
    """With --keep-inputs, inputs set once serve for every invoke; where that cannot be, no file may say it can."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / path.name
        p = run([program, "plan", path, "-o", kept, "--keep-inputs"])
        if p.returncode != 0:
            result.expect("cannot be kept" in p.stderr, f"--keep-inputs: {last_line(p.stderr)}")
            result.expect(not kept.exists(), "--keep-inputs failed, yet a file is written")
            result.notes.append("inputs cannot be kept")
            return
        invokes = min(3, before["invokes"])
        want = probe_bytes(without_plan(path.read_bytes()), "--inputs", "same", "--invokes", invokes)
        got = probe(kept, "--inputs", "once", "--invokes", invokes)
        result.expect(got.get("outputs") == want["outputs"], "--keep-inputs: inputs do not last to the next invoke")


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
    """The named figures, for those of the models that were run."""
    for r in results:
        if r.name in BARS and r.before and r.after and "head" in r.after:
            bar = Result("bar " + r.name)
            unplanned, most = BARS[r.name]
            bar.expect(r.before["head"] == unplanned, f"head without a plan is {r.before['head']}, not {unplanned}")
            bar.expect(r.after["head"] <= most, f"head is {r.after['head']}, above {most}")
            yield bar


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
        if r.name in bounds and r.after and "head" in r.after:
            head, bound = r.after["head"], bounds[r.name]
            if head > bound:
                proved = r.plan["optimal"] and r.plan["bound_with_scratch_bytes"] > bound
                r.expect(proved, f"head {head} is above the bound {bound}, and scratch is not the reason")
                r.notes.append(f"{head - bound} above the bound, for scratch")


def line(r):
    """One line about a result."""
    state = "FAIL" if r.failures else "skip" if r.skipped else "ok"
    text = f"{state:4} {r.name}"
    if r.after and "head" in r.after:
        text += (f": head {r.before['head']} -> {r.after['head']}, smallest arena {r.before['min_arena']} -> "
                 f"{r.after['min_arena']}, arena_bytes {r.plan['arena_bytes']}, {r.after['invokes']} invokes")
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
    with ThreadPoolExecutor(a.jobs) as pool:
        results = sorted(pool.map(lambda f: guarded(check, a.arenaplan, f), jobs), key=lambda r: r.name)
        results += pool.map(lambda f: guarded(check_malformed, a.arenaplan, f), wrong)
    for d in folders:
        check_bounds(results, readme_bounds(d))
    results += check_bars(results)
    for r in results:
        if a.verbose or r.failures or r.skipped:
            print(line(r))
    failed = sum(bool(r.failures) for r in results)
    skipped = sum(bool(r.skipped) and not r.failures for r in results)
    passed = len(results) - failed - skipped
    slowest = max(results, key=lambda r: r.seconds, default=None)
    if slowest:
        print(f"slowest: {slowest.name}, {slowest.seconds:.0f} s")
    if passed == 0:
        print("nothing was tested")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed or passed == 0 else 0)


if __name__ == "__main__":
    main()

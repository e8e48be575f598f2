#!/usr/bin/env python3
"""usage: self_tests.py --arenaplan PROGRAM --tflm TFLM [--library FILE] [--downloads DIR] MODEL|DIR...

Self-tests of plans for the reference kernels in TensorFlow Lite Micro on this machine, with its own kernels and with kernels of
another order. For each model:

- the self-test passes with TFLM's kernels, and with plain ones of CONV_2D and DEPTHWISE_CONV_2D in their order;
- with those from the last element to the first it passes where no such operator has an output over its input, and fails where
  one has, if the file says that the order matters;
- it fails when an operator's kernel runs twice over the same memory, for each kind of operators of which one has an output
  over its input, but for what the self-test itself says that it would not catch.

Ends with one summary line; exit status 1 if anything is wrong. See README.md.
"""
import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FLAGS = ("-O1 -w -std=c++17 -fno-rtti -fno-exceptions -fno-threadsafe-statics -DTF_LITE_STATIC_MEMORY "
         "-DTF_LITE_DISABLE_X86_NEON").split()
# TFLM computes with whatever lies where it expects their constants, which are outside of the FlatBuffer.
LEFT_OUT = "absolute_buffers_float32",
BACKWARDS = {"conv": "CONV_2D", "depthwise": "DEPTHWISE_CONV_2D"}


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True)


class Wrong(Exception):
    """What is wrong with a model, in words."""


class Device:
    """A model and its self-test in TFLM."""

    def __init__(self, args, planned, header, folder):
        downloads = args.downloads or args.tflm / "tensorflow/lite/micro/tools/make/downloads"
        library = args.library or args.tflm / "gen/linux_x86_64_default_gcc/lib/libtensorflow-microlite.a"
        includes = [args.tflm, downloads / "flatbuffers/include", downloads / "gemmlowp", downloads / "ruy", downloads / "kissfft"]
        (folder / "self_test.h").write_text(header)
        self.program, self.planned = folder / "program", planned
        done = run("g++", *FLAGS, *(f"-I{path}" for path in [*includes, folder]), HERE / "self_tests.cc", library, "-o", self.program)
        if done.returncode != 0:
            raise Wrong(done.stderr.strip())

    def passes(self, *mode):
        done = run(self.program, self.planned, *mode)
        last = (done.stdout.splitlines() or [""])[-1]
        if done.returncode != 0 or last not in ("passed", "failed"):
            raise Wrong(f"{' '.join(mode)}: status {done.returncode}: {(done.stdout + done.stderr).strip()[-300:]}")
        return last == "passed"


def check(args, model, folder):
    """(kinds of kernels with which it failed, all that were tried, whether they should fail)."""
    if model.stem in LEFT_OUT:
        return None, "not run by TFLM"
    planned = folder / "model.tflite"
    done = run(args.arenaplan, "plan", model, "-o", planned, "--force", "--target", "tflm-reference")
    if done.returncode != 0 or not planned.exists():
        raise Wrong("not planned: " + done.stderr.strip())
    done = run(args.arenaplan, "export", planned, "--as", "c-selftest")
    if done.returncode != 0:
        return None, done.stderr.strip()
    header = done.stdout
    blind = dict.fromkeys(re.findall(r"^//   (?:not caught|right in any order): (operator \d+ [^:\n]+)", header, re.M))
    shown = json.loads(run(args.arenaplan, "inspect", planned, "--format", "json").stdout)
    shown = shown[0] if isinstance(shown, list) else shown
    over = {s["operator"] for s in shown["why"]["shared"] if s["kind"] != "view"}
    kinds = {label.split()[2] for label in over}
    # Of these one at least must show.
    sure = {label.split()[2] for label in over if not any(label.startswith(b) or b.startswith(label) for b in blind)}
    device = Device(args, planned, header, folder)
    if not device.passes("right"):
        raise Wrong("fails with TFLM's kernels")
    names = {operator["name"] for operator in shown["operator_list"]}
    said = []
    for mode, kind in BACKWARDS.items():
        if kind not in names:
            continue
        if not device.passes(f"{mode}-forwards"):
            raise Wrong(f"fails with a plain {kind}")
        passes = device.passes(f"{mode}-backwards")
        if kind not in kinds and not passes:
            raise Wrong(f"fails with {kind} backwards, though no output lies over an input")
        if kind in kinds:
            said.append((f"{kind} backwards", not passes, False))
    for kind in sorted(kinds):
        said.append((f"{kind} twice", not device.passes("again", kind), kind in sure))
    return said, ""


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--arenaplan", required=True, type=Path, help="the program")
    p.add_argument("--tflm", required=True, type=Path, help="the root of TFLM's sources")
    p.add_argument("--library", type=Path, help="TFLM's library, compiled for this machine")
    p.add_argument("--downloads", type=Path, help="where flatbuffers, gemmlowp, ruy and kissfft are")
    p.add_argument("models", nargs="+", type=Path, help="models or folders")
    a = p.parse_args()
    models = [m for path in a.models for m in (sorted(path.glob("*.tflite")) if path.is_dir() else [path])]
    right, wrong, caught, tried = 0, 0, 0, 0
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            try:
                said, reason = check(a, model, Path(folder))
                if said is None:
                    print(f"skip {model.stem}: {reason[:150]}", flush=True)
                    continue
                missed = [kernel for kernel, fails, must in said if must and not fails]
                if missed:
                    raise Wrong(f"passes with {', '.join(missed)}")
            except Wrong as e:
                wrong += 1
                print(f"FAIL {model.stem}: {e}", flush=True)
                continue
        right += 1
        tried += len(said)
        caught += sum(fails for _, fails, _ in said)
        others = [kernel for kernel, fails, _ in said if not fails]
        words = f"passes; fails with {', '.join(kernel for kernel, fails, _ in said if fails) or 'nothing that was tried'}"
        print(f"ok   {model.stem}: {words}" + (f"; right with {', '.join(others)}" if others else ""), flush=True)
    print(f"{right} right, {wrong} wrong; kernels of another order over inputs: {tried}, of which {caught} fail")
    return 1 if wrong or not right or not caught else 0


if __name__ == "__main__":
    sys.exit(main())

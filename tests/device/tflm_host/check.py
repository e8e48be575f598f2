#!/usr/bin/env python3
"""Runs what `arenaplan export` writes in TFLM on this machine, against the model without a plan.

For each model: `c` and `c-shim` for the reference kernels, compiled with g++ and linked with TFLM's library, run in exactly
the arena that the header says. Checked are the outputs of three invokes, the bytes used, that the plan is the one in the
file, and that TFLM asks for the same buffers in both cases and gets the same offsets. See README.md.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FLAGS = ("-O0 -w -std=c++17 -fno-rtti -fno-exceptions -fno-threadsafe-statics -DTF_LITE_STATIC_MEMORY "
         "-DTF_LITE_DISABLE_X86_NEON").split()


def run(command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)


class Tflm:
    """TFLM's headers and library, with the runner compiled."""

    def __init__(self, args, folder):
        root = args.tflm.resolve()
        downloads = (args.downloads or root / "tensorflow/lite/micro/tools/make/downloads").resolve()
        self.library = args.library or root / "gen/linux_x86_64_default_gcc/lib/libtensorflow-microlite.a"
        includes = [root, downloads / "flatbuffers/include", downloads / "gemmlowp", downloads / "ruy", downloads / "kissfft"]
        self.compile = ["g++", *FLAGS, *(f"-I{path}" for path in includes), f"-I{HERE}"]
        self.runner = folder / "runner.o"
        self.must(run([*self.compile, "-c", HERE / "runner.cc", "-o", self.runner]))

    @staticmethod
    def must(done):
        if done.returncode != 0:
            sys.exit(done.stderr)

    def build(self, header, name, shim, program):
        text = header.read_text()
        defines = [f'-DHEADER="{header}"', f"-DNAME={name}", f"-DCAPITALS={name.upper()}"]
        defines += ["-DSHIM"] if shim else []
        defines += ["-DRESOURCES"] if f"{name.upper()}_RESOURCES " in text else []
        defines += ["-DMORE_OPERATORS"] if "no kernel for" in text or "AddEthosU" in text else []
        return run([*self.compile, *defines, HERE / "model.cc", self.runner, self.library, "-lm", "-o", program])


def check(tflm, arenaplan, model, folder):
    """What is wrong with one model's exports, and a line about it."""
    planned = folder / "planned.tflite"
    done = run([arenaplan, "plan", model, "--target", "tflm-reference", "-o", planned, "--force"])
    if done.returncode != 0:
        return None, "not planned: " + done.stderr.strip().splitlines()[-1]
    if "compute wrong numbers without a plan" in done.stderr:
        return None, "some versions of TFLM compute wrong numbers without a plan, so there is nothing to compare with"
    has_plan = "none" not in run([arenaplan, "verify", planned, "--format", "json"]).stdout.split('"plan"')[1][:10]
    results = {}
    for form in ("c", "c-shim"):
        header = folder / f"{form}.h"
        # A file without a plan would be planned again: with the same result.
        target = [] if has_plan else ["--target", "tflm-reference"]
        done = run([arenaplan, "export", planned, "--as", form, "--name", "model", "-o", header, "--force", *target])
        if done.returncode != 0:
            return None, f"{form}: {done.stderr.strip()}"
        if "copy it to RAM" in header.read_text():
            return None, "TFLM writes into the model, which is constant here"
        built = tflm.build(header, "model", form == "c-shim", folder / form)
        if built.returncode != 0:
            return None, f"{form}: does not build: {built.stderr.strip().splitlines()[:3]}"
        ran = run([folder / form, model])
        if ran.returncode != 0:
            return [f"{form}: exit status {ran.returncode}"], ran.stderr[-300:]
        results[form] = json.loads(ran.stdout.splitlines()[-1])
        results[form]["log"] = ran.stderr + ran.stdout
        results[form]["text"] = header.read_text()
    c, shim = results["c"], results["c-shim"]
    if not c["unplanned_ran"]:
        return None, "TFLM does not run the model: " + c["log"].strip().splitlines()[0]
    faults = []
    constant = lambda form, name: int(re.search(rf"#define MODEL_{name} (\d+)", results[form]["text"])[1])
    # Without its planner, the shim's model is an ordinary one, which may need a larger arena: `plain` says nothing there.
    for form, keys in (("c", ("plain_ran", "plain_equal", "ran", "equal")), ("c-shim", ("ran", "equal"))):
        faults += [f"{form}: not {key}" for key in keys if not results[form][key]]
    if c["plain_used"] > constant("c", "ARENA_BYTES_64"):
        faults.append(f"{c['plain_used']} bytes used of {constant('c', 'ARENA_BYTES_64')}")
    if shim["used"] > constant("c-shim", "ARENA_BYTES_64"):
        faults.append(f"shim: {shim['used']} bytes used of {constant('c-shim', 'ARENA_BYTES_64')}")
    if shim["used"] != c["used"]:
        faults.append(f"shim: {shim['used']} bytes used, with offsets in the model {c['used']}")
    if c["buffers"] != shim["buffers"]:
        faults.append(f"buffers (size, offset): {c['buffers']}, shim: {shim['buffers']}")
    if len(shim["buffers"]) != constant("c-shim", "BUFFERS"):
        faults.append(f"{len(shim['buffers'])} buffers, {constant('c-shim', 'BUFFERS')} in the header")
    head = max((size + offset for size, offset in c["buffers"]), default=0)
    if head != constant("c", "HEAD_BYTES"):
        faults.append(f"the head is {head}, in the header {constant('c', 'HEAD_BYTES')}")
    return faults, (f"arena {c['arena']}, used {c['plain_used']} (shim {shim['used']}, without a plan {c['unplanned_used']}), "
                    f"{len(c['buffers'])} buffers, {constant('c-shim', 'BUFFERS') - constant('c-shim', 'TENSOR_BUFFERS')} scratch, "
                    f"{c['bytes']} bytes of outputs")


def names(root):
    """Whether the stand-in of the resolver has the methods of the real one."""
    pattern = re.compile(r"TfLiteStatus\s+(Add\w+)\(")
    real = set(pattern.findall((root / "tensorflow/lite/micro/micro_mutable_op_resolver.h").read_text())) - {"AddBuiltin"}
    own = HERE.parent.parent / "tflm_headers/tensorflow/lite/micro/micro_mutable_op_resolver.h"
    return sorted(real ^ (set(re.findall(r"\b(Add\w+)\b", own.read_text())) - {"AddBuiltin"}))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arenaplan", required=True, type=pathlib.Path)
    parser.add_argument("--tflm", required=True, type=pathlib.Path, help="the root of TFLM's sources")
    parser.add_argument("--downloads", type=pathlib.Path, help="where flatbuffers, gemmlowp, ruy and kissfft are")
    parser.add_argument("--library", type=pathlib.Path, help="TFLM's library, compiled for this machine")
    parser.add_argument("models", nargs="+", type=pathlib.Path, help="models or folders")
    args = parser.parse_args()
    models = [m for path in args.models for m in (sorted(path.glob("*.tflite")) if path.is_dir() else [path])]
    wrong = left_out = 0
    different = names(args.tflm)
    if different:
        print("methods of MicroMutableOpResolver that are not in both headers:", *different)
        wrong += 1
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        tflm = Tflm(args, folder)
        for model in models:
            faults, line = check(tflm, args.arenaplan.resolve(), model.resolve(), folder)
            left_out += faults is None
            wrong += bool(faults)
            print(f"{'-' if faults is None else 'WRONG' if faults else 'ok'} {model.stem}: {line}", flush=True)
            for fault in faults or []:
                print("   ", fault)
    print(f"{len(models)} models, {wrong} wrong, {left_out} left out")
    sys.exit(wrong > 0 or left_out == len(models))


main()

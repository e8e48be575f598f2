#!/usr/bin/env python3
"""usage: self_tests.py --arenaplan PROGRAM [--core CORE]... [MODEL ...]

Self-tests of `arenaplan export --as rust-selftest` on emulated microcontrollers (examples/firmware): each must pass with the
runtime's kernels, and fail with a CONV_2D that runs twice over the same memory. Without models: `dscnn_int8`. Ends with one
summary line; exit status 1 if something is wrong.
"""
import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from build import BOARDS, ROOT, Failed, Toolchain, run


def arenaplan(*command):
    p = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if p.returncode != 0:
        raise Failed(p.stderr.strip())
    return p.stdout


def check(program, model, core, folder):
    """What the firmware says."""
    planned, test = folder / "planned.tflite", folder / "self_test.rs"
    arenaplan(program, "plan", model, "-o", planned, "--force", "--target", "arenaplan")
    test.write_text(arenaplan(program, "export", planned, "--as", "rust-selftest"))
    os.environ["ARENAPLAN_SELF_TEST"] = str(test)
    built, = Toolchain().build(BOARDS[core], ["self_test"], planned, features=["self-test"])
    status, output = run(BOARDS[core], built)
    if status != 0:
        raise Failed(f"status {status}: {' '.join(output.split())[:300]}")
    return output


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--arenaplan", required=True, type=Path, help="the program")
    p.add_argument("--core", action="append", choices=list(BOARDS), help="[M4]")
    p.add_argument("models", nargs="*", type=Path)
    a = p.parse_args()
    wrong, right = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for model in a.models or [ROOT / "testdata/models/dscnn_int8.tflite"]:
            for core in a.core or ["M4"]:
                try:
                    said = check(a.arenaplan, model, core, Path(folder))
                    print(f"ok   {model.stem} {core}: {' | '.join(said.split(chr(10))).strip(' |')}", flush=True)
                    right += 1
                except Failed as e:
                    print(f"FAIL {model.stem} {core}: {e}", flush=True)
                    wrong += 1
    print(f"{right} right, {wrong} wrong")
    return 1 if wrong or not right else 0


if __name__ == "__main__":
    sys.exit(main())

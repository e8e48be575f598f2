#!/usr/bin/env python3
"""usage: stripes.py [--arenaplan PATH] [--stripes PERCENT]... [--public] [MODEL ...]

Plans models with and without row stripes, runs both on an emulated Cortex-M4 (examples/firmware), and compares: the outputs with
those of the TFLM wheel for the model as it was, RAM (head and tail), and what stripes take more, in instructions, with the
estimate. Without models: those of testdata that stripes help, each with what that needs; with --public also models of
../shared/models, where that folder is.

A row is wrong, marked with `!`, where outputs differ, where RAM is not below that of the plan without stripes, where the
estimate is off by more than 3 % of the model's instructions, or where it is above what was asked for. Exit status 1 if one is.

Needs the packages of tests/oracle/requirements.txt; installs compilers' targets and QEMU where they are missing.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from build import BOARDS, ROOT, Failed, Toolchain, run
from firmware import figures, record

TESTDATA = ROOT / "testdata" / "models"
PUBLIC = ROOT.parent / "shared" / "models"
# With budgets: in small models, calls of added operators weigh more.
OWN_MODELS = {"conv_int8": 20.0, "conv_int16x8": 10.0, "mobilenet_v2_int8": 20.0}
PUBLIC_MODELS = ("vww_96_int8", "person_detect", "pretrainedResnet_quant", "model_mobilenetv2_160_035")
# How far the estimate may be off, and what rounding may add to a budget, in percent of the model's instructions.
POINTS, ROUNDING = 3.0, 0.05


def plan(arenaplan, model, planned, stripes):
    """Plans a model; what is more to do by the estimate in percent, 0 without stripes."""
    command = [arenaplan, "plan", model, "-o", planned, "--force", "--target", "arenaplan", "--format", "json",
               "--stripes", f"{stripes:g}%" if stripes else "no"]
    p = subprocess.run(command, capture_output=True, text=True)
    if p.returncode != 0:
        raise Failed(p.stderr.strip())
    # What `plan` says of stripes; null where there are none.
    found = json.loads(p.stdout)[0].get("stripes")
    return found["extra_cost_percent"] if found else 0.0


class Runs:
    """Builds and runs planned models."""

    def __init__(self, arenaplan, folder):
        self.toolchain, self.arenaplan, self.folder = Toolchain(), arenaplan, folder
        self.golden = {}

    def measure(self, model, stripes):
        """(RAM, instructions of an invoke, estimated percent, whether outputs are right)."""
        if model not in self.golden:
            self.golden[model] = record(model, self.folder)
        planned = self.folder / model.name
        estimate = plan(self.arenaplan, model, planned, stripes)
        board = BOARDS["M4"]
        status, output = run(board, *self.toolchain.build(board, ["firmware"], planned, self.golden[model]))
        found = figures(status, output)
        return found["head"] + found["tail"], found["invoke"], estimate, status == 0 and "\nPASS" in output


def compare(stripes, plain, striped):
    """(cells of a row, what is wrong)."""
    ram, instructions, _, right = plain
    striped_ram, striped_instructions, estimate, striped_right = striped
    extra = 100 * (striped_instructions / instructions - 1)
    wrong = []
    if not (right and striped_right):
        wrong.append("outputs differ")
    if striped_ram >= ram:
        wrong.append(f"{striped_ram:,} bytes instead of less than {ram:,}")
    if abs(estimate - extra) > POINTS:
        wrong.append(f"{extra:.2f} % more instructions, estimated {estimate:.2f} %")
    if estimate > stripes + ROUNDING:
        wrong.append(f"estimated {estimate:.2f} % more, asked for at most {stripes:g} %")
    cells = [f"{stripes:g} %", "equal" if right and striped_right else "DIFFER", f"{ram:,}", f"{striped_ram:,}",
             f"{instructions:,}", f"{striped_instructions:,}", f"{extra:+.2f} %", f"{estimate:+.2f} %"]
    return cells, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--arenaplan", default=ROOT / "target" / "release" / "arenaplan", type=Path)
    parser.add_argument("--stripes", action="append", type=float, metavar="PERCENT",
                        help="at most so many percent more instructions [10; for a model of testdata, what it needs]")
    parser.add_argument("--public", action="store_true")
    a = parser.parse_args()
    tasks = [(model, 10.0) for model in a.models]
    if not tasks:
        tasks = [(TESTDATA / f"{name}.tflite", budget) for name, budget in OWN_MODELS.items()]
        if a.public:
            paths = [PUBLIC / f"{name}.tflite" for name in PUBLIC_MODELS]
            tasks += [(path, 10.0) for path in paths if path.exists()]
    columns = ("budget", "outputs", "RAM", "striped", "instructions", "striped", "more", "estimated")
    print("| model | " + " | ".join(columns) + " |\n|-|-:|-|" + "-:|" * 6)
    count, wrong = 0, []
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(a.arenaplan, Path(folder))
        for model, budget in tasks:
            try:
                plain = runs.measure(model, 0)
                for stripes in a.stripes or [budget]:
                    count += 1
                    cells, found = compare(stripes, plain, runs.measure(model, stripes))
                    print(f"| {model.stem} | " + " | ".join(cells) + (" ! |" if found else " |"), flush=True)
                    wrong += [f"{model.stem}: {text}" for text in found]
            except Failed as e:
                wrong.append(f"{model.stem}: {e}")
    for text in wrong:
        print("wrong:", text)
    print(f"{count} striped plans, {len(wrong)} wrong")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""usage: firmware.py [--arenaplan PATH] [--core CORE]... [MODEL ...]

Plans models, runs them on emulated microcontrollers (examples/firmware) and compares the outputs with those of the TFLM wheel.
Without models: those of the table in `figures.csv` that are there, each on its cores, and the figures must be no worse than in
that table; --update writes it anew. Prints a row for each: instructions are those of QEMU's count, no cycles; `stack` is that of
an invoke; `firmware` is the flash of code and constants without the model and the table of interrupts, `bare` that of a program
that only runs the model. A figure above the bar for it is marked with `!`. Ends with a summary; exit status 1 if something is
wrong.

Needs the packages of tests/oracle/requirements.txt; installs compilers' targets and QEMU where they are missing.
"""
import argparse
import csv
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from build import BOARDS, ROOT, Failed, Toolchain, run
from elf import Elf

HERE = Path(__file__).resolve().parent
FIGURES = HERE / "figures.csv"
FOLDERS = ROOT / "testdata" / "models", ROOT.parent / "shared" / "models"
COLUMNS = ("head", "tail", "stack", "prepare", "invoke", "firmware", "bare")
# What a figure may exceed the table by: compilers differ a little.
SLACK, SLACK_DEBIAN = 1.03, 1.25
STACK = 1024
# On a Cortex-M4: tail, instructions of an invoke, flash.
BARS = {
    "kws_ref_model": {"tail": 858, "invoke": 14_300_000, "bare": 43_622},
    "vww_96_int8": {"tail": 3_378, "invoke": 33_400_000, "bare": 43_622},
    "person_detect": {"tail": 3_386, "invoke": 31_900_000},
    "str_ww_ref_model": {"invoke": 2_800_000},
    "pretrainedResnet_quant": {"invoke": 53_700_000},
    "ad01_int8": {"invoke": 1_000_000, "bare": 22_937},
}


def bar(core, model, column):
    """The most that a figure should be, or None."""
    if column == "stack":
        return STACK
    return BARS.get(model, {}).get(column) if core == "M4" else None


def plan(arenaplan, model, folder):
    """Path of the planned model, by the target with the most sharing that the tool has."""
    planned = folder / model.name
    for target in ("arenaplan", "tflm"):
        p = subprocess.run([arenaplan, "plan", model, "-o", planned, "--force", "--target", target],
                           capture_output=True, text=True)
        if p.returncode == 0:
            return planned
    raise Failed(p.stderr.strip())


def record(model, folder):
    """Path of the inputs and outputs in the wheel."""
    path = folder / (model.stem + ".golden")
    p = subprocess.run([sys.executable, HERE / "record.py", model, path], capture_output=True, text=True)
    if p.returncode != 0 or not path.exists():
        raise Failed("in the wheel: " + (p.stderr.strip().splitlines() or [f"status {p.returncode}"])[-1])
    return path


def figures(status, output):
    """The figures that the firmware prints."""
    if status not in (0, 1):
        raise Failed(" ".join(output.split())[:300])
    found = {name: int(value) for name, value in re.findall(r"^(head|tail): (\d+)$", output, re.M)}
    prepare, *invokes = re.findall(r"^(?:prepare|invoke): (\d+) instructions, (\d+) bytes of stack$", output, re.M)
    found["prepare"] = int(prepare[0])
    # Of the slowest: kernels may look at values.
    found["invoke"] = max(int(instructions) for instructions, _ in invokes)
    found["stack"] = max(int(stack) for _, stack in invokes)
    return found


def row(core, model, found, equal):
    """A line of the table."""
    cells = []
    for column in COLUMNS:
        if column not in found:
            cells.append("")
            continue
        limit = bar(core, model, column)
        cells.append(f"{found[column]:,}" + ("!" if limit is not None and found[column] > limit else ""))
    return f"| {model} | {core} | {'equal' if equal else 'DIFFER'} | " + " | ".join(cells) + " |"


class Known:
    """The table of figures."""

    def __init__(self):
        with open(FIGURES, newline="") as f:
            self.rows = {(r["model"], r["core"]): r for r in csv.DictReader(f)}

    def worse(self, model, core, found, slack):
        """What is above the table's figures."""
        known = self.rows.get((model, core), {})
        return [f"{column} {found[column]:,} instead of {int(known[column]):,}" for column in found
                if known.get(column) and found[column] > int(known[column]) * slack]

    def write(self):
        with open(FIGURES, "w", newline="") as f:
            out = csv.DictWriter(f, ["model", "core", *COLUMNS], lineterminator="\n")
            out.writeheader()
            out.writerows(self.rows.values())


def find(name):
    """Path of a model of the table, or None."""
    return next((path for folder in FOLDERS if (path := folder / f"{name}.tflite").exists()), None)


class Runs:
    """Builds one program after the other, and runs each while the next is built."""

    def __init__(self, toolchain, arenaplan, folder):
        self.toolchain, self.arenaplan, self.folder = toolchain, arenaplan, folder
        self.prepared, self.pool = {}, ThreadPoolExecutor(1)

    def start(self, model, core):
        """A future of (figures, whether outputs are equal, output)."""
        if model not in self.prepared:
            self.prepared[model] = plan(self.arenaplan, model, self.folder), record(model, self.folder)
        planned, golden = self.prepared[model]
        board = BOARDS[core]
        binaries = ["firmware", "bare"] if core == "M4" else ["firmware"]
        programs = self.toolchain.build(board, binaries, planned, golden)
        sizes = {}
        for binary, program in zip(binaries, programs):
            flash = Elf(program).flash()
            # The table of interrupts is the board's.
            sizes[binary] = sum(flash.values()) - flash.get(".vector_table", 0) - planned.stat().st_size
        sizes["firmware"] -= golden.stat().st_size
        copy = shutil.copy(programs[0], self.folder / f"{model.stem}-{core}")
        return self.pool.submit(self.finish, board, copy, sizes)

    @staticmethod
    def finish(board, program, sizes):
        status, output = run(board, program)
        return figures(status, output) | sizes, "\nPASS" in output and status == 0, output


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--arenaplan", default=ROOT / "target" / "release" / "arenaplan", type=Path)
    parser.add_argument("--core", action="append", choices=list(BOARDS))
    parser.add_argument("--update", action="store_true", help="write figures.csv anew")
    parser.add_argument("--debian", action="store_true", help="build with Debian's compiler")
    parser.add_argument("--show", action="store_true", help="print what the firmware prints")
    a = parser.parse_args()
    known = Known()
    if a.models:
        tasks = [(model, core) for model in a.models for core in a.core or ["M4"]]
    else:
        tasks = [(find(name), core) for name, core in known.rows if core in (a.core or BOARDS)]
        missing = sum(path is None for path, _ in tasks)
        tasks = [task for task in tasks if task[0] is not None]
        if missing:
            print(f"{missing} runs left out: their models are not here")
    toolchain, wrong = Toolchain(a.debian), []
    print("| model | core | outputs | " + " | ".join(COLUMNS) + " |\n|-|-|-|" + "-:|" * len(COLUMNS))

    def report(model, core, result):
        name = model.stem
        try:
            found, equal, output = result()
        except Failed as e:
            print(f"| {name} | {core} | failed: {e} |", flush=True)
            wrong.append(f"{name} on {core}: {e}")
            return
        print(row(core, name, found, equal), flush=True)
        if a.show or not equal:
            print(output)
        if not equal:
            wrong.append(f"{name} on {core}: outputs differ")
        if a.update:
            known.rows[name, core] = {"model": name, "core": core, **found}
            known.write()
        elif not a.models:
            slack = SLACK if toolchain.from_rustup(BOARDS[core].target) else SLACK_DEBIAN
            wrong.extend(f"{name} on {core}: {text}" for text in known.worse(name, core, found, slack))

    with tempfile.TemporaryDirectory() as folder:
        runs, waiting = Runs(toolchain, a.arenaplan, Path(folder)), None
        for model, core in tasks:
            try:
                result = runs.start(model, core).result
            except Failed as error:
                def result(error=error):
                    raise error
            if waiting:
                report(*waiting)
            waiting = model, core, result
        if waiting:
            report(*waiting)
    for text in wrong:
        print("wrong:", text)
    print(f"{len(tasks)} runs, {len(wrong)} wrong")
    return 1 if wrong or not tasks else 0


if __name__ == "__main__":
    sys.exit(main())

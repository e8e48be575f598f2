#!/usr/bin/env python3
"""usage: optima.py [--check]

Writes testdata/optima.csv: random placement problems whose best height is above their liveness bound, and that
height, as OR-tools' CP-SAT proves it. `solver/tests/optima.rs` compares the planner `exact` with it. A row says what the
solver's generator makes the problem from, so that the problems need not be committed: cargo writes them to a temporary
folder in the form of MiniMalloc. With --check the rows are proven again and compared.

    python3 -m venv .venv-optima && .venv-optima/bin/pip install ortools==9.15.6755
    .venv-optima/bin/python tests/oracle/optima.py

Takes some minutes on two cores. Ends with one summary line; exit status 1 on any difference.
"""
import argparse
import csv
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ortools.sat.python import cp_model

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "testdata" / "optima.csv"
SHAPE = "kind buffers times longest largest step align fixed_percent".split()
COLUMNS = SHAPE + ["seed", "bound", "optimum"]
# How many problems of which shape.
SHAPES = """
     6  filled     8  8  4   12  1  1  0
     8  filled    10 10  5   20  1  1  0
    10  filled    14 14  8   20  1  1  0
    10  filled    14 10  5 1000 16  1  0
    14  filled    20 20  8   20  1  1  0
     8  filled    22 20  5   20  1  1  0
    10  intervals 14  8  5    6  1  4  0
    10  intervals 22 10  3    6  1  4  0
    10  intervals 30 14  5    6  1  4  0
     6  intervals 40 20  3    6  1  4  0
     4  intervals 20 14  5    8 16 64  0
     6  intervals 24 10  6   10  4 16  0
     6  intervals 30 30  6    8  1  1 10
     6  intervals 20 20  4    8  1  4 15
"""
SEEDS = 200          # tried per shape at most
TIME = 120           # seconds for one proof
WORKERS = 2


def write_problems(folder, rows):
    """Has solver/tests/optima.rs write a problem for each row."""
    with open(folder / "table.csv", "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS[:-2]] + [row[: len(SHAPE) + 1] for row in rows])
    command = ["cargo", "test", "--quiet", "-p", "arenaplan-solver", "--test", "optima", "problems_are_written"]
    p = subprocess.run(command, cwd=ROOT, env=os.environ | {"OPTIMA_FOLDER": str(folder)}, capture_output=True, text=True)
    if p.returncode != 0:
        sys.exit(f"the problems were not written:\n{p.stdout}{p.stderr}")


class Buffers:
    """A problem: what its file says of each buffer."""

    def __init__(self, path):
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        self.sizes = [int(r["size"]) for r in rows]
        self.lives = [(int(r["lower"]), int(r["upper"])) for r in rows]  # the upper end not included
        self.aligns = [int(r.get("alignment") or 1) for r in rows]
        self.fixed = [int(r["offset"]) if r.get("offset") else None for r in rows]

    def bound(self):
        """The greatest of all sums alive and all tops of fixed buffers."""
        alive = lambda t: sum(s for s, (lower, upper) in zip(self.sizes, self.lives) if lower <= t < upper)
        tops = [f + s for s, f in zip(self.sizes, self.fixed) if f is not None]
        return max([alive(lower) for lower, _ in self.lives] + tops)

    def optimum(self):
        """The proven best height; None where fixed offsets contradict each other; or no answer in time."""
        m = cp_model.CpModel()
        highest = max([f for f in self.fixed if f is not None], default=0) + sum(self.sizes) + sum(self.aligns)
        height = m.new_int_var(0, highest, "height")
        times, places, sizes = [], [], []
        for size, (lower, upper), align, fixed in zip(self.sizes, self.lives, self.aligns, self.fixed):
            offset = align * m.new_int_var(0, highest // align, "")
            if fixed is not None:
                m.add(offset == fixed)
            m.add(offset + size <= height)
            if size > 0:
                times.append(m.new_fixed_size_interval_var(lower, upper - lower, ""))
                places.append(m.new_interval_var(offset, size, offset + size, ""))
                sizes.append(size)
        m.add_no_overlap_2d(times, places)
        m.add_cumulative(times, sizes, height)
        m.minimize(height)
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = TIME
        solver.parameters.num_workers = WORKERS
        status = solver.solve(m)
        if status == cp_model.INFEASIBLE:
            return None
        return round(solver.objective_value) if status == cp_model.OPTIMAL else f"not proven in {TIME} s"


def search(folder):
    """For each shape the first problems whose optimum is above the bound."""
    wanted = {}
    for line in SHAPES.strip().split("\n"):
        count, kind, *numbers = line.split()
        wanted[tuple([kind] + [int(n) for n in numbers])] = int(count)
    rows = [list(shape) + [seed] for shape in wanted for seed in range(SEEDS)]
    write_problems(folder, rows)
    found = []
    for index, row in enumerate(rows):
        shape = tuple(row[:-1])
        if wanted[shape] == 0:
            continue
        problem = Buffers(folder / f"{index}.csv")
        bound, optimum = problem.bound(), problem.optimum()
        if isinstance(optimum, str):
            print(f"{row}: {optimum}", file=sys.stderr)
        elif optimum is not None and optimum > bound:
            found.append(row + [bound, optimum])
            wanted[shape] -= 1
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--check", action="store_true", help="compare, write nothing")
    a = p.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if a.check:
            with open(TABLE, newline="") as file:
                rows = [[row[0]] + [int(n) for n in row[1:]] for row in list(csv.reader(file))[1:]]
            write_problems(folder, rows)
            for index, row in enumerate(rows):
                problem = Buffers(folder / f"{index}.csv")
                proven = [problem.bound(), problem.optimum()]
                if proven != row[-2:]:
                    failed += 1
                    print(f"FAIL {row}: bound and optimum are {proven}")
        else:
            rows = search(folder)
            with open(TABLE, "w", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([COLUMNS] + rows)
    print(f"{len(rows) - failed} optima proven, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""usage: contracts.py [--check | --new]

Tries what `src/contract` says that TFLM's reference kernels allow of overlap, in TensorFlow Lite Micro itself (the
tflite-micro wheel): each operator of `tests/contracts.txt` with its input and its output as close as promised, either one
above the other, with results that must be those of a layout without overlap; and one element closer, where results should
be wrong, so that the distance is known to be tight.

Writes the numbers of the table; with --check it compares them. --new first replaces the list of operators by the one of
`contract_cases.py`. `tests/contract.rs` builds the models and knows the promises. Ends with one summary line; exit status 1
on any failure.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import contract_cases
from probe import Model, in_child, quietly, schema

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests" / "contracts.txt"
MARKER = 0x7A110000
ARENA = 1 << 19
ROUNDS = 6          # invokes, each with other inputs
CHUNK = 40          # models that one child runs
# Operators that copy with `memcpy`. What becomes of overlapping bytes, within one of its calls, is undefined, and differs
# from one processor to the other.
UNDEFINED = ("BATCH_TO_SPACE_ND", "BROADCAST_TO", "CONCATENATION", "GATHER", "RESHAPE", "RESIZE_NEAREST_NEIGHBOR",
             "SPACE_TO_BATCH_ND", "SQUEEZE", "STRIDED_SLICE")


def write_models(folder):
    """Has tests/contract.rs write its models to a folder."""
    # With --workspace, so that what `cargo test --workspace` has built serves here.
    command = ["cargo", "test", "--quiet", "--workspace", "--test", "contract", "--", "--exact", "models_are_planned"]
    environment = os.environ | {"CONTRACT_MODELS": str(folder)}
    p = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if p.returncode != 0:
        sys.exit(f"the models were not built:\n{p.stdout}{p.stderr}")


def multiple(n, of):
    """n rounded up."""
    return (n + of - 1) // of * of


class Trial:
    """A model with its promise, in which the operator stands once for each layout."""

    def __init__(self, path, index):
        # Comparisons see a difference only where equal values are no rarity.
        operator, index = index.split(maxsplit=1)
        self.few = operator in ("ARG_MAX", "ARG_MIN", "EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER",
                                "GREATER_EQUAL")
        above, below, view, self.input, self.output, *self.bytes = index.split()
        self.above, self.below, self.input, self.output = map(int, (above, below, self.input, self.output))
        self.view = None if view == "-" else int(view)
        self.bytes = [int(b) for b in self.bytes]
        self.model = Model(path)
        table = schema.Model.GetRootAs(self.model.data, 0).Subgraphs(0)
        operators = [table.Operators(k) for k in range(table.OperatorsLength())]
        self.operators = [(list(o.InputsAsNumpy()), list(o.OutputsAsNumpy())) for o in operators]
        self.graph_inputs = list(table.InputsAsNumpy())
        self.from_, self.to = self.operators[0][0][self.input], self.operators[0][1][self.output]
        size = {0: 4, 2: 4, 3: 1, 4: 8, 6: 1, 7: 2, 9: 1, 15: 4}
        self.from_size, self.to_size = (size[table.Tensors(int(t)).Type()] for t in (self.from_, self.to))

    def layouts(self, rng):
        """Name -> address of the input less that of the output."""
        above, below = multiple(self.above, self.from_size), multiple(self.below, self.to_size)
        layouts = {"above": above, "below": -below}
        # One element closer. What rounding up adds is no promise; where it adds, that step is all there is.
        if self.above > 0:
            layouts["above, closer"] = above - self.from_size
        if self.below > 0:
            layouts["below, closer"] = -(below - self.to_size)
        for name, least, end, step, sign in (("above, further", above, self.bytes[self.to], self.from_size, 1),
                                             ("below, further", below, self.bytes[self.from_], self.to_size, -1)):
            if least + step < end:
                layouts[name] = sign * int(rng.integers(least // step + 1, (end - 1) // step + 1)) * step
        if self.view is not None:
            layouts["view"] = self.view
        return layouts

    def offsets(self, distances):
        """An offset for each tensor: each operator with its own distance (None: no overlap) in memory of its own."""
        offsets, end = {}, 0
        for (inputs, outputs), distance in zip(self.operators, distances):
            a, b = inputs[self.input], outputs[self.output]
            if distance is not None:
                offsets[b] = end + max(0, -distance)
                offsets[a] = end + max(0, distance)
                end = multiple(max(offsets[a] + self.bytes[a], offsets[b] + self.bytes[b]), 16)
            for t in [*inputs, *outputs]:
                if t >= 0 and t not in offsets and self.bytes[t]:
                    offsets[t] = end
                    end += multiple(self.bytes[t], 16)
        return offsets

    def run(self, rng):
        """Names of the layouts with other results than without overlap."""
        layouts = self.layouts(rng)
        distances = [None, *layouts.values()]
        distances += [None] * (len(self.operators) - len(distances))
        offsets = self.offsets(distances)
        data = bytearray(self.model.data)
        for t in range(len(self.bytes)):
            word = (MARKER + t).to_bytes(4, "little")
            if data.count(word) != 1:
                raise ValueError("the plan is not found")
            at = data.index(word)
            data[at:at + 4] = int(offsets.get(t, -1)).to_bytes(4, "little", signed=True)
        self.model.data = bytes(data)
        it, _ = quietly(self.model.interpreter, ARENA)
        wrong = set()
        for _ in range(ROUNDS):
            values = {}
            for k, t in enumerate(self.graph_inputs):
                role = next((inputs.index(t), c) for c, (inputs, _) in enumerate(self.operators) if t in inputs)
                if role[0] not in values:
                    values[role[0]] = noise(it.get_input_details(k), rng, self.few)
                it.set_input(values[role[0]], k)
            quietly(it.invoke)
            count = len(self.operators[0][1])
            results = [b"".join(np.ascontiguousarray(it.get_output(c * count + k)).tobytes() for k in range(count))
                       for c in range(len(self.operators))]
            wrong |= {name for name, result in zip(layouts, results[1:]) if result != results[0]}
            if any(r != results[0] for r in results[1 + len(layouts):]):
                raise ValueError("results differ without overlap")
        return layouts, wrong


def noise(details, rng, few):
    """Random values that every operator takes: above 0 where they are floats or divisors. Only four, if `few`."""
    kind, shape = np.dtype(details["dtype"]), tuple(int(d) for d in details["shape"])
    if few and kind != np.bool_:
        return rng.integers(1, 5, shape).astype(kind)
    if kind.kind == "f":
        return rng.uniform(0.1, 6, shape).astype(kind)
    if kind == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if kind.itemsize == 1:
        limits = np.iinfo(kind)
        values = rng.integers(limits.min + 1, limits.max + 1, shape)
        return np.where(values == 0, 1, values).astype(kind)
    return rng.integers(1, 2**14, shape).astype(kind)


def try_all(paths, lines, answer):
    """Writes what was found of some models to a file, one JSON value a line."""
    with open(answer, "w") as f:
        for path, line in zip(paths, lines):
            try:
                trial = Trial(path, line)
                layouts, wrong = trial.run(np.random.default_rng(int(path.stem)))
                found = {"tried": list(layouts), "wrong": sorted(wrong), "above": trial.above, "below": trial.below,
                         "view": trial.view}
            except Exception as e:
                found = {"error": (getattr(e, "log", "") or repr(e)).splitlines()[0]}
            print(json.dumps(found), file=f, flush=True)
    return True


def tried(paths, lines):
    """try_all() in a process of its own, since a model can crash the interpreter; then on with the next."""
    found = []
    while len(found) < len(paths):
        answer = paths[len(found)].with_suffix(".json")
        answer.write_text("")
        in_child(lambda: try_all(paths[len(found):], lines[len(found):], answer))
        seen = [json.loads(line) for line in answer.read_text().splitlines()]
        found += seen
        if len(found) < len(paths):
            found.append({"error": "the interpreter crashed"})
    return found


def judge(found):
    """Problems, and the two distances and the view as they are written."""
    if "error" in found:
        return [found["error"]], None
    problems = [f"wrong: {name}" for name in found["wrong"] if "closer" not in name]

    def written(side):
        closer = f"{side}, closer"
        mark = "." if closer not in found["tried"] else "!" if closer in found["wrong"] else "?"
        return f"{found[side]}{mark}"
    view = found["view"]
    return problems, f"{written('above')} {written('below')} {'-' if view is None else view}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--check", action="store_true", help="compare, write nothing")
    p.add_argument("--new", action="store_true", help="take the list of operators from contract_cases.py")
    a = p.parse_args()
    lines = TABLE.read_text().splitlines()
    if a.new:
        lines = [line for line in lines if line.startswith("#")]
        lines += ["0. 0. - " + line for line in contract_cases.all_lines()]
        TABLE.write_text("\n".join(lines) + "\n")
    rows = [i for i, line in enumerate(lines) if not line.startswith("#")]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_models(folder)
        paths, index = sorted(folder.glob("*.tflite")), (folder / "index.txt").read_text().splitlines()
        if not len(paths) == len(rows) == len(index):
            sys.exit(f"{len(paths)} models for {len(rows)} lines of {TABLE.name}")
        chunks = range(0, len(paths), CHUNK)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = pool.map(lambda k: tried(paths[k:k + CHUNK], index[k:k + CHUNK]), chunks)
            found = [f for chunk in found for f in chunk]
    failed = tight = 0
    for i, f in zip(rows, found):
        above, below, view, rest = lines[i].split(maxsplit=3)
        problems, numbers = judge(f)
        before = f"{above} {below} {view}"
        if a.check and numbers and rest.split()[1] in UNDEFINED:
            same = numbers.replace("?", "!") == before.replace("?", "!")
        else:
            same = numbers == before
        if a.check and numbers and not same:
            problems.append(f"{numbers} now, {before} written")
        for problem in problems:
            print(f"FAIL {rest}: {problem}")
        failed += bool(problems)
        if numbers:
            tight += "!" in numbers
            lines[i] = f"{numbers} {rest}"
    if not a.check:
        TABLE.write_text("\n".join(lines) + "\n")
    print(f"{len(rows) - failed} passed, {failed} failed; {tight} wrong one element closer")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

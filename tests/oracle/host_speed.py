#!/usr/bin/env python3
"""usage: host_speed.py --program INVOKE [--all] [--models DIR] [--only TEXT] [--rounds N]

Times inferences on this machine, in arenaplan's runtime (INVOKE is the program `invoke` of benches, in a release build) and in
TensorFlow Lite Micro (the tflite-micro wheel, reference kernels), side by side: each has a process of its own for a model,
both get the same inputs, and they take turns for some rounds. A time is the median over all rounds of the median of a turn; on
either side setting the inputs is not part of it. The table shows

    model | microseconds in the wheel | in our runtime | ratio ours / wheel

The seven models of SEVEN must not be slower than in the wheel; exit status 1 if one is. With --all, all models that both run
are shown, the largest ratio first; that those others are slower is no failure.
"""
import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
SEVEN = ["kws_ref_model", "vww_96_int8", "pretrainedResnet_quant", "ad01_int8", "str_ww_ref_model", "micro_speech_quantized",
         "person_detect"]
# What stands for them where their folder is missing.
STAND_INS = ["dscnn_int8", "mobilenet_v2_int8", "resnet_int8", "autoencoder_int8", "streaming_int8"]
TURN = 0.1          # seconds of a turn, about
MOST = 2000         # inferences of a turn


def serve(path, inputs):
    """The wheel's side of the conversation: a number of inferences a line, the median of nanoseconds for each. Before, it
    makes the inputs and writes their bytes to a file."""
    from probe import PLENTY, Model, noise, quietly
    from wheel import without_plan
    model = Model.of(without_plan(Path(path).read_bytes()))
    it, _ = quietly(model.interpreter, PLENTY)
    rng = np.random.default_rng(len(model.data))
    values = [noise(it.get_input_details(k), rng) for k in range(model.inputs)]
    Path(inputs).write_bytes(b"".join(v.tobytes() for v in values))
    print("ready", flush=True)
    invoke, now = it.invoke, time.perf_counter_ns
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            for k, v in enumerate(values):
                it.set_input(v, k)
            start = now()
            invoke()
            times.append(now() - start)
        print(int(statistics.median(times)), flush=True)


class Side:
    """A process that times inferences of one model."""

    def __init__(self, name, *command):
        self.name = name
        self.process = subprocess.Popen([str(c) for c in command], bufsize=0, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def line(self):
        """What it says next; ValueError if it has ended."""
        said = self.process.stdout.readline().decode()
        if not said:
            raise ValueError(f"{self.name} does not run it")
        return said.strip()

    def time(self, count):
        """The median of nanoseconds of so many inferences."""
        try:
            self.process.stdin.write(f"{count}\n".encode())
        except BrokenPipeError:
            pass  # It has ended, as the next line finds.
        return int(self.line())

    def end(self):
        self.process.kill()
        self.process.communicate()


def compare(program, path, rounds):
    """(nanoseconds in the wheel, in the runtime); ValueError if one of them does not run the model."""
    with tempfile.TemporaryDirectory() as folder:
        inputs, sides = Path(folder) / "inputs", []
        try:
            wheel = Side("the wheel", sys.executable, __file__, "--serve", path, inputs)
            sides.append(wheel)
            wheel.line()
            ours = Side("the runtime", program, path, inputs)
            sides.append(ours)
            counts = [max(1, min(MOST, int(TURN * 1e9 / max(side.time(1), 1)))) for side in sides]
            times = [[], []]
            for _ in range(rounds):
                for side, count, found in zip(sides, counts, times):
                    found.append(side.time(count))
            return tuple(statistics.median(found) for found in times)
        finally:
            for side in sides:
                side.end()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--program", help="the program `invoke`")
    p.add_argument("--models", type=Path, help="a folder [../shared/models, testdata/models where that is missing]")
    p.add_argument("--all", action="store_true", help="all models of the folder")
    p.add_argument("--only", default="", help="only files whose name contains this")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.serve:
        serve(*a.serve)
        return 0
    if not a.program or not Path(a.program).is_file():
        sys.exit(f"no program {a.program}")
    folder = a.models or next(d for d in (ROOT.parent / "shared/models", ROOT / "testdata/models") if d.is_dir())
    found = {f.stem: f for f in sorted(folder.glob("*.tflite"))}
    asked = [name for name in SEVEN if name in found] or [name for name in STAND_INS if name in found]
    names = [name for name in (found if a.all else asked) if a.only in name]
    rows = []
    for name in names:
        try:
            wheel, ours = compare(a.program, found[name], a.rounds)
            rows.append((ours / wheel, name, wheel / 1e3, ours / 1e3))
        except ValueError as e:
            print(f"{name}: not timed, {e}")
    if a.all:
        rows.sort(reverse=True)
    print(f"{'model':54} {'wheel us':>10} {'ours us':>10}  ratio")
    for ratio, name, wheel, ours in rows:
        print(f"{name:54} {wheel:10.1f} {ours:10.1f}  {ratio:5.2f}{'  SLOWER' if ratio > 1 else ''}")
    timed = {name: ratio for ratio, name, *_ in rows}
    slower = [name for name in asked if a.only in name and timed.get(name, 2) > 1]
    print(f"{len(timed)} models timed; of {len(asked)} that must not be slower, {len(slower)} are")
    return 1 if slower or not timed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""usage: device.py CORE-KERNELS ORIGINALS PLANNED [--seeds 1,2] [--invokes 6] [--arena BYTES]

Runs models with and without their plans on TensorFlow Lite Micro in QEMU and compares all that operators read and write.
CORE-KERNELS names a build of the Makefile: m4-ref, m4-cmsis, m55-ref, m55-cmsis. ORIGINALS and PLANNED are two models, or two
folders with files of the same names. Prints a row for each model and seed; exit status 1 if one differs, 2 if one does not run.

Tensors are matched by their numbers, so operators may stand in another order. Before each invoke the head is overwritten with
noise, another for the planned model, so that no byte left over from before is right by chance: plans that keep values in the
head from one invoke to the next, beyond TFLM's variables, cannot be tried like this. Tensors that are the same in all
invokes prove little, so those that vary are counted.
"""
import argparse
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

BUILD = Path(__file__).resolve().parent / "build"
MAGIC = 0x314E4C50
MACHINES = {"m4": ("mps2-an386", "cortex-m4", 0x21000000), "m55": ("mps3-an547", "cortex-m55", 0x70000000)}
MODEL_OFFSET, ARENA_OFFSET, ARENA_MAX = 0x10000, 0x600000, 0xA00000
TRACE = 1


class Failed(Exception):
    """A model did not run to its end."""


def emulate(build, model, arena, invokes, seed, poison):
    """What the firmware prints."""
    machine, cpu, base = MACHINES[build.split("-")[0]]
    if model.stat().st_size > ARENA_OFFSET - MODEL_OFFSET:
        raise Failed("the model is larger than the place for it")
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config"
        config.write_bytes(struct.pack("<6I", MAGIC, arena, invokes, seed, TRACE, poison))
        command = ["qemu-system-arm", "-machine", machine, "-cpu", cpu, "-display", "none", "-monitor", "none",
                   "-serial", "none", "-semihosting-config", "enable=on,target=native",
                   "-device", f"loader,file={config},addr={base:#x},force-raw=on",
                   "-device", f"loader,file={model},addr={base + MODEL_OFFSET:#x},force-raw=on",
                   "-kernel", BUILD / build / "firmware.elf"]
        p = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600)
    text = p.stdout.decode("latin-1")
    if p.returncode != 0 or not text.rstrip().endswith("done"):
        raise Failed(" ".join(text.split())[-200:])
    return text


class Run:
    """Figures, and for each invoke the outputs and what operators found and left: (tensor, hash), in the order of running."""

    def __init__(self, build, model, arena, invokes, seed, poison):
        if arena is None:
            # Most models fit into 1 MB, and a small arena is quicker to guard.
            try:
                text = emulate(build, model, 1 << 20, invokes, seed, poison)
            except Failed:
                text = emulate(build, model, ARENA_MAX, invokes, seed, poison)
        else:
            text = emulate(build, model, arena, invokes, seed, poison)
        figures = {}
        self.outputs, self.events, events = [], [], []
        self.gap_written = False
        for line in text.splitlines():
            match line.split():
                case ["arena_used" | "head" | "tail" as name, value]:
                    figures[name] = int(value)
                case ["in" | "op" as what, op, name, "tensor", tensor, "bytes", _, "at", at, "hash", value]:
                    events.append((what, int(op), name, int(tensor), int(at), value))
                case ["ticks", _]:
                    self.events.append(events)
                    self.outputs.append([])
                    events = []
                case ["output", *_, value]:
                    self.outputs[-1].append(value)
                case ["gap_written", _]:
                    self.gap_written = True
        self.arena_used, self.head = figures["arena_used"], figures["head"]

    def tensors(self):
        """For each invoke: tensor -> hash. A tensor of the head is written once, so that its readers find what its writer
        left; variables lie beyond the head, change, and are seen through the outputs."""
        result = []
        for events in self.events:
            seen, changed = {}, set()
            for _, _, _, tensor, at, value in events:
                if at < self.head and seen.setdefault(tensor, value) != value:
                    changed.add(tensor)
            result.append({t: v for t, v in seen.items() if t not in changed})
        return result


def difference(original, planned):
    """The first thing that a plan made wrong, or None."""
    for invoke, (right, events) in enumerate(zip(original.tensors(), planned.events)):
        for what, op, name, tensor, _, value in events:
            if right.get(tensor, value) != value:
                return f"invoke {invoke}: tensor {tensor} as {'read' if what == 'in' else 'written'} by {op} {name}"
    if original.outputs != planned.outputs:
        return "an output"
    return "a byte between head and tail was written" if planned.gap_written else None


def pairs(originals, planned):
    """Models that are in both places."""
    if originals.is_file():
        return [(originals, planned)]
    both = [(m, planned / m.name) for m in sorted(originals.glob("*.tflite"))]
    return [(a, b) for a, b in both if b.is_file()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("originals", type=Path)
    parser.add_argument("planned", type=Path)
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--invokes", type=int, default=6)
    parser.add_argument("--arena", type=int, help="bytes; without it 1 MB, and 10 MB where that is too little")
    a = parser.parse_args()
    status = 0
    print("| model | head without plan | head | arena used | tensors that vary | result |\n|-|-:|-:|-:|-:|-|")
    for original, planned in pairs(a.originals, a.planned):
        for seed in map(int, a.seeds.split(",")):
            try:
                before = Run(a.build, original, a.arena, a.invokes, seed, 11)
                after = Run(a.build, planned, a.arena, a.invokes, seed, 23)
            except Failed as e:
                print(f"| {original.stem} | | | | | does not run: {e} |", flush=True)
                status = 2
                continue
            wrong = difference(before, after)
            status = max(status, wrong is not None)
            tensors = before.tensors()
            vary = sum(len({t.get(k) for t in tensors}) > 1 for k in tensors[0])
            print(f"| {original.stem} | {before.head:,} | {after.head:,} | {after.arena_used:,} | {vary} of {len(tensors[0])} "
                  f"| {wrong or 'same'} |", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())

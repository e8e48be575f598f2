#!/usr/bin/env python3
"""usage: shared_arena.py --program PATH --arenaplan PATH [--public]

Models that take turns on one arena of the real TensorFlow Lite Micro (`shared_arena.cc`, built with TFLM's reference kernels for
this machine): outputs as alone and without a plan, in exactly the bytes that `arenaplan plan --share --bits 64` tells. And models cut
in two: the second half goes on with what the first has left, without a copy, and computes what the whole does. With --public also
the models of ../shared/models. Exit status 1 if something is wrong.
"""
import argparse
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
OWN, PUBLIC = ROOT / "testdata" / "models", ROOT.parent / "shared" / "models"
TARGETS = "tflm", "tflm-reference"
TURNS = [
    (OWN, "streaming_int8", "dscnn_int8"),
    (OWN, "dscnn_int8", "streaming_int8"),
    (OWN, "svdf_int8", "unet_int8", "lstm_int8"),
    (OWN, "call_once_float32", "while_float32", "resnet_int8", "svdf_float32"),
    (PUBLIC, "kws_ref_model", "esphome_v2_vad"),
    (PUBLIC, "esphome_v2_vad", "vww_96_int8", "kws_ref_model"),
    (PUBLIC, "hello_world_int8", "esphome_v2_okay_nabu", "keyword_scrambled_8bit", "trained_lstm_int8"),
]
WHOLE = [(OWN, "dscnn_int8"), (OWN, "resnet_int8"), (OWN, "unet_int8"), (PUBLIC, "kws_ref_model"), (PUBLIC, "vww_96_int8")]
ROUNDS, LARGE = 4, 1 << 22


class Table:
    """A table of a FlatBuffer, to read and to change in place."""

    def __init__(self, data, at):
        self.data, self.at = data, at

    def word(self, at):
        return struct.unpack_from("<I", self.data, at)[0]

    def field(self, number):
        """Where the field is; None if it is not there."""
        vtable = self.at - struct.unpack_from("<i", self.data, self.at)[0]
        size = struct.unpack_from("<H", self.data, vtable)[0]
        slot = struct.unpack_from("<H", self.data, vtable + 4 + 2 * number)[0] if 4 + 2 * number < size else 0
        return self.at + slot if slot else None

    def vector(self, number):
        at = self.field(number)
        return None if at is None else at + self.word(at)

    def numbers(self, number):
        at = self.vector(number)
        return [] if at is None else list(struct.unpack_from(f"<{self.word(at)}i", self.data, at + 4))

    def tables(self, number):
        at = self.vector(number)
        places = [] if at is None else range(at + 4, at + 4 + 4 * self.word(at), 4)
        return [Table(self.data, place + self.word(place)) for place in places]


# Fields of the schema, by number.
SUBGRAPHS, BUFFERS = 2, 4
TENSORS, INPUTS, OUTPUTS, OPERATORS = 0, 1, 2, 3
OP_INPUTS, OP_OUTPUTS, SHAPE, BUFFER, DATA = 1, 2, 0, 2, 0


def split(model, cut):
    """Both halves of a model with one input and one output, or None where there is no cut that one tensor passes."""
    def parts(data):
        root = Table(data, struct.unpack_from("<I", data)[0])
        return root, root.tables(SUBGRAPHS)[0]

    root, graph = parts(model)
    operators = graph.tables(OPERATORS)
    written = {t for op in operators[:cut] for t in op.numbers(OP_OUTPUTS)} | set(graph.numbers(INPUTS))
    read = {t for op in operators[cut:] for t in op.numbers(OP_INPUTS)} | set(graph.numbers(OUTPUTS))
    passing = written & read
    if len(passing) != 1 or cut >= len(operators):
        return None
    halves = []
    for first, end in ((0, cut), (cut, len(operators))):
        data = bytearray(model)
        root, graph = parts(data)
        ops = graph.tables(OPERATORS)[first:end]
        used = {t for op in ops for t in op.numbers(OP_INPUTS) + op.numbers(OP_OUTPUTS)} | passing
        used |= set(graph.numbers(INPUTS)) if first == 0 else set()
        field, vector = graph.field(OPERATORS), graph.vector(OPERATORS) + 4 * first
        struct.pack_into("<I", data, vector, end - first)
        struct.pack_into("<I", data, field, vector - field)
        struct.pack_into("<i", data, graph.vector(INPUTS if first else OUTPUTS) + 4, *passing)
        buffers = root.tables(BUFFERS)
        for index, tensor in enumerate(graph.tables(TENSORS)):
            at = tensor.field(BUFFER)
            has_data = at is not None and buffers[tensor.word(at)].vector(DATA) is not None
            shape = tensor.vector(SHAPE)
            # What this half has no use for takes no room.
            if index not in used and not has_data and shape is not None and tensor.word(shape):
                struct.pack_into("<I", data, shape + 4, 0)
        halves.append(bytes(data))
    return halves


def digests(program, arena, models, cascade=False):
    """(used bytes, digests by model), or the reason why it does not run."""
    command = [program, str(arena), str(ROUNDS), *(["--cascade"] if cascade else []), *map(str, models)]
    p = subprocess.run(command, capture_output=True, text=True)
    if p.returncode != 0:
        return None, (p.stdout + p.stderr).strip()
    lines = [line.split() for line in p.stdout.splitlines()]
    used = next(int(words[1]) for words in lines if words[0] == "used")
    found = [[words[5] for words in lines if words[0] == "round" and words[3] == str(k)] for k in range(len(models))]
    return used, found


def plan(arenaplan, models, folder, target, *flags):
    """(paths of planned models, figures of all together)."""
    command = [arenaplan, "plan", *flags, *models, "--out-dir", folder, "--force", "--target", target, "--bits", "64",
               "--format", "json"]
    p = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if p.returncode != 0:
        raise SystemExit(p.stderr)
    return [folder / Path(m).name for m in models], json.loads(p.stdout)[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--arenaplan", required=True)
    parser.add_argument("--public", action="store_true")
    args = parser.parse_args()
    program = str(Path(args.program).resolve())
    wrong = vary = 0

    def report(name, target, figures, result, expected):
        nonlocal wrong, vary
        used, found = result
        right = used is not None and used <= figures["arena_bytes"] and found == expected
        wrong += not right
        vary += any(len(set(rounds)) > 1 for rounds in expected)
        arena = f"arena {figures['arena_bytes']}, used {used}, head {figures['head_bytes']}, tails {figures['tail_bytes']}"
        print(f"{name} for {target}: {arena}: {'as alone' if right else f'WRONG: {found} instead of {expected}'}")

    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for where, *names in TURNS:
            if where == PUBLIC and not (args.public and PUBLIC.is_dir()):
                continue
            models = [where / f"{name}.tflite" for name in names]
            expected = [digests(program, LARGE, [model])[1][0] for model in models]
            for target in TARGETS:
                planned, figures = plan(args.arenaplan, models, folder / target, target, "--share")
                result = digests(program, figures["arena_bytes"], planned)
                report(" ".join(names), target, figures, result, expected)
        for where, name in WHOLE:
            if where == PUBLIC and not (args.public and PUBLIC.is_dir()):
                continue
            model = (where / f"{name}.tflite").read_bytes()
            whole = digests(program, LARGE, [where / f"{name}.tflite"])[1][0]
            cuts = [(cut, halves) for cut in range(1, 40) if (halves := split(model, cut))]
            for cut, halves in cuts[len(cuts) // 4::max(1, len(cuts) // 4)]:
                paths = [folder / f"{name}_{half}.tflite" for half in ("front", "back")]
                for path, half in zip(paths, halves):
                    path.write_bytes(half)
                for target in TARGETS:
                    planned, figures = plan(args.arenaplan, paths, folder / target, target, "--cascade")
                    used, found = digests(program, figures["arena_bytes"], planned, cascade=True)
                    report(f"{name} cut at {cut}", target, figures, (used, found and found[1:]), [whole])
    if not vary:
        print("WRONG: no outputs vary")
    print(f"{wrong} wrong")
    return 1 if wrong or not vary else 0


if __name__ == "__main__":
    sys.exit(main())

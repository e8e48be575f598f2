#!/usr/bin/env python3
"""usage: operators.py [--arenaplan PATH] [--update] [MODEL ...]

Counts the instructions of each operator of models on an emulated Cortex-M4 (examples/firmware, `operators`). Without models: those of
`operators.csv`, with which the figures are compared; --update writes it anew. The table is what the cost of operators is fitted to
and tested with (src/stripes/cost.rs). Models are planned in their own order; made-up inputs, since kernels hardly look at values.
"""
import argparse
import csv
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from build import BOARDS, ROOT, Failed, Toolchain, run

TABLE = Path(__file__).resolve().parent / "operators.csv"
MODELS = ("dscnn_int8", "resnet_int8", "mobilenet_v2_int8", "unet_int8", "inception_int8", "squeeze_excite_int8",
          "conv_int8", "conv_int16x8", "conv_float32", "autoencoder_int8")
# Compilers differ a little.
SLACK = 0.05


def count(toolchain, arenaplan, model, folder):
    """Instructions of each operator of a model."""
    planned = folder / model.name
    command = [arenaplan, "plan", model, "-o", planned, "--force", "--target", "arenaplan", "--reorder", "no"]
    p = subprocess.run(command, capture_output=True, text=True)
    if p.returncode != 0:
        raise Failed(p.stderr.strip())
    board = BOARDS["M4"]
    status, output = run(board, *toolchain.build(board, ["operators"], planned))
    if status != 0:
        raise Failed(" ".join(output.split())[:300])
    return [int(n) for n in re.findall(r"^operator \d+: (\d+)$", output, re.M)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--arenaplan", default=ROOT / "target" / "release" / "arenaplan", type=Path)
    parser.add_argument("--update", action="store_true", help="write operators.csv anew")
    a = parser.parse_args()
    known, rows, wrong = {}, [], 0
    if not a.update and not a.models:
        with open(TABLE, newline="") as f:
            known = {(r["model"], int(r["operator"])): int(r["instructions"]) for r in csv.DictReader(f)}
    models = a.models or [ROOT / "testdata" / "models" / f"{name}.tflite" for name in MODELS]
    toolchain = Toolchain()
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            for operator, instructions in enumerate(count(toolchain, a.arenaplan, model, Path(folder))):
                expected = known.get((model.stem, operator))
                differs = known and (expected is None or abs(instructions - expected) > SLACK * expected)
                wrong += bool(differs)
                print(model.stem, operator, f"{instructions:,}", f"instead of {expected}" if differs else "")
                rows.append((model.stem, operator, instructions))
    if a.update:
        with open(TABLE, "w", newline="") as f:
            out = csv.writer(f, lineterminator="\n")
            out.writerow(("model", "operator", "instructions"))
            out.writerows(rows)
    print(f"{len(rows)} operators, {wrong} wrong")
    return 1 if wrong or not rows else 0


if __name__ == "__main__":
    sys.exit(main())

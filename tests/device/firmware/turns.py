#!/usr/bin/env python3
"""usage: turns.py [--public]

Models that take turns on one arena of an emulated Cortex-M4, and a model cut in two that runs as a cascade (examples/turns): the
firmware itself compares with what the models compute alone, and the arena with the largest head and the sum of the tails.
First with models of testdata; with --public also with those of ../shared/models, where that folder is. Exit status 1 if something
is wrong.
"""
import argparse
import subprocess
import sys

from build import BOARDS, ROOT, Failed, Toolchain, run

EXAMPLE = ROOT / "examples" / "turns"
PUBLIC = ROOT.parent / "shared" / "models"
# Models that take turns, and the model that is cut.
GROUPS = [None, (("kws_ref_model", "vww_96_int8", "esphome_v2_vad"), "kws_ref_model")]


def build(tools, board, group):
    command, environment, folder = tools.cargo(board.target)
    if group:
        paths = [str(PUBLIC / f"{name}.tflite") for name in group[0]]
        environment = environment | {"ARENAPLAN_MODELS": ":".join(paths),
                                     "ARENAPLAN_WHOLE": str(PUBLIC / f"{group[1]}.tflite")}
    command = [command[0], *command[1:], "build", "--quiet", "--locked", "--release", "--target", board.target]
    p = subprocess.run(command, cwd=EXAMPLE, env=environment, capture_output=True, text=True)
    if p.returncode != 0:
        raise Failed("\n".join(p.stderr.strip().splitlines()[-15:]))
    return folder / board.target / "release" / "turns"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--public", action="store_true")
    args = parser.parse_args()
    tools, board, wrong = Toolchain(), BOARDS["M4"], 0
    for group in GROUPS:
        if group and not (args.public and PUBLIC.is_dir()):
            continue
        name = " ".join(group[0]) if group else "testdata"
        try:
            status, output = run(board, build(tools, board, group))
        except Failed as e:
            status, output = 1, str(e)
        right = status == 0 and output.endswith("PASS\n")
        wrong += not right
        arenas = [line for line in output.splitlines() if ": arena " in line]
        print(f"{name}: {'; '.join(arenas) if right else output.strip()} {'ok' if right else 'WRONG'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

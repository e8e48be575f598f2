#!/usr/bin/env python3
"""usage: quickstart.py [--debian]

Builds examples/quickstart, runs it in QEMU, and compares the scores that it prints with those of TensorFlow Lite Micro for the
same input. Exit status 1 if they differ.

Needs the packages of tests/oracle/requirements.txt; installs the compiler's target and QEMU where they are missing.
"""
import argparse
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from tflite_micro.python.tflite_micro import runtime

from build import BOARDS, ROOT, Failed, Toolchain, run

EXAMPLE = ROOT / "examples" / "quickstart"
MODEL = ROOT / "testdata" / "models" / "mobilenet_v2_int8.tflite"


def expected():
    """The scores in the wheel, for the input that the example makes."""
    interpreter = runtime.Interpreter.from_file(str(MODEL))
    shape = interpreter.get_input_details(0)["shape"]
    pixels = (np.arange(np.prod(shape)) * 7).astype(np.uint8).view(np.int8)
    interpreter.set_input(pixels.reshape(shape), 0)
    interpreter.invoke()
    return interpreter.get_output(0).flatten().tolist()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--debian", action="store_true", help="build with Debian's compiler")
    toolchain, board = Toolchain(parser.parse_args().debian), BOARDS["M4"]
    command, environment, folder = toolchain.cargo(board.target)
    p = subprocess.run([*command, "build", "--quiet", "--locked", "--release", "--target", board.target], cwd=EXAMPLE,
                       env=environment, capture_output=True, text=True)
    if p.returncode != 0:
        print(p.stderr)
        return 1
    try:
        status, output = run(board, folder / board.target / "release" / "quickstart")
    except Failed as e:
        print(e)
        return 1
    scores = expected()
    found = re.fullmatch(r"scores: \[([-\d, ]+)\]\s*", output)
    is_right = status == 0 and found is not None and [int(x) for x in found[1].split(",")] == scores
    print(f"{output.strip()}; TensorFlow Lite Micro: {scores}: {'equal' if is_right else 'DIFFERENT'}")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())

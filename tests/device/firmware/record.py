#!/usr/bin/env python3
"""usage: record.py MODEL RECORD [--invokes N]

Runs a model in the TFLM wheel and writes the inputs and outputs as the firmware reads them: the number of invokes (u32), then
for each invoke all inputs and all outputs. All invokes are on one interpreter. A process of its own, since the wheel can crash.
"""
import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "oracle"))
from probe import PLENTY, Model, noise, quietly, signal_of  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("record", type=Path)
    parser.add_argument("--invokes", type=int, default=3)
    a = parser.parse_args()
    model = Model(a.model)
    it, _ = quietly(model.interpreter, PLENTY)
    rng = np.random.default_rng(1)
    parts = [np.uint32(a.invokes).tobytes()]
    for invoke in range(a.invokes):
        for k in range(model.inputs):
            values = (noise if invoke == 0 else signal_of)(it.get_input_details(k), rng)
            it.set_input(values, k)
            parts.append(np.ascontiguousarray(values).tobytes())
        quietly(it.invoke)
        parts += [np.ascontiguousarray(it.get_output(k)).tobytes() for k in range(model.outputs)]
    a.record.write_bytes(b"".join(parts))


if __name__ == "__main__":
    main()

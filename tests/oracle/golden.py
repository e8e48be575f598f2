#!/usr/bin/env python3
"""usage: golden.py  -- writes testdata/wheel.json: what the TFLM wheel does with each file of testdata.

`cargo test` compares its predictions with these figures, so that it needs no wheel. Per file in `models`:
`runs`, else `reason`; `head`, `tail`, `min_arena` and `sections` (name -> [bytes used, bytes requested, count]) without
any plan; `vary`: whether outputs depend on the inputs; and for a file that carries a plan `planned`: the same with the
plan, and `same_outputs`. `malformed` says in a few words what happens to each wrong file.
"""
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from wheel import check_installed, has_plan, probe, probe_bytes, without_plan

TESTDATA = Path(__file__).resolve().parents[2] / "testdata"
FIGURES = ("head", "tail", "min_arena", "sections")


def golden(path):
    """The record of one valid file."""
    data = path.read_bytes()
    plain = probe_bytes(without_plan(data), "--smallest")
    if "error" in plain:
        return {"runs": False, "reason": plain["error"]}
    record = {"runs": True, **{k: plain[k] for k in FIGURES}, "vary": plain["vary"]}
    if has_plan(data):
        planned = probe(path, "--smallest")
        record["planned"] = ({"reason": planned["error"]} if "error" in planned else
                             {"head": planned["head"], "tail": planned["tail"], "min_arena": planned["min_arena"],
                              "same_outputs": planned["outputs"] == plain["outputs"]})
    return record


def verdict(path):
    """What happens to a wrong file, in words."""
    seen = probe(path)
    if "error" in seen:
        return seen["error"]
    plain = probe_bytes(without_plan(path.read_bytes()), "--invokes", seen["invokes"])
    if not has_plan(path.read_bytes()) or "error" in plain:
        return "runs"
    outputs = "right" if plain["outputs"] == seen["outputs"] else "WRONG"
    return f"runs, {outputs} outputs, head {seen['head']} instead of {plain['head']}"


def main():
    check_installed()
    parts = {"models": golden, "malformed": verdict}
    out = {}
    with ProcessPoolExecutor(2) as pool:
        for name, f in parts.items():
            paths = sorted((TESTDATA / name).glob("*.tflite"))
            out[name] = dict(zip((p.stem for p in paths), pool.map(f, paths)))
    text = json.dumps(out, indent=1, sort_keys=True)
    # One line per short list.
    (TESTDATA / "wheel.json").write_text(compact(text) + "\n")
    print(f"{len(out['models'])} models, {len(out['malformed'])} wrong files", file=sys.stderr)


def compact(text):
    """JSON text with the lists of numbers on one line each."""
    import re
    return re.sub(r"\[\s+([-\d,\s]+?)\s+\]", lambda m: "[" + re.sub(r"\s+", " ", m.group(1)) + "]", text)


if __name__ == "__main__":
    main()

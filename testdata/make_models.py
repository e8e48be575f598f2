#!/usr/bin/env python3
"""usage: make_models.py [--check] [--readme]

Writes models/ and malformed/ anew, in an environment with requirements.txt; with --check compares with the committed
files instead. The same versions give the same bytes. With --readme only writes the tables of README.md, from the files
and from wheel.json (see tests/oracle/golden.py).
"""
import argparse
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import hand_models
import tf_models
from tensorflow.lite.python import schema_py_generated as S

HERE = Path(__file__).resolve().parent
NAMES = {v: k for k, v in vars(S.BuiltinOperator).items() if isinstance(v, int)}


def everything():
    """(path below this folder, bytes) of each file."""
    made = {}
    for name in tf_models.MODELS:
        made[name] = tf_models.build(name)
        yield f"models/{name}.tflite", made[name]
    for folder, table in (("models", hand_models.GOOD), ("malformed", hand_models.MALFORMED)):
        for name, (make, _) in table.items():
            yield f"{folder}/{name}.tflite", make(made.__getitem__)


def write(check):
    """Writes all files, or compares them; removes what no maker knows."""
    names, changed = set(), []
    for name, data in everything():
        path = HERE / name
        names.add(path)
        if not path.exists() or path.read_bytes() != data:
            changed.append(name)
            if not check:
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(data)
    for path in sorted(HERE.glob("m*/*.tflite")):
        if path not in names:
            changed.append(f"{path.relative_to(HERE)} (not made by this script)")
            if not check:
                path.unlink()
    for name in changed:
        print(("differs: " if check else "written: ") + name)
    print(f"{len(names)} files, {len(changed)} changed")
    return 1 if check and changed else 0


def facts(path):
    """(subgraphs, operators, kinds of operators) of a file."""
    m = S.Model.GetRootAs(path.read_bytes(), 0)
    total, kinds = 0, set()
    for g in (m.Subgraphs(i) for i in range(m.SubgraphsLength())):
        for o in (g.Operators(i) for i in range(g.OperatorsLength())):
            c = m.OperatorCodes(o.OpcodeIndex())
            code = max(c.BuiltinCode(), c.DeprecatedBuiltinCode())
            total += 1
            kinds.add(c.CustomCode().decode() if c.CustomCode() else NAMES.get(code, str(code)))
    return m.SubgraphsLength(), total, sorted(kinds)


def model_rows(wheel):
    """Rows of the table of models."""
    for made, table in (("TensorFlow", tf_models.MODELS), ("by hand", hand_models.GOOD)):
        for name, (_, about) in table.items():
            path = HERE / f"models/{name}.tflite"
            subgraphs, operators, _ = facts(path)
            kind = name.rsplit("_", 1)[1] if name.rsplit("_", 1)[1] in ("int8", "float32", "int16x8", "hybrid") else "int8"
            w = wheel["models"][name]
            if w["runs"]:
                head = f"{w['head']:,}"
                runs = "yes" if "planned" not in w else f"yes; head {w['planned']['head']:,} with its plan"
            else:
                head, runs = "", "no: " + w["reason"].removeprefix("tensorflow/lite/micro/kernels/conv_common.cc ")
            yield (f"| {name} | {about} | {kind} | {subgraphs} | {operators} | {path.stat().st_size:,} | {made} | {runs} | "
                   f"{head} |")


def malformed_rows(wheel):
    """Rows of the table of wrong files."""
    for name, (_, about) in hand_models.MALFORMED.items():
        size = (HERE / f"malformed/{name}.tflite").stat().st_size
        yield f"| {name} | {about} | {size:,} | {wheel['malformed'][name].replace('|', '/')} |"


def readme():
    """Replaces the tables of README.md, each between its two comments."""
    wheel = json.loads((HERE / "wheel.json").read_text())
    text = (HERE / "README.md").read_text()
    for name, rows in (("models", model_rows(wheel)), ("malformed", malformed_rows(wheel))):
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        head, rest = text.split(start)
        old, tail = rest.split(end)
        text = head + start + "\n".join(old.splitlines()[:2] + list(rows)) + "\n" + end + tail
    (HERE / "README.md").write_text(text)


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--check", action="store_true")
    p.add_argument("--readme", action="store_true")
    a = p.parse_args()
    sys.exit(readme() if a.readme else write(a.check))

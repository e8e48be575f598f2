#!/usr/bin/env python3
"""usage: speed.py --arenaplan PROGRAM DIR SECONDS MEGABYTES SECONDS_EACH

Plans all models of DIR three times with nothing shared; the median time must be below SECONDS, the peak memory below
MEGABYTES (10^6 bytes). Each plan must be at its bound and so be proved, but for those with offsets compiled in, which stay as
they came. Then each model alone with everything on, for several targets: none may take more than SECONDS_EACH of processor
time, and most at most a tenth of a second.
"""
import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import time

TARGETS = ["tflm", "tflm-reference", "tflm-cmsis-nn", "tflm-esp-nn"]

parser = argparse.ArgumentParser()
parser.add_argument("--arenaplan", required=True)
parser.add_argument("folder")
parser.add_argument("seconds", type=float)
parser.add_argument("megabytes", type=float)
parser.add_argument("seconds_each", type=float)
args = parser.parse_args()


def plan(*options):
    p = subprocess.run([args.arenaplan, "plan", "--dry-run", "--format", "json", *options], capture_output=True)
    if p.returncode != 0:
        sys.exit(f"plan {' '.join(options)} failed: {p.stderr.decode(errors='replace')[-300:]}")
    return json.loads(p.stdout)


def used():
    return resource.getrusage(resource.RUSAGE_CHILDREN)


times = []
for _ in range(3):
    start = time.monotonic()
    plans = plan(args.folder, "--alias", "none")
    times.append(time.monotonic() - start)
open_ones = [m["model"] for m in plans if m["planner"] != "stored"
             and not (m["optimal"] and m["head_bytes"] == m["bound_with_scratch_bytes"])]
median = statistics.median(times)

each = []
for path in sorted(pathlib.Path(args.folder).glob("*.tflite")):
    for target in TARGETS:
        before = used()
        plan(str(path), "--target", target)
        after = used()
        each.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, path.stem, target))
each.sort(reverse=True)
peak = used().ru_maxrss * 1024 / 1e6
short = sum(seconds <= 0.1 for seconds, _, _ in each)

print(f"all {len(plans)} models of {args.folder}, nothing shared: {median:.2f} s (median of 3), "
      f"{len(open_ones)} not proved optimal")
for model in open_ones:
    print(f"  {model}")
print(f"each alone for {len(TARGETS)} targets, everything on: {short} of {len(each)} in at most 0.1 s, {peak:.0f} MB at the most")
for seconds, model, target in each[:5]:
    print(f"  {seconds:.2f} s  {model} for {target}")
sys.exit(not plans or bool(open_ones) or median >= args.seconds or peak >= args.megabytes
         or each[0][0] >= args.seconds_each or 2 * short < len(each))

#!/usr/bin/env python3
"""usage: speed.py --arenaplan PROGRAM DIR SECONDS MEGABYTES

Plans all models of DIR three times; the median time must be below SECONDS, the peak memory below MEGABYTES (10^6 bytes).
Each plan must be at its bound and so be proved, but for those with offsets compiled in, which stay as they came.
"""
import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--arenaplan", required=True)
parser.add_argument("folder")
parser.add_argument("seconds", type=float)
parser.add_argument("megabytes", type=float)
args = parser.parse_args()

times = []
for _ in range(3):
    start = time.monotonic()
    p = subprocess.run([args.arenaplan, "plan", args.folder, "--dry-run", "--format", "json"], capture_output=True)
    times.append(time.monotonic() - start)
    if p.returncode != 0:
        sys.exit(f"plan failed: {p.stderr.decode(errors='replace')[-300:]}")
plans = json.loads(p.stdout)
open_ones = [m["model"] for m in plans if m["planner"] != "stored"
             and not (m["optimal"] and m["head_bytes"] == m["bound_with_scratch_bytes"])]
median = statistics.median(times)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6
print(f"all {len(plans)} models of {args.folder}: {median:.2f} s (median of 3), {peak:.0f} MB at the most, "
      f"{len(open_ones)} not proved optimal")
for model in open_ones:
    print(f"  {model}")
sys.exit(not plans or bool(open_ones) or median >= args.seconds or peak >= args.megabytes)

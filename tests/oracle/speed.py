#!/usr/bin/env python3
"""usage: speed.py --arenaplan PROGRAM DIR SECONDS MEGABYTES

Plans all models of DIR three times; the median time must be below SECONDS, the peak memory below MEGABYTES (10^6 bytes).
"""
import argparse
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
    p = subprocess.run([args.arenaplan, "plan", args.folder, "--dry-run"], capture_output=True)
    times.append(time.monotonic() - start)
    if p.returncode != 0:
        sys.exit(f"plan failed: {p.stderr.decode(errors='replace')[-300:]}")
median = statistics.median(times)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6
print(f"all models of {args.folder}: {median:.2f} s (median of 3), {peak:.0f} MB at the most")
sys.exit(median >= args.seconds or peak >= args.megabytes)

"""The TFLM wheel, seen from a process that must survive it: runs probe.py and reads its answer."""
import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

PROBE = Path(__file__).with_name("probe.py")
PLAN = b"OfflineMemoryAllocation"
TIMEOUT = 240  # seconds for one probe


def probe(path, *options):
    """probe.py's answer about a file; a crash or a hang is an `error` too."""
    command = [sys.executable, str(PROBE), str(path), *map(str, options)]
    try:
        p = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return {"error": f"no answer in {TIMEOUT} s"}
    if p.returncode == -signal.SIGALRM:
        return {"error": "an invoke does not end"}
    if p.returncode < 0:
        return {"error": f"crash ({signal.Signals(-p.returncode).name})"}
    try:
        return json.loads(p.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return {"error": "the probe failed: " + (p.stderr.strip().splitlines() or ["no output"])[-1]}


def has_plan(data):
    """Whether a file carries a plan: a string that is exactly the metadata's name."""
    return length_prefixed(PLAN) in data


def without_plan(data):
    """The file with the plan's name changed by one letter, which hides the plan and moves nothing."""
    hidden = length_prefixed(PLAN[:-1] + b"_")
    return data.replace(length_prefixed(PLAN), hidden)


def length_prefixed(name):
    """A FlatBuffer string: its length in 4 bytes, the text, a zero."""
    return len(name).to_bytes(4, "little") + name + b"\0"


def probe_bytes(data, *options):
    """probe() for the bytes of a file."""
    with tempfile.NamedTemporaryFile(suffix=".tflite") as f:
        f.write(data)
        f.flush()
        return probe(f.name, *options)


def check_installed():
    """Fails when the wheel is not there: without it nothing would be tested."""
    try:
        import tflite_micro  # noqa: F401
    except ImportError:
        sys.exit("the wheel is missing: pip install -r tests/oracle/requirements.txt")

"""The TFLM wheel, seen from a process that must survive it: runs probe.py and reads its answer."""
import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

PROBE, PREFIXES = (Path(__file__).with_name(name) for name in ("probe.py", "prefixes.py"))
PLAN = b"OfflineMemoryAllocation"
TIMEOUT = 240  # seconds for one probe


def probe(path, *options):
    """probe.py's answer about a file; a crash or a hang is an `error` too."""
    return answer(PROBE, path, *options)


def compare_operators(path, *options):
    """prefixes.py's answer about a planned file, or an `error`."""
    return answer(PREFIXES, path, *options)


def answer(script, path, *options):
    """The JSON object that a script prints last, or why it does not."""
    command = [sys.executable, str(script), str(path), *map(str, options)]
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
        return {"error": f"{script.name} failed: " + (p.stderr.strip().splitlines() or ["no output"])[-1]}


def has_plan(data):
    """Whether a file carries a plan: a string that is exactly the metadata's name."""
    return length_prefixed(PLAN) in data


def without_plan(data):
    """The file with the plan's name changed by one letter, which hides the plan and moves nothing."""
    hidden = length_prefixed(PLAN[:-1] + b"_")
    return data.replace(length_prefixed(PLAN), hidden)


def schedule_and_offsets(data):
    """Of a file with or without a plan: the order of its operators, by what they read and write, and the plan's words. Files
    of one model in which both are the same make TFLM do the same."""
    from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as schema
    model = schema.Model.GetRootAs(data, 0)
    graphs = [model.Subgraphs(k) for k in range(model.SubgraphsLength())]
    operators = [[(str(o.InputsAsNumpy()), str(o.OutputsAsNumpy())) for o in map(g.Operators, range(g.OperatorsLength()))]
                 for g in graphs]
    entries = [model.Metadata(k) for k in range(model.MetadataLength())]
    words = [model.Buffers(m.Buffer()).DataAsNumpy() for m in entries if m.Name() == PLAN]
    return str((operators, [w if isinstance(w, int) else bytes(w) for w in words]))


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

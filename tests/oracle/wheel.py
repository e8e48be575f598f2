"""The TFLM wheel, seen from a process that must survive it: what looks at a model does so in a fork.

A fork has what its parent imported; a new interpreter would need longer for that than for most models."""
import json
import os
import select
import signal
import sys
import tempfile

PLAN = b"OfflineMemoryAllocation"
TIMEOUT = 240  # seconds for one probe


def probe(path, *options):
    """What probe.py says about a file; a crash or a hang is an `error` too."""
    from probe import answer
    return in_fork(answer, path, *options)


def compare_operators(path, *options):
    """What prefixes.py says about a planned file, or an `error`."""
    from prefixes import answer
    return in_fork(answer, path, *options)


def in_fork(f, *arguments):
    """The JSON value that f returns for some words, or an object whose `error` says why there is none. Not to be called by
    several threads: a fork has only the one that called."""
    receive, send = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            try:
                said = json.dumps(f([str(word) for word in arguments]))
            except BaseException as e:
                said = json.dumps({"error": f"{f.__module__} failed: {e!r}"})
            with open(send, "w") as pipe:
                pipe.write(said)
        finally:
            os._exit(0)
    os.close(send)
    with open(receive) as pipe:
        in_time = select.select([pipe], [], [], TIMEOUT)[0]
        if in_time:
            said = pipe.read()
        else:
            os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if not in_time:
        return {"error": f"no answer in {TIMEOUT} s"}
    if status == -signal.SIGALRM:
        return {"error": "an invoke does not end"}
    if status < 0:
        return {"error": f"crash ({signal.Signals(-status).name})"}
    return json.loads(said) if said else {"error": f"{f.__module__} says nothing"}


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

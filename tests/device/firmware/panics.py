#!/usr/bin/env python3
"""usage: panics.py [--core CORE]...

Links the runtime with all kernels into a firmware that calls all of its functions, and those that are generated for a model
(examples/firmware/src/bin/bare.rs), and fails
if the program has a way to panic: names what panics and who calls it. Tries first that a panic would be found.
"""
import argparse
import sys

from build import BOARDS, ROOT, Failed, Toolchain
from elf import Elf, demangled

MODEL = ROOT / "testdata" / "models" / "dscnn_int8.tflite"
# Part of the names of what only panics call.
PANIC = "9panicking", "rust_begin_unwind", "panic_is_linked", "panic_fmt"


def panics(program):
    """(what panics, who calls it): pairs of names, sorted; empty if nothing can."""
    elf = Elf(program)
    linked = {name for _, _, name, _ in elf.symbols if any(part in name for part in PANIC)}
    if not linked:
        return []
    references, found = elf.references(), set()
    # From the panic back to the first functions that are not part of `core`.
    todo, seen = list(linked), set(linked)
    while todo:
        name = todo.pop()
        for caller in (c for c, called in references if called == name):
            if of_core(caller):
                if caller not in seen:
                    seen.add(caller)
                    todo.append(caller)
            else:
                found.add((demangled(name), demangled(caller)))
    return sorted(found) or [(demangled(name), "nobody that is known") for name in sorted(linked)]


def of_core(name):
    """Whether a function is part of the language's library."""
    return name.startswith(("_ZN4core", "_ZN5alloc")) or (name.startswith("_R") and ("4core" in name or "rust_begin" in name)) \
        or any(part in name for part in PANIC)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", action="append", choices=list(BOARDS))
    parser.add_argument("--debian", action="store_true", help="build with Debian's compiler")
    a = parser.parse_args()
    toolchain, wrong = Toolchain(a.debian), 0

    def build(core, *features):
        return toolchain.build(BOARDS[core], ["bare"], MODEL, None, ("all-kernels", "typed", *features),
                               ["-Clink-arg=--emit-relocs"])[0]

    try:
        found = panics(build("M4", "panics"))
        if not any("can_panic" in caller for _, caller in found):
            print(f"a panic that is there was not found, but {found}")
            wrong += 1
        for core in a.core or ["M0", "M4", "RV32"]:
            program = build(core)
            found = panics(program)
            for panic, caller in found:
                print(f"{core}: {caller} can panic: {panic}")
            print(f"{core}: {len(found)} ways to panic; {sum(Elf(program).flash().values()):,} bytes with all kernels")
            wrong += len(found)
    except Failed as e:
        print(e)
        return 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Builds the firmware example for a board, with the toolchain that is there."""
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "firmware"
DEBIAN = ["rustc-web", "cargo-web", "rust-web-src", "lld"]


@dataclass(frozen=True)
class Board:
    """A machine that QEMU emulates."""
    name: str
    target: str
    qemu: tuple
    config: tuple = ()
    instruction_shift: int = 6


def arm(name, target, cpu, config=()):
    return Board(name, target, ("qemu-system-arm", "-machine", name, "-cpu", cpu), config)


BOARDS = {core: board for core, board in (
    ("M0", arm("microbit", "thumbv6m-none-eabi", "cortex-m0")),
    ("M3", arm("mps2-an385", "thumbv7m-none-eabi", "cortex-m3")),
    ("M4", arm("mps2-an386", "thumbv7em-none-eabihf", "cortex-m4")),
    ("M33-soft", arm("mps2-an505", "thumbv8m.main-none-eabi", "cortex-m33")),
    ("M33", arm("mps2-an505", "thumbv8m.main-none-eabihf", "cortex-m33")),
    ("M55", arm("mps3-an547", "thumbv8m.main-none-eabihf", "cortex-m55", ("--config", "boards/mps3-an547.toml"))),
    ("RV32", Board("virt", "riscv32imc-unknown-none-elf",
                   ("qemu-system-riscv32", "-machine", "virt", "-bios", "none"), (), 0)),
)}


class Failed(Exception):
    """A build or a run that did not end well."""


def install(*packages):
    """Installs Debian packages."""
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]):
        subprocess.run(sudo + command, check=True, stdout=subprocess.DEVNULL)


class Toolchain:
    """A Rust compiler for the boards: rustup's, and Debian's for targets that rustup cannot get."""

    def __init__(self, debian=False):
        self.debian_only, self.targets, self.home = debian, {}, None
        # Not the environment's flags: they would replace those of the example's configuration.
        self.environment = {k: v for k, v in os.environ.items()
                            if k not in ("RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET")}
        self.folder = Path(self.environment.setdefault("CARGO_TARGET_DIR", str(EXAMPLE / "target")))

    def from_rustup(self, target):
        """Whether rustup has, or gets, the target's `core`."""
        if target not in self.targets:
            command = ["rustup", "target", "add", target]
            self.targets[target] = not self.debian_only and shutil.which("rustup") is not None and subprocess.run(
                command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
            if not self.targets[target]:
                print(f"{target}: by Debian's compiler", file=sys.stderr)
        return self.targets[target]

    def cargo(self, target):
        """(command, environment, folder of what it makes) for a target."""
        if self.from_rustup(target):
            return ["cargo"], self.environment, self.folder
        if self.home is None:
            if not (Path("/usr/bin/cargo").exists() and shutil.which("ld.lld") and Path("/usr/bin/rustc").exists()):
                install(*DEBIAN)
            self.home = tempfile.TemporaryDirectory()
        folder = self.folder / "debian"
        environment = self.environment | {"PATH": "/usr/bin:/bin", "CARGO_HOME": self.home.name, "RUSTC_BOOTSTRAP": "1",
                                          "CARGO_TARGET_DIR": str(folder)}
        linker = f"target.'{target}'.linker='ld.lld'", f"target.'{target}'.rustflags=['-Clinker-flavor=ld.lld']"
        return ["/usr/bin/cargo", "-Zbuild-std=core", "--config", linker[0], "--config", linker[1]], environment, folder

    def build(self, board, binaries, model, record=None, features=(), flags=()):
        """Paths of programs."""
        command, environment, folder = self.cargo(board.target)
        command = [command[0], *board.config, *command[1:], "build", "--quiet", "--locked", "--release", "--target",
                   board.target, *(word for binary in binaries for word in ("--bin", binary))]
        if features:
            command += ["--features", ",".join(features)]
        if flags:
            command += ["--config", f"target.'{board.target}'.rustflags={list(flags)}"]
        environment = environment | {"ARENAPLAN_MODEL": str(Path(model).resolve()),
                                     "ARENAPLAN_GOLDEN": str(Path(record).resolve()) if record else ""}
        p = subprocess.run(command, cwd=EXAMPLE, env=environment, capture_output=True, text=True)
        if p.returncode != 0:
            raise Failed("\n".join(p.stderr.strip().splitlines()[-15:]))
        return [folder / board.target / "release" / binary for binary in binaries]


def run(board, program):
    """(exit status, output) of a program in QEMU."""
    if shutil.which(board.qemu[0]) is None:
        install("qemu-system-arm", "qemu-system-misc")
    count = f"shift={board.instruction_shift},align=off,sleep=off" if board.instruction_shift else "shift=0"
    command = [*board.qemu, "-icount", count, "-nographic", "-monitor", "none", "-serial", "none",
               "-semihosting-config", "enable=on,target=native", "-kernel", str(program)]
    try:
        p = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        raise Failed("the program does not end") from None
    return p.returncode, p.stdout + p.stderr

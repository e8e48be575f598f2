"""What a linked program consists of: sections, symbols, and who refers to whom. Of ELF for 32-bit little-endian cores."""
import bisect
import struct
from pathlib import Path

ALLOC, NOBITS, SYMTAB, RELA, REL = 2, 8, 2, 4, 9


class Elf:
    """A linked program. References are there if it was linked with --emit-relocs."""

    def __init__(self, path):
        self.bytes = Path(path).read_bytes()
        if self.bytes[:6] != b"\x7fELF\x01\x01":
            raise ValueError(f"{path} is no 32-bit little-endian ELF file")
        start, = struct.unpack_from("<I", self.bytes, 32)
        size, count, names = struct.unpack_from("<HHH", self.bytes, 46)
        keys = ("name", "type", "flags", "address", "offset", "size", "link", "info", "align", "entry")
        self.sections = [dict(zip(keys, struct.unpack_from("<10I", self.bytes, start + k * size))) for k in range(count)]
        for s in self.sections:
            s["name"] = self.text(names, s["name"])
        self.symbols = [self.symbol(table, k) for table in self.sections if table["type"] == SYMTAB
                        for k in range(table["size"] // 16)]

    def text(self, section, at):
        start = self.sections[section]["offset"] + at
        return self.bytes[start:self.bytes.index(b"\0", start)].decode()

    def symbol(self, table, k):
        """(address, size, name, section)"""
        name, address, size, _, _, section = struct.unpack_from("<IIIBBH", self.bytes, table["offset"] + 16 * k)
        text = self.text(table["link"], name)
        if not text and 0 < section < len(self.sections):
            text = self.sections[section]["name"]
        return address, size, text, section

    def flash(self):
        """Bytes that are loaded: code, constants, and what variables start with, by section."""
        return {s["name"]: s["size"] for s in self.sections if s["flags"] & ALLOC and s["type"] != NOBITS and s["size"]}

    def references(self):
        """(name of the function or constant, name of what it refers to), without those in debug information."""
        owners = sorted((a & ~1, a + s, n) for a, s, n, section in self.symbols
                        if s and section < len(self.sections) and self.sections[section]["flags"] & ALLOC)
        starts = [o[0] for o in owners]
        symtab = next((s for s in self.sections if s["type"] == SYMTAB), None)
        result = set()
        for s in self.sections:
            if s["type"] not in (REL, RELA) or not self.sections[s["info"]]["flags"] & ALLOC:
                continue
            for at in range(s["offset"], s["offset"] + s["size"], 8 if s["type"] == REL else 12):
                where, info = struct.unpack_from("<II", self.bytes, at)
                address, _, name, _ = self.symbol(symtab, info >> 8)
                k = bisect.bisect_right(starts, where) - 1
                owner = owners[k][2] if k >= 0 and where < owners[k][1] else s["name"]
                result.add((owner, name))
        return result


def demangled(name):
    """A Rust name, near enough to be read."""
    if name.startswith("_ZN"):
        parts, rest = [], name[3:]
        while rest[:1].isdigit():
            digits = len(rest) - len(rest.lstrip("0123456789"))
            size = int(rest[:digits])
            parts.append(rest[digits:digits + size])
            rest = rest[digits + size:]
        if parts and parts[-1][:1] == "h" and len(parts[-1]) == 17:
            parts.pop()
        text = "::".join(parts)
        for code, plain in (("$LT$", "<"), ("$GT$", ">"), ("$u7b$", "{"), ("$u7d$", "}"), ("$u20$", " "), ("..", "::"),
                            ("$RF$", "&"), ("$C$", ","), ("$BP$", "*")):
            text = text.replace(code, plain)
        return text
    if name.startswith("_R"):
        parts, rest = [], name[2:]
        while rest:
            digits = len(rest) - len(rest.lstrip("0123456789"))
            if rest.startswith("Cs"):  # a crate, with a number of its own
                rest = rest[rest.find("_") + 1:]
            elif digits:
                size, rest = int(rest[:digits]), rest[digits:].removeprefix("_")
                parts.append(rest[:size])
                rest = rest[size:]
            else:
                rest = rest[1:]
        return "::".join(parts)
    return name

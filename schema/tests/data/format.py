"""Writes format.csv: the names and numbers of the TFLite format, from sources other than ours.

Usage: python format.py > format.csv
Needs: pip install tflite-micro==0.dev20261023182759 tflite==2.18.0

The rows come from the reader in the `tflite-micro` package, which its authors generate from their own
schema. The older reader in the `tflite` package must agree on all that it knows, or this script fails.

  enum,<enum or union>,<member>,<number>
  field,<table>,<field>,<offset in the vtable>,<type>,<default of a scalar>
"""

import inspect
import re
import sys

import tflite
from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as schema

SCALARS = {
    "Bool": "bool", "Int8": "i8", "Uint8": "u8", "Int16": "i16", "Uint16": "u16", "Int32": "i32",
    "Uint32": "u32", "Int64": "i64", "Uint64": "u64", "Float32": "f32", "Float64": "f64",
}


def members(cls):
    return {k: v for k, v in vars(cls).items() if not k.startswith("_") and isinstance(v, int)}


def is_table(cls):
    return inspect.isclass(cls) and "GetRootAs" in vars(cls)


def fields(cls):
    """{field: (offset, type, default)} of a generated table, read off its accessors' source."""
    helpers = ("AsNumpy", "Length", "IsNone")
    found = {}
    for name, method in vars(cls).items():
        if name.startswith(("_", "GetRootAs")) or name == "Init" or isinstance(method, classmethod):
            continue
        source = inspect.getsource(method)
        offset = re.search(r"_tab\.Offset\((\d+)\)", source)
        if not offset or (name.endswith(helpers) and re.sub("(AsNumpy|Length|IsNone)$", "", name) in vars(cls)):
            continue
        scalar = re.search(r"number_types\.(\w+)Flags, (o|a) \+", source)
        table = re.search(r"obj = (\w+)\(\)", source)
        default = ""
        if "obj = Table(" in source:
            kind = "union"
        elif "_tab.String(" in source:
            kind = "str"
        elif table:
            kind = table[1]
        else:
            kind = SCALARS[scalar[1]]
            default = re.findall(r"return (\S+)\n", source + "\n")[-1]
        if "_tab.Vector(" in source:
            kind, default = f"[{kind}]", ""
        default = {"True": "1", "False": "0", "0.0": "0"}.get(default, default)
        found[name] = (int(offset[1]), kind, default)
    return found


def main():
    enums = {n: members(c) for n, c in vars(schema).items() if inspect.isclass(c) and not is_table(c)}
    enums = {n: m for n, m in enums.items() if m}
    tables = {n: fields(c) for n, c in vars(schema).items() if is_table(c)}

    for name, module in vars(tflite).items():
        older = getattr(module, name, module)
        if is_table(older):
            for field, row in fields(older).items():
                if (name, field) == ("OperatorCode", "BuiltinCode"):
                    continue  # replaced by that package with the rule of the greater code
                assert tables[name][field] == row, (name, field, tables[name][field], row)
        elif name in enums and inspect.isclass(older):
            for member, number in members(older).items():
                assert enums[name][member] == number, (name, member)

    for name in sorted(enums):
        for member, number in sorted(enums[name].items(), key=lambda item: item[1]):
            print(f"enum,{name},{member},{number}")
    for name in sorted(tables):
        for field, row in sorted(tables[name].items(), key=lambda item: item[1]):
            print(f"field,{name},{field}," + ",".join(map(str, row)))
        if not tables[name]:
            print(f"field,{name},,,,")
    print(f"{len(enums)} enums, {len(tables)} tables", file=sys.stderr)


if __name__ == "__main__":
    main()

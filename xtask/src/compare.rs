//! `cargo xtask compare`: plans the public models for several targets and writes doc/COMPARISON.md.

use std::fs;
use std::process::{Command, Stdio};

use crate::root;

/// Where the public models are, from the project's root.
pub(crate) const FOLDER: &str = "../shared/models";

/// The page, from the project's root.
const PAGE: &str = "doc/COMPARISON.md";

/// How much more work row stripes may be.
const STRIPES: &str = "20%";

/// Whether the page is written or compared with what would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Write,
    Check,
}

/// What stands above the table.
const BEFORE: &str = "\
# Public models, planned step by step

Bytes of the arena's head, all tensors and scratch memory, of public models. `cargo xtask compare` writes this page;
`arenaplan compare MODEL...` prints such a table for any models, also as CSV or JSON.

";

/// What stands below it.
const AFTER: &str = "
Each column adds something to the one before it. The first ones are for any kernels:

| column | what it is |
|-|-|
| TFLM | what TFLM's own planner makes of the model on the device, without a plan |
| placement | `--reorder no --alias none`: tensors are placed better, and that is all |
| order | `--alias none`: operators also run in the order with the least peak |
| views | `--target tflm`, the default: tensors that an operator only copies lie on each other |
| gap | how far the head before it is above the lower bound of all such plans; `-`: it is the least for its order of operators, proved |
| *target*: in place | `--target tflm-TARGET --alias in-place`: outputs also start where their input does |
| *target*: overlap | `--target tflm-TARGET`: outputs also run behind their input at the distance that the kernel keeps |
| stripes | `--stripes 20%`: layers at the peak are also computed in row stripes, where that makes the arena smaller for at most 20 % more work |
| more work | the instructions that stripes add, estimated; `-`: nothing was cut |
| *target*: TFLM | as the first column, with that library's scratch memory, where that differs |

A plan for a target other than `tflm` is right with that target's kernels **only**; with others the model computes wrong numbers,
silently. Plans for `cmsis-nn` and `esp-nn` are right on any core and any chip; their heads here are those of CMSIS-NN on a core
with DSP extension and of ESP-NN's portable kernels. Others ask for more scratch memory, an ESP32-S3 and P4 for much more: `plan`
says what each needs. `tflm-cmsis-nn-mve`, `tflm-esp-nn-s3` and the like plan for one kind alone, and may save more there.

Stripes add operators, which take some hundred bytes of the arena's tail each, in all not more than the head loses; the tail is not
in this table. `plan` tells both.

The last row is the geometric mean of head by TFLM's own head with the same kernels, over the models that have a head. A model
with offsets that Vela compiled into it stays as it is and does not count.
";

/// Makes the page; the `Ok` text is for standard output.
pub(crate) fn run(folder: &str, mode: Mode) -> Result<String, String> {
    if mode == Mode::Check && !root().join(folder).is_dir() {
        return Ok(format!("{folder} is not here; {PAGE} was not checked"));
    }
    let text = format!("{BEFORE}{}{AFTER}", table(folder)?);
    let path = root().join(PAGE);
    match mode {
        Mode::Write => {
            fs::write(&path, text).map_err(|e| format!("{PAGE}: {e}"))?;
            Ok(format!("{PAGE} written"))
        }
        Mode::Check => match fs::read_to_string(&path) {
            Ok(old) if old == text => Ok(format!("{PAGE} is current")),
            Ok(_) => Err(format!(
                "{PAGE} is not what `cargo xtask compare` would write"
            )),
            Err(e) => Err(format!("{PAGE}: {e}")),
        },
    }
}

/// The table as the program for users prints it.
fn table(folder: &str) -> Result<String, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(root())
        .args([
            "run",
            "--quiet",
            "--release",
            "--package",
            "arenaplan",
            "--",
        ])
        .args(["compare", "--format", "markdown"])
        .args(["--stripes", STRIPES, folder])
        .stderr(Stdio::piped())
        .output()
        .map_err(|e| format!("cargo: {e}"))?;
    if output.status.success() {
        return String::from_utf8(output.stdout).map_err(|e| e.to_string());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<&str> = said.lines().filter(|l| l.starts_with("error")).collect();
    Err(format!("compare {folder}: {}", errors.join("; ")))
}

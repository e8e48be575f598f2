//! Says whether the target has Arm's DSP instructions, which stable Rust does not tell by `cfg(target_feature)`.

use std::env;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(arm_dsp)");
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let target = variable("TARGET");
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    // Armv8-M cores have them or not; the compiler knows it from the core's name.
    let cores = ["cortex-m33", "cortex-m35p", "cortex-m55", "cortex-m85"];
    let named = |core: &&str| flags.contains(&format!("target-cpu={core}"));
    let v8 = target.starts_with("thumbv8m.main")
        && (flags.contains("+dsp") || cores.iter().any(named))
        && !flags.contains("-dsp");
    if target.starts_with("thumbv7em") || v8 {
        println!("cargo::rustc-cfg=arm_dsp");
    }
}

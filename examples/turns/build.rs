//! Plans models that take turns on one arena, and a model that is cut in two, the second half of which goes on with what the
//! first has left in the arena.
//!
//! - `ARENAPLAN_MODELS`: paths of the models that take turns, with `:` between them.
//! - `ARENAPLAN_WHOLE`: path of the model that is cut.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use arenaplan::plan::Options;
use arenaplan::share::{self, Link, Member, Shared};
use arenaplan::target::Target;

#[path = "../../tests/common/split.rs"]
mod split;

/// The first and the last one keep state from one inference to the next.
const MODELS: &str = "../../testdata/models/streaming_int8.tflite:../../testdata/models/dscnn_int8.tflite:\
                      ../../testdata/models/svdf_int8.tflite";
const WHOLE: &str = "../../testdata/models/dscnn_int8.tflite";

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let options = Options {
        target: Target::Arenaplan,
        ..Options::default()
    };
    let mut generated = String::new();

    let paths = variable("ARENAPLAN_MODELS").unwrap_or_else(|| MODELS.to_owned());
    let models = paths.split(':').map(read).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<_> = paths.split(':').map(stem).collect();
    let members = members(&names, &models);
    let shared = share::plan(&members, &[], &options)?;
    generated += &write(&out, "TURNS", &members, &shared)?;

    let path = variable("ARENAPLAN_WHOLE").unwrap_or_else(|| WHOLE.to_owned());
    let whole = read(&path)?;
    let halves = (1..).take(1000).filter_map(|cut| split::split(&whole, cut));
    // The middle one of all cuts.
    let halves: Vec<_> = halves.collect();
    let halves = halves
        .get(halves.len() / 2)
        .ok_or("no place to cut the model")?;
    let names = ["front".to_owned(), "back".to_owned()];
    let members = self::members(&names, halves);
    let links: Vec<Link> = share::cascade(&members, &[], &options)?;
    let shared = share::plan(&members, &links, &options)?;
    generated += &write(&out, "CASCADE", &members, &shared)?;
    fs::write(out.join("whole.tflite"), &whole)?;

    fs::write(out.join("generated.rs"), generated)?;
    fs::write(out.join("device.x"), "")?;
    fs::write(
        out.join("memory.x"),
        "MEMORY {\n  FLASH : ORIGIN = 0x00000000, LENGTH = 4M\n  RAM : ORIGIN = 0x20000000, LENGTH = 4M\n}\n",
    )?;
    println!("cargo:rustc-link-search={}", out.display());
    Ok(())
}

/// The planned models, the same without plans, and what to reserve, as constants.
fn write(
    out: &Path,
    name: &str,
    members: &[Member<'_>],
    shared: &Shared,
) -> Result<String, Box<dyn Error>> {
    let count = members.len();
    let mut text = String::new();
    for (list, suffix) in [("", "planned"), ("_ALONE", "original")] {
        text += &format!("pub static {name}{list}: [&Aligned<[u8]>; {count}] = [\n");
        for (k, member) in members.iter().enumerate() {
            let file = format!("{name}_{k}_{suffix}.tflite");
            let bytes = match list {
                "" => &shared.models[k].file[..],
                _ => member.bytes,
            };
            fs::write(out.join(&file), bytes)?;
            text += &format!(
                "    &Aligned(*include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{file}\"))),\n"
            );
        }
        text += "];\n";
    }
    let total = shared.total();
    let names: Vec<_> = members.iter().map(|m| m.name).collect();
    text += &format!(
        "pub const {name}_NAMES: [&str; {count}] = {names:?};\n\
         pub const {name}_HEAD_BYTES: usize = {};\n\
         pub const {name}_ARENA_BYTES: usize = {};\n",
        total.head_bytes.max(total.arena_32.planning_bytes),
        total.arena_32.arena_bytes
    );
    Ok(text)
}

fn members<'a>(names: &'a [String], models: &'a [Vec<u8>]) -> Vec<Member<'a>> {
    let pairs = names.iter().zip(models);
    pairs.map(|(name, bytes)| Member { name, bytes }).collect()
}

fn stem(path: &str) -> String {
    let stem = Path::new(path).file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

fn read(path: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    println!("cargo:rerun-if-changed={path}");
    Ok(fs::read(path).map_err(|e| format!("{path}: {e}"))?)
}

fn variable(name: &str) -> Option<String> {
    println!("cargo:rerun-if-env-changed={name}");
    env::var(name).ok().filter(|value| !value.is_empty())
}

//! The problems on which planners are measured, for `cargo bench -p arenaplan-benches` and the tables of doc/BENCHMARKS.md.

use std::fs;
use std::path::{Path, PathBuf};

use arenaplan_solver::generate::{self, Large, Shape};
use arenaplan_solver::{Error, Limits, Planner, csv};

/// The version of arenaplan.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The problems of this project, from its folder.
pub const OWN: &str = "testdata/problems";

/// Where MiniMalloc's problems are looked for, from the project's folder. They are not part of it.
pub const MINIMALLOC: &str = "../shared/problems";

/// The capacity of MiniMalloc's eleven problems, in bytes.
pub const CAPACITY: u64 = 1 << 20;

/// The most buffers for which the integer program is tried.
pub const MOST_FOR_ILP: usize = 20;

/// The project's folder.
pub fn root() -> PathBuf {
    let benches = Path::new(env!("CARGO_MANIFEST_DIR"));
    benches.parent().unwrap_or(benches).to_path_buf()
}

/// A problem in MiniMalloc's form.
#[derive(Clone, Debug)]
pub struct Named {
    /// What it is called.
    pub name: String,
    /// Bytes, of a file that is called `NAME.CAPACITY.csv`.
    pub capacity: Option<u64>,
    /// The rows.
    pub text: String,
}

impl Named {
    /// The files `*.csv` of a folder by name; none if there is no such folder.
    pub fn folder(folder: &Path) -> Vec<Self> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|e| e == "csv"));
        paths.sort();
        let read = |path: PathBuf| {
            let text = fs::read_to_string(&path).ok()?;
            let stem = path.file_stem()?.to_str()?;
            let split = stem.rsplit_once('.');
            let split = split.and_then(|(name, n)| Some((name, n.parse().ok()?)));
            let (name, capacity) = match split {
                Some((name, capacity)) => (name, Some(capacity)),
                None => (stem, None),
            };
            Some(Self {
                name: name.to_owned(),
                capacity,
                text,
            })
        };
        paths.into_iter().filter_map(read).collect()
    }

    /// MiniMalloc's eleven problems: what has [`CAPACITY`] in its name.
    pub fn minimalloc(folder: &Path) -> Vec<Self> {
        let mut problems = Self::folder(folder);
        problems.retain(|problem| problem.capacity == Some(CAPACITY));
        problems
    }

    /// A large generated problem.
    ///
    /// # Errors
    /// As [`Large::problem`].
    pub fn large(large: Large) -> Result<Self, Error> {
        Ok(Self {
            name: large.name().to_owned(),
            capacity: None,
            text: csv::write(&large.problem()?),
        })
    }

    /// As many random problems with few buffers that need a search: best fit does not reach their
    /// bound.
    ///
    /// # Errors
    /// None is known: the numbers are fixed.
    pub fn small(buffers: usize, count: usize) -> Result<Vec<Self>, Error> {
        let shape = Shape {
            buffers,
            times: buffers as i32,
            longest: buffers as i32,
            largest: 1000,
            step: 16,
            ..Shape::default()
        };
        let mut found = Vec::new();
        for seed in 0.. {
            if found.len() == count {
                break;
            }
            let problem = generate::intervals(&shape, seed)?;
            let solution = arenaplan_solver::solve(&problem, Planner::BestFit, &Limits::default())?;
            if !solution.optimal() {
                found.push(Self {
                    name: format!("{buffers} buffers, seed {seed}"),
                    capacity: None,
                    text: csv::write(&problem),
                });
            }
        }
        Ok(found)
    }
}

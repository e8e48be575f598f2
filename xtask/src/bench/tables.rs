//! The page: what is measured, and what the tables say.

use arenaplan_benches::{CAPACITY, MOST_FOR_ILP, Named, OWN, root};
use arenaplan_solver::Planner;
use arenaplan_solver::generate::Large;

use super::measure::{self, Figures, Task};
use super::page::{Table, gap, median, seconds, thousands};
use super::{Options, machine, minimalloc};

/// How many random problems of one size are given to the integer program.
const SMALL_PROBLEMS: usize = 5;

/// Measures everything.
pub(crate) fn page(options: &Options) -> Result<String, String> {
    let mut page = format!(
        "# Benchmarks\n\n\
         Written by `{}` on {}, with\n\n\
         - arenaplan {}\n\
         - {}\n\
         - {}\n\n\
         Each figure is from a process of its own, which has one thread. Heights and bounds are in bytes; it is proved\n\
         that no placement is lower than the bound. *Nodes* are those of the search. *Seconds* are for all of the way\n\
         from a table to offsets that have passed the checker. `cargo bench -p arenaplan-benches` measures the planners alone.\n",
        options.command(),
        machine::date(),
        machine::version(&root()),
        machine::machine(),
        machine::compiler(),
    );
    let problems = Named::minimalloc(&options.problems);
    if problems.is_empty() {
        let folder = options.problems.display();
        eprintln!("MiniMalloc's problems are not in {folder}: their tables are left out");
        page.push_str("\nMiniMalloc's problems were not there, so their tables are missing.\n");
    } else {
        page.push_str(&at_capacity(options, &problems)?);
        page.push_str(&minimised(options, &problems)?);
    }
    page.push_str(&large()?);
    page.push_str(&small()?);
    page.push_str(&own()?);
    Ok(page)
}

/// One measurement, with a word about it for who waits.
fn run(problem: &Named, task: Task) -> Result<Figures, String> {
    let figures = measure::run(problem, task)?;
    let time = seconds(figures.seconds);
    eprintln!("{}, {}: {time} s", problem.name, task.planner);
    Ok(figures)
}

fn at_capacity(options: &Options, problems: &[Named]) -> Result<String, String> {
    let mut columns = vec![
        "problem",
        "buffers",
        "conflicts",
        "capacity",
        "height",
        "nodes",
        "seconds",
    ];
    let mut text = format!(
        "\n## MiniMalloc's problems, at their capacity\n\n\
         The `exact` planner, with the limit of nodes that it has by itself, until it has a placement within the capacity.\n\
         Medians of {}.\n",
        match options.runs {
            1 => "1 run".into(),
            n => format!("{n} runs"),
        }
    );
    if options.minimalloc.is_some() {
        columns.push("MiniMalloc");
        text.push_str(&format!(
            "The last column has the seconds that MiniMalloc says it needs for the same, without reading the table. The two\n\
             took turns; {} s were the most.\n",
            minimalloc::MOST
        ));
    }
    let mut table = Table::new(1, &columns);
    let task = Task {
        capacity: Some(CAPACITY),
        ..Task::new(Planner::Exact)
    };
    let mut sum = 0.0;
    // `None` as soon as one was not found.
    let mut other_sum = Some(0.0);
    for problem in problems {
        let (mut runs, mut other_runs) = (Vec::new(), Vec::new());
        for _ in 0..options.runs {
            runs.push(run(problem, task)?);
            if let Some(program) = &options.minimalloc {
                let time = minimalloc::run(program, problem, CAPACITY)?;
                let shown = time.map_or("not found".into(), |time| format!("{time} s"));
                eprintln!("{}, MiniMalloc: {shown}", problem.name);
                other_runs.extend(time);
            }
        }
        let first = &runs[0];
        let time = median(runs.iter().map(|run| run.seconds).collect());
        sum += time;
        let mut cells = vec![
            problem.name.clone(),
            thousands(first.buffers),
            thousands(first.conflicts),
            thousands(CAPACITY),
            match first.height <= CAPACITY {
                true => thousands(first.height),
                false => "not found".into(),
            },
            thousands(first.nodes),
            seconds(time),
        ];
        if options.minimalloc.is_some() {
            let time = (other_runs.len() == options.runs).then(|| median(other_runs));
            cells.push(time.map_or("not found".into(), seconds));
            other_sum = other_sum.zip(time).map(|(sum, time)| sum + time);
        }
        table.row(cells);
    }
    let mut cells = vec!["all".to_owned()];
    cells.resize(6, String::new());
    cells.push(seconds(sum));
    if options.minimalloc.is_some() {
        cells.push(other_sum.map_or(String::new(), seconds));
    }
    table.row(cells);
    Ok(format!("{text}\n{}", table.markdown()))
}

fn minimised(options: &Options, problems: &[Named]) -> Result<String, String> {
    let columns = [
        "problem", "height", "bound", "gap", "nodes", "seconds", "peak MB",
    ];
    let mut table = Table::new(1, &columns);
    let task = Task {
        time: Some(options.time()),
        ..Task::new(Planner::Exact)
    };
    for problem in problems {
        let figures = run(problem, task)?;
        table.row(vec![
            problem.name.clone(),
            thousands(figures.height),
            thousands(figures.bound),
            gap(figures.height, figures.bound),
            thousands(figures.nodes),
            seconds(figures.seconds),
            megabytes(&figures),
        ]);
    }
    Ok(format!(
        "\n## MiniMalloc's problems, minimised\n\n\
         The lowest placement that the `exact` planner finds in {} s. It ends earlier where it has the proof.\n\n{}",
        options.seconds,
        table.markdown()
    ))
}

fn large() -> Result<String, String> {
    let columns = [
        "problem",
        "planner",
        "buffers",
        "conflicts",
        "height",
        "bound",
        "gap",
        "nodes",
        "seconds",
        "peak MB",
    ];
    let mut table = Table::new(2, &columns);
    for large in Large::ALL {
        let problem = Named::large(large).map_err(|e| e.to_string())?;
        for planner in [Planner::Auto, Planner::Exact] {
            let figures = run(&problem, Task::new(planner))?;
            table.row(vec![
                problem.name.clone(),
                format!("`{planner}`"),
                thousands(figures.buffers),
                thousands(figures.conflicts),
                thousands(figures.height),
                thousands(figures.bound),
                gap(figures.height, figures.bound),
                thousands(figures.nodes),
                seconds(figures.seconds),
                megabytes(&figures),
            ]);
        }
    }
    Ok(format!(
        "\n## Large problems\n\n\
         Generated: a chain with skip connections, buffers of which no two are alive at once, buffers that are all alive at\n\
         once, and random intervals. The planners have the limits that they have by themselves. *Peak MB* is the most memory\n\
         of the process, in 10^6 bytes.\n\n{}",
        table.markdown()
    ))
}

/// `-` where the system does not tell.
fn megabytes(figures: &Figures) -> String {
    match figures.peak {
        0 => "-".into(),
        peak => format!("{:.1}", peak as f64 / 1e6),
    }
}

fn small() -> Result<String, String> {
    let planners = [Planner::Exact, Planner::Ilp];
    let columns = [
        "buffers", "planner", "problems", "proved", "nodes", "seconds", "slowest",
    ];
    let mut table = Table::new(2, &columns);
    for buffers in [10, 15, MOST_FOR_ILP] {
        let problems = Named::small(buffers, SMALL_PROBLEMS).map_err(|e| e.to_string())?;
        for &planner in &planners {
            let mut runs = Vec::new();
            for problem in &problems {
                runs.push(run(problem, Task::new(planner))?);
            }
            let nodes = runs.iter().map(|run| run.nodes as f64).collect();
            let times: Vec<f64> = runs.iter().map(|run| run.seconds).collect();
            let slowest = times.iter().copied().fold(0.0, f64::max);
            table.row(vec![
                buffers.to_string(),
                format!("`{planner}`"),
                runs.len().to_string(),
                runs.iter()
                    .filter(|run| run.is_optimal())
                    .count()
                    .to_string(),
                thousands(median(nodes) as u64),
                seconds(median(times)),
                seconds(slowest),
            ]);
        }
    }
    Ok(format!(
        "\n## The search and the integer program\n\n\
         Random problems that best fit does not place at the bound, medians of nodes and seconds, and the slowest one's\n\
         seconds. The planners have the limits that they have by themselves.\n\n{}",
        table.markdown()
    ))
}

fn own() -> Result<String, String> {
    let mut columns = vec!["problem", "buffers", "bound"];
    columns.extend(Planner::ALL.iter().map(|planner| planner.name()));
    let mut table = Table::new(1, &columns);
    for problem in Named::folder(&root().join(OWN)) {
        let exact = match run(&problem, Task::new(Planner::Exact)) {
            Ok(figures) => figures,
            Err(error) => {
                eprintln!("left out: {error}");
                continue;
            }
        };
        let mut cells = vec![
            problem.name.clone(),
            thousands(exact.buffers),
            thousands(exact.bound),
        ];
        for &planner in Planner::ALL {
            cells.push(match planner {
                Planner::Exact => thousands(exact.height),
                _ if planner == Planner::Ilp && exact.buffers > MOST_FOR_ILP as u64 => "-".into(),
                _ => thousands(run(&problem, Task::new(planner))?.height),
            });
        }
        table.row(cells);
    }
    Ok(format!(
        "\n## Problems of this project\n\n\
         The heights of all planners, for those in {OWN} that have a placement.\n\n{}",
        table.markdown()
    ))
}

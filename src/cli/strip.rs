//! `arenaplan strip`

use arenaplan_schema::patch;

use super::args::StripArgs;
use super::models::{self, Source};
use super::output::{self, Destination};
use super::{Status, complain, print};

pub(super) fn run(args: &StripArgs) -> anyhow::Result<Status> {
    let sources = models::find(&args.models.models)?;
    let destinations = output::destinations(&args.output, &sources)?;
    let mut status = Status::Done;
    for (source, destination) in sources.iter().zip(&destinations) {
        match one(args, source, destination) {
            Ok(line) => {
                if *destination == Destination::Stdout {
                    complain(&line);
                } else {
                    print(&format!("{line}\n"))?;
                }
            }
            Err(e) => {
                let no_plan = e
                    .downcast_ref::<patch::PatchError>()
                    .is_some_and(|e| matches!(e, patch::PatchError::NotPlanned));
                status = status.max(if no_plan { Status::No } else { Status::Failed });
                complain(&format!("error: {}: {e:#}", source.name()));
            }
        }
    }
    Ok(status)
}

fn one(args: &StripArgs, source: &Source, destination: &Destination) -> anyhow::Result<String> {
    let bytes = source.read()?;
    let original = patch::strip(&bytes)?;
    output::write(destination, source, &args.output, args.force, &original)?;
    Ok(format!(
        "{}: plan removed, {} bytes as before planning, written: {}",
        source.name(),
        original.len(),
        destination.name()
    ))
}

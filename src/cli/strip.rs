//! `arenaplan strip`

use arenaplan_schema::patch::{self, PatchError};

use super::args::StripArgs;
use super::models::{self, Source};
use super::output::{self, Destination};
use super::text::{shown, thousands};
use super::{Status, complain, each, print};
use crate::model::Model;

pub(super) fn run(args: &StripArgs) -> anyhow::Result<Status> {
    let found = models::find(&args.models.models, args.output.out_dir.as_deref());
    let destinations = output::destinations(&args.output, &found.sources, "")?;
    let (results, mut status) = each(&found, |i, source| {
        Ok((one(args, source, &destinations[i])?, i))
    })?;
    for (line, i) in results.into_iter().flatten() {
        match line {
            None => {
                status = status.max(Status::No);
                let name = found.sources[i].name();
                complain(&format!(
                    "{name}: no plan of arenaplan to remove; nothing written"
                ));
            }
            Some(line) if destinations[i] == Destination::Stdout => complain(&line),
            Some(line) => print(&format!("{line}\n"))?,
        }
    }
    Ok(status)
}

/// What was done, or nothing when the file carries no plan of ours.
fn one(
    args: &StripArgs,
    source: &Source,
    destination: &Destination,
) -> anyhow::Result<Option<String>> {
    let bytes = source.read()?;
    // What is no model at all should be called that.
    Model::parse(&bytes)?;
    let original = match patch::strip(&bytes) {
        Err(PatchError::NotPlanned) => return Ok(None),
        other => other?,
    };
    output::write(destination, &args.output, args.force, &original)?;
    Ok(Some(format!(
        "{}: plan removed, {} bytes as before planning, written: {}",
        source.name(),
        thousands(original.len() as u64),
        shown(&destination.path_text())
    )))
}

//! Several models on one arena.
//!
//! Models that take turns share the head: it is as large as the largest of theirs, and their tails are added.
//!
//! ```text
//! | head: whose turn it is                  | ... | tail of the third | of the second | of the first |
//! | first's tensors, then second's, then .. |
//! ```
//!
//! Between two turns of a model nothing of it is left in the head, so that inputs are set before each of its invokes, and
//! models with state in the head are refused. What a model keeps is in its tail.
//!
//! A [`Link`] keeps one thing: an output of a model is an input of a later one, in the same bytes, so that nobody has to copy
//! it. The second model runs right after the first, and its linked input is not set. Linked models run in the order in which
//! they are given, with no other model in between. An output may go to several models, or past one of them, if each model up to
//! the last reader has it as an input, which then keeps its value to the end of its invoke.
//!
//! On the device, all models are prepared before the first of them runs, in the order given: preparing one uses the head. With
//! TFLM that is one `MicroAllocator` for several `MicroInterpreter`s; with `arenaplan-runtime`, several sessions and one head.
//! For TFLM the order also decides how much room preparing takes ([`Turns`](crate::tflm::room::Turns)), and so the arena.
//!
//! [`plan`] plans each model alone, and looks for a place of what is linked with which the largest head grows least.
//! [`check()`] judges the planned files, and shares no code with what made them.

mod check;
mod error;
mod links;
mod search;
mod totals;

use crate::graph::Graph;
use crate::model::Model;
use crate::plan::{Group, Options, Planned};

pub use self::check::check;
pub use self::error::Error;
pub use self::links::cascade;
pub use self::totals::Totals;

pub(crate) use self::check::linked_with;
use self::links::Linked;
use self::search::Search;

/// One of the models.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// What it is called in messages and in what is noted in the files: no blank, no comma.
    pub name: &'a str,
    /// The `.tflite` file.
    pub bytes: &'a [u8],
}

/// An input or an output of one of the models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Port {
    /// Which model, by its place in the list.
    pub model: usize,
    /// Which of its inputs, or of its outputs.
    pub index: usize,
}

/// An output that is an input of a later model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// The output.
    pub from: Port,
    /// The input.
    pub to: Port,
}

/// The planned models.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Shared {
    /// The models, in the order in which they were given.
    pub models: Vec<Planned>,
    /// The links, with the place of each.
    pub links: Vec<Placed>,
    /// The figures for all models together, one for each library of the target; those of the first are meant where nothing
    /// else is said.
    pub totals: Vec<Totals>,
    /// The largest head that the models have when each is planned without links, with the first library.
    pub unlinked_head_bytes: u64,
    /// What the user should know about the links.
    pub warnings: Vec<String>,
}

/// A link and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placed {
    /// The link.
    pub link: Link,
    /// The same in words: `detector:0=classifier:0`.
    pub text: String,
    /// Bytes from the start of the head.
    pub offset: u64,
    /// Bytes of the tensor.
    pub bytes: u64,
}

impl Shared {
    /// The figures for the first library.
    pub fn total(&self) -> Totals {
        self.totals.first().copied().unwrap_or_default()
    }

    /// Bytes by which the links make the largest head larger. 0 means that they cost nothing; more need not be the least
    /// possible, as only some places are tried.
    pub fn link_cost_bytes(&self) -> u64 {
        let head = self.total().head_bytes;
        head.saturating_sub(self.unlinked_head_bytes)
    }
}

/// Plans models that take turns on one arena. The order is that in which they are prepared, and run where they are linked.
///
/// `options` count for each of the models, a time limit for each of the plans that are tried; offsets cannot be given. Files that were planned before are planned again, as by
/// [`plan::plan`](crate::plan::plan).
///
/// # Errors
/// A model cannot be read or planned, a link makes no sense, or no place was found for what is linked.
pub fn plan(members: &[Member<'_>], links: &[Link], options: &Options) -> Result<Shared, Error> {
    let graphs = graphs(members)?;
    if !options.fixed.is_empty() {
        return Err(Error::Group {
            reason:
                "offsets are given for tensors of one model; several are planned, and links decide"
                    .into(),
        });
    }
    let linked = Linked::resolve(members, &graphs, links, options)?;
    let mut options = options.clone();
    options.group = Some(Group {
        note: note(members, links),
        keep: Vec::new(),
    });
    let found = Search::new(members, &linked, &options).run()?;
    let files: Vec<_> = (members.iter().zip(&found.models))
        .map(|(member, planned)| Member {
            name: member.name,
            bytes: &planned.file,
        })
        .collect();
    if let Some(fault) = check(&files, links, &options)?.into_iter().next() {
        return Err(Error::Internal { reason: fault });
    }
    let totals = totals::totals(&files, &found.models, &options)?;
    let placed = links.iter().filter_map(|&link| {
        let place = linked.place_of(link)?;
        Some(Placed {
            link,
            text: link.text(members),
            offset: *found.offsets.get(place)?,
            bytes: linked.places.get(place)?.bytes,
        })
    });
    let links = placed.collect();
    let mut warnings = linked.warnings;
    warnings.extend(found.warning);
    warnings.extend(totals::better_order(&files, &found.models, &options)?);
    Ok(Shared {
        models: found.models,
        links,
        totals,
        unlinked_head_bytes: found.unlinked_head_bytes,
        warnings,
    })
}

impl Port {
    fn parse(text: &str, members: &[Member<'_>]) -> Result<Self, String> {
        let (name, number) = text.rsplit_once(':').unwrap_or((text, "0"));
        let index = number
            .parse()
            .map_err(|_| format!("{text:?} has no number behind the colon"))?;
        let all = 0..members.len();
        let named: Vec<usize> = all.filter(|&m| members[m].name == name).collect();
        let place = || name.parse().ok().filter(|&m: &usize| m < members.len());
        let model = match named[..] {
            [only] => Some(only),
            [] => place(),
            _ => {
                return Err(format!(
                    "several models are called {name}; give the place in the list, from 0 on"
                ));
            }
        };
        let names = || members.iter().map(|m| m.name).collect::<Vec<_>>();
        let model = model.ok_or_else(|| {
            format!(
                "no model is called {name}; there are {}",
                names().join(", ")
            )
        })?;
        Ok(Self { model, index })
    }
}

/// Reads all models.
fn graphs<'a>(members: &[Member<'a>]) -> Result<Vec<Graph<'a>>, Error> {
    if members.is_empty() {
        return Err(Error::Group {
            reason: "there is no model".into(),
        });
    }
    let read = |member: &Member<'a>| {
        let graph = Model::parse(member.bytes).and_then(Graph::read);
        graph.map_err(|error| Error::of(member, error))
    };
    members.iter().map(read).collect()
}

impl Link {
    /// The link that `text` describes, as `detector:0=classifier:0`: a model by its name, or by its place in the list, from 0 on;
    /// outputs and inputs from 0 on, and the first one where there is no number.
    ///
    /// # Errors
    /// [`Error::Link`].
    pub fn parse(text: &str, members: &[Member<'_>]) -> Result<Self, Error> {
        let wrong = |reason: String| Error::Link {
            link: text.to_owned(),
            reason,
        };
        let Some((from, to)) = text.split_once('=') else {
            return Err(wrong(
                "give it as MODEL:OUTPUT=MODEL:INPUT, like detector:0=classifier:0".into(),
            ));
        };
        Ok(Self {
            from: Port::parse(from, members).map_err(wrong)?,
            to: Port::parse(to, members).map_err(wrong)?,
        })
    }

    /// The link in words: `detector:0=classifier:0`.
    pub fn text(&self, members: &[Member<'_>]) -> String {
        let port = |port: Port| {
            let name = members.get(port.model).map(|m| m.name);
            match name {
                Some(name) => format!("{name}:{}", port.index),
                None => format!("{}:{}", port.model, port.index),
            }
        };
        format!("{}={}", port(self.from), port(self.to))
    }
}

/// The group as it is noted in each file: `share=a,b link=a:0=b:0`.
fn note(members: &[Member<'_>], links: &[Link]) -> String {
    let names: Vec<_> = members.iter().map(|m| m.name).collect();
    let mut words = vec![format!("share={}", names.join(","))];
    words.extend((links.iter()).map(|&link| format!("link={}", link.text(members))));
    // Words are separated by blanks in the file.
    let whole = |word: &String| word.split_whitespace().collect::<Vec<_>>().join("_");
    words.iter().map(whole).collect::<Vec<_>>().join(" ")
}

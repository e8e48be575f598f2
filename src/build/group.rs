//! Models that share an arena, in a build script.

use std::path::Path;

use super::{Builder, Error, ErrorKind, Generated, is_git_lfs, warnings};
use crate::codegen::{self, Interface, Turn};
use crate::share::{self, Link, Member};

/// Which models share an arena, and how.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) name: String,
    models: Vec<String>,
    is_cascade: bool,
    pub(super) links: Vec<String>,
}

impl Group {
    pub(super) fn new(name: String, models: &[&str], is_cascade: bool) -> Self {
        Self {
            name,
            models: models.iter().map(|&m| m.to_owned()).collect(),
            is_cascade,
            links: Vec::new(),
        }
    }

    /// None: a link that comes before any group.
    pub(super) fn stray(link: String) -> Self {
        Self {
            links: vec![link],
            ..Self::new(String::new(), &[], false)
        }
    }

    /// Whether a model belongs to it.
    pub(super) fn has(&self, model: &str) -> bool {
        self.models.iter().any(|m| m == model)
    }

    fn wrong(&self, reason: String) -> Error {
        let name = self.name.clone();
        ErrorKind::Group { name, reason }.into()
    }
}

/// What is written for models that share an arena.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GeneratedGroup {
    /// The name: the file is called `NAME.rs`.
    pub name: String,
    /// The code.
    pub rust: String,
    /// The models, each of which lies beside it.
    pub models: Vec<Generated>,
    /// Bytes of the largest head.
    pub head_bytes: usize,
    /// Bytes of all tails.
    pub tail_bytes: usize,
    /// What the user should know of the models together, a line each.
    pub warnings: Vec<String>,
}

impl GeneratedGroup {
    /// Bytes of the arena: the largest head, and all tails.
    pub fn arena_bytes(&self) -> usize {
        self.head_bytes + self.tail_bytes
    }
}

impl Builder {
    /// What [`compile`](Self::compile) writes for models that share an arena, with paths relative to `root`.
    ///
    /// # Errors
    /// As those of [`compile`](Self::compile).
    pub fn generate_groups(&self, root: &Path) -> Result<Vec<GeneratedGroup>, Error> {
        self.groups
            .iter()
            .map(|group| self.group(group, root))
            .collect()
    }

    fn group(&self, group: &Group, root: &Path) -> Result<GeneratedGroup, Error> {
        let mut files = Vec::new();
        match (&group.models[..], &group.name[..], &group.links[..]) {
            ([], "", [link, ..]) => {
                let reason = format!("the link {link:?} comes before any `.share` or `.cascade`");
                return Err(group.wrong(reason));
            }
            ([], ..) => return Err(group.wrong("it has no models".into())),
            _ => {}
        }
        for (k, name) in group.models.iter().enumerate() {
            let mut known = Vec::new();
            for source in &self.models {
                known.push((source.name()?, source));
            }
            let Some((_, source)) = known.iter().find(|(known, _)| known == name) else {
                let known: Vec<_> = known.iter().map(|(name, _)| &name[..]).collect();
                return Err(group.wrong(format!(
                    "no model is called {name:?}; there are {}",
                    known.join(", ")
                )));
            };
            let groups = self.groups.iter().filter(|other| other.has(name));
            if group.models[..k].contains(name) || groups.count() > 1 {
                return Err(group.wrong(format!("{name:?} is there already, or in another group")));
            }
            let bytes = source.read(root)?;
            if is_git_lfs(&bytes) {
                return Err(ErrorKind::GitLfs.of(&source.path));
            }
            files.push((*source, bytes));
        }
        let members: Vec<Member<'_>> = (group.models.iter().zip(&files))
            .map(|(name, (_, bytes))| Member { name, bytes })
            .collect();
        let about = |error: share::Error| match error {
            share::Error::Model { name, error } => {
                let place = members.iter().position(|m| m.name == name);
                match place.and_then(|place| files.get(place)) {
                    Some((source, _)) => ErrorKind::Plan(error).of(&source.path),
                    None => ErrorKind::Plan(error).into(),
                }
            }
            error => ErrorKind::Share(error).into(),
        };
        let links = group.links.iter().map(|text| Link::parse(text, &members));
        let mut links = links.collect::<Result<Vec<_>, _>>().map_err(about)?;
        if group.is_cascade {
            links = share::cascade(&members, &links, &self.options).map_err(about)?;
        }
        let shared = share::plan(&members, &links, &self.options).map_err(about)?;

        let code = self.code()?;
        let mut models = Vec::new();
        for (planned, (name, (source, _))) in
            (shared.models.into_iter()).zip(group.models.iter().zip(&files))
        {
            let interface = self
                .interface(&planned.file, &code)
                .map_err(|e| e.kind.of(&source.path))?;
            let warnings = warnings(&planned).into_iter();
            models.push(Generated {
                name: name.clone(),
                rust: String::new(),
                warnings: warnings
                    .map(|w| format!("{}: {w}", source.path.display()))
                    .collect(),
                planned,
                interface,
            });
        }
        let linked: Vec<Vec<usize>> = (0..models.len())
            .map(|model| {
                let ends = links.iter().map(|link| link.to);
                ends.filter(|to| to.model == model)
                    .map(|to| to.index)
                    .collect()
            })
            .collect();
        let chain = |model: usize| share::linked_with(model, &links, models.len());
        let turns: Vec<Turn<'_>> = (models.iter().zip(&linked).enumerate())
            .map(|(k, (model, linked))| Turn {
                name: &model.name,
                model: &model.interface,
                linked,
                after: match linked.is_empty() {
                    true => None,
                    false => chain(k).range(..k).next_back().copied(),
                },
            })
            .collect();
        let rust = codegen::group(&group.name, &turns, &code)?;
        let heads = models.iter().map(|m| m.interface.head_bytes);
        let generated = GeneratedGroup {
            name: group.name.clone(),
            rust,
            head_bytes: heads.max().unwrap_or(0),
            tail_bytes: models.iter().map(|m| m.interface.tail_bytes).sum(),
            warnings: shared.warnings,
            models,
        };
        self.check_limit(&generated)?;
        Ok(generated)
    }

    /// That the arena is not above the limit.
    fn check_limit(&self, group: &GeneratedGroup) -> Result<(), Error> {
        let needed = group.arena_bytes();
        let Some(limit) = self.arena_limit.filter(|&limit| needed > limit) else {
            return Ok(());
        };
        let largest = group.models.iter().max_by_key(|m| m.interface.head_bytes);
        let Some(largest) = largest else {
            return Ok(());
        };
        let all = Interface {
            head_bytes: group.head_bytes,
            tail_bytes: group.tail_bytes,
            ..largest.interface.clone()
        };
        Err(ErrorKind::GroupLimit {
            name: group.name.clone(),
            models: group.models.iter().map(|m| m.name.clone()).collect(),
            largest: largest.name.clone(),
            kind: Box::new(self.above(limit, &all, &largest.planned)?),
        }
        .into())
    }
}

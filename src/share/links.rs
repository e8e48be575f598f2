//! Which links make sense, and which tensors then lie in one place.

use std::collections::BTreeSet;

use arenaplan_schema::tflite::TensorType;

use super::{Error, Link, Member, Port, graphs};
use crate::graph::{Graph, Storage, Tensor, TensorId};
use crate::plan::Options;
use crate::tflm;

/// Tensors of several models in the same bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Model and tensor, in the order in which the models run; the first one writes the bytes.
    pub(super) tensors: Vec<(usize, TensorId)>,
    /// Bytes of each of the tensors.
    pub(super) bytes: u64,
}

/// What follows from the links.
#[derive(Clone, Debug, Default)]
pub(super) struct Linked {
    pub(super) places: Vec<Place>,
    /// For each model, inputs that later models read as well.
    pub(super) keep: Vec<Vec<TensorId>>,
    pub(super) warnings: Vec<String>,
    /// Each link with its place.
    of_link: Vec<(Link, usize)>,
}

impl Linked {
    /// Checks the links one by one and together.
    pub(super) fn resolve(
        members: &[Member<'_>],
        graphs: &[Graph<'_>],
        links: &[Link],
        options: &Options,
    ) -> Result<Self, Error> {
        let wrong = |link: Link, reason: String| Error::Link {
            link: link.text(members),
            reason,
        };
        let mut linked = Linked {
            keep: vec![Vec::new(); graphs.len()],
            ..Linked::default()
        };
        let mut run_of: Vec<usize> = (0..graphs.len()).collect();
        for (k, &link) in links.iter().enumerate() {
            let ends = Ends::of(graphs, link).map_err(|reason| wrong(link, reason))?;
            ends.fit(options).map_err(|reason| wrong(link, reason))?;
            if links[..k].iter().any(|other| other.to == link.to) {
                let reason = "another link ends at this input already".into();
                return Err(wrong(link, reason));
            }
            if let Some(warning) = ends.warning() {
                let text = link.text(members);
                linked.warnings.push(format!("link {text}: {warning}"));
            }
            linked
                .join(link, &ends)
                .map_err(|reason| wrong(link, reason))?;
            let (from, to) = (run_of[link.from.model], run_of[link.to.model]);
            run_of
                .iter_mut()
                .filter(|run| **run == to)
                .for_each(|run| *run = from);
        }
        linked.settle(members, graphs, &run_of)?;
        Ok(linked)
    }

    /// Adds the two tensors of a link to a place.
    fn join(&mut self, link: Link, ends: &Ends<'_, '_>) -> Result<(), String> {
        let from = (link.from.model, ends.from.id);
        let to = (link.to.model, ends.to.id);
        let position = |end| self.places.iter().position(|p| p.tensors.contains(&end));
        // What comes in may go out again as it is, so that both ends can have a place already.
        let place = match (position(from), position(to)) {
            (Some(a), Some(b)) if a != b => {
                let moved = self.places.remove(b);
                let a = if b < a { a - 1 } else { a };
                for (_, place) in &mut self.of_link {
                    *place = match *place {
                        p if p == b => a,
                        p if p > b => p - 1,
                        p => p,
                    };
                }
                self.places[a].tensors.extend(moved.tensors);
                a
            }
            (Some(place), _) | (None, Some(place)) => place,
            (None, None) => {
                self.places.push(Place {
                    tensors: Vec::new(),
                    bytes: ends.from.bytes,
                });
                self.places.len() - 1
            }
        };
        let tensors = &mut self.places[place].tensors;
        tensors.extend([from, to]);
        tensors.sort_unstable();
        tensors.dedup();
        if tensors.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(
                "two tensors of one model would have to lie in the same bytes; copy one of them"
                    .into(),
            );
        }
        self.of_link.push((link, place));
        Ok(())
    }

    /// What must survive the models that run in between. `run_of` tells which models follow each other without another one.
    fn settle(
        &mut self,
        members: &[Member<'_>],
        graphs: &[Graph<'_>],
        run_of: &[usize],
    ) -> Result<(), Error> {
        for (k, place) in self.places.iter().enumerate() {
            let [(first, _), readers @ .., (last, _)] = &place.tensors[..] else {
                continue;
            };
            let (first, last) = (*first, *last);
            let has = |model| place.tensors.iter().any(|t| t.0 == model);
            let between = (first + 1..last).find(|&m| run_of[m] == run_of[first] && !has(m));
            if let Some(between) = between {
                let mut links = self.of_link.iter().filter(|(_, place)| *place == k);
                let link = links.find(|(link, _)| link.to.model == last);
                let name = |model: usize| members.get(model).map_or("", |m| m.name);
                return Err(Error::Link {
                    link: link.map_or_else(String::new, |(link, _)| link.text(members)),
                    reason: format!(
                        "{} runs in between and would overwrite it: link the output to an input of {0} as well, give {0} \
                         another place in the order, or copy the output",
                        name(between)
                    ),
                });
            }
            for &(model, tensor) in readers {
                if !graphs[model].subgraphs[0].outputs.contains(&tensor) {
                    self.keep[model].push(tensor);
                }
            }
        }
        Ok(())
    }

    /// The place of a link's tensors, by its position in `places`.
    pub(super) fn place_of(&self, link: Link) -> Option<usize> {
        let mut all = self.of_link.iter();
        all.find(|(other, _)| *other == link)
            .map(|(_, place)| *place)
    }
}

/// The two tensors of a link.
struct Ends<'g, 'a> {
    link: Link,
    graphs: [&'g Graph<'a>; 2],
    from: &'g Tensor<'a>,
    to: &'g Tensor<'a>,
}

impl<'g, 'a> Ends<'g, 'a> {
    fn of(graphs: &'g [Graph<'a>], link: Link) -> Result<Self, String> {
        let Link { from, to } = link;
        let graph = |port: Port| {
            let found = graphs.get(port.model);
            found.ok_or_else(|| format!("there are {} models, from 0 on", graphs.len()))
        };
        let pick = |list: &[TensorId], port: Port, what: &str| {
            list.get(port.index).copied().ok_or_else(|| {
                format!(
                    "there is no {what} {}; the model has {} {what}s, from 0 on",
                    port.index,
                    list.len()
                )
            })
        };
        let pair = [graph(from)?, graph(to)?];
        let output = pick(&pair[0].subgraphs[0].outputs, from, "output")?;
        let input = pick(&pair[1].subgraphs[0].inputs, to, "input")?;
        Ok(Self {
            link,
            graphs: pair,
            from: pair[0].tensor(output),
            to: pair[1].tensor(input),
        })
    }

    /// Whether the second model reads from these bytes what the first has written into them.
    fn fit(&self, options: &Options) -> Result<(), String> {
        if self.link.from.model >= self.link.to.model {
            return Err(
                "a link leads to a later model; give the models in the order in which they run"
                    .into(),
            );
        }
        for (graph, tensor) in self.graphs.iter().zip([self.from, self.to]) {
            has_place(graph, tensor, options)?;
        }
        let (from, to) = (self.from, self.to);
        if from.ty != to.ty {
            return Err(format!(
                "the output is {}, the input {}",
                type_name(from),
                type_name(to)
            ));
        }
        if from.bytes != to.bytes {
            return Err(format!(
                "the output has {} bytes, shape {:?}, the input {}, shape {:?}",
                from.bytes,
                shape(from),
                to.bytes,
                shape(to)
            ));
        }
        let numbers = [from, to].map(Quantization::of);
        if numbers[0] != numbers[1] {
            let [from, to] = numbers.map(|q| q.words());
            return Err(format!(
                "the output has {from}, the input {to}, so that the same bytes would be other numbers: convert both models \
                 with the same range, or copy and requantize between them"
            ));
        }
        Ok(())
    }

    fn warning(&self) -> Option<String> {
        let [from, to] = [self.from, self.to].map(shape);
        (from != to).then(|| {
            format!(
                "the output has the shape {from:?}, the input {to:?}; the bytes stay in their order"
            )
        })
    }
}

/// Whether a plan can decide where a tensor lies.
fn has_place(graph: &Graph<'_>, tensor: &Tensor<'_>, options: &Options) -> Result<(), String> {
    let why = match tensor.storage {
        Storage::Arena => {
            let named = options
                .online
                .iter()
                .filter_map(|n| graph.find_tensor(n).ok());
            let mut left = named.chain(tflm::entries_read_for_variables(graph));
            match left.any(|t| t == tensor.id) {
                true => "is left to the device's planner",
                false => return Ok(()),
            }
        }
        Storage::Constant | Storage::OutsideConstant => "is a constant",
        Storage::Variable => "is a variable, which lies in the tail",
        Storage::ResourceHandle => "is a resource handle",
        Storage::Empty => "is empty",
        Storage::DynamicShape => "has a size that is known only at run time",
        Storage::UnknownType => "has a type without a fixed size",
    };
    Err(format!("{} {why}", tensor.label()))
}

fn type_name(tensor: &Tensor<'_>) -> String {
    arenaplan_schema::names::tensor_type_name(tensor.ty).to_string()
}

fn shape<'t>(tensor: &'t Tensor<'_>) -> &'t [i32] {
    tensor.prepared_shape.as_ref().unwrap_or(&tensor.shape)
}

/// What the numbers of a tensor stand for.
#[derive(PartialEq)]
struct Quantization {
    /// By their bits: what is nearly the same is not the same.
    scales: Vec<u32>,
    zero_points: Vec<i64>,
    /// Counts only with several scales.
    dimension: i32,
}

impl Quantization {
    /// That of real numbers is nothing, whatever a converter has left there.
    fn of(tensor: &Tensor<'_>) -> Self {
        let is_real = [
            TensorType::FLOAT16,
            TensorType::FLOAT32,
            TensorType::FLOAT64,
        ];
        let found = tensor.table.quantization();
        let found = found.filter(|_| !is_real.contains(&tensor.ty));
        let scales: Vec<u32> = found
            .and_then(|q| q.scale())
            .map_or_else(Vec::new, |s| s.iter().map(f32::to_bits).collect());
        let zero_points = found.and_then(|q| q.zero_point());
        let mut zero_points: Vec<i64> = zero_points.map_or_else(Vec::new, |z| z.iter().collect());
        // One for all, and none at all for zero, are other ways to write the same.
        if scales.is_empty() {
            zero_points.clear();
        } else if let [] | [_] = zero_points[..] {
            let all = zero_points.first().copied().unwrap_or(0);
            zero_points = vec![all; scales.len()];
        }
        Self {
            dimension: match scales.len() {
                0 | 1 => 0,
                _ => found.map_or(0, |q| q.quantized_dimension()),
            },
            scales,
            zero_points,
        }
    }

    fn words(&self) -> String {
        let scale = |bits: &u32| f32::from_bits(*bits);
        match (&self.scales[..], &self.zero_points[..]) {
            ([], _) => "no quantization".into(),
            ([one], [zero, ..]) => format!("scale {} and zero point {zero}", scale(one)),
            (all, zeros) => {
                let all: Vec<_> = all.iter().map(scale).collect();
                format!(
                    "scales {all:?} and zero points {zeros:?} along dimension {}",
                    self.dimension
                )
            }
        }
    }
}

/// The links of a cascade: from each model to the next the one that is possible, and those in `links` where they are between
/// the two.
///
/// # Errors
/// Two models that follow each other have not exactly one output and input that fit: the error lists what there is.
pub fn cascade(
    members: &[Member<'_>],
    links: &[Link],
    options: &Options,
) -> Result<Vec<Link>, Error> {
    let graphs = graphs(members)?;
    let mut all = links.to_vec();
    for second in 1..graphs.len() {
        let first = second - 1;
        if links
            .iter()
            .any(|l| l.from.model == first && l.to.model == second)
        {
            continue;
        }
        let (mut fitting, mut others) = (Vec::new(), Vec::new());
        let taken: BTreeSet<Port> = all.iter().map(|l| l.to).collect();
        for output in 0..graphs[first].subgraphs[0].outputs.len() {
            for input in 0..graphs[second].subgraphs[0].inputs.len() {
                let link = Link {
                    from: Port {
                        model: first,
                        index: output,
                    },
                    to: Port {
                        model: second,
                        index: input,
                    },
                };
                if taken.contains(&link.to) {
                    continue;
                }
                let fits = Ends::of(&graphs, link).and_then(|ends| ends.fit(options));
                match fits {
                    Ok(()) => fitting.push(link),
                    Err(reason) => others.push(format!("{}: {reason}", link.text(members))),
                }
            }
        }
        match fitting[..] {
            [only] => all.push(only),
            _ => {
                return Err(Error::NoCascade {
                    from: members[first].name.to_owned(),
                    to: members[second].name.to_owned(),
                    fits: fitting.len(),
                    candidates: match fitting.is_empty() {
                        true => others,
                        false => fitting.iter().map(|&l| l.text(members)).collect(),
                    },
                });
            }
        }
    }
    Ok(all)
}

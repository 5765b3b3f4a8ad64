//! Who takes what: each function, and each piece of data, belongs to one piece, to two, or to the base.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use crate::linked::{Linked, Reference, Symbol};

/// A function or data, by which a module is judged.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Node {
    /// A function of the module's own.
    Function(usize),
    /// A segment, and where in it.
    Data(usize, usize, usize),
}

/// Which pieces something belongs to.
///
/// A page loads the base and one piece. So what two pieces take is in both of them, at the same place, and pages of other pieces do
/// without. What more take is in the base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pieces(u64);

impl Pieces {
    const BASE: Pieces = Pieces(0);
    const MOST: u32 = 2;

    fn with(self, piece: usize) -> Pieces {
        Pieces(self.0 | 1 << piece)
    }

    /// Itself, or the base if that is too many.
    fn or_base(self) -> Pieces {
        if self.0.count_ones() > Pieces::MOST { Pieces::BASE } else { self }
    }

    pub fn is_base(self) -> bool {
        self == Pieces::BASE
    }

    pub fn has(self, piece: usize) -> bool {
        self.0 >> piece & 1 == 1
    }
}

/// The owners of functions and of bytes of data.
pub struct Owners {
    pub functions: Vec<Pieces>,
    /// For each segment, for each byte.
    pub bytes: Vec<Vec<Pieces>>,
}

struct Graph<'a> {
    linked: &'a Linked<'a>,
    /// The symbols of data of each segment, in their order.
    data: Vec<Vec<(usize, usize)>>,
    to: HashMap<Node, Vec<Node>>,
    table: Node,
}

/// Finds the owners, for a table whose entries belong to these pieces.
pub fn owners(linked: &Linked, table: &str, piece_of: &[usize]) -> Result<Owners, String> {
    let entries = piece_of.len();
    let graph = Graph::new(linked, table)?;
    let Node::Data(_, _, size) = graph.table else { unreachable!("a table is data") };
    if entries == 0 || size % entries != 0 {
        return Err(format!("the table {table} of {size} bytes has no {entries} entries"));
    }
    if piece_of.iter().any(|piece| *piece >= u64::BITS as usize) {
        return Err(format!("the table {table} has more than {} pieces", u64::BITS));
    }
    // What the module takes even if it never looks at the table.
    let exported = linked.exports.iter().filter(|(_, kind, _)| *kind == wasmparser::ExternalKind::Func);
    let mut everyones = HashSet::from([graph.table]);
    graph.reach(exported.filter_map(|(.., index)| graph.function(*index)), &mut everyones);
    // What it may look at before a piece is there: the data of the entries, but not the functions that they name.
    let mut looked_at = HashSet::new();
    let mut takes: BTreeMap<usize, HashSet<Node>> = BTreeMap::new();
    for (entry, piece) in piece_of.iter().enumerate() {
        let range = entry * size / entries..(entry + 1) * size / entries;
        let mut functions = Vec::new();
        let mut rest = graph.of_table(range);
        while let Some(node) = rest.pop() {
            match node {
                _ if everyones.contains(&node) => {}
                Node::Function(_) => functions.push(node),
                Node::Data(..) => {
                    if looked_at.insert(node) {
                        rest.extend(graph.to.get(&node).into_iter().flatten());
                    }
                }
            }
        }
        let reached = takes.entry(*piece).or_insert_with(|| everyones.clone());
        graph.reach(functions.into_iter(), reached);
    }
    let mut owner = HashMap::<Node, Pieces>::new();
    for (piece, reached) in &takes {
        for node in reached.difference(&everyones) {
            let pieces = owner.entry(*node).or_default();
            *pieces = pieces.with(*piece);
        }
    }
    everyones.extend(&looked_at);
    let of = |node: &Node| match owner.get(node) {
        Some(pieces) if !everyones.contains(node) => pieces.or_base(),
        _ => Pieces::BASE,
    };

    let functions = (0..linked.bodies.len()).map(|function| of(&Node::Function(function))).collect();
    // Some data lies within other data: the end of a text is a text. Such a byte is of pieces only if all of them agree.
    let mut bytes: Vec<_> =
        linked.segments.iter().map(|segment| vec![(false, Pieces::BASE); segment.bytes.len()]).collect();
    for (segment, all) in graph.data.iter().enumerate() {
        for &(offset, size) in all {
            let owner = of(&Node::Data(segment, offset, size));
            for byte in &mut bytes[segment][offset..offset + size] {
                *byte = match *byte {
                    (false, _) => (true, owner),
                    (true, before) => (true, if before == owner { owner } else { Pieces::BASE }),
                };
            }
        }
    }
    let bytes = bytes.into_iter().map(|all| all.into_iter().map(|(_, owner)| owner).collect()).collect();
    Ok(Owners { functions, bytes })
}

impl<'a> Graph<'a> {
    fn new(linked: &'a Linked<'a>, table: &str) -> Result<Graph<'a>, String> {
        let mut data = vec![Vec::new(); linked.segments.len()];
        let mut tables = Vec::new();
        // Its path ends with its name, before which stands how long that is.
        let end = format!("{}{table}", table.len());
        for symbol in &linked.symbols {
            let Symbol::Data { name, at } = symbol else { continue };
            let (segment, offset, size) = (at.index as usize, at.offset as usize, at.size as usize);
            // What is zero at the beginning has no bytes.
            let Some(all) = data.get_mut(segment) else { continue };
            if offset + size > linked.segments[segment].bytes.len() {
                continue;
            }
            all.push((offset, size));
            let after = name.split_once(&end).map(|(_, after)| after);
            if after.is_some_and(|after| after.is_empty() || after.starts_with("17h")) {
                tables.push(Node::Data(segment, offset, size));
            }
        }
        for all in &mut data {
            all.sort_unstable();
            all.dedup();
        }
        let [table] = tables[..] else {
            return Err(format!("it has {} tables that are called {table}", tables.len()));
        };
        let mut graph = Graph { linked, data, to: HashMap::new(), table };
        for (function, references) in linked.in_code.iter().enumerate() {
            let to = references.iter().filter_map(|reference| graph.node(reference)).collect();
            graph.to.insert(Node::Function(function), to);
        }
        for (segment, references) in linked.in_data.iter().enumerate() {
            for reference in references {
                let Some(to) = graph.node(reference) else { continue };
                for from in graph.around(segment, reference.place) {
                    graph.to.entry(from).or_default().push(to);
                }
            }
        }
        Ok(graph)
    }

    /// A function, if the module does not import it.
    fn function(&self, index: u32) -> Option<Node> {
        (index as usize).checked_sub(self.linked.imports.len()).map(Node::Function)
    }

    fn node(&self, reference: &Reference) -> Option<Node> {
        match self.linked.symbols[reference.symbol] {
            Symbol::Function(index) => self.function(index),
            Symbol::Data { at, .. } => {
                let node = Node::Data(at.index as usize, at.offset as usize, at.size as usize);
                self.linked.segments.get(at.index as usize).map(|_| node)
            }
            Symbol::Other => None,
        }
    }

    /// The data that has this byte.
    fn around(&self, segment: usize, place: usize) -> Vec<Node> {
        let all = &self.data[segment];
        let end = all.partition_point(|(offset, _)| *offset <= place);
        let has = |(offset, size): &&(usize, usize)| place < offset + size;
        all[..end].iter().filter(has).map(|(offset, size)| Node::Data(segment, *offset, *size)).collect()
    }

    /// What bytes of the table refer to.
    fn of_table(&self, range: Range<usize>) -> Vec<Node> {
        let Node::Data(segment, offset, _) = self.table else { unreachable!("a table is data") };
        let is_there = |reference: &&Reference| {
            reference.place.checked_sub(offset).is_some_and(|place| range.contains(&place))
        };
        let there = self.linked.in_data[segment].iter().filter(is_there);
        there.filter_map(|reference| self.node(reference)).collect()
    }

    /// Adds all that is reached from these, and not through what is there.
    fn reach(&self, from: impl Iterator<Item = Node>, reached: &mut HashSet<Node>) {
        let mut rest: Vec<Node> = from.filter(|node| reached.insert(*node)).collect();
        while let Some(node) = rest.pop() {
            for to in self.to.get(&node).into_iter().flatten() {
                if reached.insert(*to) {
                    rest.push(*to);
                }
            }
        }
    }
}

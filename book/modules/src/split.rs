//! Splits a module into what many entries of a table take, and pieces that only some of its entries need. What two pieces take is in
//! both: a page starts the base and one piece.
//!
//! Functions keep their places in the table, and data its place in memory, so that nothing else that refers to them changes. The
//! base exports what pieces take from it, and a page that has started the base starts a piece with the base's exports.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use wasm_encoder::{
    CodeSection, ConstExpr, DataCountSection, DataSection, ElementSection, Elements, EntityType, ExportKind,
    ExportSection, FunctionSection, GlobalType, ImportSection, MemorySection, MemoryType, RawSection,
    RefType, SectionId, TableSection, TableType, ValType,
};
use wasmparser::ExternalKind;

use crate::graph::{Owners, owners};
use crate::linked::Linked;

/// A module that was split.
pub struct Split {
    /// It starts by itself.
    pub base: Vec<u8>,
    /// They import from the base.
    pub pieces: BTreeMap<String, Vec<u8>>,
}

/// What pieces import from.
const BASE: &str = "base";

/// Splits a module that was linked with `--emit-relocs` by a table in it. Each of its entries needs the piece of this name, and entries
/// may share one. The error says what the module lacks.
pub fn split(linked: &[u8], table: &str, names: &[&str]) -> Result<Split, String> {
    let linked = Linked::read(linked)?;
    let pieces: BTreeSet<&str> = names.iter().copied().collect();
    let number = |name: &&str| pieces.iter().position(|piece| piece == name).expect("it is one of them");
    let piece_of: Vec<usize> = names.iter().map(number).collect();
    let owners = owners(&linked, table, &piece_of)?;
    let imported = linked.imports.len();

    // Which functions of the base the pieces call.
    let mut lent: BTreeMap<u32, String> = BTreeMap::new();
    for function in 0..linked.bodies.len() {
        if owners.functions[function].is_base() {
            continue;
        }
        for (_, index) in linked.calls(function) {
            if index < imported as u32 || owners.functions[index as usize - imported].is_base() {
                lent.insert(index, String::new());
            }
        }
    }
    for (number, name) in lent.values_mut().enumerate() {
        *name = format!("{number:x}");
    }
    let base = base(&linked, &owners, &lent)?;
    let pieces = pieces.iter().enumerate();
    let pieces = pieces
        .map(|(number, name)| Ok(((*name).to_owned(), piece(&linked, &owners, number, &lent)?)))
        .collect::<Result<_, String>>()?;
    Ok(Split { base, pieces })
}

/// What is left when all pieces are taken away.
fn base(linked: &Linked, owners: &Owners, lent: &BTreeMap<u32, String>) -> Result<Vec<u8>, String> {
    let imported = linked.imports.len() as u32;
    let own = |function: &usize| owners.functions[*function].is_base();
    let mut numbers: BTreeMap<u32, u32> = (0..imported).map(|index| (index, index)).collect();
    for (after, function) in (0..linked.bodies.len()).filter(own).enumerate() {
        numbers.insert(imported + function as u32, imported + after as u32);
    }

    let mut imports = ImportSection::new();
    for (module, name, signature) in &linked.imports {
        imports.import(module, name, EntityType::Function(*signature));
    }
    let mut tables = TableSection::new();
    tables.table(table(linked)?);
    let mut memories = MemorySection::new();
    memories.memory(memory(linked)?);
    let mut exports = ExportSection::new();
    for (name, kind, index) in &linked.exports {
        match kind {
            ExternalKind::Func => exports.export(name, ExportKind::Func, numbers[index]),
            ExternalKind::Memory => exports.export(name, ExportKind::Memory, *index),
            ExternalKind::Global => exports.export(name, ExportKind::Global, *index),
            _ => return Err(format!("it exports {name}, which is not known here")),
        };
    }
    exports.export("table", ExportKind::Table, 0);
    for index in 0..linked.globals.len() {
        exports.export(&format!("global{index}"), ExportKind::Global, index as u32);
    }
    for (index, name) in lent {
        exports.export(name, ExportKind::Func, numbers[index]);
    }

    let mut module = wasm_encoder::Module::new();
    module.section(&RawSection { id: SectionId::Type.into(), data: linked.types });
    module.section(&imports);
    module.section(&signatures(linked, (0..linked.bodies.len()).filter(own)));
    module.section(&tables).section(&memories);
    module.section(&RawSection { id: SectionId::Global.into(), data: linked.globals_section });
    module.section(&exports);
    let data = data(linked, owners, None);
    module.section(&elements(linked, &numbers, |function| own(&function)));
    module.section(&DataCountSection { count: data.len() });
    module.section(&code(linked, &numbers, (0..linked.bodies.len()).filter(own)));
    module.section(&data);
    Ok(module.finish())
}

/// What the base does not have, of one piece.
fn piece(
    linked: &Linked,
    owners: &Owners,
    number: usize,
    lent: &BTreeMap<u32, String>,
) -> Result<Vec<u8>, String> {
    let imported = linked.imports.len();
    let own = |function: &usize| owners.functions[*function].has(number);
    let called = (0..linked.bodies.len()).filter(own).flat_map(|function| linked.calls(function));
    let called: BTreeSet<u32> = called.map(|(_, index)| index).collect();
    let mut imports = ImportSection::new();
    let mut numbers = BTreeMap::new();
    for (index, name) in lent.iter().filter(|(index, _)| called.contains(index)) {
        let signature = match (*index as usize).checked_sub(imported) {
            Some(function) => linked.signatures[function],
            None => linked.imports[*index as usize].2,
        };
        numbers.insert(*index, numbers.len() as u32);
        imports.import(BASE, name, EntityType::Function(signature));
    }
    for function in (0..linked.bodies.len()).filter(own) {
        numbers.insert((imported + function) as u32, numbers.len() as u32);
    }
    imports.import(BASE, "table", EntityType::Table(table(linked)?));
    imports.import(BASE, "memory", EntityType::Memory(memory(linked)?));
    for (index, global) in linked.globals.iter().enumerate() {
        let wasmparser::ValType::I32 = global.content_type else {
            return Err("a global is no i32".to_owned());
        };
        let global = GlobalType { val_type: ValType::I32, mutable: global.mutable, shared: false };
        imports.import(BASE, &format!("global{index}"), EntityType::Global(global));
    }

    let mut module = wasm_encoder::Module::new();
    module.section(&RawSection { id: SectionId::Type.into(), data: linked.types });
    module.section(&imports);
    module.section(&signatures(linked, (0..linked.bodies.len()).filter(own)));
    let data = data(linked, owners, Some(number));
    module.section(&elements(linked, &numbers, |function| own(&function)));
    module.section(&DataCountSection { count: data.len() });
    module.section(&code(linked, &numbers, (0..linked.bodies.len()).filter(own)));
    module.section(&data);
    Ok(module.finish())
}

fn table(linked: &Linked) -> Result<TableType, String> {
    let table = linked.table.ok_or("it has no table")?;
    Ok(TableType {
        element_type: RefType::FUNCREF,
        table64: false,
        minimum: table.initial,
        maximum: table.maximum,
        shared: false,
    })
}

fn memory(linked: &Linked) -> Result<MemoryType, String> {
    let memory = linked.memory.ok_or("it has no memory")?;
    Ok(MemoryType {
        minimum: memory.initial,
        maximum: memory.maximum,
        memory64: false,
        shared: false,
        page_size_log2: None,
    })
}

fn signatures(linked: &Linked, functions: impl Iterator<Item = usize>) -> FunctionSection {
    let mut section = FunctionSection::new();
    for function in functions {
        section.function(linked.signatures[function]);
    }
    section
}

/// The functions, with each call of what is now another number.
fn code(
    linked: &Linked,
    numbers: &BTreeMap<u32, u32>,
    functions: impl Iterator<Item = usize>,
) -> CodeSection {
    let mut section = CodeSection::new();
    for function in functions {
        let mut body = linked.bodies[function].to_vec();
        for (place, index) in linked.calls(function) {
            // The linker leaves room for five times seven bits.
            let number = numbers[&index];
            for (at, byte) in body[place..place + 5].iter_mut().enumerate() {
                let more = if at < 4 { 0x80 } else { 0 };
                *byte = (number >> (7 * at)) as u8 & 0x7f | more;
            }
        }
        section.raw(&body);
    }
    section
}

/// The places of the table that are filled with these functions.
fn elements(linked: &Linked, numbers: &BTreeMap<u32, u32>, own: impl Fn(usize) -> bool) -> ElementSection {
    let imported = linked.imports.len();
    let (start, functions) = &linked.elements;
    let mut section = ElementSection::new();
    let mut run: Vec<u32> = Vec::new();
    for place in 0..=functions.len() {
        let function = functions.get(place).copied();
        let is_own = |index: u32| (index as usize).checked_sub(imported).is_some_and(&own);
        match function.filter(|index| is_own(*index)) {
            Some(index) => run.push(numbers[&index]),
            None if !run.is_empty() => {
                let begins = ConstExpr::i32_const(*start as i32 + (place - run.len()) as i32);
                section.active(None, &begins, Elements::Functions(Cow::Owned(std::mem::take(&mut run))));
            }
            None => {}
        }
    }
    section
}

/// The data of the base, or of a piece. What is of others is zero there, or left out.
fn data(linked: &Linked, owners: &Owners, piece: Option<usize>) -> DataSection {
    /// A gap that is shorter is filled: to say that there is one takes as many bytes.
    const GAP: usize = 12;
    let mut section = DataSection::new();
    for (segment, of) in linked.segments.iter().zip(&owners.bytes) {
        let Some(piece) = piece else {
            let bytes = segment.bytes.iter().zip(of).map(|(byte, of)| if of.is_base() { *byte } else { 0 });
            section.active(0, &ConstExpr::i32_const(segment.start), bytes.collect::<Vec<u8>>());
            continue;
        };
        let mut at = 0;
        while let Some(begin) = (at..of.len()).find(|at| of[*at].has(piece)) {
            let mut end = begin;
            at = begin;
            // What fills a gap is there already, or is of another piece.
            while at < of.len() && (of[at].has(piece) || at - end < GAP && of[at].is_base()) {
                at += 1;
                if of[at - 1].has(piece) {
                    end = at;
                }
            }
            let start = ConstExpr::i32_const(segment.start + begin as i32);
            section.active(0, &start, segment.bytes[begin..end].iter().copied());
        }
    }
    section
}

#[cfg(test)]
mod tests {
    use super::split;

    /// What is wrong is said in a line, and nothing is split that could call the wrong function. Modules that are right are split and
    /// run by the tests of the labs in WebAssembly.
    #[test]
    fn what_a_module_lacks_is_said() {
        let said = |bytes: &[u8]| split(bytes, "LABS", &["lab-00"]).err().unwrap();
        assert_eq!(said(b"a page"), "magic header not detected: bad magic number - expected=[");
        let header = b"\0asm\x01\0\0\0";
        assert_eq!(said(header), "it has 0 tables that are called LABS");
        // One type, one function of it, which calls itself, and nobody says so.
        let code =
            [&header[..], &[1, 4, 1, 0x60, 0, 0], &[3, 2, 1, 0], &[10, 6, 1, 4, 0, 0x10, 0, 0x0b]].concat();
        assert_eq!(said(&code), "it was not linked with --emit-relocs");
    }
}

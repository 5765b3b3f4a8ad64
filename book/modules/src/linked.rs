//! A module as the linker made it, taken apart: its functions, its data, and what refers to what.

use std::ops::Range;

use wasmparser::{
    DataKind, DefinedDataSymbol, ElementItems, ElementKind, ExternalKind, GlobalType, KnownCustom, Linking,
    MemoryType, Operator, Parser, Payload, RelocationType, SymbolInfo, TableType, TypeRef,
};

/// What a module has. Functions are counted as a module counts them: first those it imports.
#[derive(Default)]
pub struct Linked<'a> {
    /// The section of types, as it stands.
    pub types: &'a [u8],
    /// The functions that it imports: module, name and type.
    pub imports: Vec<(&'a str, &'a str, u32)>,
    /// The types of its own functions.
    pub signatures: Vec<u32>,
    pub memory: Option<MemoryType>,
    pub table: Option<TableType>,
    pub globals: Vec<GlobalType>,
    /// The section of globals, as it stands.
    pub globals_section: &'a [u8],
    pub exports: Vec<(&'a str, ExternalKind, u32)>,
    /// Where the functions of the table begin, and which they are.
    pub elements: (u32, Vec<u32>),
    /// The bodies of its own functions.
    pub bodies: Vec<&'a [u8]>,
    pub segments: Vec<Segment<'a>>,
    pub symbols: Vec<Symbol<'a>>,
    /// What each of its own functions refers to. Places count from the beginning of the body.
    pub in_code: Vec<Vec<Reference>>,
    /// What the data refers to. Places count from the beginning of the segment.
    pub in_data: Vec<Vec<Reference>>,
}

/// Data, and where in memory it begins.
pub struct Segment<'a> {
    pub start: i32,
    pub bytes: &'a [u8],
}

/// What can be referred to, and matters here.
#[derive(Clone, Copy)]
pub enum Symbol<'a> {
    Function(u32),
    Data { name: &'a str, at: DefinedDataSymbol },
    Other,
}

/// A place that refers to a symbol.
#[derive(Clone, Copy)]
pub struct Reference {
    pub place: usize,
    pub symbol: usize,
    /// Whether it is the number of a function, as a call has it.
    pub is_index: bool,
}

impl<'a> Linked<'a> {
    /// Reads a module that was linked with `--emit-relocs`.
    pub fn read(bytes: &'a [u8]) -> Result<Linked<'a>, String> {
        let section = |range: Range<u64>| &bytes[range.start as usize..range.end as usize];
        let mut linked = Linked::default();
        let mut code_starts = (0, Vec::new());
        let mut data_starts = Vec::new();
        let mut relocations = Vec::new();
        // Sections are counted for those of relocations, which name theirs by its number.
        let (mut sections, mut code, mut data) = (0, None, None);
        for payload in Parser::new(0).parse_all(bytes) {
            match payload.map_err(said)? {
                Payload::CodeSectionEntry(body) => {
                    let range = body.range();
                    code_starts.1.push((range.start - code_starts.0) as usize);
                    linked.bodies.push(section(range));
                    continue;
                }
                Payload::TypeSection(types) => linked.types = section(types.range()),
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        let import = import.map_err(said)?;
                        let TypeRef::Func(signature) = import.ty else {
                            return Err(format!("it imports {}, which is no function", import.name));
                        };
                        linked.imports.push((import.module, import.name, signature));
                    }
                }
                Payload::FunctionSection(functions) => {
                    linked.signatures = functions.into_iter().collect::<Result<_, _>>().map_err(said)?;
                }
                Payload::TableSection(tables) => {
                    for table in tables {
                        linked.table = Some(table.map_err(said)?.ty);
                    }
                }
                Payload::MemorySection(memories) => {
                    for memory in memories {
                        linked.memory = Some(memory.map_err(said)?);
                    }
                }
                Payload::GlobalSection(globals) => {
                    linked.globals_section = section(globals.range());
                    for global in globals {
                        linked.globals.push(global.map_err(said)?.ty);
                    }
                }
                Payload::ExportSection(exports) => {
                    for export in exports {
                        let export = export.map_err(said)?;
                        linked.exports.push((export.name, export.kind, export.index));
                    }
                }
                Payload::ElementSection(elements) => {
                    for element in elements {
                        let element = element.map_err(said)?;
                        let (ElementKind::Active { offset_expr, .. }, ElementItems::Functions(functions)) =
                            (element.kind, element.items)
                        else {
                            return Err("its table is filled in a way that is not known here".to_owned());
                        };
                        let functions = functions.into_iter().collect::<Result<_, _>>().map_err(said)?;
                        linked.elements = (constant(&offset_expr)? as u32, functions);
                    }
                }
                Payload::CodeSectionStart { unchecked_range, .. } => {
                    code_starts.0 = unchecked_range.start;
                    code = Some(sections);
                }
                Payload::DataSection(segments) => {
                    data = Some(sections);
                    let start = segments.range().start;
                    for segment in segments {
                        let segment = segment.map_err(said)?;
                        let DataKind::Active { offset_expr, .. } = segment.kind else {
                            return Err("its data is not put into memory when it starts".to_owned());
                        };
                        let ends = segment.range.end - start;
                        data_starts.push(ends as usize - segment.data.len());
                        linked.segments.push(Segment { start: constant(&offset_expr)?, bytes: segment.data });
                    }
                }
                Payload::CustomSection(custom) => match custom.as_known() {
                    KnownCustom::Linking(linking) => {
                        for subsection in linking.subsections() {
                            let Linking::SymbolTable(symbols) = subsection.map_err(said)? else { continue };
                            for symbol in symbols {
                                linked.symbols.push(match symbol.map_err(said)? {
                                    SymbolInfo::Func { index, .. } => Symbol::Function(index),
                                    SymbolInfo::Data { name, symbol: Some(at), .. } => {
                                        Symbol::Data { name, at }
                                    }
                                    _ => Symbol::Other,
                                });
                            }
                        }
                    }
                    KnownCustom::Reloc(relocation) => relocations.push(relocation),
                    _ => {}
                },
                _ => {}
            }
            sections += 1;
        }
        // The version is no section.
        let (code, data) = (code.map(|code| code - 1), data.map(|data| data - 1));
        linked.in_code = vec![Vec::new(); linked.bodies.len()];
        linked.in_data = vec![Vec::new(); linked.segments.len()];
        for relocation in relocations {
            let of = Some(relocation.section_index());
            let (starts, places) = if of == code {
                (&code_starts.1, &mut linked.in_code)
            } else if of == data {
                (&data_starts, &mut linked.in_data)
            } else {
                continue;
            };
            for entry in relocation.entries() {
                let entry = entry.map_err(said)?;
                // All others are numbers of what is the same in each piece: types, globals and the table.
                use RelocationType::*;
                let is_of_symbol = matches!(
                    entry.ty,
                    FunctionIndexLeb
                        | TableIndexSleb
                        | TableIndexI32
                        | MemoryAddrLeb
                        | MemoryAddrSleb
                        | MemoryAddrI32
                );
                if is_of_symbol {
                    let at = entry.offset as usize;
                    let which = starts.partition_point(|start| *start <= at) - 1;
                    places[which].push(Reference {
                        place: at - starts[which],
                        symbol: entry.index as usize,
                        is_index: entry.ty == FunctionIndexLeb,
                    });
                }
            }
        }
        linked.check()?;
        Ok(linked)
    }

    /// Which functions a function of the module's own calls, and where in its body their numbers stand.
    pub fn calls(&self, function: usize) -> impl Iterator<Item = (usize, u32)> {
        self.in_code[function].iter().filter_map(|reference| match self.symbols[reference.symbol] {
            Symbol::Function(index) if reference.is_index => Some((reference.place, index)),
            _ => None,
        })
    }

    /// Whether what is written down of calls is all of them. If not, one would call whatever has its number afterwards.
    fn check(&self) -> Result<(), String> {
        for (body, references) in self.bodies.iter().zip(&self.in_code) {
            let body = wasmparser::FunctionBody::new(wasmparser::BinaryReader::new(body, 0));
            let mut calls = 0;
            for operator in body.get_operators_reader().map_err(said)? {
                calls += match operator.map_err(said)? {
                    Operator::Call { .. } => 1,
                    Operator::ReturnCall { .. } | Operator::RefFunc { .. } => {
                        return Err("a function is named in a way that is not known here".to_owned());
                    }
                    _ => 0,
                };
            }
            if calls != references.iter().filter(|reference| reference.is_index).count() {
                return Err("it was not linked with --emit-relocs".to_owned());
            }
        }
        Ok(())
    }
}

fn said(error: wasmparser::Error) -> String {
    error.message().lines().next().unwrap_or_default().to_owned()
}

/// Where something begins.
fn constant(expression: &wasmparser::ConstExpr) -> Result<i32, String> {
    match expression.get_operators_reader().read() {
        Ok(Operator::I32Const { value }) => Ok(value),
        _ => Err("where something begins is no constant".to_owned()),
    }
}

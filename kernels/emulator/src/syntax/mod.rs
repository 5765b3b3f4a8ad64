//! The syntax tree, and the parser that builds it.

mod allocation;
pub mod ast;
pub mod declarations;
pub mod expressions;
mod first;
mod functions;
mod hints;
pub mod names;
mod namespaces;
pub mod parser;
mod primary;
mod recovery;
pub mod sides;
pub mod statements;
mod storage;
mod structs;
mod templates;
mod traps;
pub mod twice;
pub mod type_names;
mod unclosed;
mod undeclared;
pub mod unknown;
mod variables;

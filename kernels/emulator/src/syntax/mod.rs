//! The syntax tree, and the parser that makes it.

pub mod ast;
pub mod declarations;
pub mod expressions;
pub mod names;
pub mod parser;
pub mod sides;
pub mod statements;
pub mod twice;
pub mod type_names;
pub mod unknown;

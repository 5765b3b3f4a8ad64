//! Calls of CUDA and C functions in host code.

use super::{Lower, Place, Value};
use crate::host::functions;
use crate::ir::{NO_ROW, Op, Prim, rows_of};
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;
use crate::types::{self, Type, TypeId, VOID};

impl Lower<'_> {
    pub fn host_call(
        &mut self,
        name: &str,
        _segment: &Segment,
        values: Vec<Value>,
        arguments: &[Expr],
        span: Span,
    ) -> Result<Value> {
        if self.on_device {
            return self.error(format!("`{name}` is a function of the host: device code cannot call it"));
        }
        let Some((_, parameters, result)) = functions::find(name) else { return self.unknown(name) };
        let needed = parameters.chars().take_while(|c| *c != '?').count();
        let codes: Vec<char> = parameters.chars().filter(|c| *c != '?').collect();
        if values.len() < needed || values.len() > codes.len() {
            return self.error(format!("`{name}` takes {needed} arguments, but gets {} here", values.len()));
        }
        let mut converted = Vec::new();
        let count = values.len();
        for (i, (value, code)) in values.into_iter().zip(&codes).enumerate() {
            self.span = arguments.get(i).map_or(span, |argument| argument.span);
            let is_pointer = super::calls::is_pointer(self, &value);
            let value = match code {
                'p' => {
                    if !is_pointer && value.as_const() != Some(0) {
                        return self.error(format!(
                            "`{name}` takes a pointer here, and this has type `{}`",
                            self.types.name(value.ty)
                        ));
                    }
                    // `NULL` has its own type.
                    let value = match value.as_const() {
                        Some(0) => Value::constant(types::U64, 0),
                        _ => self.loaded(value)?,
                    };
                    self.converted_scalar(value, types::U64, true)?
                }
                // A CUDA struct, passed by address.
                's' if value.as_const() == Some(0) => Value::constant(types::U64, 0),
                's' => {
                    let value = self.loaded(value)?;
                    self.converted_scalar(value, types::U64, true)?
                }
                code => self.coerced(value, type_of(*code))?,
            };
            converted.push(value);
        }
        self.span = span;
        for code in &codes[count..] {
            converted.push(Value::constant(type_of(*code), u64::MAX * u64::from(*code == 'x')));
        }
        let ty = match result {
            "v" => VOID,
            "p" => self.types.pointer(VOID, false),
            "t" => {
                let ty = self.types.id(Type::Prim(Prim::I8));
                self.types.pointer(ty, true)
            }
            code => type_of(code.chars().next().unwrap_or('i')),
        };
        self.host_operation(name, converted, ty)
    }

    pub fn host_operation(&mut self, name: &str, values: Vec<Value>, ty: TypeId) -> Result<Value> {
        let Some(function) = functions::number(name) else { return self.unknown(name) };
        let mut operands = Vec::new();
        for value in values {
            let value = self.copied(value)?;
            let prim = self.prim(value.ty).unwrap_or(Prim::U64);
            operands.push((prim, self.row(&value)?));
        }
        let first = self.program.operands.len() as u32;
        let count = operands.len() as u32;
        self.program.operands.extend(operands);
        if ty == VOID {
            self.emit(Op::Host { function, d: NO_ROW, first, count });
            return Ok(Value::new(VOID, Place::Nothing));
        }
        let d = self.program.rows(2);
        self.emit(Op::Host { function, d, first, count });
        let _ = rows_of;
        Ok(Value::new(ty, Place::Row(d)))
    }

    /// `cudaMemcpyToSymbol(weights, pointer, bytes)`: the symbol is a variable, not its address.
    pub fn symbol_copy(&mut self, name: &str, arguments: &[Expr], span: Span) -> Result<Value> {
        if self.on_device {
            return self.error(format!("`{name}` is a function of the host: device code cannot call it"));
        }
        let is_to = name == "cudaMemcpyToSymbol";
        if arguments.len() < 3 || arguments.len() > 5 {
            return self.error(format!("`{name}` takes a variable, an address and how many bytes"));
        }
        let (symbol, other) =
            if is_to { (&arguments[0], &arguments[1]) } else { (&arguments[1], &arguments[0]) };
        let symbol_value = self.expression(symbol)?;
        let on_device = match &symbol_value.place {
            Place::Memory(super::Memory { base: super::Base::Const(at), .. }) => {
                self.globals.iter().any(|global| global.address == *at && global.on_device)
            }
            _ => false,
        };
        if !on_device {
            return Err(Error::new(
                symbol.span,
                format!("`{name}` takes a `__constant__` or `__device__` variable"),
            ));
        }
        let at = self.address_of(Value { is_const: false, ..symbol_value })?;
        let other = self.read(other)?;
        self.span = span;
        let at = self.converted_scalar(at, types::U64, true)?;
        if !super::calls::is_pointer(self, &other) {
            return self.error(format!("`{name}` takes the address of host memory"));
        }
        let other = self.converted_scalar(other, types::U64, true)?;
        let bytes = self.read(&arguments[2])?;
        let bytes = self.coerced(bytes, types::U64)?;
        let offset = match arguments.get(3) {
            Some(offset) => {
                let offset = self.read(offset)?;
                self.coerced(offset, types::U64)?
            }
            None => Value::constant(types::U64, 0),
        };
        let at = self.calculate(crate::ir::Bin::Add64, at, offset, types::U64)?;
        let kind = Value::constant(types::I32, if is_to { 1 } else { 2 });
        let (to, from) = if is_to { (at, other) } else { (other, at) };
        self.host_operation("cudaMemcpy", vec![to, from, bytes, kind], types::I32)
    }
}

fn type_of(code: char) -> TypeId {
    match code {
        'i' => types::I32,
        'u' => types::U32,
        'l' => types::I64,
        'n' | 'x' => types::U64,
        'f' => types::F32,
        'd' => types::F64,
        _ => types::U64,
    }
}

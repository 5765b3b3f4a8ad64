//! Objects whose bytes are known at compile time: the first values of global variables.

use super::Lower;
use crate::run::arithmetic;
use crate::source::{Error, Result};
use crate::syntax::ast::*;
use crate::types::{Type, TypeId};

const NOT_CONSTANT: &str = "global variables with constructors are not part of the subset, except for constructors that \
                            only copy their arguments and constants";

impl Lower<'_> {
    pub(super) fn constant_init_of(&mut self, init: &Init, ty: TypeId, bytes: &mut [u8]) -> Result<()> {
        match init {
            Init::None => self.default_bytes(ty, bytes),
            Init::Value(value) => self.constant_bytes(value, ty, bytes),
            Init::Braces(items) => self.constant_list(items, ty, bytes),
            Init::Parentheses(items) => match (&items[..], self.types.get(ty)) {
                (_, Type::Struct(_)) => self.constant_list(items, ty, bytes),
                ([only], _) => self.constant_bytes(only, ty, bytes),
                _ => self.error("this initialiser is not part of the subset here"),
            },
        }
    }

    /// An object without an initialiser: zeros, and the values that its struct declares.
    fn default_bytes(&mut self, ty: TypeId, bytes: &mut [u8]) -> Result<()> {
        match self.types.get(ty).clone() {
            Type::Array { of, .. } => self.default_elements(of, bytes),
            Type::Struct(_) => self.constant_list(&[], ty, bytes),
            _ => Ok(()),
        }
    }

    fn default_elements(&mut self, of: TypeId, bytes: &mut [u8]) -> Result<()> {
        let size = self.types.layout(of).0 as usize;
        if let Some((first, rest)) = bytes.split_at_mut_checked(size) {
            self.default_bytes(of, first)?;
            rest.chunks_exact_mut(size).for_each(|element| element.copy_from_slice(first));
        }
        Ok(())
    }

    fn constant_bytes(&mut self, value: &Expr, ty: TypeId, bytes: &mut [u8]) -> Result<()> {
        if let ExprKind::Braces(items) = &value.kind {
            return self.constant_list(items, ty, bytes);
        }
        if let (ExprKind::Str(text), Type::Array { .. }) = (&value.kind, self.types.get(ty)) {
            if text.len() >= bytes.len() {
                return self.error("this string is longer than its array");
            }
            bytes[..text.len()].copy_from_slice(text.as_bytes());
            return Ok(());
        }
        if let (ExprKind::Construct(_, items, _), Type::Struct(_)) = (&value.kind, self.types.get(ty)) {
            return self.constant_list(items, ty, bytes);
        }
        let Some(prim) = self.prim(ty) else {
            return Err(Error::new(value.span, "this initialiser is not part of the subset here"));
        };
        let value = self.constant_init(value, ty)?;
        let bits = arithmetic::narrowed(prim, value.as_const().unwrap_or(0)).to_le_bytes();
        let size = bytes.len().min(8);
        bytes[..size].copy_from_slice(&bits[..size]);
        Ok(())
    }

    fn constant_list(&mut self, items: &[Expr], ty: TypeId, bytes: &mut [u8]) -> Result<()> {
        match self.types.get(ty).clone() {
            Type::Array { of, count } => {
                let items = self.with_inner_braces(items, of)?;
                if items.len() as u64 > count {
                    return self.error(format!("{} values for an array of {count}", items.len()));
                }
                let size = self.types.layout(of).0 as usize;
                let (given, rest) = bytes.split_at_mut(items.len() * size);
                for (item, element) in items.iter().zip(given.chunks_exact_mut(size)) {
                    self.constant_bytes(item, of, element)?;
                }
                self.default_elements(of, rest)
            }
            Type::Struct(number) if !self.constructors(number).candidates.is_empty() => {
                self.constant_constructor(number, items, bytes)
            }
            Type::Struct(number) => {
                let fields = self.types.structs[number].fields.clone();
                let declaration = self.types.structs[number].declaration.clone();
                if items.len() > fields.len() {
                    return self.error("too many values for this struct");
                }
                for (i, field) in fields.iter().enumerate() {
                    let at = field.offset as usize;
                    let place = &mut bytes[at..at + self.types.layout(field.ty).0 as usize];
                    match items.get(i) {
                        Some(item) => self.constant_bytes(item, field.ty, place)?,
                        None => {
                            let init = &declaration.fields[i].init;
                            self.in_struct(number, |lower| lower.constant_init_of(init, field.ty, place))?;
                        }
                    }
                }
                Ok(())
            }
            _ => match items {
                [] => Ok(()),
                [only] => self.constant_bytes(only, ty, bytes),
                _ => self.error("too many values"),
            },
        }
    }

    /// The result of a constructor such as `dim3(x, y, z) : x(x), y(y), z(z) {}`.
    fn constant_constructor(&mut self, number: usize, items: &[Expr], bytes: &mut [u8]) -> Result<()> {
        let fields = self.types.structs[number].fields.clone();
        let declaration = self.types.structs[number].declaration.clone();
        let fits = |function: &&std::rc::Rc<Function>| {
            let parameters = &function.parameters;
            parameters.len() >= items.len()
                && parameters[items.len()..].iter().all(|parameter| parameter.default.is_some())
        };
        let all: Vec<_> = declaration.constructors.iter().filter(fits).collect();
        let is_empty = |body: &Option<Stmt>| match body {
            Some(Stmt { kind: StmtKind::Block(all), .. }) => all.is_empty(),
            _ => false,
        };
        let parameter_of = |function: &Function, values: &[Expr]| match values {
            [Expr { kind: ExprKind::Path(path), .. }] if path.segments.len() == 1 => function
                .parameters
                .iter()
                .position(|parameter| parameter.name.as_ref() == Some(&path.segments[0].name)),
            _ => None,
        };
        // Constructors with as many parameters: a copy, or another struct's fields.
        let mut chosen = None;
        for function in all {
            let copies = |(_, values, _): &(Name, Vec<Expr>, _)| parameter_of(function, values).is_some();
            let count = function.members.iter().filter(|member| copies(member)).count();
            if count == function.parameters.len() && function.template.is_empty() && is_empty(&function.body)
            {
                if chosen.is_some() {
                    return self.error(NOT_CONSTANT);
                }
                chosen = Some(function.clone());
            }
        }
        let Some(function) = chosen else { return self.error(NOT_CONSTANT) };
        for (i, field) in fields.iter().enumerate() {
            let at = field.offset as usize;
            let place = &mut bytes[at..at + self.types.layout(field.ty).0 as usize];
            let given = function.members.iter().find(|(name, ..)| *name == field.name);
            let parameter = given.and_then(|(_, values, _)| parameter_of(&function, values));
            match (parameter, given) {
                (Some(at), _) => {
                    let written = &function.parameters[at];
                    let ty = self.in_struct(number, |lower| lower.type_of_name(&written.ty))?;
                    if ty != field.ty {
                        return self.error(NOT_CONSTANT);
                    }
                    match (items.get(at), &written.default) {
                        (Some(item), _) => self.constant_bytes(item, ty, place)?,
                        (None, Some(default)) => {
                            self.in_struct(number, |lower| lower.constant_bytes(default, ty, place))?;
                        }
                        (None, None) => return self.error(NOT_CONSTANT),
                    }
                }
                (None, Some((_, values, _))) => {
                    let init = Init::Parentheses(values.clone());
                    self.in_struct(number, |lower| lower.constant_init_of(&init, field.ty, place))?;
                }
                (None, None) => {
                    let init = &declaration.fields[i].init;
                    self.in_struct(number, |lower| lower.constant_init_of(init, field.ty, place))?;
                }
            }
        }
        Ok(())
    }

    /// Adds the inner braces that `int a[2][3] = {0}` omits.
    pub(super) fn with_inner_braces(&self, items: &[Expr], of: TypeId) -> Result<Vec<Expr>> {
        let (mut leaf, mut per_element) = (of, 1usize);
        while let Type::Array { of, count } = self.types.get(leaf) {
            (leaf, per_element) = (*of, per_element.saturating_mul(*count as usize));
        }
        let is_plain =
            |item: &Expr| !matches!(item.kind, ExprKind::Braces(_) | ExprKind::Str(_) | ExprKind::Expand(_));
        if leaf == of || self.prim(leaf).is_none() {
            return Ok(items.to_vec());
        }
        let mut all = Vec::new();
        let mut rest = items;
        while let [first, ..] = rest {
            let count = rest.iter().take_while(|item| is_plain(item)).count().min(per_element);
            if count > 0 && count < per_element.min(rest.len()) {
                return self.error("some inner braces of this list are omitted: write all of them");
            }
            if count == 0 {
                all.push(first.clone());
                rest = &rest[1..];
                continue;
            }
            all.push(Expr { kind: ExprKind::Braces(rest[..count].to_vec()), span: first.span });
            rest = &rest[count..];
        }
        Ok(all)
    }
}

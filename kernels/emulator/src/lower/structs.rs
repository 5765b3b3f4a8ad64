//! Struct instances: their declarations, template arguments and memory layout.

use super::overloads::Deduced;
use super::{Binding, Lower, Scope};
use crate::ir::rows_of;
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;
use crate::types::{Argument, Field, StructType, Type, TypeId};
use std::rc::Rc;

impl Lower<'_> {
    /// Returns the instance of a struct, or of a struct template with these arguments.
    pub fn struct_type(
        &mut self,
        structs: &[Rc<Struct>],
        arguments: &Option<Vec<TemplateArgument>>,
        span: Span,
    ) -> Result<TypeId> {
        let given = match arguments {
            Some(arguments) => self.template_arguments(arguments)?,
            None => Vec::new(),
        };
        self.struct_instance(structs, given, span)
    }

    pub fn struct_instance(
        &mut self,
        structs: &[Rc<Struct>],
        given: Vec<Argument>,
        span: Span,
    ) -> Result<TypeId> {
        let Some(primary) = structs.iter().find(|declaration| declaration.specialized.is_none()) else {
            return Err(Error::new(span, "this template has no primary definition"));
        };
        let arguments = if primary.template.is_empty() {
            if !given.is_empty() {
                return Err(Error::new(span, format!("`{}` is not a template", primary.name)));
            }
            // A struct inside a function template depends on the enclosing template parameters.
            self.enclosing_arguments(primary)
        } else {
            self.completed(&primary.template, given, &Scope::new(), primary.namespace, span)?
        };
        let key = (primary.id, arguments.clone());
        if let Some(known) = self.instances.get(&key) {
            return Ok(*known);
        }
        // Chooses the most specific matching specialisation.
        let mut chosen = (primary.clone(), arguments.clone());
        let mut best = 0;
        for special in structs.iter().filter(|declaration| declaration.specialized.is_some()) {
            let Some(pattern) = &special.specialized else { continue };
            let mut deduced = Deduced::default();
            let matches = self.in_frame(Scope::new(), special.namespace, None, |lower| {
                lower.matches_pattern(&special.template, pattern, &arguments, &mut deduced)
            })?;
            if !matches {
                continue;
            }
            let weight = 1 + pattern.len() * 10 - special.template.len();
            if weight > best {
                let complete =
                    self.completed(&special.template, Vec::new(), &deduced.scope, special.namespace, span)?;
                best = weight;
                chosen = (special.clone(), complete);
            }
        }
        let (declaration, inner) = chosen;
        if !declaration.is_complete {
            return Err(Error::new(
                span,
                format!("the struct `{}` is only declared, not defined", declaration.name),
            ));
        }
        if let Some(base) = declaration.bases.first() {
            return Err(Error::new(base.span, "base classes are not part of the subset"));
        }
        let number = self.types.structs.len();
        let id = self.types.id(Type::Struct(number));
        self.instances.insert(key, id);
        let name = self.instance_name(&declaration.name, &arguments, primary.template.is_empty());
        self.types.structs.push(StructType {
            name,
            declaration: declaration.clone(),
            arguments: inner,
            fields: Vec::new(),
            size: 1,
            align: 1,
            rows: None,
            is_complete: false,
        });
        self.in_struct(number, |lower| lower.lay_out(number, &declaration))?;
        // For deduction, the arguments given to the template are kept, not those of the specialisation.
        self.types.structs[number].is_complete = true;
        Ok(id)
    }

    /// The template arguments around a struct that is defined in a function.
    fn enclosing_arguments(&self, declaration: &Rc<Struct>) -> Vec<Argument> {
        let is_local = self.frames.last().is_some_and(|frame| {
            frame.scopes.iter().any(|scope| {
                matches!(scope.get(&declaration.name), Some(Binding::Struct(known)) if known.id == declaration.id)
            })
        });
        let Some(frame) = self.frames.last().filter(|_| is_local) else { return Vec::new() };
        let mut arguments: Vec<_> = frame.scopes[0].iter().collect();
        arguments.sort_by(|a, b| a.0.cmp(b.0));
        arguments.into_iter().map(|(_, binding)| super::type_names::binding_argument(binding)).collect()
    }

    fn instance_name(&self, name: &str, arguments: &[Argument], is_plain: bool) -> String {
        if is_plain || arguments.is_empty() {
            return name.to_owned();
        }
        let all: Vec<String> = arguments.iter().map(|argument| self.argument_name(argument)).collect();
        format!("{name}<{}>", all.join(", "))
    }

    pub fn argument_name(&self, argument: &Argument) -> String {
        match argument {
            Argument::Type(ty) => self.types.name(*ty),
            Argument::Value(ty, bits) => match self.types.name(*ty).as_str() {
                "bool" => (*bits != 0).to_string(),
                "int" => (*bits as i32).to_string(),
                _ => (*bits as i64).to_string(),
            },
            Argument::Pack(all) => {
                let all: Vec<String> = all.iter().map(|argument| self.argument_name(argument)).collect();
                all.join(", ")
            }
        }
    }

    fn lay_out(&mut self, number: usize, declaration: &Struct) -> Result<()> {
        let (mut size, mut align) = (0u64, 1u64);
        let mut rows = Some(0u32);
        let mut fields = Vec::new();
        for variable in &declaration.fields {
            self.span = variable.span;
            let written = match self.unsized_array(&variable.ty) {
                true => return self.error("an array in a struct needs a size"),
                false => self.written(&variable.ty)?,
            };
            let (field_size, field_align) = match written.is_reference {
                true => (8, 8),
                false => self.types.layout(written.ty),
            };
            if let Type::Struct(inner) = *self.types.get(written.ty)
                && !self.types.structs[inner].is_complete
                && !written.is_reference
            {
                return self.error("a struct cannot be a part of itself");
            }
            if matches!(self.types.get(written.ty), Type::Closure(_)) {
                return self.error("lambdas in structs are not part of the subset");
            }
            size = size.next_multiple_of(field_align);
            let field_rows = match written.is_reference {
                true => Some(rows_of(crate::ir::Prim::U64)),
                false => self.types.rows(written.ty),
            };
            fields.push(Field {
                name: variable.name.clone(),
                ty: written.ty,
                offset: size,
                row: rows.unwrap_or(0),
                is_reference: written.is_reference,
                is_const: written.is_const,
            });
            rows = rows.zip(field_rows).map(|(a, b)| a + b).filter(|rows| *rows <= 64);
            size = size.saturating_add(field_size);
            align = align.max(field_align);
        }
        if let Some(wanted) = &declaration.align {
            let value = self.constant_expression(wanted, "an alignment")?;
            let value = self.converted_scalar(value, crate::types::U64, false)?.as_const().unwrap_or(1);
            if !value.is_power_of_two() || value > 128 {
                return Err(Error::new(
                    wanted.span,
                    format!("an alignment of {value}: it must be a power of two up to 128"),
                ));
            }
            align = align.max(value);
        }
        let of = &mut self.types.structs[number];
        of.fields = fields;
        of.align = align;
        of.size = size.next_multiple_of(align).max(1);
        of.rows = rows;
        Ok(())
    }

    pub fn unsized_array(&self, ty: &TypeName) -> bool {
        matches!(&ty.kind, TypeKind::Array(_, None))
    }
}

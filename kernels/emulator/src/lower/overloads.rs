//! Overload resolution.

use super::deduction::base_kind;
use super::lookup::Functions;
use super::type_names::argument_binding;
use super::{Binding, Lower, Place, Scope, Value};
use crate::source::{Error, Result, Span};
use crate::syntax::ast::*;
use crate::types::{self, Argument, StructId, Type, TypeId};
use std::rc::Rc;

/// An argument of a call: a value, or `{…}`, whose type depends on the parameter.
#[derive(Clone, Debug)]
pub enum Given<'e> {
    Value(Value),
    Braces(&'e [Expr], Span),
}

#[derive(Clone, Debug, Default)]
pub struct Deduced {
    pub scope: Scope,
    /// Template parameters given explicitly: arguments may convert to their types.
    pub explicit: Vec<Name>,
}

/// The result of overload resolution.
#[derive(Clone)]
pub struct Chosen {
    pub function: Rc<Function>,
    /// The template arguments of the function and of its struct.
    pub scope: Scope,
    pub of_struct: Option<StructId>,
    pub arguments: Vec<Argument>,
}

/// How well an argument fits: smaller is better.
const EXACT: u32 = 0;
const QUALIFIED: u32 = 1;
const PROMOTED: u32 = 20;
const CONVERTED: u32 = 30;
/// A user-defined conversion; the conversion of its result is added.
const USER: u32 = 400;

impl<'t> Lower<'t> {
    pub fn choose(&mut self, functions: &Functions, given: &[Given<'_>], span: Span) -> Result<Chosen> {
        match self.try_choose(functions, given, span)? {
            Some(chosen) => Ok(chosen),
            None => {
                let types: Vec<String> = given
                    .iter()
                    .map(|given| match given {
                        Given::Value(value) => self.types.name(value.ty),
                        Given::Braces(..) => "{…}".to_owned(),
                    })
                    .collect();
                let message = format!("no function `{}` takes ({})", functions.name, types.join(", "));
                let mut error = Error::new(span, message);
                for (function, ..) in functions.candidates.iter().take(3) {
                    let count = function.parameters.len();
                    error = error
                        .note(format!("this one takes {count} parameters and does not match"), function.span);
                }
                Err(error)
            }
        }
    }

    /// Returns the best candidate, or `None` if none fits.
    pub fn try_choose(
        &mut self,
        functions: &Functions,
        given: &[Given<'_>],
        span: Span,
    ) -> Result<Option<Chosen>> {
        let explicit = match &functions.arguments {
            Some(arguments) => self.template_arguments(arguments)?,
            None => Vec::new(),
        };
        let mut best: Option<(Chosen, Vec<u32>, u32)> = None;
        // A candidate that fits as well as the best one.
        let mut rival: Option<Rc<Function>> = None;
        for (function, scope, of_struct) in &functions.candidates {
            if function.is_specialization || !explicit.is_empty() && function.template.is_empty() {
                continue;
            }
            let Some((arguments, full, ranks)) =
                self.viable(function, scope, *of_struct, &explicit, given, span)?
            else {
                continue;
            };
            let weight = weight(function);
            let better = match &best {
                None => true,
                Some((known, known_ranks, known_weight)) => {
                    let all = || ranks.iter().zip(known_ranks);
                    let wins = all().any(|(a, b)| a < b);
                    let loses = all().any(|(a, b)| a > b);
                    match (wins, loses) {
                        (true, false) => true,
                        (false, true) => false,
                        // Each fits better in some argument.
                        (true, true) => {
                            rival = Some(function.clone());
                            false
                        }
                        (false, false)
                            if weight == *known_weight
                                && function.template.is_empty()
                                && function.body.is_some()
                                && known.function.body.is_some()
                                && function.id != known.function.id
                                && !function.is_method =>
                        {
                            rival = Some(function.clone());
                            false
                        }
                        // A later declaration of the same function may have the body.
                        (false, false) => weight > *known_weight || known.function.body.is_none(),
                    }
                }
            };
            if better {
                rival = None;
                let chosen =
                    Chosen { function: function.clone(), scope: full, of_struct: *of_struct, arguments };
                best = Some((chosen, ranks, weight));
            }
        }
        let Some((chosen, ..)) = best else { return Ok(None) };
        if let Some(rival) = rival {
            let message = format!("this call of `{}` is ambiguous", functions.name);
            return Err(Error::new(span, message)
                .note("this fits", chosen.function.span)
                .note("this matches as well", rival.span));
        }
        self.specialized(functions, chosen, span).map(Some)
    }

    /// Returns the specialisation of a function template for the chosen arguments, if there is one.
    fn specialized(&mut self, functions: &Functions, chosen: Chosen, span: Span) -> Result<Chosen> {
        if chosen.function.template.is_empty() {
            return Ok(chosen);
        }
        let specials: Vec<_> =
            functions.candidates.iter().filter(|candidate| candidate.0.is_specialization).cloned().collect();
        if specials.is_empty() {
            return Ok(chosen);
        }
        let primary = &chosen.function;
        let types = self.trial(|lower| {
            lower.in_frame(chosen.scope.clone(), primary.namespace, chosen.of_struct, |lower| {
                lower.signature(primary)
            })
        });
        let Ok(types) = types else { return Ok(chosen) };
        for (special, scope, of_struct) in specials {
            let fits = match &special.specialized {
                Some(arguments) => {
                    let arguments = self.in_frame(scope.clone(), special.namespace, None, |lower| {
                        lower.template_arguments(arguments)
                    })?;
                    arguments.iter().zip(&chosen.arguments).all(|(a, b)| a == b)
                }
                None => {
                    let found = self.in_frame(scope.clone(), special.namespace, of_struct, |lower| {
                        lower.signature(&special)
                    })?;
                    found == types
                }
            };
            if fits {
                let _ = span;
                return Ok(Chosen { function: special, scope, of_struct, arguments: Vec::new() });
            }
        }
        Ok(chosen)
    }

    /// The types of the result and the parameters.
    fn signature(&mut self, function: &Function) -> Result<Vec<TypeId>> {
        let mut types = vec![match function.result.kind {
            TypeKind::Auto => types::VOID,
            _ => self.type_of_name(&function.result)?,
        }];
        for parameter in &function.parameters {
            types.push(self.type_of_name(&parameter.ty)?);
        }
        Ok(types)
    }

    /// Checks whether a function can be called with these arguments. Returns its template arguments, the scope of its
    /// body, and how well each argument fits.
    #[allow(clippy::type_complexity)]
    fn viable(
        &mut self,
        function: &Rc<Function>,
        scope: &Scope,
        of_struct: Option<StructId>,
        explicit: &[Argument],
        given: &[Given<'_>],
        span: Span,
    ) -> Result<Option<(Vec<Argument>, Scope, Vec<u32>)>> {
        let has_pack = function.parameters.last().is_some_and(|parameter| parameter.is_pack);
        let fixed = function.parameters.len() - usize::from(has_pack);
        let needed =
            function.parameters[..fixed].iter().filter(|parameter| parameter.default.is_none()).count();
        if given.len() < needed || given.len() > fixed && !has_pack {
            return Ok(None);
        }
        let mut deduced = Deduced { scope: scope.clone(), explicit: Vec::new() };
        let is_template = !function.template.is_empty();
        let mut complete = Vec::new();
        if is_template {
            let mut rest = explicit.iter();
            for parameter in &function.template {
                if parameter.is_pack {
                    let all: Vec<Binding> = rest.by_ref().map(argument_binding).collect();
                    if !all.is_empty() {
                        deduced.scope.insert(parameter.name.clone(), Binding::Pack(all));
                    }
                } else if let Some(argument) = rest.next() {
                    deduced.scope.insert(parameter.name.clone(), argument_binding(argument));
                    deduced.explicit.push(parameter.name.clone());
                }
            }
            let outer = self.span;
            let result = self.trial(|lower| {
                lower.in_frame(scope.clone(), function.namespace, of_struct, |lower| {
                    lower.deduce(function, given, &mut deduced, fixed)
                })
            });
            self.span = outer;
            if self.again {
                return Err(Error::new(span, "lowered again"));
            }
            if !result.unwrap_or(false) {
                return Ok(None);
            }
            // A template whose parameters cannot be deduced is not a candidate (SFINAE).
            let found = self.trial(|lower| {
                lower.completed(
                    &function.template,
                    explicit.to_vec(),
                    &deduced.scope,
                    function.namespace,
                    span,
                )
            });
            self.span = outer;
            match found {
                Ok(found) => complete = found,
                Err(_) if self.again => return Err(Error::new(span, "lowered again")),
                Err(_) => return Ok(None),
            }
            deduced.scope.extend(self.argument_scope(&function.template, &complete));
        }
        let mut ranks = Vec::new();
        for (i, given) in given.iter().enumerate() {
            let parameter = &function.parameters[i.min(function.parameters.len() - 1)];
            if parameter.is_pack || matches!(base_kind(&parameter.ty), TypeKind::Auto | TypeKind::Function) {
                ranks.push(EXACT);
                continue;
            }
            let outer = self.span;
            let written = self.trial(|lower| {
                lower.in_frame(deduced.scope.clone(), function.namespace, of_struct, |lower| {
                    lower.written(&parameter.ty)
                })
            });
            self.span = outer;
            let written = match written {
                Ok(written) => written,
                Err(_) if is_template && !self.again => return Ok(None),
                Err(error) => return Err(error),
            };
            let rank = match given {
                Given::Braces(items, _) => self.rank_of_braces(written.ty, items),
                Given::Value(value) => {
                    let writes = written.is_reference && !written.is_const && !written.is_forward;
                    if writes && (!value.is_lvalue || value.is_const || value.ty != written.ty) {
                        None
                    } else {
                        self.rank(value, written.ty)?
                    }
                }
            };
            match rank {
                Some(rank) => ranks.push(rank),
                None => return Ok(None),
            }
        }
        Ok(Some((complete, deduced.scope, ranks)))
    }

    fn rank_of_braces(&mut self, to: TypeId, items: &[Expr]) -> Option<u32> {
        match self.types.get(to) {
            Type::Struct(_) | Type::Array { .. } => Some(USER),
            _ if items.len() <= 1 => Some(CONVERTED),
            _ => None,
        }
    }

    /// Ranks the conversion of a value to a type.
    pub fn rank(&mut self, value: &Value, to: TypeId) -> Result<Option<u32>> {
        if value.ty == to {
            return Ok(Some(EXACT));
        }
        let (from, target) = (self.types.get(value.ty).clone(), self.types.get(to).clone());
        Ok(match (&from, &target) {
            (Type::Prim(types::Prim::Void), _) | (_, Type::Prim(types::Prim::Void)) => None,
            (Type::Prim(a), Type::Prim(b)) => {
                let promotes =
                    types::promoted(*a) == *b && *a != *b || *a == types::Prim::F32 && *b == types::Prim::F64;
                Some(if promotes { PROMOTED } else { CONVERTED })
            }
            (Type::Null, Type::Pointer { .. }) => Some(QUALIFIED),
            (Type::Array { of, .. }, Type::Pointer { to: element, is_const }) => {
                if of == element && (*is_const || !value.is_const) {
                    Some(if *is_const && !value.is_const { QUALIFIED } else { EXACT })
                } else if self.types.get(*element) == &Type::Prim(types::Prim::Void) {
                    Some(CONVERTED)
                } else {
                    None
                }
            }
            (Type::Pointer { to: a, is_const: a_const }, Type::Pointer { to: b, is_const: b_const }) => {
                if *a_const && !*b_const {
                    None
                } else if a == b {
                    Some(QUALIFIED)
                } else if self.types.get(*b) == &Type::Prim(types::Prim::Void) {
                    Some(CONVERTED)
                } else {
                    None
                }
            }
            // An address converts to `const void *` in preference to bool.
            (Type::Pointer { .. } | Type::Array { .. }, Type::Prim(types::Prim::Bool)) => Some(CONVERTED + 1),
            (Type::Prim(types::Prim::I32), Type::Pointer { .. }) if value.as_const() == Some(0) => {
                Some(CONVERTED)
            }
            (_, Type::Struct(number)) => {
                let number = *number;
                self.converts_by_constructor(value, number)?.then_some(USER)
            }
            (Type::Struct(number), _) => match self.conversion_operator(*number, to)? {
                Some(function) => {
                    let number = *number;
                    let result = self.in_struct(number, |lower| lower.type_of_name(&function.result))?;
                    let rest = Value::new(result, Place::Nothing);
                    self.rank(&rest, to)?.map(|rank| USER + rank)
                }
                None => None,
            },
            _ => None,
        })
    }

    pub fn functions_value(&self, functions: Functions) -> Value {
        Value::new(types::FUNCTION, Place::Functions(Rc::new(functions)))
    }
}

/// How specialised a function is, to decide between functions that fit equally well: a non-template beats a template,
/// and a more specific parameter beats a less specific one.
fn weight(function: &Function) -> u32 {
    fn depth(ty: &TypeName) -> u32 {
        match &ty.kind {
            TypeKind::Reference(inner) | TypeKind::Forward(inner) => depth(inner),
            TypeKind::Pointer(inner) | TypeKind::Array(inner, _) | TypeKind::Pack(inner) => 1 + depth(inner),
            TypeKind::Path(path) => path
                .segments
                .iter()
                .map(|segment| match &segment.arguments {
                    Some(arguments) => 2 + arguments.len() as u32,
                    None => 0,
                })
                .sum(),
            _ => 1,
        }
    }
    if function.template.is_empty() {
        return 1000;
    }
    let has_pack = function.parameters.iter().any(|parameter| parameter.is_pack);
    500 * u32::from(!has_pack) + function.parameters.iter().map(|parameter| depth(&parameter.ty)).sum::<u32>()
}

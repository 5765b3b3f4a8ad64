//! The syntax tree of a program. Names are as written: they are resolved when a function is lowered.

use crate::source::Span;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

pub type Name = Rc<str>;

/// The number of a declaration, unique in the program.
pub type DeclId = u32;
pub type NamespaceId = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prim {
    Void,
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

#[derive(Clone, Debug)]
pub struct TypeName {
    pub kind: TypeKind,
    pub is_const: bool,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum TypeKind {
    Prim(Prim),
    Auto,
    Path(Path),
    Decltype(Box<Expr>),
    Pointer(Box<TypeName>),
    Reference(Box<TypeName>),
    /// `T &&`
    Forward(Box<TypeName>),
    Array(Box<TypeName>, Option<Box<Expr>>),
    /// `T...`
    Pack(Box<TypeName>),
    /// A pointer to a function, as a parameter. The function is known where the call is lowered.
    Function,
    /// The type of a constructor's or destructor's result, or of one that is deduced.
    Nothing,
}

#[derive(Clone, Debug)]
pub struct Path {
    /// Whether it begins with `::`.
    pub global: bool,
    pub segments: Vec<Segment>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Segment {
    pub name: Name,
    pub arguments: Option<Vec<TemplateArgument>>,
}

#[derive(Clone, Debug)]
pub enum TemplateArgument {
    Type(TypeName),
    Value(Expr),
}

#[derive(Clone, Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Eq,
    Ne,
    Lt,
    Gt,
    Le,
    Ge,
    LogicAnd,
    LogicOr,
    Comma,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    Plus,
    Neg,
    Not,
    BitNot,
    Deref,
    AddressOf,
    Increment,
    Decrement,
    PostIncrement,
    PostDecrement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastKind {
    C,
    Static,
    Reinterpret,
    Const,
}

#[derive(Clone, Debug)]
pub enum ExprKind {
    Int(u64, Prim),
    Float(f64, Prim),
    Bool(bool),
    Char(i8),
    Str(Name),
    Null,
    This,
    Path(Path),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `a = b`; or `a += b`, with the operator.
    Assign(Option<Binary>, Box<Expr>, Box<Expr>),
    Condition(Box<Expr>, Box<Expr>, Box<Expr>),
    Call(Box<Expr>, Vec<Expr>),
    /// `kernel<<<grid, block, shared, stream>>>(arguments)`
    Launch(Box<Expr>, Vec<Expr>, Vec<Expr>),
    Index(Box<Expr>, Box<Expr>),
    Member(Box<Expr>, bool, Segment),
    Cast(CastKind, Box<TypeName>, Box<Expr>),
    /// `T(a, b)`, or `T{a, b}`
    Construct(Box<TypeName>, Vec<Expr>, bool),
    Braces(Vec<Expr>),
    SizeofType(Box<TypeName>),
    SizeofExpr(Box<Expr>),
    SizeofPack(Name),
    Lambda(Rc<Lambda>),
    /// `e...`
    Expand(Box<Expr>),
    Fold {
        operator: Binary,
        pack: Box<Expr>,
        first: Option<Box<Expr>>,
        left: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    Value,
    Reference,
}

#[derive(Debug)]
pub struct Lambda {
    pub default: Option<Capture>,
    pub captures: Vec<(Name, Capture, Option<Expr>)>,
    pub is_mutable: bool,
    pub function: Rc<Function>,
}

#[derive(Debug)]
pub struct Stmt {
    pub kind: StmtKind,
    pub span: Span,
    /// The last token; for an `if` or a loop, the `)` before its body.
    pub last: Span,
}

#[derive(Debug)]
pub enum StmtKind {
    Empty,
    Expr(Expr),
    Variables(Vec<Rc<Variable>>),
    /// `auto [a, b] = e;`
    Bindings {
        names: Vec<Name>,
        by_reference: bool,
        value: Expr,
    },
    Block(Vec<Stmt>),
    If {
        is_constexpr: bool,
        first: Option<Box<Stmt>>,
        condition: Expr,
        yes: Box<Stmt>,
        no: Option<Box<Stmt>>,
    },
    For {
        first: Option<Box<Stmt>>,
        condition: Option<Expr>,
        step: Option<Expr>,
        body: Box<Stmt>,
    },
    Range {
        variable: Rc<Variable>,
        range: Expr,
        body: Box<Stmt>,
    },
    While(Expr, Box<Stmt>),
    DoWhile(Box<Stmt>, Expr),
    Switch(Expr, Box<Stmt>),
    Case(Expr),
    Default,
    Break,
    Continue,
    Return(Option<Expr>),
    Goto(Name),
    Label(Name),
    Alias(Rc<Alias>),
    Struct(Rc<Struct>),
    Enumerators(Vec<Rc<Variable>>),
    StaticAssert(Expr, Option<Name>),
    UsingNamespace(Path),
    UsingName(Path),
    Asm {
        text: Name,
        output: Option<Expr>,
        inputs: Vec<Expr>,
    },
}

#[derive(Debug)]
pub enum Init {
    None,
    /// `= e`
    Value(Expr),
    /// `(a, b)`
    Parentheses(Vec<Expr>),
    /// `{a, b}`
    Braces(Vec<Expr>),
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Storage {
    pub shared: bool,
    pub constant: bool,
    pub device: bool,
    pub is_static: bool,
    pub is_extern: bool,
    pub is_constexpr: bool,
    pub volatile: bool,
}

#[derive(Debug)]
pub struct Variable {
    pub id: DeclId,
    pub name: Name,
    pub ty: TypeName,
    pub init: Init,
    pub storage: Storage,
    pub span: Span,
    pub template: Vec<TemplateParameter>,
    pub specialized: Option<Vec<TemplateArgument>>,
    pub namespace: NamespaceId,
    pub align: Option<Expr>,
}

#[derive(Clone, Debug)]
pub struct TemplateParameter {
    pub name: Name,
    pub kind: ParameterKind,
    pub is_pack: bool,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum ParameterKind {
    Type(Option<TypeName>),
    Value(TypeName, Option<Expr>),
}

#[derive(Debug)]
pub struct Parameter {
    pub id: DeclId,
    pub name: Option<Name>,
    pub ty: TypeName,
    pub default: Option<Expr>,
    pub is_pack: bool,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Qualifiers {
    pub global: bool,
    pub device: bool,
    pub host: bool,
    pub is_static: bool,
    pub is_const: bool,
    pub is_constexpr: bool,
    pub is_explicit: bool,
}

#[derive(Debug)]
pub struct Function {
    /// Declared `extern "C"`.
    pub is_c: bool,
    pub id: DeclId,
    /// `operator+` for an operator, `operator` for a conversion, the struct's name for a constructor.
    pub name: Name,
    pub template: Vec<TemplateParameter>,
    pub specialized: Option<Vec<TemplateArgument>>,
    pub is_specialization: bool,
    pub parameters: Vec<Parameter>,
    pub result: TypeName,
    pub body: Option<Stmt>,
    pub qualifiers: Qualifiers,
    /// The member initialisers of a constructor.
    pub members: Vec<(Name, Vec<Expr>, Span)>,
    pub is_defaulted: bool,
    pub span: Span,
    pub namespace: NamespaceId,
    /// Names that the body may write; the others are never written.
    pub written: HashSet<Name>,
    /// Whether it is a method.
    pub is_method: bool,
}

#[derive(Debug)]
pub struct Struct {
    pub id: DeclId,
    pub name: Name,
    pub template: Vec<TemplateParameter>,
    pub specialized: Option<Vec<TemplateArgument>>,
    pub fields: Vec<Rc<Variable>>,
    pub statics: Vec<Rc<Variable>>,
    pub functions: Vec<Rc<Function>>,
    pub aliases: Vec<Rc<Alias>>,
    pub structs: Vec<Rc<Struct>>,
    pub enumerators: Vec<Rc<Variable>>,
    pub constructors: Vec<Rc<Function>>,
    pub conversions: Vec<Rc<Function>>,
    /// Members that are accessible only to the struct's functions.
    pub private: HashSet<Name>,
    pub bases: Vec<TypeName>,
    pub align: Option<Expr>,
    pub is_union: bool,
    /// False if only declared so far.
    pub is_complete: bool,
    pub span: Span,
    pub namespace: NamespaceId,
}

#[derive(Debug)]
pub struct Alias {
    pub name: Name,
    pub template: Vec<TemplateParameter>,
    pub ty: TypeName,
    pub span: Span,
    pub namespace: NamespaceId,
}

/// A deduction guide: the struct type for an argument list.
#[derive(Clone, Debug)]
pub struct Guide {
    pub function: Rc<Function>,
    pub result: TypeName,
}

#[derive(Clone, Debug, Default)]
pub struct Namespace {
    pub name: Option<Name>,
    pub parent: NamespaceId,
    pub children: HashMap<Name, NamespaceId>,
    pub functions: HashMap<Name, Vec<Rc<Function>>>,
    /// The primary template, or the struct itself, comes first.
    pub structs: HashMap<Name, Vec<Rc<Struct>>>,
    pub aliases: HashMap<Name, Rc<Alias>>,
    pub variables: HashMap<Name, Vec<Rc<Variable>>>,
    pub guides: HashMap<Name, Vec<Guide>>,
    /// The namespaces of `using namespace`.
    pub opened: Vec<NamespaceId>,
    /// The namespaces of `using math::exp`, by name.
    pub imported: HashMap<Name, Vec<NamespaceId>>,
}

/// A parsed program. Namespace 0 is the global one.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    pub namespaces: Vec<Namespace>,
    pub assertions: RefCell<Vec<(Expr, Option<Name>, NamespaceId)>>,
    /// The number of declarations; distinguishes `static int x;` in functions and `__shared__` variables.
    pub declarations: DeclId,
    /// Functions whose bodies differ in host code, by the number of the device version.
    pub host: HashMap<DeclId, Rc<Function>>,
    /// The emulator's own headers.
    pub in_headers: HashSet<u32>,
    /// Names of the program that were not declared where they are used.
    pub undeclared: Vec<Undeclared>,
    /// Syntax that is valid, and probably not meant like this.
    pub warnings: Vec<Box<crate::source::Error>>,
}

/// A name without a declaration before it: a built-in one, one of `std` after `using`, or a mistake.
#[derive(Clone, Debug)]
pub struct Undeclared {
    pub name: Name,
    pub span: Span,
    /// The name is called, so the types of the arguments may lead to a function.
    pub is_called: bool,
}

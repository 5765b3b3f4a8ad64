//! Writes every file that a reader of the page can choose, and a list of them. What one can choose stands in the sources of the
//! exercises, as Rust that says nothing but text: it is read here, since to ask the package itself would be to compile it twice.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use syn::{Expr, Item, Lit};

#[path = "../src/choices.rs"]
#[allow(dead_code, reason = "it is for others, too")]
mod choices;

use choices::Choices;

const SOURCES: &str = "../source";

fn main() {
    println!("cargo::rerun-if-changed={SOURCES}");
    println!("cargo::rerun-if-changed=../src/choices.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo names a folder"));
    let mut files: Vec<PathBuf> = fs::read_dir(SOURCES)
        .expect("the exercises are beside this package")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    let (mut modules, mut list) = (String::new(), String::new());
    let mut count = 0;
    for file in &files {
        let id = file.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        let text = fs::read_to_string(file).expect("an exercise").replace("\r\n", "\n");
        let exercise = Exercise::read(&text).unwrap_or_else(|what| panic!("{id}: {what}"));
        let choices = exercise.choices().unwrap_or_else(|what| panic!("{id}: {what}"));
        if choices.count() > 0 {
            count += 1;
            write_all(&out, id, &exercise, &choices, &mut modules, &mut list);
        }
    }
    let all = format!("{modules}\npub static EXERCISES: [InPage; {count}] = [\n{list}];\n");
    fs::write(out.join("variants.rs"), all).expect("the folder can be written to");
}

/// Writes the files of an exercise, and what the list says of it.
fn write_all(
    out: &Path,
    id: &str,
    exercise: &Exercise,
    choices: &Choices,
    modules: &mut String,
    list: &mut String,
) {
    let module = format!("x{}", id.replace('-', "_"));
    let folder = out.join(id);
    fs::create_dir_all(&folder).expect("the folder can be written to");
    let mut variants = String::new();
    for number in 0..choices.count() {
        let file = folder.join(format!("{number}.rs"));
        fs::write(&file, choices.text(number)).expect("the folder can be written to");
        let name = format!("{module}_{number}");
        let _ = writeln!(modules, "#[path = {file:?}]\n#[allow(warnings, clippy::all)]\nmod {name};");
        let functions: String =
            exercise.functions.iter().map(|function| format!(", {name}::{function}")).collect();
        let _ = writeln!(
            variants,
            "        Variant {{ file: {file:?}, observe: |case| exercises::{module}::observe(case{functions}) }},"
        );
    }
    // Field by field: whatever is not named here stays out of the module.
    let fields = ["id", "afterwards", "gpus", "sizes", "observe", "judge"];
    let fields: String =
        fields.map(|field| format!("{field}: exercises::{module}::EXERCISE.{field}, ")).concat();
    let options = &choices.options;
    let _ = writeln!(list, "    InPage {{ {fields}options: &{options:?}, variants: &[\n{variants}    ] }},");
}

/// What a source says of an exercise.
struct Exercise {
    solution: String,
    functions: Vec<String>,
    places: Vec<Vec<Vec<(String, String)>>>,
}

impl Exercise {
    fn read(text: &str) -> Result<Exercise, String> {
        let (_, rest) = text.split_once("// BEGIN\n").ok_or("no `// BEGIN`")?;
        let (solution, _) = rest.split_once("// END\n").ok_or("no `// END`")?;
        let solution =
            solution.lines().map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line)));

        let file = syn::parse_file(text).map_err(|error| error.to_string())?;
        let mut constants = BTreeMap::new();
        let mut exercise = None;
        for item in &file.items {
            match item {
                Item::Const(constant) => {
                    constants.insert(constant.ident.to_string(), &*constant.expr);
                }
                Item::Static(item) if item.ident == "EXERCISE" => exercise = Some(&*item.expr),
                _ => {}
            }
        }
        let Some(Expr::Struct(exercise)) = exercise else { return Err("no `EXERCISE`".to_owned()) };
        let field = |name: &str| {
            let is_it = |field: &&syn::FieldValue| matches!(&field.member, syn::Member::Named(ident) if ident == name);
            let field = exercise.fields.iter().find(is_it).ok_or(format!("no `{name}`"))?;
            Value::of(&field.expr, &constants)
        };
        let functions = field("functions")?.list()?.into_iter().map(|function| function.pair());
        let functions = functions.map(|pair| Ok(pair?.0)).collect::<Result<_, String>>()?;
        let mut places = Vec::new();
        for place in field("places")?.list()? {
            let Ok([_, all]) = <[Value; 2]>::try_from(place.list()?) else {
                return Err("a place is a name and options".to_owned());
            };
            let mut options = Vec::new();
            for option in all.list()? {
                options.push(option.list()?.into_iter().map(Value::pair).collect::<Result<_, _>>()?);
            }
            places.push(options);
        }
        Ok(Exercise { solution: solution.collect(), functions, places })
    }

    fn choices(&self) -> Result<Choices, String> {
        let mut places = Vec::new();
        for options in &self.places {
            let edits = options.iter().map(|edits| edits.iter().map(|(from, to)| (&**from, &**to)).collect());
            places.push(edits.collect());
        }
        Choices::new(&self.solution, &places)
    }
}

/// A text, or several: an array, a tuple or a reference to one.
enum Value {
    Text(String),
    List(Vec<Value>),
}

impl Value {
    fn of(expression: &Expr, constants: &BTreeMap<String, &Expr>) -> Result<Value, String> {
        let list = |elements: &syn::punctuated::Punctuated<Expr, _>| {
            elements
                .iter()
                .map(|element| Value::of(element, constants))
                .collect::<Result<_, _>>()
                .map(Value::List)
        };
        match expression {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Ok(Value::Text(text.value())),
                _ => Err("a literal that is no text".to_owned()),
            },
            Expr::Reference(reference) => Value::of(&reference.expr, constants),
            Expr::Array(array) => list(&array.elems),
            Expr::Tuple(tuple) => list(&tuple.elems),
            Expr::Path(path) => {
                let name = path.path.get_ident().ok_or("a path")?.to_string();
                Value::of(constants.get(&name).ok_or(format!("no constant `{name}`"))?, constants)
            }
            _ => Err("what stands here is neither text nor a list".to_owned()),
        }
    }

    fn list(self) -> Result<Vec<Value>, String> {
        match self {
            Value::List(list) => Ok(list),
            Value::Text(text) => Err(format!("`{text}` is no list")),
        }
    }

    fn pair(self) -> Result<(String, String), String> {
        match <[Value; 2]>::try_from(self.list()?) {
            Ok([Value::Text(from), Value::Text(to)]) => Ok((from, to)),
            _ => Err("not two texts".to_owned()),
        }
    }
}

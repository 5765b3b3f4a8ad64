//! The steps as JSON; see [`super`].

use cuda_emulator::ir::debug::{Debug, Kind};
use cuda_emulator::ir::{LANES, size_of};
use cuda_emulator::report::json::string;
use cuda_emulator::run::recording::{Access, AccessKind, Cells, End, Event, Recording, Step};
use cuda_emulator::types::prim_name;
use cuda_emulator::{Program, Run};

use super::values::{Series, Value};

pub fn json(program: &Program, run: &Run, recording: &Recording) -> String {
    let kernel = &program.kernels[recording.kernel as usize];
    let (debug, wanted, shape) = (&kernel.debug, recording.wanted, recording.shape);
    // Lists only files with statements of the kernel.
    let mut files: Vec<u32> = debug.statements.iter().map(|statement| statement.start.file).collect();
    files.sort_unstable();
    files.dedup();
    let names = files.iter().map(|file| string(&program.files.0[*file as usize].name));
    let functions = debug.functions.iter().map(|function| {
        let (caller, line) = function
            .caller
            .map_or(("null".to_owned(), "null".to_owned()), |(of, line)| (of.to_string(), line.to_string()));
        format!("{{\"name\":{},\"caller\":{caller},\"line\":{line}}}", string(&function.name))
    });
    let statements = debug.statements.iter().map(|statement| {
        let (start, last) = (statement.start, statement.last);
        let file = files.iter().position(|file| *file == start.file).unwrap_or(0);
        let end = last.column + last.length;
        format!("[{file},{},{},{},{end},{}]", start.line, start.column, last.line, statement.function)
    });
    let variables = debug.variables.iter().flat_map(|variable| {
        variable.parts.iter().map(move |part| {
            format!(
                "{{\"name\":{},\"type\":{},\"function\":{},\"line\":{}}}",
                string(&format!("{}{}", variable.name, part.path)),
                string(if part.path.is_empty() { &variable.type_name } else { type_name(part.kind) }),
                variable.function,
                variable.line
            )
        })
    });
    let shared = debug.shared.iter().map(|known| {
        let elements = known.elements(shape.dynamic_shared);
        let mut dimensions = known.shape.clone();
        if let Some(first @ 0) = dimensions.first_mut() {
            *first = elements / known.shape[1..].iter().product::<u64>().max(1);
        }
        let fields: Vec<String> = known.fields.iter().map(|(_, path, _)| string(path)).collect();
        format!(
            "{{\"name\":{},\"type\":{},\"shape\":{dimensions:?},\"fields\":[{}],\"cells\":{}}}",
            string(&known.name),
            string(&known.type_name),
            fields.join(","),
            elements * known.fields.len() as u64
        )
    });
    let steps = recording.steps.iter().map(|step| step_json(debug, recording, step));
    let end = match recording.end {
        End::Returned => "returned",
        End::Limit => "limit",
        End::Error => "error",
    };
    let message = super::message(program, run, recording).map_or("null".to_owned(), |text| string(&text));
    let fields = [
        format!(
            "\"kernel\":{},\"launch\":{},\"launches\":{}",
            string(&kernel.name),
            wanted.launch,
            run.launches
        ),
        format!("\"grid\":{:?},\"block\":{:?}", shape.grid, shape.block),
        format!("\"in_block\":{:?},\"warp\":{},\"warps\":{}", wanted.block, wanted.warp, recording.warps()),
        format!("\"lanes\":{}", recording.lanes()),
        list("files", names),
        list("functions", functions),
        list("statements", statements),
        list("variables", variables),
        list("shared", shared),
        list("steps", steps),
        format!("\"end\":\"{end}\",\"message\":{message}"),
    ];
    format!("{{{}}}\n", fields.join(","))
}

fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Number(prim) => prim_name(prim),
        Kind::Pointer => "pointer",
        Kind::Half => "__half",
        Kind::Bfloat16 => "__nv_bfloat16",
    }
}

fn list(name: &str, items: impl Iterator<Item = String>) -> String {
    format!("\"{name}\":[{}]", items.collect::<Vec<_>>().join(","))
}

fn step_json(debug: &Debug, recording: &Recording, step: &Step) -> String {
    let mut fields = vec![format!("\"statement\":{},\"active\":{}", step.statement, step.active)];
    match step.event {
        Event::None => {}
        Event::Barrier => fields.push("\"event\":\"barrier\"".to_owned()),
        Event::Opened => fields.push("\"event\":\"opened\"".to_owned()),
        Event::Lanes => fields.push("\"event\":\"lanes\"".to_owned()),
    }
    let mut add = |name, items: Vec<String>| {
        if !items.is_empty() {
            fields.push(list(name, items.into_iter()));
        }
    };
    let cells = |all: &[Cells]| all.iter().map(|cells| cells_json(debug, recording, cells)).collect();
    add("others", cells(&step.others));
    add("shared", cells(&step.shared));
    let variables = step.variables.iter().map(|change| {
        let before = debug.variables[..change.variable as usize].iter().map(|known| known.parts.len());
        let number = before.sum::<usize>() + change.part as usize;
        let kind = debug.variables[change.variable as usize].parts[change.part as usize].kind;
        let values = change.contents.iter().map(|content| Value::new(recording, kind, *content));
        format!("[{number},{},{}]", change.lanes, Series::new(values.collect()).json())
    });
    add("variables", variables.collect());
    add("accesses", step.accesses.iter().flat_map(|access| accesses_json(recording, access)).collect());
    let elsewhere = step.elsewhere.iter().map(|(lanes, statement)| {
        format!("[{lanes},{}]", statement.map_or("null".to_owned(), |statement| statement.to_string()))
    });
    add("elsewhere", elsewhere.collect());
    if step.exited != 0 {
        fields.push(format!("\"exited\":{}", step.exited));
    }
    format!("{{{}}}", fields.join(","))
}

fn cells_json(debug: &Debug, recording: &Recording, cells: &Cells) -> String {
    let values = Series::new(cell_values(debug, recording, cells)).json();
    format!("[{},{},{},{values}]", cells.variable, cells.first, cells.contents.len())
}

pub fn cell_values(debug: &Debug, recording: &Recording, cells: &Cells) -> Vec<Value> {
    let fields = &debug.shared[cells.variable as usize].fields;
    let kinds = (cells.first as usize..).map(|cell| fields[cell % fields.len()].2);
    cells.contents.iter().zip(kinds).map(|(content, kind)| Value::new(recording, kind, *content)).collect()
}

/// The lanes of an access to the same named memory, with their elements.
pub struct Accessed {
    /// `None` if the memory has no name. Then there are no elements.
    pub name: Option<String>,
    pub lanes: u32,
    pub elements: Vec<i64>,
    pub values: Vec<Value>,
}

pub fn accessed(recording: &Recording, access: &Access) -> Vec<Accessed> {
    let mut all: Vec<Accessed> = Vec::new();
    for lane in (0..LANES).filter(|lane| access.lanes >> lane & 1 != 0) {
        let size = size_of(access.ty);
        let mut kind = Kind::Number(access.ty);
        let (mut name, mut element) = (None, 0);
        if let Some((region, bytes)) = recording.region(access.addresses[lane]) {
            let each = if region.element_size > 0 { region.element_size } else { size };
            name = Some(region.name.clone());
            element = bytes.div_euclid(each as i64);
            kind = region.kind.filter(|known| known.prim() == access.ty).unwrap_or(kind);
        }
        let value = Value::new(recording, kind, access.contents[lane]);
        let at = all.iter().position(|known| known.name == name).unwrap_or_else(|| {
            all.push(Accessed { name, lanes: 0, elements: Vec::new(), values: Vec::new() });
            all.len() - 1
        });
        all[at].lanes |= 1 << lane;
        all[at].elements.push(element);
        all[at].values.push(value);
    }
    all
}

fn accesses_json(recording: &Recording, access: &Access) -> Vec<String> {
    let kind = match access.kind {
        AccessKind::Load => "load",
        AccessKind::Store => "store",
        AccessKind::Atomic => "atomic",
    };
    let all = accessed(recording, access).into_iter().map(|part| {
        let at = match part.name {
            Some(_) => part.elements.iter().map(|element| Value::Whole(i128::from(*element))).collect(),
            None => {
                let lanes = (0..LANES).filter(|lane| part.lanes >> lane & 1 != 0);
                lanes.map(|lane| Value::Address(format!("{:#x}", access.addresses[lane]))).collect()
            }
        };
        format!(
            "{{\"do\":\"{kind}\",\"of\":{},\"lanes\":{},\"at\":{},\"is\":{}}}",
            part.name.as_ref().map_or("null".to_owned(), |name| string(name)),
            part.lanes,
            Series::new(at).json(),
            Series::new(part.values).json()
        )
    });
    all.collect()
}

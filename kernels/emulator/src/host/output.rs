//! Output of C++ streams, as the header `iostream.h` requests it.

use crate::ir::Prim;
use crate::run::printf::format;

const FIXED: u64 = 1;
const SCIENTIFIC: u64 = 2;
const HEX: u64 = 4;
const OCT: u64 = 8;
const LEFT: u64 = 32;
const PLUS: u64 = 64;
const UPPERCASE: u64 = 128;

/// Formats a value as a stream does. The last three operands are the flags, the width and the fill character.
pub fn shown(name: &str, operands: &[u64]) -> String {
    let value = operands.first().copied().unwrap_or(0);
    let flags = operands[operands.len().saturating_sub(3)..].first().copied().unwrap_or(0);
    let plus = if flags & PLUS != 0 { "+" } else { "" };
    let is_upper = flags & UPPERCASE != 0;
    let precision = operands.get(1).map_or(0, |precision| *precision as u32 as i32).clamp(0, 1000);
    let (conversion, prim) = match name {
        "__emulator_put_char" => return char::from(value as u8).to_string(),
        "__emulator_put_pointer" if value == 0 => return "0".to_owned(),
        "__emulator_put_pointer" => ("%p".to_owned(), Prim::U64),
        "__emulator_put_float" => {
            let kind = match flags & (FIXED | SCIENTIFIC) {
                FIXED => 'f',
                SCIENTIFIC => 'e',
                _ => 'g',
            };
            let kind = if is_upper { kind.to_ascii_uppercase() } else { kind };
            (format!("%{plus}.{precision}{kind}"), Prim::F64)
        }
        _ if flags & HEX != 0 => (if is_upper { "%lX" } else { "%lx" }.to_owned(), Prim::U64),
        _ if flags & OCT != 0 => ("%lo".to_owned(), Prim::U64),
        "__emulator_put_int" => (format!("%{plus}ld"), Prim::I64),
        _ => ("%lu".to_owned(), Prim::U64),
    };
    format(&conversion, &[(prim, value)], &mut |_| None)
}

pub fn padded(text: &str, layout: &[u64]) -> String {
    let [flags, width, fill] = *layout else { return text.to_owned() };
    let width = (width as u32 as i32).clamp(0, 1000) as usize;
    let gap = char::from(fill as u8).to_string().repeat(width.saturating_sub(text.chars().count()));
    if flags & LEFT != 0 { format!("{text}{gap}") } else { format!("{gap}{text}") }
}

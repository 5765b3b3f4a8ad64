use crate::ir::Prim;

/// Formats values. `text` returns the string at an address.
pub fn format(format: &str, values: &[(Prim, u64)], text: &mut dyn FnMut(u64) -> Option<String>) -> String {
    let mut out = String::new();
    let mut values = values.iter();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if chars.peek() == Some(&'%') {
            chars.next();
            out.push('%');
            continue;
        }
        let (mut flags, mut width, mut precision, mut in_precision) =
            (String::new(), String::new(), None, false);
        let mut halves = 0;
        for c in chars.by_ref() {
            match c {
                '-' | '+' | ' ' | '#' if !in_precision => flags.push(c),
                '0' if width.is_empty() && !in_precision => flags.push(c),
                '0'..='9' if in_precision => {
                    let digits: &mut String = precision.get_or_insert_with(String::new);
                    digits.push(c);
                }
                '0'..='9' => width.push(c),
                '.' => {
                    in_precision = true;
                    precision = Some(String::new());
                }
                'h' => halves += 1,
                'l' | 'z' | 'j' => {}
                kind => {
                    let width = width.parse::<usize>().unwrap_or(0).min(1000);
                    let precision = precision.map(|digits| digits.parse::<usize>().unwrap_or(0).min(1000));
                    let value = values.next().copied().unwrap_or((Prim::U64, 0));
                    let value = cut(kind, halves, value);
                    out.push_str(&one(kind, &flags, width, precision, value, text));
                    break;
                }
            }
        }
    }
    out
}

/// Truncates a value: `%hd` prints a short, and `%hhd` a char.
fn cut(kind: char, halves: u32, value: (Prim, u64)) -> (Prim, u64) {
    let ty = match (kind, halves) {
        ('d' | 'i', 1) => Prim::I16,
        ('d' | 'i', 2) => Prim::I8,
        ('u' | 'x' | 'X' | 'o', 1) => Prim::U16,
        ('u' | 'x' | 'X' | 'o', 2) => Prim::U8,
        _ => return value,
    };
    (ty, super::arithmetic::narrowed(ty, value.1))
}

fn one(
    kind: char,
    flags: &str,
    width: usize,
    precision: Option<usize>,
    value: (Prim, u64),
    text_at: &mut dyn FnMut(u64) -> Option<String>,
) -> String {
    let (ty, bits) = value;
    let signed = match ty {
        Prim::I64 | Prim::U64 => bits as i64,
        _ => i64::from(bits as u32 as i32),
    };
    let unsigned = if matches!(ty, Prim::I64 | Prim::U64) { bits } else { u64::from(bits as u32) };
    let plus = |text: String, negative: bool| match (negative, flags.contains('+'), flags.contains(' ')) {
        (true, ..) => format!("-{text}"),
        (_, true, _) => format!("+{text}"),
        (_, _, true) => format!(" {text}"),
        _ => text,
    };
    let alternative = flags.contains('#');
    let digits = |text: String| match precision {
        Some(precision) if text.len() < precision => format!("{}{text}", "0".repeat(precision - text.len())),
        _ => text,
    };
    let x = f64::from_bits(bits);
    let text = match kind {
        'd' | 'i' => plus(digits(signed.unsigned_abs().to_string()), signed < 0),
        'u' => digits(unsigned.to_string()),
        'x' => format!(
            "{}{}",
            if alternative && unsigned != 0 { "0x" } else { "" },
            digits(format!("{unsigned:x}"))
        ),
        'X' => format!(
            "{}{}",
            if alternative && unsigned != 0 { "0X" } else { "" },
            digits(format!("{unsigned:X}"))
        ),
        'o' => digits(format!("{unsigned:o}")),
        'c' => ((bits as u8) as char).to_string(),
        'p' if bits == 0 => "(nil)".to_owned(),
        'p' => format!("{bits:#x}"),
        's' => {
            let text = text_at(bits).unwrap_or_else(|| "(null)".to_owned());
            precision.map_or(text.clone(), |most| text.chars().take(most).collect())
        }
        _ if x.is_nan() => plus("nan".to_owned(), x.is_sign_negative()),
        _ if x.is_infinite() => plus("inf".to_owned(), x < 0.0),
        'f' | 'F' => plus(format!("{:.*}", precision.unwrap_or(6), x.abs()), x.is_sign_negative()),
        'e' | 'E' => {
            let text = plus(exponential(x.abs(), precision.unwrap_or(6)), x.is_sign_negative());
            if kind == 'E' { text.to_uppercase() } else { text }
        }
        'g' | 'G' => {
            let text =
                plus(general(x.abs(), precision.unwrap_or(6).max(1), alternative), x.is_sign_negative());
            if kind == 'G' { text.to_uppercase() } else { text }
        }
        _ => plus(format!("{:?}", x.abs()), x.is_sign_negative()),
    };
    let length = text.chars().count();
    if length >= width {
        return text;
    }
    let gap = width - length;
    let is_number = !matches!(kind, 's' | 'c' | 'p');
    let is_integer = matches!(kind, 'd' | 'i' | 'u' | 'x' | 'X' | 'o');
    if flags.contains('-') {
        format!("{text}{}", " ".repeat(gap))
    } else if flags.contains('0')
        && is_number
        && !(is_integer && precision.is_some())
        && !(x.is_nan() || x.is_infinite()) | is_integer
    {
        let sign = text.len() - text.trim_start_matches(['-', '+', ' ']).len();
        format!("{}{}{}", &text[..sign], "0".repeat(gap), &text[sign..])
    } else {
        format!("{}{text}", " ".repeat(gap))
    }
}

/// Formats a float such as `1.500000e+03`.
fn exponential(x: f64, precision: usize) -> String {
    let text = format!("{x:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

fn general(x: f64, precision: usize, keeps_zeros: bool) -> String {
    let scientific = format!("{x:.*e}", precision - 1);
    let exponent: i32 = scientific.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let text = if x != 0.0 && (exponent < -4 || exponent >= precision as i32) {
        exponential(x, precision - 1)
    } else {
        format!("{x:.*}", (precision as i32 - 1 - exponent).max(0) as usize)
    };
    if keeps_zeros || !text.contains('.') {
        return text;
    }
    let (mantissa, exponent) = match text.split_once('e') {
        Some((mantissa, exponent)) => (mantissa, format!("e{exponent}")),
        None => (text.as_str(), String::new()),
    };
    format!("{}{exponent}", mantissa.trim_end_matches('0').trim_end_matches('.'))
}

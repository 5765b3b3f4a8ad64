//! What the GPUs of a machine did, and when: [`Machine::trace`](crate::Machine::trace) and
//! [`Machine::profile`](crate::Machine::profile).

pub use crate::events::{CopyKind, Counters, Kernel, Trace};
pub use crate::machine::record_function;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Trace;
    use crate::events::rows::{Bar, rows};
    use crate::events::text::{PARTLY, SEAM};
    use crate::{Device, Error, Machine, Tensor};

    /// Work of all sorts on two devices, twice; the first time takes memory, which is slow.
    fn recorded() -> [Trace; 2] {
        let machine: Machine = "sim:t4x2".parse().unwrap();
        let work = || {
            let x = Tensor::ones(&[300, 300])?.pin_memory()?.cuda()?;
            for _ in 0..4 {
                let y = x.matmul(&x.matmul(&x)?)?.relu()?.to(Device::cuda(1))?;
                y.add(1.0)?.sum()?.item()?;
            }
            Ok::<_, Error>(())
        };
        machine.enter(|| {
            [(); 2].map(|()| {
                let (done, trace) = machine.profile(work);
                done.unwrap();
                trace
            })
        })
    }

    #[test]
    fn a_column_is_empty_exactly_if_nothing_went_on_and_low_if_less_than_half_of_it() {
        let mut seen = BTreeSet::new();
        for trace in recorded() {
            seen.extend(checked(&trace));
        }
        for sign in [' ', PARTLY, SEAM, '█', '▓', '▒', '░', '▚', 'M'] {
            assert!(seen.contains(&sign), "{sign} was not tried: {seen:?}");
        }
    }

    /// The signs of drawings of many widths, each compared with what went on in its column.
    fn checked(trace: &Trace) -> BTreeSet<char> {
        let rows = rows(trace);
        let end = rows.iter().flat_map(|row| &row.bars).map(|bar| bar.end).max().unwrap();
        let mut seen = BTreeSet::new();
        for width in [40, 63, 80, 100, 777] {
            let text = trace.to_text(width);
            let margin = text.lines().find_map(|line| line.chars().position(|sign| sign == '└')).unwrap();
            let columns = width - margin;
            for (row, line) in rows.iter().zip(text.lines()) {
                assert!(line.starts_with(&row.short), "{line}");
                let signs: Vec<char> =
                    line.chars().skip(margin).chain(std::iter::repeat(' ')).take(columns).collect();
                for (column, sign) in signs.into_iter().enumerate() {
                    let time = |column: usize| column as f64 * end as f64 / columns as f64;
                    let (from, to) = (time(column), time(column + 1));
                    let within = |bar: &&Bar| (bar.start as f64) < to && bar.end as f64 > from;
                    let spent = |bar: &Bar| (bar.end as f64).min(to) - (bar.start as f64).max(from);
                    let share = row.bars.iter().filter(within).map(spent).sum::<f64>() / (to - from);
                    let about_right = match sign {
                        ' ' => share == 0.0 || share > 0.999, // a blank of a name within a bar
                        PARTLY => share > 0.0 && share < 0.501,
                        sign if sign.is_ascii() => share > 0.999,
                        _ => share > 0.499,
                    };
                    assert!(
                        about_right,
                        "{width}, {}, column {column}: {share} is {sign:?}\n{text}",
                        row.short
                    );
                    seen.insert(sign);
                }
            }
        }
        seen
    }
}

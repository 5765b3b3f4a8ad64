//! In a browser page, multiplies identical rows once. Labs keep a GPU busy with products of ones, of which only the
//! timing matters, and a page has a single thread. Elements are computed independently, so identical rows of A make
//! bitwise identical rows of C, and identical columns of B identical columns. The check is usually short.

use bytemuck::{Pod, bytes_of, cast_slice};

use super::GemmElement;

const WORTH_A_LOOK: usize = 1 << 20;

/// Computes `c = a · b` through `product(m, n, c)`, which uses the first `m` rows of a and the first `n` columns of b.
pub(super) fn compute<T: GemmElement>(
    [m, n, k]: [usize; 3],
    [(a, a_strides), (b, b_strides)]: [(&[T], [usize; 2]); 2],
    c: &mut [T],
    product: impl Fn(usize, usize, &mut [T]),
) {
    let worth_a_look = m.saturating_mul(n).saturating_mul(k) >= WORTH_A_LOOK;
    if worth_a_look && m > 1 && are_equivalent(a, [m, k], a_strides) {
        let (first, others) = c.split_at_mut(n);
        product(1, n, first);
        others.chunks_exact_mut(n).for_each(|row| row.copy_from_slice(first));
    } else if worth_a_look && n > 1 && are_equivalent(b, [n, k], [b_strides[1], b_strides[0]]) {
        let (column, _) = c.split_at_mut(m);
        product(m, 1, column);
        // From the last row up, so that a row is only written after its number was read.
        for row in (0..m).rev() {
            let number = c[row];
            c[row * n..][..n].fill(number);
        }
    } else {
        product(m, n, c);
    }
}

fn are_equivalent<T: Pod>(matrix: &[T], [rows, columns]: [usize; 2], [down, along]: [usize; 2]) -> bool {
    match [down, along] {
        [0, _] => true,
        [_, 1] => {
            let row = |row: usize| cast_slice::<T, u8>(&matrix[row * down..][..columns]);
            (1..rows).all(|i| row(i) == row(0))
        }
        _ => (0..columns).all(|column| {
            let number = |row: usize| bytes_of(&matrix[row * down + column * along]);
            (1..rows).all(|row| number(row) == number(0))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product_of([m, n, k]: [usize; 3], a: &[f32], b: &[f32]) -> (Vec<f32>, Vec<[usize; 2]>) {
        let asked = std::cell::RefCell::new(Vec::new());
        let mut c = vec![f32::NAN; m * n];
        compute([m, n, k], [(a, [k, 1]), (b, [n, 1])], &mut c, |rows, columns, c| {
            asked.borrow_mut().push([rows, columns]);
            for (i, c) in c.iter_mut().enumerate() {
                let (row, column) = (i / columns, i % columns);
                *c = (0..k).map(|p| a[row * k + p] * b[p * n + column]).sum();
            }
        });
        (c, asked.into_inner())
    }

    #[test]
    fn like_rows_and_like_columns_are_multiplied_once() {
        let [m, n, k] = [100, 120, 130];
        let uneven = |count: usize| -> Vec<f32> { (0..count).map(|i| (i * 37 % 101) as f32).collect() };
        let (a, b) = (uneven(m * k), uneven(k * n));
        let like_rows: Vec<f32> = (0..m * k).map(|i| a[i % k]).collect();
        let like_columns: Vec<f32> = (0..k * n).map(|i| b[i / n]).collect();
        let mut but_for_the_last = like_rows.clone();
        but_for_the_last[m * k - 1] += 1.0;
        for (a, b, asked) in [
            (&a, &b, [m, n]),
            (&like_rows, &b, [1, n]),
            (&a, &like_columns, [m, 1]),
            (&but_for_the_last, &b, [m, n]),
        ] {
            let (c, was_asked) = product_of([m, n, k], a, b);
            assert_eq!(was_asked, [asked]);
            let whole: Vec<f32> =
                (0..m * n).map(|i| (0..k).map(|p| a[i / n * k + p] * b[p * n + i % n]).sum()).collect();
            assert_eq!(c, whole);
        }
    }
}

//! The registers of a warp, as rows of lanes.

use crate::ir::{LANES, Prim, Row};

#[derive(Clone, Copy)]
#[repr(C, align(128))]
struct Aligned([u32; LANES]);

/// Rows are accessed without bounds checks: [`crate::ir::validate`] has checked all instructions.
pub struct Registers {
    rows: Vec<Aligned>,
}

/// The element type of a row, or of a pair of rows.
pub trait Content: Copy + Default {}
impl Content for u32 {}
impl Content for i32 {}
impl Content for f32 {}
impl Content for u64 {}
impl Content for i64 {}
impl Content for f64 {}

pub const ALL: u32 = u32::MAX;

/// The number of lanes computed at once: the width of the CPU's vectors.
const PIECE: usize = 8;
const PIECES: usize = LANES / PIECE;

/// Whether a result may be written before its operand is fully read: the rows are disjoint or identical.
#[inline(always)]
fn in_pieces<A: Content, D: Content>(a: Row, d: Row) -> bool {
    let (of_a, of_d) = (size_of::<A>() / 4, size_of::<D>() / 4);
    if of_a == 1 && of_d == 1 {
        return true;
    }
    a == d && of_a == of_d || a.abs_diff(d) >= 2
}

impl Registers {
    pub fn new(rows: u32) -> Registers {
        Registers { rows: vec![Aligned([0; LANES]); rows as usize + 2] }
    }

    #[inline(always)]
    pub fn get<T: Content>(&self, row: Row) -> [T; LANES] {
        debug_assert!((row as usize + size_of::<T>() / 4) <= self.rows.len());
        // SAFETY: the program is validated, so the row exists, and the next one too for 64-bit types. Rows are
        // contiguous and aligned to 128 bytes. Any bits are a valid value of a `Content` type.
        unsafe { *self.rows.as_ptr().add(row as usize).cast::<[T; LANES]>() }
    }

    #[inline(always)]
    pub fn row<T: Content>(&self, row: Row) -> &[T; LANES] {
        debug_assert!((row as usize + size_of::<T>() / 4) <= self.rows.len());
        // SAFETY: as in `get`.
        unsafe { &*self.rows.as_ptr().add(row as usize).cast::<[T; LANES]>() }
    }

    #[inline(always)]
    pub fn place<T: Content>(&mut self, row: Row) -> &mut [T; LANES] {
        debug_assert!((row as usize + size_of::<T>() / 4) <= self.rows.len());
        // SAFETY: as in `get`. The reference is unique, since it borrows all rows.
        unsafe { &mut *self.rows.as_mut_ptr().add(row as usize).cast::<[T; LANES]>() }
    }

    #[inline(always)]
    pub fn set<T: Content>(&mut self, row: Row, mask: u32, values: &[T; LANES]) {
        let place = self.place::<T>(row);
        if mask == ALL {
            *place = *values;
        } else {
            for (lane, value) in values.iter().enumerate() {
                if mask >> lane & 1 != 0 {
                    place[lane] = *value;
                }
            }
        }
    }

    #[inline(always)]
    pub fn map<A: Content, D: Content>(&mut self, d: Row, a: Row, mask: u32, f: impl Fn(A) -> D) {
        if mask == ALL && in_pieces::<A, D>(a, d) {
            for piece in 0..PIECES {
                let a: [A; PIECE] = self.piece(a, piece);
                let mut out = [D::default(); PIECE];
                for lane in 0..PIECE {
                    out[lane] = f(a[lane]);
                }
                self.set_piece(d, piece, out);
            }
            return;
        }
        let a = self.get::<A>(a);
        let place = self.place::<D>(d);
        let mut rest = mask;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            place[lane] = f(a[lane]);
            rest &= rest - 1;
        }
    }

    #[inline(always)]
    pub fn map2<A: Content, B: Content, D: Content>(
        &mut self,
        d: Row,
        a: Row,
        b: Row,
        mask: u32,
        f: impl Fn(A, B) -> D,
    ) {
        if mask == ALL && in_pieces::<A, D>(a, d) && in_pieces::<B, D>(b, d) {
            for piece in 0..PIECES {
                let (a, b): ([A; PIECE], [B; PIECE]) = (self.piece(a, piece), self.piece(b, piece));
                let mut out = [D::default(); PIECE];
                for lane in 0..PIECE {
                    out[lane] = f(a[lane], b[lane]);
                }
                self.set_piece(d, piece, out);
            }
            return;
        }
        let (a, b) = (self.get::<A>(a), self.get::<B>(b));
        let place = self.place::<D>(d);
        let mut rest = mask;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            place[lane] = f(a[lane], b[lane]);
            rest &= rest - 1;
        }
    }

    #[inline(always)]
    fn piece<T: Content>(&self, row: Row, piece: usize) -> [T; PIECE] {
        debug_assert!((row as usize + size_of::<T>() / 4) <= self.rows.len());
        // SAFETY: as in `get`, and a row has `PIECES` pieces.
        unsafe { *self.rows.as_ptr().add(row as usize).cast::<[T; PIECE]>().add(piece) }
    }

    #[inline(always)]
    fn set_piece<T: Content>(&mut self, row: Row, piece: usize, values: [T; PIECE]) {
        debug_assert!((row as usize + size_of::<T>() / 4) <= self.rows.len());
        // SAFETY: as in `piece`, and all rows are borrowed.
        unsafe { *self.rows.as_mut_ptr().add(row as usize).cast::<[T; PIECE]>().add(piece) = values }
    }

    pub fn bits(&self, ty: Prim, row: Row, lane: usize) -> u64 {
        match crate::ir::rows_of(ty) {
            2 => self.get::<u64>(row)[lane],
            _ => u64::from(self.get::<u32>(row)[lane]),
        }
    }

    pub fn set_bits(&mut self, ty: Prim, row: Row, lane: usize, bits: u64) {
        match crate::ir::rows_of(ty) {
            2 => self.place::<u64>(row)[lane] = bits,
            _ => self.place::<u32>(row)[lane] = bits as u32,
        }
    }

    pub fn fill32(&mut self, row: Row, bits: u32) {
        *self.place::<u32>(row) = [bits; LANES];
    }

    pub fn fill64(&mut self, row: Row, bits: u64) {
        *self.place::<u64>(row) = [bits; LANES];
    }
}

//! Deflate decompression (RFC 1951), for checkpoints that were zipped again: PyTorch does not compress them.

use super::error::SerializeError;
use crate::error::Result;

const LONGEST: usize = 15;

/// The order of the code-length codes in a block.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

pub(super) fn inflate(packed: &[u8], size: usize) -> Result<Vec<u8>> {
    let mut bits = Bits { rest: packed, held: 0, count: 0 };
    // Grown as needed, since `size` may be wrong.
    let mut out = Vec::new();
    loop {
        let is_last = bits.take(1)? == 1;
        match bits.take(2)? {
            0 => stored(&mut bits, &mut out, size)?,
            1 => {
                let lengths: Vec<u8> = [(144, 8), (112, 9), (24, 7), (8, 8)]
                    .iter()
                    .flat_map(|(n, bits)| vec![*bits; *n])
                    .collect();
                compressed(&mut bits, &Codes::new(&lengths)?, &Codes::new(&[5; 30])?, &mut out, size)?;
            }
            2 => {
                let (symbols, distances) = trees(&mut bits)?;
                compressed(&mut bits, &symbols, &distances, &mut out, size)?;
            }
            _ => return Err(damaged()),
        }
        if is_last {
            return if out.len() == size { Ok(out) } else { Err(damaged()) };
        }
    }
}

fn stored(bits: &mut Bits, out: &mut Vec<u8>, size: usize) -> Result<()> {
    bits.take(bits.count % 8)?;
    let (length, inverse) = (bits.take(16)?, bits.take(16)?);
    if length != !inverse & 0xffff || length as usize > size - out.len() {
        return Err(damaged());
    }
    for _ in 0..length {
        out.push(bits.take(8)? as u8);
    }
    Ok(())
}

fn trees(bits: &mut Bits) -> Result<(Codes, Codes)> {
    let [symbols, distances, lengths] =
        [bits.take(5)? as usize + 257, bits.take(5)? as usize + 1, bits.take(4)? as usize + 4];
    let mut of_lengths = [0; 19];
    for place in &ORDER[..lengths] {
        of_lengths[*place] = bits.take(3)? as u8;
    }
    let of_lengths = Codes::new(&of_lengths)?;
    let mut all: Vec<u8> = Vec::new();
    while all.len() < symbols + distances {
        let (length, times) = match of_lengths.next(bits)? {
            16 => (*all.last().ok_or_else(damaged)?, 3 + bits.take(2)?),
            17 => (0, 3 + bits.take(3)?),
            18 => (0, 11 + bits.take(7)?),
            length => (length as u8, 1),
        };
        all.extend((0..times).map(|_| length));
    }
    if all.len() > symbols + distances {
        return Err(damaged());
    }
    Ok((Codes::new(&all[..symbols])?, Codes::new(&all[symbols..])?))
}

fn compressed(
    bits: &mut Bits,
    symbols: &Codes,
    distances: &Codes,
    out: &mut Vec<u8>,
    size: usize,
) -> Result<()> {
    loop {
        let symbol = usize::from(symbols.next(bits)?);
        if symbol == 256 {
            return Ok(());
        }
        if symbol < 256 {
            if out.len() == size {
                return Err(damaged());
            }
            out.push(symbol as u8);
            continue;
        }
        // Symbols come in groups of four, each with one more extra bit than the last.
        let length = match symbol - 257 {
            place @ 0..8 => 3 + place,
            28 => 258,
            place @ 8..28 => {
                let more = place as u32 / 4 - 1;
                3 + ((4 + place % 4) << more) + bits.take(more)? as usize
            }
            _ => return Err(damaged()),
        };
        let distance = match usize::from(distances.next(bits)?) {
            place @ 0..4 => 1 + place,
            place @ 4..30 => {
                let more = place as u32 / 2 - 1;
                1 + ((2 + place % 2) << more) + bits.take(more)? as usize
            }
            _ => return Err(damaged()),
        };
        let from = out.len().checked_sub(distance).ok_or_else(damaged)?;
        if length > size - out.len() {
            return Err(damaged());
        }
        // The copy may overlap its output.
        for place in from..from + length {
            out.push(out[place]);
        }
    }
}

/// A Huffman code: maps the next bits to a symbol and the length of its code.
struct Codes {
    table: Vec<(u16, u8)>,
    longest: u32,
}

impl Codes {
    /// Builds the code from the length per symbol; 0 means unused.
    fn new(lengths: &[u8]) -> Result<Codes> {
        let longest = usize::from(lengths.iter().copied().max().unwrap_or(0));
        debug_assert!(longest <= LONGEST);
        let mut table = vec![(0, 0); 1 << longest];
        let mut code = 0u32;
        for length in 1..=longest {
            for (symbol, _) in lengths.iter().enumerate().filter(|(_, of)| usize::from(**of) == length) {
                if code >> length != 0 {
                    return Err(damaged());
                }
                // Codes are stored highest bit first, all other fields lowest bit first.
                let start = code.reverse_bits() as usize >> (32 - length);
                (start..table.len())
                    .step_by(1 << length)
                    .for_each(|at| table[at] = (symbol as u16, length as u8));
                code += 1;
            }
            code <<= 1;
        }
        Ok(Codes { table, longest: longest as u32 })
    }

    fn next(&self, bits: &mut Bits) -> Result<u16> {
        let (symbol, length) = self.table[bits.peek(self.longest) as usize];
        if length == 0 {
            return Err(damaged());
        }
        bits.take(length.into())?;
        Ok(symbol)
    }
}

/// A bit reader, lowest bit first.
struct Bits<'b> {
    rest: &'b [u8],
    held: u64,
    count: u32,
}

impl Bits<'_> {
    /// Returns the next bits without consuming them. Bits past the end are 0.
    fn peek(&mut self, bits: u32) -> u64 {
        while self.count < bits
            && let Some((byte, rest)) = self.rest.split_first()
        {
            self.held |= u64::from(*byte) << self.count;
            (self.rest, self.count) = (rest, self.count + 8);
        }
        self.held & ((1 << bits) - 1)
    }

    fn take(&mut self, bits: u32) -> Result<u64> {
        let taken = self.peek(bits);
        self.count = self.count.checked_sub(bits).ok_or_else(damaged)?;
        self.held >>= bits;
        Ok(taken)
    }
}

fn damaged() -> crate::Error {
    SerializeError::Zip { why: "decompression failed" }.into()
}

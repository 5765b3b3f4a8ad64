//! `rand` with glibc's numbers, so that a program prints the same as on Linux.

pub struct Random {
    state: [i32; 31],
    at: usize,
}

impl Random {
    pub fn new(seed: u32) -> Random {
        let mut word = seed.max(1) as i32;
        let mut state = [0; 31];
        state[0] = word;
        for place in &mut state[1..] {
            // 16,807 · word modulo 2³¹ - 1, by Schrage's method.
            let next = 16_807i64 * i64::from(word % 127_773) - 2_836 * i64::from(word / 127_773);
            word = (if next < 0 { next + 0x7fff_ffff } else { next }) as i32;
            *place = word;
        }
        let mut random = Random { state, at: 0 };
        for _ in 0..310 {
            random.number();
        }
        random
    }

    pub fn number(&mut self) -> u32 {
        let front = (self.at + 3) % 31;
        self.state[front] = self.state[front].wrapping_add(self.state[self.at]);
        self.at = (self.at + 1) % 31;
        self.state[front] as u32 >> 1
    }
}

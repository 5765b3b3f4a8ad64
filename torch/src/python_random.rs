//! The module `_random`: the generator of Python's `random`, so that a seed gives the numbers that it gives in CPython.

pub(crate) use _random::module_def;

#[rustpython_vm::pymodule]
mod _random {
    use std::cell::RefCell;

    use rustpython_vm::builtins::{PyInt, PyTupleRef, PyType};
    use rustpython_vm::function::{FuncArgs, OptionalArg};
    use rustpython_vm::types::Constructor;
    use rustpython_vm::{AsObject, Py, PyObjectRef, PyPayload, PyResult, VirtualMachine, pyclass};

    const SIZE: usize = 624;

    /// The Mersenne Twister (Matsumoto and Nishimura 1998), seeded by an array as in Python.
    #[derive(Debug)]
    struct Twister {
        words: Vec<u32>,
        next: usize,
    }

    impl Twister {
        fn from_word(seed: u32) -> Twister {
            let mut words = vec![seed; SIZE];
            for i in 1..SIZE {
                let before = words[i - 1] ^ (words[i - 1] >> 30);
                words[i] = before.wrapping_mul(1_812_433_253).wrapping_add(i as u32);
            }
            Twister { words, next: SIZE }
        }

        fn from_words(key: &[u32]) -> Twister {
            let mut twister = Twister::from_word(19_650_218);
            let words = &mut twister.words;
            let (mut i, mut j) = (1, 0);
            for _ in 0..SIZE.max(key.len()) {
                let before = words[i - 1] ^ (words[i - 1] >> 30);
                words[i] =
                    (words[i] ^ before.wrapping_mul(1_664_525)).wrapping_add(key[j]).wrapping_add(j as u32);
                i += 1;
                j = (j + 1) % key.len();
                if i == SIZE {
                    words[0] = words[SIZE - 1];
                    i = 1;
                }
            }
            for _ in 1..SIZE {
                let before = words[i - 1] ^ (words[i - 1] >> 30);
                words[i] = (words[i] ^ before.wrapping_mul(1_566_083_941)).wrapping_sub(i as u32);
                i += 1;
                if i == SIZE {
                    words[0] = words[SIZE - 1];
                    i = 1;
                }
            }
            words[0] = 1 << 31;
            twister
        }

        fn word(&mut self) -> u32 {
            if self.next == SIZE {
                for i in 0..SIZE {
                    let mixed = (self.words[i] & 0x8000_0000) | (self.words[(i + 1) % SIZE] & 0x7fff_ffff);
                    let odd = if mixed & 1 == 1 { 0x9908_b0df } else { 0 };
                    self.words[i] = self.words[(i + 397) % SIZE] ^ (mixed >> 1) ^ odd;
                }
                self.next = 0;
            }
            let mut word = self.words[self.next];
            self.next += 1;
            word ^= word >> 11;
            word ^= (word << 7) & 0x9d2c_5680;
            word ^= (word << 15) & 0xefc6_0000;
            word ^ (word >> 18)
        }
    }

    #[pyattr]
    #[pyclass(module = "_random", name = "Random")]
    #[derive(Debug, PyPayload)]
    struct Random(RefCell<Twister>);

    fn of_seed(seed: Option<PyObjectRef>, vm: &VirtualMachine) -> PyResult<Twister> {
        let Some(seed) = seed.filter(|seed| !vm.is_none(seed)) else {
            let time = std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |time| time.as_nanos());
            return Ok(Twister::from_words(&[time as u32, (time >> 32) as u32]));
        };
        let words: Vec<u32> = match seed.downcast_ref::<PyInt>() {
            Some(int) => int.as_bigint().magnitude().to_u32_digits(),
            None => {
                let hash = seed.hash(vm)? as u64;
                vec![hash as u32, (hash >> 32) as u32]
            }
        };
        Ok(Twister::from_words(if words.is_empty() { &[0] } else { &words }))
    }

    impl Constructor for Random {
        type Args = FuncArgs;

        fn py_new(_: &Py<PyType>, args: FuncArgs, vm: &VirtualMachine) -> PyResult<Random> {
            Ok(Random(RefCell::new(of_seed(args.args.first().cloned(), vm)?)))
        }
    }

    #[pyclass(flags(BASETYPE), with(Constructor))]
    impl Random {
        #[pymethod]
        fn seed(&self, seed: OptionalArg<PyObjectRef>, vm: &VirtualMachine) -> PyResult<()> {
            *self.0.borrow_mut() = of_seed(seed.into_option(), vm)?;
            Ok(())
        }

        #[pymethod]
        fn random(&self) -> f64 {
            let mut twister = self.0.borrow_mut();
            let (high, low) = (twister.word() >> 5, twister.word() >> 6);
            (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
        }

        #[pymethod]
        fn getrandbits(&self, count: i64, vm: &VirtualMachine) -> PyResult {
            let Ok(count) = u32::try_from(count) else {
                return Err(vm.new_value_error("number of bits must be non-negative".to_owned()));
            };
            let mut twister = self.0.borrow_mut();
            let mut left = count;
            let mut words = Vec::new();
            while left > 0 {
                words.push(twister.word() >> 32u32.saturating_sub(left.min(32)));
                left = left.saturating_sub(32);
            }
            if words.len() <= 2 {
                let value = words.iter().rev().fold(0u64, |value, word| value << 32 | u64::from(*word));
                return Ok(vm.ctx.new_int(value).into());
            }
            let mut value: PyObjectRef = vm.ctx.new_int(0).into();
            for word in words.iter().rev() {
                let shifted = vm._lshift(&value, vm.ctx.new_int(32).as_object())?;
                value = vm._or(&shifted, vm.ctx.new_int(*word).as_object())?;
            }
            Ok(value)
        }

        #[pymethod]
        fn getstate(&self, vm: &VirtualMachine) -> PyTupleRef {
            let twister = self.0.borrow();
            let words = twister.words.iter().map(|word| u64::from(*word)).chain([twister.next as u64]);
            vm.ctx.new_tuple(words.map(|word| vm.ctx.new_int(word).into()).collect())
        }

        #[pymethod]
        fn setstate(&self, state: PyTupleRef, vm: &VirtualMachine) -> PyResult<()> {
            let words: Option<Vec<i64>> = state.iter().map(|word| crate::arguments::int(word, vm)).collect();
            match words {
                Some(words) if words.len() == SIZE + 1 => {
                    let next = (words[SIZE].max(0) as usize).min(SIZE);
                    let words = words[..SIZE].iter().map(|word| *word as u32).collect();
                    *self.0.borrow_mut() = Twister { words, next };
                    Ok(())
                }
                _ => Err(vm.new_value_error("state vector is the wrong size".to_owned())),
            }
        }
    }
}

//! The options of the allocator (`PYTORCH_CUDA_ALLOC_CONF`): `max_split_size_mb:200,backend:native`.

use super::{LARGE_BUFFER, MIN_BLOCK_SIZE, Pool, SMALL_SIZE};

const MIB: u64 = 1 << 20;

/// How the allocator is to go about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Settings {
    /// Blocks from here on are *oversize*: never split, and not given to smaller requests.
    pub(crate) max_split_size: Option<u64>,
    /// An oversize request takes a block that is larger by less than this.
    max_non_split_rounding: u64,
    /// The share of a device's memory that may be reserved, if it is named.
    pub(crate) memory_fraction: Option<f64>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { max_split_size: None, max_non_split_rounding: LARGE_BUFFER, memory_fraction: None }
    }
}

impl Settings {
    /// Whether blocks of a size are oversize.
    pub(super) fn is_oversize(&self, size: u64) -> bool {
        self.max_split_size.is_some_and(|limit| size >= limit)
    }

    /// Whether a request of `size` bytes may have a block that is large enough for it.
    pub(super) fn may_take(&self, size: u64, block: u64) -> bool {
        match self.is_oversize(size) {
            true => block < size.saturating_add(self.max_non_split_rounding),
            false => !self.is_oversize(block),
        }
    }

    /// Whether what a request of `size` bytes leaves of a block is worth a block of its own.
    pub(super) fn should_split(&self, pool: Pool, size: u64, remaining: u64) -> bool {
        match pool {
            Pool::Small => remaining >= MIN_BLOCK_SIZE,
            Pool::Large => remaining > SMALL_SIZE && !self.is_oversize(size),
        }
    }

    /// What the environment asks for: `PYTORCH_CUDA_ALLOC_CONF`, else `PYTORCH_ALLOC_CONF`. The name of the
    /// variable stands before what is wrong with it.
    pub(crate) fn from_environment() -> Result<Settings, String> {
        Settings::from_variables(|name| {
            std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
        })
    }

    fn from_variables(value_of: impl Fn(&str) -> Option<String>) -> Result<Settings, String> {
        let names = ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"];
        match names.into_iter().find_map(|name| Some((name, value_of(name)?))) {
            Some((name, value)) => Settings::parse(&value).map_err(|error| format!("{name}: {error}")),
            None => Ok(Settings::default()),
        }
    }

    /// `key:value,key:value`. What is not named has its default; an unknown key or a wrong value is refused.
    pub(crate) fn parse(text: &str) -> Result<Settings, String> {
        let mut settings = Settings::default();
        for option in options(text) {
            let (key, value) = option.split_once(':').unwrap_or((option, ""));
            settings.set(key.trim(), value.trim())?;
        }
        Ok(settings)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "max_split_size_mb" => {
                let megabytes = megabytes(key, value)?;
                if megabytes < 20 {
                    return Err(
                        "CachingAllocator option max_split_size_mb too small, must be >= 20".to_string()
                    );
                }
                self.max_split_size = Some(megabytes as u64 * MIB);
                Ok(())
            }
            "max_non_split_rounding_mb" => {
                let megabytes = megabytes(key, value)?;
                if megabytes < 20 {
                    return Err("CachingAllocator option max_non_split_rounding_mb too small, must be >= 20"
                        .to_string());
                }
                self.max_non_split_rounding = megabytes as u64 * MIB;
                Ok(())
            }
            "per_process_memory_fraction" => {
                let fraction = number(key, value)?;
                check_fraction(fraction)?;
                self.memory_fraction = Some(fraction);
                Ok(())
            }
            "garbage_collection_threshold" => match number(key, value)? {
                threshold if threshold > 0.0 && threshold < 1.0 => Err(not_supported(key, value)),
                _ => Err("garbage_collect_threshold is invalid, set it in (0.0, 1.0)".to_string()),
            },
            "roundup_power2_divisions" => match value.parse::<u64>() {
                Ok(1) => Ok(()),
                Ok(divisions) if !divisions.is_power_of_two() => {
                    Err("For roundups, the divisions has to be power of 2 ".to_string())
                }
                _ => Err(not_supported(key, value)),
            },
            // What there is not yet may be named, as long as it is left as it is.
            _ => match OTHERS.iter().find(|(known, _)| *known == key) {
                Some((_, default)) if *default == value => Ok(()),
                Some(_) => Err(not_supported(key, value)),
                None => Err(format!("Unrecognized key '{key}' in Accelerator allocator config.")),
            },
        }
    }
}

/// Options that PyTorch has and this allocator has not, with their defaults.
const OTHERS: [(&str, &str); 9] = [
    ("expandable_segments", "False"),
    ("large_segment_size_mb", "20"),
    ("backend", "native"),
    ("pinned_use_cuda_host_register", "False"),
    ("pinned_num_register_threads", "1"),
    ("pinned_use_background_threads", "False"),
    ("pinned_reserve_segment_size_mb", "0"),
    ("release_lock_on_cudamalloc", "False"),
    ("graph_capture_record_stream_reuse", "False"),
];

/// The options, divided at commas, but not at those of a list in brackets.
fn options(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let at_comma = move |letter: char| {
        depth += i32::from(letter == '[') - i32::from(letter == ']');
        letter == ',' && depth <= 0
    };
    text.split(at_comma).map(str::trim).filter(|option| !option.is_empty())
}

fn not_supported(key: &str, value: &str) -> String {
    format!("the allocator option {key}:{value} is not supported yet")
}

fn megabytes(key: &str, value: &str) -> Result<i64, String> {
    let megabytes = value.parse::<i64>().ok().filter(|megabytes| *megabytes < 1 << 40);
    megabytes.ok_or_else(|| format!("{key} expects a whole number of megabytes, but got '{value}'"))
}

fn number(key: &str, value: &str) -> Result<f64, String> {
    value.parse().map_err(|_| format!("{key} expects a number, but got '{value}'"))
}

/// Refuses what is no share of the whole.
pub(crate) fn check_fraction(fraction: f64) -> Result<(), String> {
    match (0.0..=1.0).contains(&fraction) {
        true => Ok(()),
        false => Err(format!("Invalid fraction value: {fraction:?}. Allowed range: 0~1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_pytorch_reads_them() {
        assert_eq!(Settings::parse(""), Ok(Settings::default()));
        let settings = Settings::parse(
            " max_split_size_mb : 200, max_non_split_rounding_mb:40,per_process_memory_fraction:0.5,\
             backend:native,expandable_segments:False,roundup_power2_divisions:1,",
        );
        let expected = Settings {
            max_split_size: Some(200 << 20),
            max_non_split_rounding: 40 << 20,
            memory_fraction: Some(0.5),
        };
        assert_eq!(settings, Ok(expected));
        // The last word counts.
        let twice = Settings::parse("max_split_size_mb:30,max_split_size_mb:20").unwrap();
        assert_eq!(twice.max_split_size, Some(20 << 20));
    }

    #[test]
    fn the_first_variable_that_is_set_counts() {
        let of = |variables: &'static [(&str, &str)]| {
            Settings::from_variables(|name| {
                let found = variables.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, value)| (*value).to_string())
            })
        };
        let limit = |variables| of(variables).map(|settings| settings.max_split_size);
        let (new, old) = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF");
        assert_eq!(of(&[]), Ok(Settings::default()));
        assert_eq!(limit(&[("PYTORCH_ALLOC_CONF", "max_split_size_mb:20")]), Ok(Some(20 << 20)));
        let both = &[
            ("PYTORCH_ALLOC_CONF", "max_split_size_mb:20"),
            ("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:30"),
        ];
        assert_eq!(limit(both), Ok(Some(30 << 20)));
        assert_eq!(limit(&[("PYTORCH_ALLOC_CONF", "foo"), ("PYTORCH_CUDA_ALLOC_CONF", "")]), Ok(None));
        let unknown = "Unrecognized key 'foo' in Accelerator allocator config.";
        assert_eq!(limit(&[("PYTORCH_ALLOC_CONF", "foo")]), Err(format!("{new}: {unknown}")));
        assert_eq!(limit(&[("PYTORCH_CUDA_ALLOC_CONF", "foo")]), Err(format!("{old}: {unknown}")));
    }

    #[test]
    fn wrong_options_are_refused_in_one_clear_line() {
        let too_small = "CachingAllocator option max_split_size_mb too small, must be >= 20";
        let threshold = "garbage_collect_threshold is invalid, set it in (0.0, 1.0)";
        for (text, message) in [
            ("max_split_size_mb:19", too_small),
            ("max_split_size_mb:-1", too_small),
            ("max_split_size_mb:", "max_split_size_mb expects a whole number of megabytes, but got ''"),
            ("max_split_size_mb:9e9", "max_split_size_mb expects a whole number of megabytes, but got '9e9'"),
            (
                "max_split_size_mb:9223372036854775807",
                "max_split_size_mb expects a whole number of megabytes, but got '9223372036854775807'",
            ),
            ("max_split_size_mb", "max_split_size_mb expects a whole number of megabytes, but got ''"),
            (
                "max_non_split_rounding_mb:1",
                "CachingAllocator option max_non_split_rounding_mb too small, must be >= 20",
            ),
            ("foo:1", "Unrecognized key 'foo' in Accelerator allocator config."),
            ("backend:native,:", "Unrecognized key '' in Accelerator allocator config."),
            ("garbage_collection_threshold:0", threshold),
            ("garbage_collection_threshold:1.0", threshold),
            ("garbage_collection_threshold:NaN", threshold),
            (
                "garbage_collection_threshold:0.8",
                "the allocator option garbage_collection_threshold:0.8 is not supported yet",
            ),
            ("roundup_power2_divisions:3", "For roundups, the divisions has to be power of 2 "),
            (
                "roundup_power2_divisions:[256:1,512:2,>:8]",
                "the allocator option roundup_power2_divisions:[256:1,512:2,>:8] is not supported yet",
            ),
            (
                "expandable_segments:True",
                "the allocator option expandable_segments:True is not supported yet",
            ),
            ("backend:cudaMallocAsync", "the allocator option backend:cudaMallocAsync is not supported yet"),
            ("per_process_memory_fraction:2", "Invalid fraction value: 2.0. Allowed range: 0~1"),
            (
                "per_process_memory_fraction:half",
                "per_process_memory_fraction expects a number, but got 'half'",
            ),
        ] {
            assert_eq!(Settings::parse(text).unwrap_err(), message, "{text}");
        }
    }
}

//! The options of the allocator (`PYTORCH_CUDA_ALLOC_CONF`): `max_split_size_mb:200,backend:native`.

use super::{LARGE_BUFFER, MIN_BLOCK_SIZE, Pool, SMALL_SIZE};

const MIB: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Blocks from this size on are *oversize*: they are never split, and not given to smaller requests.
    pub max_split_size: Option<u64>,
    /// An oversize request accepts only a block that exceeds it by less than this.
    max_non_split_rounding: u64,
    pub memory_fraction: Option<f64>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { max_split_size: None, max_non_split_rounding: LARGE_BUFFER, memory_fraction: None }
    }
}

impl Settings {
    pub(super) fn is_oversize(&self, size: u64) -> bool {
        self.max_split_size.is_some_and(|limit| size >= limit)
    }

    pub(super) fn may_take(&self, size: u64, block: u64) -> bool {
        match self.is_oversize(size) {
            true => block < size.saturating_add(self.max_non_split_rounding),
            false => !self.is_oversize(block),
        }
    }

    pub(super) fn should_split(&self, pool: Pool, size: u64, remaining: u64) -> bool {
        match pool {
            Pool::Small => remaining >= MIN_BLOCK_SIZE,
            Pool::Large => remaining > SMALL_SIZE && !self.is_oversize(size),
        }
    }

    /// Reads the options from `PYTORCH_CUDA_ALLOC_CONF`, else `PYTORCH_ALLOC_CONF`. The variable was set for PyTorch,
    /// so unsupported and invalid options are ignored, each with a message.
    pub fn from_environment() -> (Settings, Vec<String>) {
        Settings::from_variables(|name| {
            std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
        })
    }

    fn from_variables(value_of: impl Fn(&str) -> Option<String>) -> (Settings, Vec<String>) {
        let names = ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"];
        let (mut settings, mut ignored) = (Settings::default(), Vec::new());
        if let Some((name, text)) = names.into_iter().find_map(|name| Some((name, value_of(name)?))) {
            let text = text.replace(char::is_control, " "); // Each message must be one line.
            for (key, value) in options(&text) {
                if let Err(reason) = settings.set(key, value) {
                    ignored.push(format!("{name}: {} (ignored)", reason.trim_end()));
                }
            }
        }
        (settings, ignored)
    }

    /// Parses `key:value,key:value`. Missing options have their defaults. Unknown keys and invalid values are errors.
    pub fn parse(text: &str) -> Result<Settings, String> {
        let mut settings = Settings::default();
        options(text).try_for_each(|(key, value)| settings.set(key, value))?;
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
            // An unsupported option may have its default value.
            _ => match OTHERS.iter().find(|(known, _)| *known == key) {
                Some((_, default)) if *default == value => Ok(()),
                Some(_) => Err(not_supported(key, value)),
                None => Err(format!("Unrecognized key '{key}' in Accelerator allocator config.")),
            },
        }
    }
}

/// Unsupported options of PyTorch, with their defaults.
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

pub fn check_fraction(fraction: f64) -> Result<(), String> {
    match (0.0..=1.0).contains(&fraction) {
        true => Ok(()),
        false => Err(format!("Invalid fraction value: {fraction:?}. Allowed range: 0~1")),
    }
}

fn options(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut depth = 0;
    let at_comma = move |letter: char| {
        depth += i32::from(letter == '[') - i32::from(letter == ']');
        letter == ',' && depth <= 0
    };
    text.split(at_comma).map(str::trim).filter(|option| !option.is_empty()).map(|option| {
        let (key, value) = option.split_once(':').unwrap_or((option, ""));
        (key.trim(), value.trim())
    })
}

fn not_supported(key: &str, value: &str) -> String {
    format!("{key}:{value} is not supported by this allocator")
}

fn megabytes(key: &str, value: &str) -> Result<i64, String> {
    let megabytes = value.parse::<i64>().ok().filter(|megabytes| *megabytes < 1 << 40);
    megabytes.ok_or_else(|| format!("{key} expects a whole number of megabytes, but got '{value}'"))
}

fn number(key: &str, value: &str) -> Result<f64, String> {
    value.parse().map_err(|_| format!("{key} expects a number, but got '{value}'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::each_case::each_case;

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
        // The last value wins.
        let twice = Settings::parse("max_split_size_mb:30,max_split_size_mb:20").unwrap();
        assert_eq!(twice.max_split_size, Some(20 << 20));
    }

    #[test]
    fn the_first_variable_that_is_set_counts() {
        let limit = |variables| {
            let (settings, ignored) = of(variables);
            assert_eq!(ignored, [""; 0]);
            settings.max_split_size
        };
        assert_eq!(limit(&[]), None);
        assert_eq!(limit(&[("PYTORCH_ALLOC_CONF", "max_split_size_mb:20")]), Some(20 << 20));
        let both = &[
            ("PYTORCH_ALLOC_CONF", "max_split_size_mb:20"),
            ("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:30"),
        ];
        assert_eq!(limit(both), Some(30 << 20));
        assert_eq!(limit(&[("PYTORCH_ALLOC_CONF", "foo"), ("PYTORCH_CUDA_ALLOC_CONF", "")]), None);
    }

    fn of(variables: &'static [(&str, &str)]) -> (Settings, Vec<String>) {
        Settings::from_variables(|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_string())
        })
    }

    #[test]
    fn what_the_environment_has_for_pytorch_alone_is_ignored_in_a_line_and_the_rest_applies() {
        let (settings, ignored) = of(&[(
            "PYTORCH_CUDA_ALLOC_CONF",
            "expandable_segments:True,max_split_size_mb:abc,garbage_collection_threshold:0.8,foo,\
             backend:cudaMallocAsync,max_non_split_rounding_mb:40\n,roundup_power2_divisions:[256:1,>:3],a\u{1b}b:1",
        )]);
        assert_eq!(settings, Settings { max_non_split_rounding: 40 << 20, ..Settings::default() });
        let reasons = [
            "expandable_segments:True is not supported by this allocator",
            "max_split_size_mb expects a whole number of megabytes, but got 'abc'",
            "garbage_collection_threshold:0.8 is not supported by this allocator",
            "Unrecognized key 'foo' in Accelerator allocator config.",
            "backend:cudaMallocAsync is not supported by this allocator",
            "roundup_power2_divisions:[256:1,>:3] is not supported by this allocator",
            "Unrecognized key 'a b' in Accelerator allocator config.",
        ];
        assert_eq!(ignored, reasons.map(|reason| format!("PYTORCH_CUDA_ALLOC_CONF: {reason} (ignored)")));
        let (_, ignored) = of(&[("PYTORCH_ALLOC_CONF", "roundup_power2_divisions:3")]);
        assert_eq!(
            ignored,
            ["PYTORCH_ALLOC_CONF: For roundups, the divisions has to be power of 2 (ignored)"]
        );
    }

    #[test]
    fn wrong_options_are_refused_in_one_clear_line() {
        let too_small = "CachingAllocator option max_split_size_mb too small, must be >= 20";
        let threshold = "garbage_collect_threshold is invalid, set it in (0.0, 1.0)";
        each_case(
            [
                ("max_split_size_mb:19", too_small),
                ("max_split_size_mb:-1", too_small),
                ("max_split_size_mb:", "max_split_size_mb expects a whole number of megabytes, but got ''"),
                (
                    "max_split_size_mb:9e9",
                    "max_split_size_mb expects a whole number of megabytes, but got '9e9'",
                ),
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
                    "garbage_collection_threshold:0.8 is not supported by this allocator",
                ),
                ("roundup_power2_divisions:3", "For roundups, the divisions has to be power of 2 "),
                (
                    "roundup_power2_divisions:[256:1,512:2,>:8]",
                    "roundup_power2_divisions:[256:1,512:2,>:8] is not supported by this allocator",
                ),
                ("expandable_segments:True", "expandable_segments:True is not supported by this allocator"),
                ("backend:cudaMallocAsync", "backend:cudaMallocAsync is not supported by this allocator"),
                ("per_process_memory_fraction:2", "Invalid fraction value: 2.0. Allowed range: 0~1"),
                (
                    "per_process_memory_fraction:half",
                    "per_process_memory_fraction expects a number, but got 'half'",
                ),
            ],
            |(text, message)| {
                assert_eq!(Settings::parse(text).unwrap_err(), message, "{text}");
            },
        );
    }
}

//! What the environment asks of a machine: `CUDA_LAUNCH_BLOCKING`.

const VARIABLE: &str = "CUDA_LAUNCH_BLOCKING";

/// Whether launches wait: 1, or 0 as if it were not set.
pub(super) fn launch_blocking() -> Result<bool, String> {
    std::env::var_os(VARIABLE).map_or(Ok(false), |value| parse(&value.to_string_lossy()))
}

fn parse(value: &str) -> Result<bool, String> {
    match value {
        "1" => Ok(true),
        "0" | "" => Ok(false),
        _ => Err(format!("{VARIABLE} is 1 (launches wait) or 0, but got '{value}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_1_or_0_or_refused_in_one_line() {
        assert_eq!(["1", "0", ""].map(parse), [Ok(true), Ok(false), Ok(false)]);
        for wrong in ["yes", "2", " 1", "true", "-1"] {
            let message = format!("CUDA_LAUNCH_BLOCKING is 1 (launches wait) or 0, but got '{wrong}'");
            assert_eq!(parse(wrong), Err(message));
        }
    }
}

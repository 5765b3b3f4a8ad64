//! Environment variables that affect a machine: `CUDA_LAUNCH_BLOCKING`, `CUDA_VISIBLE_DEVICES`, `NCCL_P2P_DISABLE`.

const BLOCKING: &str = "CUDA_LAUNCH_BLOCKING";

/// Makes collectives go through host memory. NCCL reads it for real GPUs.
pub(super) const P2P: &str = "NCCL_P2P_DISABLE";

/// Hides and reorders a program's GPUs. NVIDIA's driver reads it for real GPUs.
pub(super) const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";

pub(super) fn visible_devices() -> Option<String> {
    std::env::var_os(VISIBLE).map(|value| value.to_string_lossy().into_owned())
}

/// The indices that a program sees of `count` GPUs, in its order: with `2,0` the third GPU is `cuda:0`.
///
/// As in CUDA, an index without a GPU, or an item that is not a number, ends the list: `0,-1,1` is only the first GPU.
/// Characters after the digits of a number are ignored. A GPU that is listed twice hides all.
pub(super) fn visible(list: &str, count: usize) -> Vec<usize> {
    let mut visible = Vec::new();
    for item in list.split(',') {
        let item = item.trim();
        let item = item.strip_prefix('+').unwrap_or(item);
        let digits = &item[..item.bytes().take_while(u8::is_ascii_digit).count()];
        match digits.parse() {
            Ok(index) if visible.contains(&index) => return Vec::new(),
            Ok(index) if index < count => visible.push(index),
            _ => break,
        }
    }
    visible
}

/// 1, or 0 which is the same as unset.
pub(super) fn launch_blocking() -> Result<bool, String> {
    read(BLOCKING, "launches wait")
}

/// 1, or 0 which is the same as unset.
pub(super) fn nccl_p2p_disable() -> Result<bool, String> {
    read(P2P, "collectives go through the host")
}

fn read(variable: &str, one: &str) -> Result<bool, String> {
    std::env::var_os(variable).map_or(Ok(false), |value| parse(variable, one, &value.to_string_lossy()))
}

/// `one` is the meaning of 1, for the error.
fn parse(variable: &str, one: &str, value: &str) -> Result<bool, String> {
    match value {
        "1" => Ok(true),
        "0" | "" => Ok(false),
        _ => Err(format!("{variable} must be 1 ({one}) or 0, but got '{value}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::each_case::each_case;

    #[test]
    fn visible_devices_are_those_of_cuda() {
        each_case(
            [
                ("0,1,2,3", &[0, 1, 2, 3][..]),
                ("2,0", &[2, 0]),
                (" 1 , 3 ", &[1, 3]),
                ("0,2,-1,1", &[0, 2]),
                ("0,4,1", &[0]),
                ("", &[]),
                ("-1", &[]),
                ("NoDevFiles", &[]),
                ("GPU-8932f937", &[]),
                ("1,,2", &[1]),
                ("1gpu2,+2ampere", &[1, 2]),
                ("1,1", &[]),
                ("3,2,1,0", &[3, 2, 1, 0]),
                ("99999999999999999999", &[]),
            ],
            |(list, expected)| {
                assert_eq!(visible(list, 4), expected, "'{list}'");
            },
        );
    }

    #[test]
    fn the_variable_is_1_or_0_or_refused_in_one_line() {
        let parse = |value| parse(P2P, "collectives go through the host", value);
        assert_eq!(["1", "0", ""].map(parse), [Ok(true), Ok(false), Ok(false)]);
        each_case(["yes", "2", " 1", "true", "-1"], |wrong| {
            let message = format!(
                "NCCL_P2P_DISABLE must be 1 (collectives go through the host) or 0, but got '{wrong}'"
            );
            assert_eq!(parse(wrong), Err(message));
        });
    }
}

//! Access between devices, and the effect of a broken connection.
//!
//! On some computers, a direct copy between GPUs arrives corrupted, because the host's IOMMU or a PCIe switch misroutes
//! packets. No call fails. A copy through the host is correct.

use std::str::FromStr;

use super::memory::AddressSpace;
use crate::base::error::GpuError;
use crate::base::random::mix;
use crate::contract::driver::DriverResult;

/// The option `p2p=`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum P2p {
    /// From the card's profile.
    #[default]
    Usual,
    /// Direct copies arrive corrupted.
    Broken,
    /// Devices are not peers, so copies go through the host.
    Off,
}

impl P2p {
    pub const NAMES: &'static str = "broken or off";

    /// `None` for the usual access.
    pub fn name(self) -> Option<&'static str> {
        match self {
            P2p::Usual => None,
            P2p::Broken => Some("broken"),
            P2p::Off => Some("off"),
        }
    }
}

impl FromStr for P2p {
    type Err = GpuError;

    fn from_str(text: &str) -> Result<P2p, GpuError> {
        let known = [P2p::Broken, P2p::Off].into_iter().find(|p2p| p2p.name() == Some(text));
        known
            .ok_or_else(|| GpuError::custom(format!("after p2p=, expected {}, but got '{text}'", P2p::NAMES)))
    }
}

/// The size of a packet of PCI Express.
const PACKET: usize = 256;

/// Whether a packet is lost: the first of a transfer, and about a quarter of the others.
fn is_lost(seed: u64, packet: usize) -> bool {
    packet == 0 || mix(seed ^ mix(packet as u64)).is_multiple_of(4)
}

/// Replaces lost packets with zeros. The range is the part of a transfer from byte `start` on.
pub(super) fn lose_packets(
    memory: &mut AddressSpace,
    seed: u64,
    address: u64,
    (start, bytes): (usize, usize),
) -> DriverResult<()> {
    let written = memory.bytes_mut(address, bytes)?;
    let (mut at, end) = (start, start + bytes);
    while at < end {
        let next = ((at / PACKET + 1) * PACKET).min(end);
        if is_lost(seed, at / PACKET) {
            written[at - start..next - start].fill(0);
        }
        at = next;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::each_case::each_case;
    use std::sync::Arc;

    use super::*;

    const BYTES: usize = 100 * PACKET + 17;

    /// The received bytes, if ones are sent in transfers of these lengths.
    fn arrived(seed: u64, slices: &[usize]) -> Vec<u8> {
        let mut memory = AddressSpace::new(1 << 40, 1 << 21, Arc::default());
        let address = memory.insert(BYTES);
        memory.bytes_mut(address, BYTES).unwrap().fill(1);
        let mut start = 0;
        for bytes in slices {
            lose_packets(&mut memory, seed, address + start as u64, (start, *bytes)).unwrap();
            start += bytes;
        }
        assert_eq!(start, BYTES);
        memory.bytes(address, BYTES).unwrap().to_vec()
    }

    #[test]
    fn whole_packets_are_lost_and_the_same_ones_however_the_transfer_is_cut() {
        let whole = arrived(7, &[BYTES]);
        assert_eq!(whole[..PACKET], [0; PACKET]);
        let packets: Vec<u8> = whole.chunks(PACKET).map(|packet| packet[0]).collect();
        assert!(whole.chunks(PACKET).all(|packet| packet.iter().all(|byte| *byte == packet[0])));
        let lost = packets.iter().filter(|byte| **byte == 0).count();
        assert!((15..40).contains(&lost), "{lost} of {}", packets.len());
        assert_eq!(arrived(7, &[96, 3 * PACKET, 32, BYTES - 128 - 3 * PACKET]), whole);
        assert_ne!(arrived(8, &[BYTES]), whole);
        assert_eq!(arrived(7, &[0, BYTES]), whole);
    }

    #[test]
    fn a_way_is_read_as_it_is_written() {
        each_case([P2p::Broken, P2p::Off], |p2p| {
            assert_eq!(p2p.name().unwrap().parse::<P2p>().unwrap(), p2p);
        });
        each_case(["", "on", "usual", "Broken", "1"], |wrong| {
            let error = wrong.parse::<P2p>().unwrap_err().to_string();
            assert_eq!(error, format!("after p2p=, expected broken or off, but got '{wrong}'"));
        });
    }
}

//! The connections between the GPUs of a machine, as in `nvidia-smi topo -m`.

use std::fmt;

use todevice_figures::link::WITHOUT_NVLINK;
pub use todevice_figures::link::{Link, UnknownLink};

use crate::base::error::GpuError;

impl From<UnknownLink> for GpuError {
    fn from(unknown: UnknownLink) -> GpuError {
        GpuError::custom(unknown)
    }
}

/// The connections between all GPUs. Prints the first columns of `nvidia-smi topo -m`, and with `{:#}` the legend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    links: Vec<Vec<Link>>,
}

impl Topology {
    pub fn new(gpus: usize, between: impl Fn(usize, usize) -> Link) -> Topology {
        let link = |from, to| if from == to { Link::X } else { between(from, to) };
        let row = |from| (0..gpus).map(|to| link(from, to)).collect();
        Topology { links: (0..gpus).map(row).collect() }
    }

    pub fn gpu_count(&self) -> usize {
        self.links.len()
    }

    /// `None` if one of the GPUs does not exist.
    pub fn between(&self, from: usize, to: usize) -> Option<Link> {
        self.links.get(from)?.get(to).copied()
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = (0..self.links.len()).map(|gpu| format!("GPU{gpu}")).collect();
        let line = |first: &str, columns: &[String]| {
            let line = columns.iter().fold(format!("{first:8}"), |line, column| format!("{line}{column:8}"));
            line.trim_end().to_owned()
        };
        f.write_str(&line("", &names))?;
        for (name, links) in names.iter().zip(&self.links) {
            // The X is centered in its column.
            let letters = |link: &Link| if *link == Link::X { " X".to_owned() } else { link.to_string() };
            let columns: Vec<String> = links.iter().map(letters).collect();
            write!(f, "\n{}", line(name, &columns))?;
        }
        if f.alternate() {
            f.write_str("\n\nLegend:\n")?;
            let [x, rest @ ..] = WITHOUT_NVLINK;
            for link in [x].into_iter().chain(rest.into_iter().rev()) {
                write!(f, "\n  {link:4} = {}", link.meaning())?;
            }
            write!(f, "\n  NV#  = {}", Link::Nv(1).meaning())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::each_case::each_case;

    #[test]
    fn it_prints_as_nvidia_smi_does() {
        let links = [[Link::X, Link::Nv(2), Link::Sys], [Link::Nv(2), Link::X, Link::Sys], [Link::Sys; 3]];
        let topology = Topology::new(3, |from, to| links[from][to]);
        assert_eq!(
            topology.to_string(),
            "        GPU0    GPU1    GPU2\nGPU0     X      NV2     SYS\nGPU1    NV2      X      SYS\nGPU2    SYS     SYS      X"
        );
        let whole = format!("{topology:#}");
        let legend: Vec<&str> = whole.lines().skip(5).collect();
        assert_eq!(
            legend,
            [
                "Legend:",
                "",
                "  X    = Self",
                "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)",
                "  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node",
                "  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)",
                "  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)",
                "  PIX  = Connection traversing at most a single PCIe bridge",
                "  NV#  = Connection traversing a bonded set of # NVLinks",
            ]
        );
        assert_eq!((topology.between(0, 1), topology.between(3, 0)), (Some(Link::Nv(2)), None));
        assert_eq!(Topology::new(0, |_, _| Link::Sys).to_string(), "");
    }

    #[test]
    fn a_link_is_read_as_it_is_written() {
        for link in WITHOUT_NVLINK[1..].iter().copied().chain([Link::Nv(18)]) {
            assert_eq!(link.to_string().parse::<Link>().unwrap(), link);
        }
        each_case(["", "X", "NV", "NV0", "NV-1", "nvlink", "pix"], |wrong| {
            assert!(wrong.parse::<Link>().is_err(), "{wrong}");
        });
    }
}

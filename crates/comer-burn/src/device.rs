//! Devices of Burn by their names on the command line.

use burn::prelude::Device;
use comer_train::{Error, Result};

const AVAILABLE: &str = match (cfg!(feature = "cuda"), cfg!(feature = "wgpu")) {
    (false, false) => "cpu, cpu-burn",
    (true, false) => "cpu, cpu-burn, cuda:0, cuda:1, ...",
    (false, true) => "cpu, cpu-burn, wgpu",
    (true, true) => "cpu, cpu-burn, cuda:0, cuda:1, ..., wgpu",
};

/// The device `name`: `cpu-burn` (Burn on the CPU), `cuda:0`, `cuda:1`, ..., `wgpu`.
pub fn device(name: &str) -> Result<Device> {
    let unknown = |reason: &str| {
        let reason = format!("{reason}; this program was built for {AVAILABLE}");
        Error::Device { name: name.into(), reason }
    };
    match name.split_once(':').unwrap_or((name, "0")) {
        ("cpu-burn", "0") => Ok(Device::flex()),
        #[cfg(feature = "cuda")]
        ("cuda", index) => {
            let index: usize = index.parse().map_err(|_| unknown("the index is not a number"))?;
            Ok(Device::cuda(index))
        }
        #[cfg(not(feature = "cuda"))]
        ("cuda", _) => Err(unknown("build with --features cuda")),
        #[cfg(feature = "wgpu")]
        ("wgpu", "0") => Ok(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)),
        #[cfg(not(feature = "wgpu"))]
        ("wgpu", _) => Err(unknown("build with --features wgpu")),
        _ => Err(unknown("unknown device")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_opened_or_rejected_by_name() {
        assert_eq!(device("cpu-burn").unwrap(), Device::flex());
        for name in ["gpu", "cpu-burn:1", "cuda:x"] {
            let message = device(name).unwrap_err().to_string();
            assert!(message.contains(name) && message.contains("cpu"), "{message}");
        }
    }
}

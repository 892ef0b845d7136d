//! Where to compute: a device by its name on the command line.

use burn::prelude::Device;

/// A device name that this program does not know, or was not built for.
#[derive(Debug, thiserror::Error)]
#[error("device {name:?} is not available: {reason}; this program was built for {available}")]
pub struct UnknownDevice {
    name: String,
    reason: &'static str,
    available: &'static str,
}

const AVAILABLE: &str = match (cfg!(feature = "cuda"), cfg!(feature = "wgpu")) {
    (false, false) => "cpu",
    (true, false) => "cpu, cuda:0, cuda:1, ...",
    (false, true) => "cpu, wgpu",
    (true, true) => "cpu, cuda:0, cuda:1, ..., wgpu",
};

/// The device called `name`: `cpu`, `cuda:0`, `cuda:1`, ..., `wgpu`.
pub fn device(name: &str) -> Result<Device, UnknownDevice> {
    let unknown = |reason| UnknownDevice { name: name.into(), reason, available: AVAILABLE };
    match name.split_once(':').unwrap_or((name, "0")) {
        ("cpu", "0") => Ok(Device::flex()),
        #[cfg(feature = "cuda")]
        ("cuda", index) => {
            let index: usize = index.parse().map_err(|_| unknown("its index is not a number"))?;
            Ok(Device::cuda(index))
        }
        #[cfg(not(feature = "cuda"))]
        ("cuda", _) => Err(unknown("build with --features cuda")),
        #[cfg(feature = "wgpu")]
        ("wgpu", "0") => Ok(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)),
        #[cfg(not(feature = "wgpu"))]
        ("wgpu", _) => Err(unknown("build with --features wgpu")),
        _ => Err(unknown("no such kind of device")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_found_or_refused_by_name() {
        assert_eq!(device("cpu").unwrap(), Device::flex());
        for name in ["gpu", "cpu:1", "cuda:x"] {
            let message = device(name).unwrap_err().to_string();
            assert!(message.contains(name) && message.contains("cpu"), "{message}");
        }
    }
}

//! What `comer --version` prints: the version, the commit it was built from, and the bundled model with its licence.

use std::sync::LazyLock;

/// The version and, where the build knows it, the commit.
pub const SHORT: &str = concat!(env!("CARGO_PKG_VERSION"), env!("COMER_COMMIT_SUFFIX"));

/// The same with the bundled model and the features.
pub static LONG: LazyLock<String> = LazyLock::new(|| {
    #[cfg(feature = "bundled")]
    let model =
        format!("model: bundled, trained on CROHME, {} (non-commercial use)", comer_model_crohme::LICENSE);
    #[cfg(not(feature = "bundled"))]
    let model = "model: none bundled";
    let features: Vec<&str> = [
        ("bundled", cfg!(feature = "bundled")),
        ("train", cfg!(feature = "train")),
        ("burn", cfg!(feature = "burn")),
        ("wgpu", cfg!(feature = "wgpu")),
        ("cuda", cfg!(feature = "cuda")),
    ]
    .into_iter()
    .filter_map(|(name, on)| on.then_some(name))
    .collect();
    format!("{SHORT}\n{model}\nfeatures: {}", features.join(" "))
});

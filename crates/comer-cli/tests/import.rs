//! End-to-end tests of `comer import`.

use std::path::Path;
use std::process::{Command, Output};

fn import(checkpoint: &Path, model: &Path, more: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_comer");
    Command::new(program).arg("import").args([checkpoint, model]).args(more).output().unwrap()
}

#[test]
fn a_bad_checkpoint_is_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (checkpoint, model) = (folder.path().join("bad.ckpt"), folder.path().join("model.safetensors"));
    let missing = import(&checkpoint, &model, &[]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("bad.ckpt"), "{missing:?}");

    std::fs::write(&checkpoint, "nonsense").unwrap();
    let refused = import(&checkpoint, &model, &[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("not a usable checkpoint"), "{refused:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "only the bad checkpoint is there");
}

#[test]
fn the_released_checkpoint_becomes_a_model_file_of_half_the_size() {
    let Some(checkpoint) = comer_testing::shared("models/released.ckpt") else { return };
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("released.safetensors");
    let done = import(&checkpoint, &model, &["--f16"]);
    assert!(done.status.success() && done.stdout.is_empty(), "{done:?}");
    assert!(String::from_utf8_lossy(&done.stderr).contains("6389041 parameters"), "{done:?}");
    assert!(std::fs::metadata(&model).unwrap().len() < 13_000_000);
    comer::internal::ModelFile::open(&model).unwrap();
}

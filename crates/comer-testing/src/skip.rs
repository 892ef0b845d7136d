//! Reports and counts tests that cannot run on this machine.

use std::fs::OpenOptions;
use std::io::Write;

/// Reports that the current test is skipped, and why. The test should return afterwards.
///
/// The report is printed on stderr and appended as one line to the file in `COMER_SKIPS`, from which `check` prints and counts
/// skips. With `COMER_REQUIRE_ALL=1`, as in CI, a skip is a failure.
pub fn skip(reason: &str) {
    let program = std::env::current_exe().ok();
    let program = program.as_ref().and_then(|path| path.file_stem()).unwrap_or_default().to_string_lossy();
    // Cargo adds a hash: `golden-645f4362c1ca44e8`.
    let program = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
    // The test harness names threads after tests.
    let thread = std::thread::current();
    let line = format!("skipped: {program}: {}: {reason}", thread.name().unwrap_or("unnamed"));
    if std::env::var_os("COMER_REQUIRE_ALL").is_some_and(|value| value == "1") {
        panic!("{line} (COMER_REQUIRE_ALL=1)");
    }
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("COMER_SKIPS") {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        // A single write, so that lines of parallel tests do not interleave.
        let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        written.unwrap_or_else(|error| panic!("COMER_SKIPS: {}: {error}", path.display()));
    }
}

//! Tells the program which commit it is built from, where git knows.

use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_string();
    (!text.is_empty()).then_some(text)
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Of the packaged crate, the enclosing repository, if any, is another one.
    let own = git(&["ls-files", "--error-unmatch", "Cargo.toml"]).is_some();
    let commit = git(&["show", "-s", "--format=%h %cs"]).filter(|_| own);
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|_| own) {
        println!("cargo:rerun-if-changed={log}");
    }
    let suffix = commit.map_or(String::new(), |commit| format!(" ({commit})"));
    println!("cargo:rustc-env=COMER_COMMIT_SUFFIX={suffix}");
}

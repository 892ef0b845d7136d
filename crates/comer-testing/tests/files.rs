//! Files are read and written through `comer-files`, so that every reader has a limit and every output is whole.

use comer_testing::repository;

/// What only `comer-files` may call.
const CALLS: [&str; 7] = [
    "fs::read(",
    "fs::read_to_string(",
    "fs::write(",
    "fs::rename(",
    "File::create(",
    "read_to_end(",
    "generate_to(",
];

#[test]
fn only_one_crate_reads_and_writes_files() {
    let mut found = Vec::new();
    for path in comer_eval::find_files(&repository().join("crates"), &["rs"]).unwrap() {
        let name = path.strip_prefix(repository()).unwrap().display().to_string();
        let is_exempt = ["comer-files", "comer-testing", "/tests", "/examples/", "/benches/", "build.rs"];
        if is_exempt.iter().any(|part| name.contains(part)) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(&text);
        for (number, line) in code.lines().enumerate() {
            if !line.trim_start().starts_with("//") && CALLS.iter().any(|call| line.contains(call)) {
                found.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "expected comer_files instead of:\n{}", found.join("\n"));
}

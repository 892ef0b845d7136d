//! Proves that there are no cycles among sibling modules of a crate.
//!
//! The check is textual: it resolves `crate::` and `super::` paths outside of test modules. Dependencies
//! between a module and its parent are ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use comer_testing::repository;

/// The path of a module in its crate: `["engine", "encoder"]`.
type Module = Vec<String>;

fn source_files(folder: &Path) -> Vec<PathBuf> {
    let files = comer_eval::find_files(folder, &["rs"]).unwrap();
    // Test modules may use anything.
    let is_test = |path: &PathBuf| {
        path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("tests"))
    };
    files.into_iter().filter(|path| !is_test(&path.strip_prefix(folder).unwrap().to_path_buf())).collect()
}

fn module_of(path: &Path) -> Module {
    let mut module: Module =
        path.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        module.pop();
    }
    module
}

/// The text without comments, string literals and the test module at the end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// The paths after `prefix::`, with `use` groups expanded one level: `a::b`, `{a, b::c}`.
fn paths(code: &str, prefix: &str) -> Vec<Module> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices(&format!("{prefix}::")) {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|character| character.is_alphanumeric() || "_:".contains(character)) {
            continue;
        }
        let rest = &code[at + prefix.len() + 2..];
        let items: Vec<&str> = match rest.strip_prefix('{') {
            Some(group) => group.split('}').next().unwrap_or("").split(',').map(str::trim).collect(),
            None => vec![rest],
        };
        for item in items {
            let word = |text: &str| -> String {
                text.chars()
                    .take_while(|character| character.is_alphanumeric() || *character == '_')
                    .collect()
            };
            found.push(item.split("::").map(word).take_while(|name| !name.is_empty()).collect());
        }
    }
    found
}

/// The absolute paths of the items that each module uses.
fn uses(source: &Path) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut uses: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for path in source_files(source) {
        let module = module_of(path.strip_prefix(source).unwrap());
        let code = code(&std::fs::read_to_string(&path).unwrap());
        let own = uses.entry(module.clone()).or_default();
        own.extend(paths(&code, "crate"));
        let mut base = module;
        let mut prefix = String::from("super");
        while base.pop().is_some() {
            own.extend(paths(&code, &prefix).into_iter().map(|path| [base.clone(), path].concat()));
            prefix += "::super";
        }
    }
    uses
}

/// A cycle among the direct submodules of `parent`, if there is one.
fn cycle(uses: &BTreeMap<Module, BTreeSet<Module>>, parent: &[String]) -> Option<Vec<String>> {
    let child = |module: &Module| {
        (module.len() > parent.len() && module.starts_with(parent)).then(|| module[parent.len()].clone())
    };
    let children: BTreeSet<String> = uses.keys().filter_map(child).collect();
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, used) in uses {
        let Some(from) = child(module) else { continue };
        let targets = used.iter().filter_map(child).filter(|to| *to != from && children.contains(to));
        edges.entry(from.clone()).or_default().extend(targets);
    }
    // Modules without remaining dependencies are removed until only cycles are left.
    while let Some(done) = edges.iter().find(|(_, to)| to.is_empty()).map(|(name, _)| name.clone()) {
        edges.remove(&done);
        for to in edges.values_mut() {
            to.remove(&done);
        }
    }
    let mut at = edges.keys().next()?.clone();
    let mut path: Vec<String> = Vec::new();
    while !path.contains(&at) {
        path.push(at.clone());
        at = edges[&at].iter().find(|to| edges.contains_key(*to))?.clone();
    }
    path.push(at);
    Some(path)
}

fn check(name: &str) {
    let uses = uses(&repository().join("crates").join(name).join("src"));
    assert!(uses.len() > 5, "{name}: {} modules", uses.len());
    let parents: BTreeSet<Vec<String>> =
        uses.keys().flat_map(|module| (0..module.len()).map(|length| module[..length].to_vec())).collect();
    // The table of kernel entry points is in a module that the kernels use.
    for parent in parents.into_iter().filter(|parent| *parent != ["engine", "kernels"]) {
        if let Some(path) = cycle(&uses, &parent) {
            panic!("{name}, in {:?}: {}", parent.join("::"), path.join(" -> "));
        }
    }
}

#[test]
fn modules_have_no_cycles() {
    for name in ["comer", "comer-burn", "comer-cli", "comer-eval", "comer-train"] {
        check(name);
    }
}

#[test]
fn cycles_are_detected() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("lib.rs", "mod a; mod b; mod c;");
    write("a.rs", "use crate::{c::Thing, d};\nfn f() { crate::b::g() }");
    write(
        "b.rs",
        "// crate::a is only mentioned\nuse super::c::Thing;\n#[cfg(test)]\nmod tests {\n use crate::a; }",
    );
    write("c.rs", "");
    assert_eq!(cycle(&uses(folder.path()), &[]), None);
    write("c.rs", "use super::a::f;");
    let path = cycle(&uses(folder.path()), &[]).unwrap();
    assert!(path.first() == path.last() && path.len() >= 3, "{path:?}");
}

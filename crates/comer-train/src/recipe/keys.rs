//! Recipes as tables of keys: renamed keys, merged recipes, and what differs between two.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

/// The old and the new section and key.
const RENAMED: [([&str; 2], [&str; 2]); 3] = [
    (["optimizer", "label_smoothing"], ["loss", "label_smoothing"]),
    (["optimizer", "symbols"], ["loss", "symbols"]),
    (["validation", "checkpoint_minutes"], ["checkpoint", "minutes"]),
];

/// Fails for an old key and names the new one. Invalid TOML is left to the parser of recipes.
pub(super) fn reject_old(text: &str) -> Result<(), String> {
    let Ok(table) = text.parse::<Table>() else { return Ok(()) };
    for ([section, key], [new_section, new_key]) in RENAMED {
        if table.get(section).and_then(|section| section.get(key)).is_some() {
            return Err(format!("`{key}` in [{section}] is now `{new_key}` in [{new_section}]"));
        }
    }
    Ok(())
}

/// Replaces old keys by the new ones.
pub(super) fn translate(text: &str) -> Result<String, String> {
    let mut table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    for ([section, key], [new_section, new_key]) in RENAMED {
        let found =
            table.get_mut(section).and_then(Value::as_table_mut).and_then(|section| section.remove(key));
        if let Some(value) = found {
            let section = table.entry(new_section).or_insert_with(|| Value::Table(Table::new()));
            if let Some(section) = section.as_table_mut() {
                section.entry(new_key).or_insert(value);
            }
        }
    }
    toml::to_string(&table).map_err(|error| error.to_string())
}

/// The first table with the values of the second in place of its own.
pub(super) fn merge(mut table: Table, values: Table) -> Table {
    for (key, value) in values {
        let merged = match (table.remove(&key), value) {
            (Some(Value::Table(own)), Value::Table(value)) => Value::Table(merge(own, value)),
            (_, value) => value,
        };
        table.insert(key, merged);
    }
    table
}

/// The values that differ between two recipes with every value written out.
pub(super) fn changes(old: &str, new: &str) -> Vec<String> {
    let [old, new] = [old, new].map(|text| {
        let mut values = BTreeMap::new();
        flatten("", &text.parse().unwrap_or_default(), &mut values);
        values
    });
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let show = |value: Option<&String>| value.map_or("not set", String::as_str).to_string();
    let changed = keys.into_iter().filter(|key| old.get(*key) != new.get(*key));
    changed.map(|key| format!("{key} was {}, is {}", show(old.get(key)), show(new.get(key)))).collect()
}

/// Values by their full keys, such as `optimizer.rate`.
fn flatten(prefix: &str, table: &Table, values: &mut BTreeMap<String, String>) {
    for (key, value) in table {
        match value {
            Value::Table(table) => flatten(&format!("{prefix}{key}."), table, values),
            value => drop(values.insert(format!("{prefix}{key}"), value.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Recipe;

    #[test]
    fn changed_values_are_named() {
        let old = Recipe::parse("epochs = 3\n[optimizer]\nrate = 0.5").unwrap();
        let new = Recipe::parse("epochs = 3\n[optimizer]\nrate = 0.25\n[batches]\npictures = 5").unwrap();
        assert!(old.changes(&old).is_empty());
        let changes = new.changes(&old);
        assert_eq!(changes.len(), 2, "{changes:?}");
        assert!(changes[0].starts_with("batches.pictures was ") && changes[0].ends_with(", is 5"));
        assert_eq!(changes[1], "optimizer.rate was 0.5, is 0.25");
    }

    const OLD: &str = "epochs = 3\n[optimizer]\nrate = 0.5\nlabel_smoothing = 0.1\nsymbols = 0.25\n\
        [validation]\nevery = 4\ncheckpoint_minutes = 7.0\n";

    #[test]
    fn old_keys_are_rejected_with_the_new_name() {
        for (text, expected) in [
            (OLD, "`label_smoothing` in [optimizer] is now `label_smoothing` in [loss]"),
            ("[optimizer]\nsymbols = 0.5", "`symbols` in [optimizer] is now `symbols` in [loss]"),
            ("[validation]\ncheckpoint_minutes = 5", "is now `minutes` in [checkpoint]"),
        ] {
            let message = Recipe::parse(text).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn stored_recipes_with_old_keys_can_be_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("resolved.toml");
        std::fs::write(&path, OLD).unwrap();
        let recipe = Recipe::open_stored(&path).unwrap();
        assert_eq!((recipe.loss.label_smoothing, recipe.loss.symbols), (0.1, 0.25));
        assert_eq!((recipe.checkpoint.minutes, recipe.validation.every), (7.0, 4));
        assert_eq!((recipe.optimizer.rate, recipe.epochs), (0.5, 3));
        std::fs::write(&path, recipe.to_toml()).unwrap();
        assert_eq!(Recipe::open_stored(&path).unwrap(), recipe);
    }
}

//! A symbol with its scripts, and its form in a caption.

/// A symbol, fraction, root or group with its scripts.
#[derive(Default)]
pub(super) struct Item {
    pub(super) words: Vec<String>,
    pub(super) limits: bool,
    pub(super) sub: Option<Vec<Item>>,
    pub(super) sup: Option<Vec<Item>>,
}

impl Item {
    pub(super) fn new(words: Vec<String>) -> Self {
        Self { words, ..Self::default() }
    }

    pub(super) fn has_scripts(&self) -> bool {
        self.sub.is_some() || self.sup.is_some()
    }

    /// The symbol, if it is one character.
    pub(super) fn letter(&self) -> Option<char> {
        match &self.words[..] {
            [word] if word.len() == 1 => word.chars().next(),
            _ => None,
        }
    }
}

pub(super) fn write(row: &[Item], words: &mut Vec<String>) {
    for item in row {
        words.extend_from_slice(&item.words);
        if item.limits {
            words.push(r"\limits".into());
        }
        for (sign, script) in [("_", &item.sub), ("^", &item.sup)] {
            if let Some(row) = script {
                words.push(sign.into());
                write_braced(row, words);
            }
        }
    }
}

pub(super) fn write_braced(row: &[Item], words: &mut Vec<String>) {
    words.push("{".into());
    write(row, words);
    words.push("}".into());
}

//! The spatial relation between two symbols.

/// The spatial relation of one symbol to another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Relation {
    /// The next symbol on the line.
    Right,
    /// A superscript.
    Sup,
    /// A subscript.
    Sub,
    /// A numerator, an upper limit, the index of a root.
    Above,
    /// A denominator, a lower limit.
    Below,
    /// A radicand.
    Inside,
    /// Another relation of a file, of a matrix for instance.
    Other(String),
}

impl Relation {
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "Right" | "R" => Self::Right,
            "Sup" => Self::Sup,
            "Sub" => Self::Sub,
            "Above" => Self::Above,
            "Below" => Self::Below,
            "Inside" => Self::Inside,
            other => Self::Other(other.into()),
        }
    }

    /// Its name in a path.
    pub(crate) fn step(&self) -> &str {
        match self {
            Self::Right => "R",
            Self::Sup => "Sup",
            Self::Sub => "Sub",
            Self::Above => "Above",
            Self::Below => "Below",
            Self::Inside => "Inside",
            Self::Other(name) => name,
        }
    }
}

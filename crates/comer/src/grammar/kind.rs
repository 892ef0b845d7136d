//! The role of each token in the structure of a formula, by its name.

use crate::vocab::Vocab;

/// What a token does to the structure of a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Stands for itself.
    Symbol {
        delimiter: bool,
    },
    /// Stands for itself, and may have limits above and below.
    Operator,
    Limits,
    Superscript,
    Subscript,
    /// `'`, which is a superscript of its own.
    Prime,
    Open,
    Close,
    /// `[`, a symbol unless it comes right after `\sqrt`.
    OpenBracket,
    CloseBracket,
    /// A command with this many arguments.
    Command(u8),
    /// `\sqrt`, with an optional argument in brackets and one in braces.
    Root,
    Left,
    Right,
    /// `\begin{x}`, with the number of its token pair.
    Begin(u16),
    End(u16),
    /// Parts the cells or rows of an environment.
    Separator,
    /// Has no place in a formula.
    Never,
}

const ONE_ARGUMENT: &str = "\\hat \\widehat \\check \\tilde \\widetilde \\bar \\overline \\underline \\vec \\dot \
    \\ddot \\acute \\grave \\breve \\overrightarrow \\overleftarrow \\overbrace \\underbrace \\boxed \\text \\mbox \
    \\mathrm \\mathbf \\mathbb \\mathcal \\mathfrak \\mathit \\mathsf \\mathscr \\boldsymbol \\operatorname \
    \\textbf \\textrm \\textit \\pmod \\cancel";
const TWO_ARGUMENTS: &str = "\\frac \\dfrac \\tfrac \\cfrac \\binom \\overset \\underset \\stackrel";
const OPERATORS: &str = "\\sum \\prod \\coprod \\int \\iint \\iiint \\oint \\lim \\limsup \\liminf \\max \\min \\sup \
    \\inf \\bigcup \\bigcap \\bigoplus \\bigotimes \\bigvee \\bigwedge \\biguplus \\bigsqcup \\det \\gcd \\Pr \\argmax \
    \\argmin";
const DELIMITERS: &str = "( ) / | . < > \\{ \\} \\| \\lbrace \\rbrace \\langle \\rangle \\vert \\Vert \\lvert \\rvert \
    \\lVert \\rVert \\lfloor \\rfloor \\lceil \\rceil \\uparrow \\downarrow \\backslash";

impl Kind {
    pub(super) fn of(token: &str, vocab: &Vocab) -> Self {
        let listed = |list: &str| list.split_whitespace().any(|word| word == token);
        let has = |token: &str| vocab.id(token).is_some();
        let braces = has("{") && has("}");
        // A token that could never be completed with this vocabulary has no place in its formulas.
        let when = |possible: bool, kind: Self| if possible { kind } else { Self::Never };
        let pair = |from: &str, to: &str| vocab.id(&token.replacen(from, to, 1));
        match token {
            "{" => when(braces, Self::Open),
            "}" => when(braces, Self::Close),
            "^" => when(braces, Self::Superscript),
            "_" => when(braces, Self::Subscript),
            "'" => Self::Prime,
            "[" => Self::OpenBracket,
            "]" => Self::CloseBracket,
            "\\sqrt" => when(braces, Self::Root),
            "\\limits" | "\\nolimits" | "\\displaylimits" => {
                let operator = OPERATORS.split_whitespace().any(has);
                when(braces && operator && (has("^") || has("_")), Self::Limits)
            }
            "\\left" | "\\right" => {
                let delimiter = DELIMITERS.split_whitespace().chain(["[", "]"]).any(has);
                let kind = if token == "\\left" { Self::Left } else { Self::Right };
                when(delimiter && has("\\left") && has("\\right"), kind)
            }
            "&" | "\\\\" | "\\hline" => Self::Separator,
            "\\begin" | "\\end" | "\\middle" => Self::Never,
            _ if token.starts_with("\\begin{") => pair("\\begin", "\\end").map_or(Self::Never, Self::Begin),
            _ if token.starts_with("\\end{") => {
                when(pair("\\end", "\\begin").is_some(), vocab.id(token).map_or(Self::Never, Self::End))
            }
            _ if listed(ONE_ARGUMENT) => when(braces, Self::Command(1)),
            _ if listed(TWO_ARGUMENTS) => when(braces, Self::Command(2)),
            _ if listed(OPERATORS) => Self::Operator,
            _ => Self::Symbol { delimiter: listed(DELIMITERS) },
        }
    }
}

/// Whether a token can stand after `\left` and `\right`.
pub(super) fn is_delimiter(kind: Kind) -> bool {
    matches!(kind, Kind::Symbol { delimiter: true } | Kind::OpenBracket | Kind::CloseBracket)
}

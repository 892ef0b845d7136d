//! Writes tokens as compact LaTeX, and splits LaTeX into tokens.
//!
//! `x = \frac { - b } { 2 a }` becomes `x = \frac{-b}{2a}`. Spaces stay where they separate tokens or where people put
//! them: around binary operators and relations (but not around signs, nor around characters in scripts), after commas,
//! after function names and big operators. Splitting the result gives the same tokens again.

/// Operators that may also be signs.
const SIGNS: &str = "+ - \\pm \\mp";
/// Binary operators that are never signs.
const OPERATORS: &str = "\\times \\div \\cdot \\ast \\circ \\cup \\cap \\setminus \\wedge \\vee \\land \\lor \\mid \\oplus \\otimes";
const RELATIONS: &str = "= < > := \\leq \\geq \\neq \\le \\ge \\ne \\ll \\gg \\in \\ni \\notin \\subset \\supset \\subseteq \\supseteq \
    \\to \\rightarrow \\leftarrow \\longrightarrow \\Rightarrow \\Leftarrow \\Leftrightarrow \\leftrightarrow \\iff \\implies \
    \\mapsto \\approx \\equiv \\sim \\simeq \\cong \\propto \\parallel \\perp \\triangleq";
const BIG_OPERATORS: &str = "\\sum \\prod \\coprod \\int \\iint \\iiint \\oint \\bigcup \\bigcap \\bigoplus \\bigotimes \
    \\bigvee \\bigwedge \\biguplus \\bigsqcup";
const FUNCTIONS: &str = "\\sin \\cos \\tan \\cot \\sec \\csc \\sinh \\cosh \\tanh \\coth \\arcsin \\arccos \\arctan \\log \
    \\ln \\lg \\exp \\lim \\limsup \\liminf \\max \\min \\sup \\inf \\det \\dim \\gcd \\ker \\deg \\arg \\Pr";
const OPENING: &str = "{ ( [ \\{ \\lbrace \\langle \\lfloor \\lceil \\left";
const CLOSING: &str = "} ) ] \\} \\rbrace \\rangle \\rfloor \\rceil \\right";

fn is_one_of(list: &str, token: &str) -> bool {
    list.split_whitespace().any(|word| word == token)
}

/// Whether a token relates what is before it to what is after it.
pub fn is_relation(token: &str) -> bool {
    is_one_of(RELATIONS, token)
}

/// Whether a token may be a binary operator.
pub fn is_operator(token: &str) -> bool {
    is_one_of(SIGNS, token) || is_one_of(OPERATORS, token)
}

/// What scripts belong to, and what follows it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Base {
    BigOperator,
    Function,
    Other,
}

/// The space that a token asks for after it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Gap {
    None,
    Space,
    /// Not before an opening bracket: `\sin x`, but `\sin(x)`.
    BeforeOperand,
}

impl Base {
    fn of(token: &str) -> Self {
        if is_one_of(BIG_OPERATORS, token) {
            Self::BigOperator
        } else if is_one_of(FUNCTIONS, token) {
            Self::Function
        } else {
            Self::Other
        }
    }

    fn gap(self) -> Gap {
        match self {
            Self::BigOperator => Gap::Space,
            Self::Function => Gap::BeforeOperand,
            Self::Other => Gap::None,
        }
    }
}

/// An open `{`.
struct Group {
    script: bool,
    base: Base,
}

/// Writes tokens as compact LaTeX.
pub fn write<'a>(tokens: impl IntoIterator<Item = &'a str>) -> String {
    let mut writer = Writer::default();
    tokens.into_iter().for_each(|token| writer.push(token));
    writer.text
}

struct Writer {
    text: String,
    before: String,
    gap: Gap,
    base: Base,
    /// Whether what is written so far can be the left side of a binary operator.
    operand: bool,
    groups: Vec<Group>,
}

impl Default for Writer {
    fn default() -> Self {
        let (text, before) = (String::new(), String::new());
        Self { text, before, gap: Gap::None, base: Base::Other, operand: false, groups: Vec::new() }
    }
}

impl Writer {
    fn push(&mut self, token: &str) {
        let is_script = |token: &str| matches!(token, "^" | "_");
        let (opening, closing) = (is_one_of(OPENING, token), is_one_of(CLOSING, token));
        let sign = is_one_of(SIGNS, token);
        let infix = is_relation(token) || is_one_of(OPERATORS, token);
        let separator = matches!(token, "&" | "\\\\" | "\\hline");
        // Characters between operands in scripts stand close: x^{n+1}, but \lim_{x \to 0}.
        let close = self.groups.iter().any(|group| group.script) && !token.starts_with('\\');
        let binary = (sign && self.operand || infix) && !close;

        let wanted = match self.gap {
            Gap::None => (binary && self.operand) || separator || token.starts_with("\\end{"),
            Gap::Space => !closing && !is_script(token) && !matches!(token, "," | "\\limits" | "\\nolimits"),
            Gap::BeforeOperand => {
                !opening
                    && !closing
                    && !is_script(token)
                    && !matches!(token, "," | "|" | "\\limits" | "\\nolimits")
            }
        };
        if !self.text.is_empty() && (wanted || must_part(&self.before, token)) {
            self.text.push(' ');
        }
        self.text.push_str(token);

        let script = is_script(&self.before);
        let keeps_base = is_script(token) || matches!(token, "\\limits" | "\\nolimits");
        self.gap = Gap::None;
        if token == "{" {
            self.groups.push(Group { script, base: self.base });
            self.base = Base::Other;
        } else if token == "}" {
            let group = self.groups.pop().filter(|group| group.script);
            self.base = group.map_or(Base::Other, |group| group.base);
            self.gap = self.base.gap();
        } else if !keeps_base {
            self.base = Base::of(token);
            self.gap = self.base.gap();
        }
        if binary || separator || matches!(token, "," | ";") || token.starts_with("\\begin{") {
            self.gap = Gap::Space;
        }
        self.operand = match token {
            // The first of a pair opens, the second closes.
            "|" | "\\|" => self.operand,
            "," | ";" | "/" | ":" | "\\limits" | "\\nolimits" => false,
            _ => {
                let operator = sign || infix || separator || is_script(token);
                !operator && !opening && self.base == Base::Other && !takes_argument(token)
            }
        };
        self.operand |= token == "}";
        self.before = token.into();
    }
}

fn takes_argument(token: &str) -> bool {
    matches!(token, "\\frac" | "\\dfrac" | "\\tfrac" | "\\binom" | "\\sqrt") || token.starts_with("\\begin{")
}

/// Whether two tokens need a space between them to stay two tokens. A digit after a word is set apart too, for readability.
fn must_part(before: &str, token: &str) -> bool {
    let word = before.strip_prefix('\\').is_some_and(|name| name.starts_with(char::is_alphabetic));
    let environment = matches!(before, "\\begin" | "\\end");
    word && !before.ends_with('}') && token.starts_with(char::is_alphanumeric) || environment && token == "{"
}

/// Splits LaTeX into control words (`\frac`), control symbols (`\{`), environments (`\begin{matrix}`) and characters;
/// white space separates tokens and is dropped.
pub fn tokenize(latex: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = latex.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, after) = rest.split_at(if first == '\\' { control(rest) } else { first.len_utf8() });
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

/// The length of the control sequence that `text` starts with.
fn control(text: &str) -> usize {
    let name = &text[1..];
    let letters = name.find(|character: char| !character.is_alphabetic()).unwrap_or(name.len());
    if letters == 0 {
        return 1 + name
            .chars()
            .next()
            .filter(|character| !character.is_whitespace())
            .map_or(0, char::len_utf8);
    }
    let argument = &name[letters..];
    let environment = matches!(&name[..letters], "begin" | "end") && argument.starts_with('{');
    let end =
        argument.find(|character: char| character == '}' || character.is_whitespace() || character == '\\');
    match end {
        Some(end) if environment && argument[end..].starts_with('}') => 1 + letters + end + 1,
        _ => 1 + letters,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::vocab::Vocab;

    #[test]
    fn latex_is_written_as_people_write_it() {
        for expected in [
            r"x = \frac{-b + \sqrt{b^{2} - 4ac}}{2a}",
            r"x^{2} + 1",
            r"y = 2\pi x",
            r"-1 - (-x) = \pm 3",
            r"\sum\limits_{i=1}^{n} x_{i}",
            r"\sum_{k=0}^{\infty} \frac{1}{k!} = e",
            r"\lim_{n \rightarrow \infty} a_{n}",
            r"\int_{0}^{1} x^{n-1}dx",
            r"\int f(x)dx",
            r"\sin x + \cos(2x) - \log_{2} y \leq \sin^{2}(z)",
            r"\sin \theta\cos \alpha",
            r"f(x, y) = \{x_{1}, \ldots, x_{n}\}",
            r"|-x| - |y| \neq \sqrt[3]{2}",
            r"a \times 10^{-3}",
            r"\forall x \in A",
            r"\pi 2",
            r"\left(\frac{a}{b}\right)^{2}",
            r"\begin{matrix} a & b \\ c & -d \end{matrix}",
        ] {
            let tokens = tokenize(expected);
            assert_eq!(write(tokens.iter().copied()), expected, "{tokens:?}");
        }
        assert_eq!(write([]), "");
    }

    #[test]
    fn latex_is_split_with_and_without_spaces() {
        for (latex, expected) in [
            (r"\frac { 1 } 2 \alpha x", vec![r"\frac", "{", "1", "}", "2", r"\alpha", "x"]),
            (r"\{a\}\,b", vec![r"\{", "a", r"\}", r"\,", "b"]),
            (r"\begin{array*} a\\b\end{array*}", vec![r"\begin{array*}", "a", r"\\", "b", r"\end{array*}"]),
            (r"\begin {a} \end", vec![r"\begin", "{", "a", "}", r"\end"]),
            (r"\begin{a\b}", vec![r"\begin", "{", "a", r"\b", "}"]),
            ("", vec![]),
            (r"a \", vec!["a", r"\"]),
            ("é∑", vec!["é", "∑"]),
        ] {
            assert_eq!(tokenize(latex), expected, "{latex}");
        }
    }

    fn any_token() -> impl Strategy<Value = String> {
        let crohme = Vocab::crohme().tokens().to_vec();
        let others = [
            "&",
            "\\\\",
            "\\,",
            "\\|",
            "'",
            ":",
            ";",
            "\\begin",
            "\\end",
            "\\begin{matrix}",
            "\\end{matrix}",
            "\\left",
            "\\right",
            "\\hat",
            "\\sup",
            "é",
            "%",
            "*",
        ];
        prop::sample::select(crohme.into_iter().chain(others.map(String::from)).collect::<Vec<_>>())
    }

    proptest! {
        #[test]
        fn what_is_written_has_the_same_tokens(tokens in prop::collection::vec(any_token(), 0..40)) {
            let text = write(tokens.iter().map(String::as_str));
            prop_assert_eq!(tokenize(&text), tokens, "{}", text);
            prop_assert!(!text.contains("  ") && text.trim() == text, "{:?}", text);
        }

        #[test]
        fn any_text_is_split(text in "\\PC{0,40}") {
            let tokens = tokenize(&text);
            let whole: String = text.chars().filter(|character| !character.is_whitespace()).collect();
            prop_assert_eq!(tokens.concat().replace(char::is_whitespace, ""), whole);
        }
    }
}

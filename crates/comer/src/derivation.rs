//! The lines of a derivation as one formula.

use crate::latex::{is_operator, is_relation, tokenize, write};

/// The lines of a derivation as one formula, for math mode: `aligned` at the first relation sign of each line, or `gathered`
/// if none has a relation sign. A single line stays as it is.
///
/// Signs within braces, environments and `\left ... \right` are passed over, and those within brackets if there are others. A
/// line that continues the one before it with an operator stands behind the signs. The environments are those of `amsmath`.
///
/// ```
/// assert_eq!(
///     comer::aligned(["(x + 1)^{2} = x^{2} + 2x", "+ 1", "> 2x"]),
///     r"\begin{aligned} (x + 1)^{2} &= x^{2} + 2x \\ &+1 \\ &> 2x \end{aligned}",
/// );
/// assert_eq!(comer::aligned(["a + b", "c"]), r"\begin{gathered} a + b \\ c \end{gathered}");
/// ```
pub fn aligned<S: AsRef<str>>(lines: impl IntoIterator<Item = S>) -> String {
    let lines: Vec<S> = lines.into_iter().collect();
    if let [line] = &lines[..] {
        return line.as_ref().into();
    }
    let lines: Vec<Vec<&str>> = lines.iter().map(|line| tokenize(line.as_ref())).collect();
    let places: Vec<Option<usize>> = lines.iter().map(|line| relation(line)).collect();
    let environment = if places.iter().any(Option::is_some) { "aligned" } else { "gathered" };
    let line = |(number, line): (usize, &Vec<&str>)| {
        let continues =
            number > 0 && environment == "aligned" && line.first().is_some_and(|&first| is_operator(first));
        let Some(place) = places[number].or(continues.then_some(0)) else {
            return write(line.iter().copied());
        };
        let (left, right) = line.split_at(place);
        let gap = if left.is_empty() { "" } else { " " };
        format!("{}{gap}&{}", write(left.iter().copied()), write(right.iter().copied()))
    };
    let lines: Vec<String> = lines.iter().enumerate().map(line).collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!(r"\begin{{{environment}}} {} \end{{{environment}}}", lines.join(r" \\ ")),
    }
}

/// Where the first relation sign is that a line can be aligned at.
fn relation(tokens: &[&str]) -> Option<usize> {
    // Within groups a line cannot be aligned at all; of brackets, one side may be missing.
    let (mut groups, mut brackets) = (0usize, 0usize);
    let mut within_brackets = None;
    for (index, &token) in tokens.iter().enumerate() {
        match token {
            "{" | r"\left" => groups += 1,
            "}" | r"\right" => groups = groups.saturating_sub(1),
            _ if token.starts_with(r"\begin{") => groups += 1,
            _ if token.starts_with(r"\end{") => groups = groups.saturating_sub(1),
            "(" | "[" | r"\{" => brackets += 1,
            ")" | "]" | r"\}" => brackets = brackets.saturating_sub(1),
            _ if groups == 0 && is_relation(token) => {
                if brackets == 0 {
                    return Some(index);
                }
                within_brackets = within_brackets.or(Some(index));
            }
            _ => {}
        }
    }
    within_brackets
}

#[cfg(test)]
mod tests {
    use super::aligned;

    #[test]
    fn lines_are_aligned_where_latex_allows_it() {
        for (lines, expected) in [
            (vec![], ""),
            (vec![r"a=b"], r"a=b"),
            (vec!["f(x)", "= 2x", r"\leq 3"], r"\begin{aligned} f(x) \\ &= 2x \\ &\leq 3 \end{aligned}"),
            (
                vec!["x = 1", r"\Rightarrow y = 2"],
                r"\begin{aligned} x &= 1 \\ &\Rightarrow y = 2 \end{aligned}",
            ),
            (vec!["x = 1", "y"], r"\begin{aligned} x &= 1 \\ y \end{aligned}"),
            // Signs in scripts, brackets and groups.
            (
                vec![r"\sum_{i=1}^{n} i", r"P(x = 1) = p"],
                r"\begin{aligned} \sum_{i=1}^{n} i \\ P(x = 1) &= p \end{aligned}",
            ),
            (
                vec![r"\left(a = b\right) > c", r"\begin{matrix} a = b \end{matrix} < d"],
                r"\begin{aligned} \left(a = b\right) &> c \\ \begin{matrix} a = b \end{matrix} &< d \end{aligned}",
            ),
            (vec!["[0, 1) = A", "]0, 1[ = B"], r"\begin{aligned} [0, 1) &= A \\ ]0, 1[ &= B \end{aligned}"),
            (vec!["(a = b", "c"], r"\begin{aligned} (a &= b \\ c \end{aligned}"),
            // Without a relation sign, an operator starts a line like any other.
            (vec!["a", "- b"], r"\begin{gathered} a \\ -b \end{gathered}"),
        ] {
            assert_eq!(aligned(lines), expected);
        }
    }
}

//! The commands that a formula may use, and the labels that symbols get in a label graph.

use std::collections::HashMap;
use std::sync::LazyLock;

/// How LaTeX is interpreted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// As by the official CROHME tools, including their bugs (see `docs/evaluation.md`): comparable with official
    /// figures.
    #[default]
    Official,
    /// As by LaTeX: each symbol keeps its name and nothing is dropped. Not comparable with official figures.
    Clean,
}

/// What a control sequence does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Command {
    /// One symbol, by its Unicode character.
    Symbol(&'static str),
    /// One symbol that may also follow `\left` and `\right`.
    Delimiter(&'static str),
    /// A word that is one symbol: `\sin`.
    Function(&'static str),
    /// White space.
    Space,
    /// A mark above or below its argument.
    Accent { mark: &'static str, above: bool },
    /// Another font for its argument: `\mathrm`.
    Face,
    /// `\frac`.
    Fraction,
    /// `\sqrt`.
    Root,
    /// `\left`.
    Left,
    /// `\right`.
    Right,
    /// `\big` and the like, before a delimiter.
    Big,
    /// `\limits` (true) or `\nolimits`.
    Limits(bool),
    /// `\displaystyle` and the like.
    Style,
}

const SYMBOLS: &str = r"
    alpha α beta β gamma γ delta δ epsilon ϵ varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι kappa κ
    lambda λ mu μ nu ν xi ξ pi π varpi ϖ rho ρ varrho 𝜚 sigma σ varsigma ς tau τ upsilon υ phi ϕ
    varphi φ chi χ psi ψ omega ω Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Upsilon Υ Phi Φ
    Psi Ψ Omega Ω pm ± mp ∓ times × div ÷ cdot ⋅ ast * star ⋆ circ ∘ bullet • oplus ⊕ ominus ⊖ otimes ⊗
    oslash ⊘ odot ⊙ wedge ∧ land ∧ vee ∨ lor ∨ cap ∩ cup ∪ sqcap ⊓ sqcup ⊔ setminus \ lt < gt > le ≤
    leq ≤ leqslant ≤ ge ≥ geq ≥ geqslant ≥ ne ≠ neq ≠ equiv ≡ ll ≪ gg ≫ sim ∼ simeq ≃ approx ≈ cong ≅
    propto ∝ prec ≺ succ ≻ preceq ≼ succeq ≽ subset ⊂ supset ⊃ subseteq ⊆ supseteq ⊇ in ∈ notin ∉ ni ∋
    perp ⊥ parallel ∥ mid ∣ vdash ⊢ models ⊨ to → rightarrow → leftarrow ← gets ← leftrightarrow ↔
    uparrow ↑ downarrow ↓ Rightarrow ⇒ Leftarrow ⇐ Leftrightarrow ⇔ iff ⇔ implies ⟹ longrightarrow →
    longleftarrow ← Longrightarrow ⇒ mapsto ↦ rightharpoonup ⇀ rightleftharpoons ⇌ sum ∑ prod ∏ coprod ∐
    int ∫ iint ∬ iiint ∭ oint ∮ bigcap ⋂ bigcup ⋃ bigvee ⋁ bigwedge ⋀ bigoplus ⨁ bigotimes ⨂ infty ∞
    partial ∂ nabla ∇ prime ′ forall ∀ exists ∃ nexists ∄ emptyset ∅ varnothing ⌀ neg ¬ lnot ¬ angle ∠
    triangle △ Re ℜ Im ℑ aleph ℵ hbar ℏ ell ℓ wp ℘ imath ı jmath ȷ top ⊤ bot ⊥ square ▫ Box □ diamond ⋄
    Diamond ◇ therefore ∴ because ∵ ldots … dots … dotsc … cdots ⋯ dotsb ⋯ vdots ⋮ ddots ⋱ colon :
    backslash ∖ dagger † ddagger ‡ amalg ∐ wr ≀ bowtie ⋈ lhd ⊲ rhd ⊳
    # # % % & & _ _ $ $";

const DELIMITERS: &str = r"
    langle ⟨ rangle ⟩ lfloor ⌊ rfloor ⌋ lceil ⌈ rceil ⌉ lbrace { rbrace } lbrack [ rbrack ] vert |
    Vert ‖ lvert | rvert | lVert ∥ rVert ∥ { { } } | ∥";

const FUNCTIONS: &str = "
    arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf ker lg
    lim liminf limsup ln log max min Pr sec sin sinh sup tan tanh";

const ABOVE: &str =
    "hat \u{302} bar \u{203e} vec \u{20d7} dot \u{307} ddot \u{308} tilde \u{303} widehat \u{302}
    widetilde \u{303} overline \u{af} check \u{30c} breve \u{306} acute \u{301} grave \u{300}
    overrightarrow \u{20d7} overleftarrow \u{20d6}";

const BELOW: &str = "underline _";

const SPACES: &str = ", : ; ! > quad qquad";

const FACES: &str = "mathrm mathup mathbf mathit mathtt mathsf mathbb mathcal mathscr mathfrak
    text textrm textbf textit texttt textsf mbox";

const BIG: &str = "big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr";

fn pairs(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut words = table.split_whitespace();
    std::iter::from_fn(move || Some((words.next()?, words.next()?)))
}

static COMMANDS: LazyLock<HashMap<&'static str, Command>> = LazyLock::new(|| {
    let mut commands = HashMap::new();
    commands.extend(pairs(SYMBOLS).map(|(name, symbol)| (name, Command::Symbol(symbol))));
    commands.extend(pairs(DELIMITERS).map(|(name, symbol)| (name, Command::Delimiter(symbol))));
    commands.extend(pairs(ABOVE).map(|(name, mark)| (name, Command::Accent { mark, above: true })));
    commands.extend(pairs(BELOW).map(|(name, mark)| (name, Command::Accent { mark, above: false })));
    let words = |table: &'static str, command: fn(&'static str) -> Command| {
        table.split_whitespace().map(move |name| (name, command(name)))
    };
    commands.extend(words(FUNCTIONS, Command::Function));
    commands.extend(words(SPACES, |_| Command::Space).chain([(" ", Command::Space)]));
    commands.extend(words(FACES, |_| Command::Face));
    commands.extend(words(BIG, |_| Command::Big));
    commands.extend(words("frac tfrac dfrac", |_| Command::Fraction));
    commands.extend(words("sqrt surd", |_| Command::Root));
    commands.extend(words("displaystyle textstyle scriptstyle scriptscriptstyle", |_| Command::Style));
    commands.extend([
        ("left", Command::Left),
        ("right", Command::Right),
        ("limits", Command::Limits(true)),
        ("nolimits", Command::Limits(false)),
    ]);
    commands
});

/// One command for each character, so that `\le` and `\leq` are one symbol.
static NAMES: LazyLock<HashMap<&'static str, String>> = LazyLock::new(|| {
    let own = [("Γ", r"\Gamma".to_string())];
    let official = OFFICIAL_LABELS.iter().map(|&(symbol, label)| (symbol, label.to_string()));
    let commands =
        pairs(SYMBOLS).chain(pairs(DELIMITERS)).map(|(name, symbol)| (symbol, format!("\\{name}")));
    let mut names = HashMap::new();
    for (symbol, name) in own.into_iter().chain(official).chain(commands) {
        names.entry(symbol).or_insert(name);
    }
    names
});

/// What `token`, which starts with a backslash, does; none for a command that is not known.
pub(crate) fn command(token: &str) -> Option<Command> {
    COMMANDS.get(token.strip_prefix('\\')?).copied()
}

/// The labels that the official tools give to characters; any other character is its own label.
const OFFICIAL_LABELS: &[(&str, &str)] = &[
    ("÷", r"\div"),
    ("×", r"\times"),
    ("±", r"\pm"),
    ("∑", r"\sum"),
    ("π", r"\pi"),
    ("∫", r"\int"),
    ("θ", r"\theta"),
    ("∞", r"\infty"),
    ("…", r"\ldots"),
    ("β", r"\beta"),
    ("→", r"\rightarrow"),
    ("≤", r"\leq"),
    ("≥", r"\geq"),
    ("<", r"\lt"),
    (">", r"\gt"),
    ("σ", r"\sigma"),
    ("ϕ", r"\phi"),
    ("′", r"\prime"),
    ("Γ", r"\gamma"),
    ("γ", r"\gamma"),
    ("μ", r"\mu"),
    ("λ", r"\lambda"),
    ("Δ", r"\Delta"),
    ("∃", r"\exists"),
    ("∀", r"\forall"),
    ("∈", r"\in"),
    ("∂", r"\partial"),
    ("≠", r"\neq"),
    ("α", r"\alpha"),
    ("−", "-"),
    ("{", r"\{"),
    ("}", r"\}"),
    (",", "COMMA"),
];

/// Functions whose label keeps its backslash in the official tools.
const OFFICIAL_FUNCTIONS: &[&str] = &["sin", "cos", "tan", "lim", "log"];

static OFFICIAL: LazyLock<HashMap<&'static str, &'static str>> =
    LazyLock::new(|| OFFICIAL_LABELS.iter().copied().collect());

/// The label of the symbol written as this character.
pub(crate) fn character_label(character: &str, dialect: Dialect) -> String {
    match dialect {
        Dialect::Official => OFFICIAL.get(character).map_or(character, |label| label).into(),
        Dialect::Clean if character.is_ascii() && !OFFICIAL.contains_key(character) => character.into(),
        Dialect::Clean => NAMES.get(character).cloned().unwrap_or_else(|| character.into()),
    }
}

/// The label of a word such as `\sin`, given without its backslash.
pub(crate) fn function_label(name: &str, dialect: Dialect) -> String {
    if dialect == Dialect::Clean || OFFICIAL_FUNCTIONS.contains(&name) {
        format!("\\{name}")
    } else {
        name.into()
    }
}

/// The character of a symbol of the clean dialect, by its label.
pub(crate) fn character_of(label: &str) -> String {
    match command(label) {
        Some(Command::Symbol(symbol) | Command::Delimiter(symbol)) => symbol.into(),
        Some(Command::Function(name)) => name.into(),
        _ if label == "COMMA" => ",".into(),
        _ if label == "-" => "−".into(),
        _ => label.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_both_dialects() {
        for (character, official, clean) in [
            ("x", "x", "x"),
            ("Γ", r"\gamma", r"\Gamma"),
            ("γ", r"\gamma", r"\gamma"),
            ("⋯", "⋯", r"\cdots"),
            ("≤", r"\leq", r"\leq"),
            ("<", r"\lt", r"\lt"),
            (",", "COMMA", "COMMA"),
            ("−", "-", "-"),
            ("|", "|", "|"),
            ("[", "[", "["),
        ] {
            assert_eq!(character_label(character, Dialect::Official), official);
            assert_eq!(character_label(character, Dialect::Clean), clean);
        }
        assert_eq!(function_label("sin", Dialect::Official), r"\sin");
        assert_eq!(function_label("max", Dialect::Official), "max");
        assert_eq!(function_label("max", Dialect::Clean), r"\max");
    }

    #[test]
    fn tables_are_pairs() {
        for table in [SYMBOLS, DELIMITERS, ABOVE, BELOW] {
            assert_eq!(table.split_whitespace().count() % 2, 0);
        }
        assert_eq!(command(r"\leq"), command(r"\le"));
        assert_eq!(command(r"\{"), Some(Command::Delimiter("{")));
        assert_eq!(command(r"\nonsense"), None);
        assert_eq!(command("x"), None);
    }
}

//! Writes the handwriting of `samples/`: a small font of strokes, set as formulas and written with an unsteady hand.
//!
//! `cargo run -p comer --example make_samples -- samples` writes the InkML files again, the same to the byte.

use std::path::PathBuf;

use comer::{Ink, InkSymbol, Point, Stroke};

/// A symbol's strokes in a box 1 high, y down, the base line at 1: points to run a smooth curve through. Corners are
/// points written twice.
fn glyph(name: &str) -> &'static [&'static [(f64, f64)]] {
    match name {
        "0" => &[&[
            (0.32, 0.02),
            (0.08, 0.25),
            (0.04, 0.65),
            (0.25, 0.99),
            (0.5, 0.8),
            (0.55, 0.35),
            (0.36, 0.03),
            (0.28, 0.05),
        ]],
        "1" => &[&[(0.05, 0.22), (0.22, 0.02), (0.22, 0.02), (0.2, 0.5), (0.18, 1.0)]],
        "2" => &[&[
            (0.05, 0.22),
            (0.25, 0.02),
            (0.5, 0.2),
            (0.35, 0.6),
            (0.03, 0.98),
            (0.03, 0.98),
            (0.3, 0.95),
            (0.58, 0.98),
        ]],
        "3" => &[&[
            (0.06, 0.1),
            (0.32, 0.0),
            (0.45, 0.2),
            (0.2, 0.45),
            (0.2, 0.45),
            (0.5, 0.65),
            (0.35, 0.97),
            (0.02, 0.9),
        ]],
        "4" => &[
            &[(0.28, 0.0), (0.16, 0.35), (0.02, 0.62), (0.02, 0.62), (0.35, 0.6), (0.6, 0.58)],
            &[(0.44, 0.3), (0.42, 0.65), (0.38, 1.02)],
        ],
        "5" => &[
            &[(0.12, 0.03), (0.1, 0.42), (0.1, 0.42), (0.4, 0.45), (0.5, 0.75), (0.25, 1.0), (0.02, 0.9)],
            &[(0.12, 0.04), (0.5, 0.0)],
        ],
        "6" => {
            &[&[(0.42, 0.0), (0.12, 0.35), (0.04, 0.75), (0.25, 1.0), (0.46, 0.8), (0.3, 0.56), (0.07, 0.72)]]
        }
        "7" => &[&[(0.03, 0.06), (0.5, 0.02), (0.5, 0.02), (0.32, 0.5), (0.2, 1.0)]],
        "8" => &[&[
            (0.44, 0.12),
            (0.22, 0.0),
            (0.08, 0.2),
            (0.42, 0.6),
            (0.4, 0.92),
            (0.14, 0.96),
            (0.1, 0.68),
            (0.4, 0.35),
            (0.46, 0.1),
        ]],
        "9" => &[&[
            (0.45, 0.12),
            (0.2, 0.02),
            (0.05, 0.3),
            (0.25, 0.45),
            (0.45, 0.2),
            (0.45, 0.12),
            (0.42, 0.6),
            (0.34, 1.02),
        ]],
        "+" => &[&[(0.0, 0.56), (0.3, 0.53), (0.58, 0.52)], &[(0.3, 0.22), (0.29, 0.55), (0.31, 0.85)]],
        "-" => &[&[(0.0, 0.55), (0.3, 0.53), (0.58, 0.55)]],
        "=" => &[&[(0.0, 0.42), (0.3, 0.4), (0.6, 0.41)], &[(0.02, 0.66), (0.3, 0.65), (0.62, 0.63)]],
        "(" => &[&[(0.26, -0.1), (0.06, 0.2), (0.02, 0.65), (0.24, 1.12)]],
        ")" => &[&[(0.02, -0.1), (0.22, 0.2), (0.26, 0.65), (0.04, 1.12)]],
        "a" => &[&[
            (0.42, 0.48),
            (0.2, 0.42),
            (0.03, 0.72),
            (0.15, 0.98),
            (0.36, 0.8),
            (0.43, 0.48),
            (0.43, 0.48),
            (0.42, 0.8),
            (0.56, 0.98),
        ]],
        "b" => &[&[
            (0.08, -0.05),
            (0.05, 0.5),
            (0.06, 0.95),
            (0.06, 0.95),
            (0.1, 0.65),
            (0.3, 0.5),
            (0.42, 0.74),
            (0.26, 0.99),
            (0.06, 0.9),
        ]],
        "c" => &[&[(0.4, 0.55), (0.22, 0.43), (0.03, 0.72), (0.18, 0.99), (0.44, 0.88)]],
        "d" => &[&[
            (0.4, 0.5),
            (0.2, 0.44),
            (0.03, 0.74),
            (0.16, 0.98),
            (0.38, 0.78),
            (0.42, -0.05),
            (0.42, -0.05),
            (0.4, 0.7),
            (0.52, 0.98),
        ]],
        "e" => &[&[(0.05, 0.72), (0.38, 0.66), (0.26, 0.42), (0.04, 0.68), (0.16, 0.98), (0.44, 0.88)]],
        "i" => &[&[(0.1, 0.45), (0.06, 0.8), (0.2, 0.98)], &[(0.12, 0.2), (0.14, 0.22)]],
        "n" => &[&[
            (0.03, 0.46),
            (0.06, 0.98),
            (0.06, 0.98),
            (0.12, 0.58),
            (0.3, 0.45),
            (0.36, 0.7),
            (0.48, 0.98),
        ]],
        "x" => &[
            &[(0.02, 0.5), (0.14, 0.44), (0.22, 0.7), (0.34, 0.98), (0.5, 0.9)],
            &[(0.48, 0.44), (0.3, 0.62), (0.02, 0.99)],
        ],
        "y" => &[&[
            (0.03, 0.45),
            (0.06, 0.72),
            (0.22, 0.8),
            (0.42, 0.45),
            (0.42, 0.45),
            (0.36, 0.95),
            (0.2, 1.4),
            (0.02, 1.32),
        ]],
        "\\pi" => &[
            &[(0.02, 0.52), (0.12, 0.44), (0.62, 0.43)],
            &[(0.2, 0.46), (0.16, 0.98)],
            &[(0.44, 0.45), (0.42, 0.9), (0.58, 0.96)],
        ],
        "\\sum" => &[&[
            (0.72, 0.12),
            (0.68, -0.1),
            (0.02, -0.1),
            (0.02, -0.1),
            (0.36, 0.48),
            (0.36, 0.48),
            (0.0, 1.12),
            (0.0, 1.12),
            (0.7, 1.12),
            (0.76, 0.9),
        ]],
        "\\int" => &[&[(0.5, -0.2), (0.36, -0.32), (0.26, 0.1), (0.22, 0.9), (0.1, 1.34), (0.0, 1.2)]],
        _ => &[],
    }
}

/// What a formula is made of.
enum Node {
    Glyph(&'static str),
    Row(Vec<Node>),
    Scripts { base: Box<Node>, above: Option<Box<Node>>, below: Option<Box<Node>> },
    Limits { base: Box<Node>, above: Box<Node>, below: Box<Node> },
    Fraction(Box<Node>, Box<Node>),
    Root(Box<Node>),
}

use Node::{Fraction, Glyph, Limits, Root, Row, Scripts};

fn row(names: &[&'static str]) -> Node {
    Row(names.iter().map(|name| Glyph(name)).collect())
}

fn raised(base: &'static str, above: &'static str) -> Node {
    Scripts { base: Box::new(Glyph(base)), above: Some(Box::new(Glyph(above))), below: None }
}

fn lowered(base: &'static str, below: &'static str) -> Node {
    Scripts { base: Box::new(Glyph(base)), above: None, below: Some(Box::new(Glyph(below))) }
}

/// Ink set so far: strokes around the base line at y = 0, and how far it reaches.
#[derive(Default)]
struct Setting {
    strokes: Vec<Vec<(f64, f64)>>,
    symbols: Vec<(String, Vec<usize>)>,
    width: f64,
    top: f64,
    bottom: f64,
}

impl Setting {
    /// Takes over `other`, scaled and moved.
    fn place(&mut self, other: Setting, scale: f64, x: f64, y: f64) {
        let first = self.strokes.len();
        let moved = |stroke: &Vec<(f64, f64)>| {
            stroke.iter().map(|(px, py)| (px * scale + x, py * scale + y)).collect()
        };
        self.strokes.extend(other.strokes.iter().map(moved));
        let numbered =
            |(label, strokes): (String, Vec<usize>)| (label, strokes.iter().map(|at| at + first).collect());
        self.symbols.extend(other.symbols.into_iter().map(numbered));
        self.width = self.width.max(x + other.width * scale);
        self.top = self.top.min(y + other.top * scale);
        self.bottom = self.bottom.max(y + other.bottom * scale);
    }

    /// Adds one symbol of strokes that are already in place.
    fn draw(&mut self, label: &str, strokes: &[&[(f64, f64)]]) {
        let first = self.strokes.len();
        for stroke in strokes {
            self.strokes.push(stroke.to_vec());
            for &(x, y) in *stroke {
                (self.width, self.top, self.bottom) =
                    (self.width.max(x), self.top.min(y), self.bottom.max(y));
            }
        }
        self.symbols.push((label.into(), (first..self.strokes.len()).collect()));
    }
}

/// Sets a formula on its base line; `hand` makes no two symbols alike.
fn set(node: &Node, hand: &mut Hand) -> Setting {
    let mut setting = Setting::default();
    match node {
        Glyph(name) => {
            let slant = 0.12 + hand.wobble(0.05);
            let (wide, high) = (1.0 + hand.wobble(0.12), 1.0 + hand.wobble(0.08));
            let shape = |&(x, y): &(f64, f64)| {
                let (x, y) = (x * wide + hand.wobble(0.015), (y - 1.0) * high + hand.wobble(0.015));
                (x - slant * y - 0.05, y)
            };
            let mut strokes: Vec<Vec<(f64, f64)>> = Vec::new();
            let mut shape = shape;
            for stroke in glyph(name) {
                strokes.push(stroke.iter().map(&mut shape).collect());
            }
            let strokes: Vec<&[(f64, f64)]> = strokes.iter().map(Vec::as_slice).collect();
            setting.draw(name, &strokes);
        }
        Row(nodes) => {
            for node in nodes {
                let gap = if setting.width > 0.0 { 0.2 + hand.wobble(0.05) } else { 0.0 };
                let part = set(node, hand);
                let (x, y) = (setting.width + gap, hand.wobble(0.04));
                setting.place(part, 1.0, x, y);
            }
        }
        Scripts { base, above, below } => {
            let base = set(base, hand);
            let x = base.width + 0.06;
            setting.place(base, 1.0, 0.0, 0.0);
            let (top, bottom) = (setting.top, setting.bottom);
            if let Some(above) = above {
                let above = set(above, hand);
                let y = top + 0.12 - 0.4 * above.bottom + hand.wobble(0.04);
                setting.place(above, 0.6, x, y);
            }
            if let Some(below) = below {
                setting.place(set(below, hand), 0.6, x, bottom.max(0.0) + 0.35 + hand.wobble(0.04));
            }
        }
        Limits { base, above, below } => {
            let base = set(base, hand);
            let middle = base.width / 2.0;
            setting.place(base, 1.25, 0.0, 0.12);
            let (top, bottom) = (setting.top, setting.bottom);
            let (above, below) = (set(above, hand), set(below, hand));
            let (raise, drop) = (0.2 + 0.6 * above.bottom, 0.2 - 0.6 * below.top);
            let (right, left) = (middle - 0.3 * above.width, (middle - 0.3 * below.width).max(-0.1));
            setting.place(above, 0.6, right.max(0.0), top - raise);
            setting.place(below, 0.6, left, bottom + drop);
        }
        Fraction(upper, lower) => {
            let (upper, lower) = (set(upper, hand), set(lower, hand));
            let width = upper.width.max(lower.width) + 0.4;
            let axis = -0.45;
            let bar = [
                (0.0, axis + hand.wobble(0.03)),
                (width / 2.0, axis + hand.wobble(0.03)),
                (width, axis + hand.wobble(0.03)),
            ];
            setting.draw("-", &[&bar]);
            let (up, down) = (axis - 0.22 - upper.bottom, axis + 0.25 - lower.top);
            let middle = |part: &Setting| (width - part.width) / 2.0;
            let (above, below) = (middle(&upper), middle(&lower));
            setting.place(upper, 1.0, above, up);
            setting.place(lower, 1.0, below, down);
        }
        Root(inner) => {
            let inner = set(inner, hand);
            let (top, end) = (inner.top - 0.22, 0.55 + inner.width + 0.15);
            let sign = [
                (0.0, -0.35),
                (0.12, -0.45),
                (0.24, 0.05),
                (0.24, 0.05),
                (0.45, top),
                (0.45, top),
                (end, top + hand.wobble(0.05)),
            ];
            setting.draw("\\sqrt", &[&sign]);
            setting.place(inner, 1.0, 0.55, 0.0);
        }
    }
    setting
}

/// An unsteady hand: random numbers from a seed (xorshift).
struct Hand(u64);

impl Hand {
    /// A number between `-most` and `most`.
    fn wobble(&mut self, most: f64) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0) * most
    }
}

/// A smooth curve through points (Catmull and Rom's), sampled like a tablet does; a point given twice is a corner.
fn curve(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let at = |index: isize| points[index.clamp(0, points.len() as isize - 1) as usize];
    let mut samples = vec![points[0]];
    for index in 0..points.len() as isize - 1 {
        let (start, end) = (at(index), at(index + 1));
        if start == end {
            continue;
        }
        let before = if at(index - 1) == start { start } else { at(index - 1) };
        let after = if at(index + 2) == end { end } else { at(index + 2) };
        for step in 1..=6 {
            let t = f64::from(step) / 6.0;
            let mix = |p0: f64, p1: f64, p2: f64, p3: f64| {
                0.5 * (2.0 * p1
                    + (p2 - p0) * t
                    + (2.0 * p0 - 5.0 * p1 + 4.0 * p2 - p3) * t * t
                    + (3.0 * p1 - p0 - 3.0 * p2 + p3) * t * t * t)
            };
            samples.push((mix(before.0, start.0, end.0, after.0), mix(before.1, start.1, end.1, after.1)));
        }
    }
    samples
}

/// A formula written down, in whole units of a tablet.
fn write(latex: &str, formula: &Node, seed: u64) -> comer::Result<Ink> {
    let mut hand = Hand(seed);
    let setting = set(formula, &mut hand);
    let stroke = |points: &Vec<(f64, f64)>| {
        let point =
            |(x, y): (f64, f64)| Point { x: (x * 120.0 + 200.0).round(), y: (y * 120.0 + 600.0).round() };
        let mut points: Vec<Point> = curve(points).into_iter().map(point).collect();
        points.dedup();
        Stroke { points }
    };
    let symbols = setting.symbols.into_iter().map(|(label, strokes)| InkSymbol { label, strokes }).collect();
    Ok(Ink::new(setting.strokes.iter().map(stroke).collect())?
        .with_symbols(symbols)?
        .with_annotation("truth", latex))
}

/// Name, tokens and formula of each sample.
fn samples() -> Vec<(&'static str, &'static str, Node)> {
    let sum = || Limits {
        base: Box::new(Glyph("\\sum")),
        above: Box::new(Glyph("n")),
        below: Box::new(row(&["i", "=", "1"])),
    };
    let integral = Scripts {
        base: Box::new(Glyph("\\int")),
        above: Some(Box::new(Glyph("1"))),
        below: Some(Box::new(Glyph("0"))),
    };
    let boxed = |names: &[&'static str]| Box::new(row(names));
    vec![
        ("square", "x ^ { 2 } + 1", Row(vec![raised("x", "2"), Glyph("+"), Glyph("1")])),
        ("fraction", "\\frac { a } { b }", Fraction(boxed(&["a"]), boxed(&["b"]))),
        ("root", "\\sqrt { x + 1 }", Root(boxed(&["x", "+", "1"]))),
        ("sum", "\\sum \\limits _ { i = 1 } ^ { n } x _ { i }", Row(vec![sum(), lowered("x", "i")])),
        (
            "integral",
            "\\int \\limits _ { 0 } ^ { 1 } x d x",
            Row(vec![integral, Glyph("x"), Glyph("d"), Glyph("x")]),
        ),
        (
            "quadratic",
            "x = \\frac { - b + \\sqrt { b ^ { 2 } - 4 a c } } { 2 a }",
            Row(vec![
                Glyph("x"),
                Glyph("="),
                Fraction(
                    Box::new(Row(vec![
                        Glyph("-"),
                        Glyph("b"),
                        Glyph("+"),
                        Root(Box::new(Row(vec![
                            raised("b", "2"),
                            Glyph("-"),
                            Glyph("4"),
                            Glyph("a"),
                            Glyph("c"),
                        ]))),
                    ])),
                    boxed(&["2", "a"]),
                ),
            ]),
        ),
        ("power", "( a + b ) ^ { n } = e ^ { y }", {
            let closing = raised(")", "n");
            Row(vec![Glyph("("), Glyph("a"), Glyph("+"), Glyph("b"), closing, Glyph("="), raised("e", "y")])
        }),
        ("circle", "y = 2 \\pi x", row(&["y", "=", "2", "\\pi", "x"])),
        ("digits", "1 2 3 4 5 6 7 8 9 0", row(&["1", "2", "3", "4", "5", "6", "7", "8", "9", "0"])),
        (
            "nested",
            "\\frac { a } { 1 + \\frac { b } { x } }",
            Fraction(
                boxed(&["a"]),
                Box::new(Row(vec![Glyph("1"), Glyph("+"), Fraction(boxed(&["b"]), boxed(&["x"]))])),
            ),
        ),
        ("polynomial", "x ^ { 4 } - 3 x ^ { 3 } + 5 x ^ { 2 } - 7 x + 9 = 0", {
            let mut terms = vec![raised("x", "4"), Glyph("-"), Glyph("3"), raised("x", "3"), Glyph("+")];
            terms.extend([Glyph("5"), raised("x", "2"), row(&["-", "7", "x", "+", "9", "=", "0"])]);
            Row(terms)
        }),
        (
            "roots",
            "\\sum \\limits _ { i = 1 } ^ { n } \\sqrt { a _ { i } + b _ { i } }",
            Row(vec![sum(), Root(Box::new(Row(vec![lowered("a", "i"), Glyph("+"), lowered("b", "i")])))]),
        ),
    ]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder =
        PathBuf::from(std::env::args().nth(1).ok_or("expected the folder to write to, such as samples")?);
    std::fs::create_dir_all(&folder)?;
    for (number, (name, latex, formula)) in samples().into_iter().enumerate() {
        let ink = write(latex, &formula, 0x2545_f491_4f6c_dd1d ^ (number as u64 + 1))?;
        std::fs::write(folder.join(format!("{name}.inkml")), ink.to_inkml())?;
    }
    Ok(())
}

//! Lays out new formulas with the glyphs of one writer.
//!
//! Sizes and distances are drawn from distributions measured on real expressions (see [`super::metrics`]). The unit is the
//! height of a digit; y points down from the baseline.

use comer::internal::TokenId;
use comer::{Point, Stroke};
use rand::{Rng, RngExt};

use super::geometry::{Rect, fit, transform};
use super::glyphs::GlyphWriter;
use super::metrics::{LayoutMetrics, normal};
use super::other_writer::is_bracket;
use super::recombine::{LeafInk, bounds};
use super::tree::{Atom, TreeGrammar, TreeNode};
use super::words::Words;

/// The size of the outermost row, and the minimum size, so that nested scripts stay legible.
const SIZE: f64 = 100.0;
const SMALLEST: f64 = 40.0;

/// Lays out formulas.
pub struct FormulaLayout<'a, R: Rng> {
    /// Sizes and distances.
    pub metrics: &'a LayoutMetrics,
    /// The tokens of bars and root signs.
    pub grammar: &'a TreeGrammar,
    /// Labels by token.
    pub labels: &'a [String],
    /// The letters of functions.
    pub words: &'a Words,
    /// Provides the glyphs.
    pub writer: GlyphWriter<'a>,
    /// Source of random numbers.
    pub random: &'a mut R,
}

/// Leaves in order, around a baseline at 0.
struct Block {
    leaves: Vec<LeafInk>,
    /// The bounding box, which the next block must not touch.
    rect: Rect,
}

impl Block {
    fn new(leaves: Vec<LeafInk>) -> Self {
        let rect = bounds(&leaves);
        Self { leaves, rect }
    }

    fn shift(&mut self, x: f64, y: f64) {
        for leaf in &mut self.leaves {
            transform(&mut leaf.strokes, |point| Point { x: point.x + x, y: point.y + y });
        }
        let Rect { left, top, right, bottom } = self.rect;
        self.rect = Rect { left: left + x, top: top + y, right: right + x, bottom: bottom + y };
    }

    fn add(&mut self, other: Self) {
        self.leaves.extend(other.leaves);
        self.rect = self.rect.union(other.rect);
    }
}

impl<R: Rng> FormulaLayout<'_, R> {
    /// The leaves of a formula; `None` if a symbol has no glyph.
    pub fn write(&mut self, row: &[TreeNode]) -> Option<Vec<LeafInk>> {
        Some(self.row(row, SIZE)?.leaves)
    }

    fn draw(&mut self, name: &str) -> f64 {
        self.metrics.measure(name).draw(self.random)
    }

    /// A random size or distance of at least `least`.
    fn draw_above(&mut self, name: &str, least: f64) -> f64 {
        self.draw(name).max(least)
    }

    fn label(&self, node: &TreeNode) -> &str {
        match node.atom {
            Atom::Symbol(token) => &self.labels[token as usize],
            _ => "",
        }
    }

    fn row(&mut self, row: &[TreeNode], size: f64) -> Option<Block> {
        let mut blocks: Vec<Option<Block>> = Vec::with_capacity(row.len());
        for node in row {
            let bracket = is_bracket(self.label(node));
            blocks.push(if bracket { None } else { Some(self.node(node, size, None)?) });
        }
        for (open, close) in self.pairs(row) {
            let inside = blocks[open + 1..close].iter().flatten().map(|block| block.rect);
            let inside = inside.fold(Rect::EMPTY, Rect::union);
            let tall = Some(inside).filter(|inside| inside.height() > 1.3 * size);
            let share = self.draw("bracket.height").clamp(0.9, 1.4);
            for index in [open, close] {
                blocks[index] = Some(self.node(&row[index], size, tall.map(|inside| (inside, share)))?);
            }
        }
        let slope = self.draw("row.slope");
        let mut line = Block { leaves: Vec::new(), rect: Rect::EMPTY };
        for (index, node) in row.iter().enumerate() {
            let mut block = match blocks[index].take() {
                Some(block) => block,
                None => self.node(node, size, None)?,
            };
            if index > 0 {
                let gap = self.gap(&row[index - 1], node) * size;
                let x = line.rect.right + gap - block.rect.left;
                block.shift(x, slope * (x + block.rect.center().x - line.rect.left));
            }
            line.add(block);
        }
        Some(line)
    }

    /// Pairs of matching brackets.
    fn pairs(&self, row: &[TreeNode]) -> Vec<(usize, usize)> {
        let (mut open, mut pairs): (Vec<(usize, &str)>, _) = (Vec::new(), Vec::new());
        for (index, node) in row.iter().enumerate() {
            let label = self.label(node);
            let partner = match label {
                ")" => "(",
                "]" => "[",
                "\\}" => "\\{",
                "|" => "|",
                "(" | "[" | "\\{" => "",
                _ => continue,
            };
            match open.last() {
                Some(&(first, last)) if last == partner => {
                    open.pop();
                    pairs.push((first, index));
                }
                _ => open.push((index, label)),
            }
        }
        pairs
    }

    fn gap(&mut self, before: &TreeNode, after: &TreeNode) -> f64 {
        let labels = [self.label(before), self.label(after)];
        let any = |list: &[&str]| labels.iter().any(|label| list.contains(label));
        let name = if any(&["=", "<", ">", "\\leq", "\\geq", "\\neq", "\\rightarrow", "\\in"]) {
            "gap.relation"
        } else if any(&["+", "-", "\\pm", "\\times", "\\div", "\\cdot", "/"]) {
            "gap.operator"
        } else if any(&["(", ")", "[", "]", "\\{", "\\}", "|"]) {
            "gap.bracket"
        } else if any(&["\\sin", "\\cos", "\\tan", "\\log", "\\lim", "\\sum", "\\int"]) {
            "gap.function"
        } else {
            "gap"
        };
        self.draw_above(name, 0.03)
    }

    /// A node. For a bracket, `enclosed` is the bounding box of its contents and the height of the bracket relative to it.
    fn node(&mut self, node: &TreeNode, size: f64, enclosed: Option<(Rect, f64)>) -> Option<Block> {
        let mut block = match &node.atom {
            Atom::Symbol(token) => self.symbol(*token, size, enclosed)?,
            Atom::Fraction(numerator, denominator) => self.fraction(numerator, denominator, size)?,
            Atom::Root(index, radicand) => self.root(index.as_deref(), radicand, size)?,
        };
        let core = block.rect;
        // Scripts of nodes that are taller than a symbol are at their corners.
        let tall = core.height() > 1.5 * size;
        let mut right = core.right;
        for (script, name, sign) in [(&node.sub, "sub", 1.0), (&node.sup, "sup", -1.0)] {
            let Some(row) = script else { continue };
            let measure = if node.limits { "limit.size".into() } else { format!("{name}.size") };
            let share = self.draw_above(&measure, 0.35).min(0.85);
            let mut script = self.row(row, (share * size).max(SMALLEST))?;
            let own = script.rect;
            let (x, y) = if node.limits {
                let gap = self.draw_above("limit.gap", 0.05) * size;
                let y = if sign > 0.0 { core.bottom + gap - own.top } else { core.top - gap - own.bottom };
                (core.center().x - own.center().x, y)
            } else {
                let gap = self.draw_above(&format!("{name}.gap"), 0.0) * size;
                let y = match (tall, sign > 0.0) {
                    (true, true) => core.bottom - 0.3 * own.height() - own.center().y,
                    (true, false) => core.top + 0.3 * own.height() - own.center().y,
                    (false, true) => self.draw_above("sub.shift", 0.02) * size,
                    (false, false) => self.draw("sup.shift").min(-0.4) * size,
                };
                (core.right + gap - own.left, y)
            };
            script.shift(x, y);
            right = right.max(script.rect.right);
            block.add(script);
        }
        block.rect.right = block.rect.right.max(right);
        Some(block)
    }

    fn symbol(&mut self, token: TokenId, size: f64, enclosed: Option<(Rect, f64)>) -> Option<Block> {
        let mut strokes = self.words.write(token, &mut self.writer, self.random)?;
        let metrics = self.metrics.symbol(token);
        // Less than the measured deviation, which includes the error of the estimated row size.
        let grow = (0.7 * self.metrics.measure("symbol.size").deviation * normal(self.random)).exp() * size;
        let middle = metrics.center * size + 0.5 * metrics.deviation * normal(self.random) * size;
        let (width, height) = (metrics.width * grow, metrics.height * grow);
        let target =
            Rect { left: 0.0, top: middle - height / 2.0, right: width, bottom: middle + height / 2.0 };
        match enclosed {
            None => fit(&mut strokes, target, 1.3),
            Some((inside, share)) => {
                let height = share * inside.height();
                let (top, width) =
                    (inside.center().y - height / 2.0, width.min(0.25 * height).max(width * 0.8));
                fit_exactly(&mut strokes, Rect { left: 0.0, top, right: width, bottom: top + height });
            }
        }
        Some(Block::new(vec![LeafInk { token, strokes }]))
    }

    fn fraction(&mut self, numerator: &[TreeNode], denominator: &[TreeNode], size: f64) -> Option<Block> {
        let share = self.draw_above("fraction.size", 0.5).min(1.0);
        let inner = (share * size).max(SMALLEST);
        let mut above = self.row(numerator, inner)?;
        let mut below = self.row(denominator, inner)?;
        let overhang =
            (self.draw_above("fraction.overhang", 0.0) + self.draw_above("fraction.overhang", 0.0)) * size;
        let width = above.rect.width().max(below.rect.width()) + overhang;
        let axis = self.draw("fraction.axis") * size;
        let mut strokes = self.writer.write(self.grammar.bar, self.random)?;
        let flat = Rect::of(&strokes).height() / Rect::of(&strokes).width().max(1.0);
        // A stretched hyphen would look like a wave.
        let height = (flat * width).min((0.02 + 0.06 * self.random.random::<f64>()) * size);
        let bar = Rect { left: 0.0, top: axis - height / 2.0, right: width, bottom: axis + height / 2.0 };
        fit_exactly(&mut strokes, bar);
        let mut block = Block::new(vec![LeafInk { token: self.grammar.bar, strokes }]);
        let gaps = [0, 1].map(|_| self.draw_above("fraction.gap", 0.06) * size);
        let off = [0, 1].map(|_| 0.1 * normal(self.random));
        for (row, y, off) in
            [(&mut above, bar.top - gaps[0], off[0]), (&mut below, bar.bottom + gaps[1], off[1])]
        {
            let edge = if y < axis { row.rect.bottom } else { row.rect.top };
            let slack = (width - row.rect.width()) / 2.0;
            row.shift(slack * (1.0 + off) - row.rect.left, y - edge);
        }
        block.add(above);
        block.add(below);
        Some(block)
    }

    fn root(&mut self, index: Option<&[TreeNode]>, radicand: &[TreeNode], size: f64) -> Option<Block> {
        let mut inner = self.row(radicand, size)?;
        let hook = self.draw_above("root.hook", 0.3) * size;
        let above = self.draw_above("root.above", 0.08) * size;
        let after = self.draw_above("root.after", -0.05) * size;
        inner.shift(hook - inner.rect.left, 0.0);
        let bottom = inner.rect.bottom.max(0.0) + 0.05 * normal(self.random) * size;
        let target = Rect { left: 0.0, top: inner.rect.top - above, right: inner.rect.right + after, bottom };
        let mut strokes = self.writer.write(self.grammar.sqrt, self.random)?;
        fit_root(&mut strokes, target, 0.9 * hook);
        let mut block = Block::new(vec![LeafInk { token: self.grammar.sqrt, strokes }]);
        if let Some(index) = index {
            let share = self.draw_above("index.size", 0.3).min(0.6);
            let mut small = self.row(index, share * size)?;
            let right = 0.45 * hook;
            let middle = target.top + 0.35 * target.height();
            small.shift(right - small.rect.right, middle - small.rect.bottom);
            block.add(small);
        }
        block.add(inner);
        Some(block)
    }
}

/// Stretches strokes to a box, without keeping their proportions.
fn fit_exactly(strokes: &mut [Stroke], target: Rect) {
    let own = Rect::of(&*strokes);
    let scale = |target: f64, own: f64| if own > 0.0 { target / own } else { 1.0 };
    let (across, down) = (scale(target.width(), own.width()), scale(target.height(), own.height()));
    transform(strokes, |point| Point {
        x: target.left + (point.x - own.left) * across,
        y: target.top + (point.y - own.top) * down,
    });
}

/// Fits a root sign into a box, with a hook of the width `hook`: the line above is stretched, the hook is not.
fn fit_root(strokes: &mut [Stroke], target: Rect, hook: f64) {
    let own = Rect::of(&*strokes);
    // The line begins at the first point near the top after the lowest one.
    let points: Vec<Point> = strokes.iter().flat_map(|stroke| &stroke.points).copied().collect();
    let lowest = (0..points.len()).max_by(|&a, &b| points[a].y.total_cmp(&points[b].y)).unwrap_or(0);
    let near_top = |point: &&Point| point.y < own.top + 0.2 * own.height();
    let corner = points[lowest..].iter().find(near_top).or_else(|| points.iter().find(near_top));
    let corner = corner.map_or(own.left + 0.3 * own.width(), |point| point.x);
    let corner = corner.clamp(own.left + 0.05 * own.width(), own.left + 0.8 * own.width());
    fit_exactly(strokes, Rect { left: own.left, right: own.right, ..target });
    let (before, after) = (corner - own.left, own.right - corner);
    transform(strokes, |point| {
        let x = if point.x <= corner {
            target.left + (point.x - own.left) / before.max(1e-9) * hook
        } else {
            target.left + hook + (point.x - corner) / after.max(1e-9) * (target.width() - hook)
        };
        Point { x, ..point }
    });
}

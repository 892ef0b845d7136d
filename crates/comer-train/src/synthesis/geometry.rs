//! Bounding boxes of strokes, and transformations of strokes.

use comer::{Point, Stroke};

/// A box; y goes down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rect {
    /// Minimum x.
    pub left: f64,
    /// Minimum y.
    pub top: f64,
    /// Maximum x.
    pub right: f64,
    /// Maximum y.
    pub bottom: f64,
}

impl Rect {
    /// The empty box, neutral for [`Self::union`].
    pub const EMPTY: Self =
        Self { left: f64::INFINITY, top: f64::INFINITY, right: f64::NEG_INFINITY, bottom: f64::NEG_INFINITY };

    /// The bounding box of strokes.
    pub fn of<'a>(strokes: impl IntoIterator<Item = &'a Stroke>) -> Self {
        strokes.into_iter().flat_map(|stroke| &stroke.points).fold(Self::EMPTY, |rect, point| Self {
            left: rect.left.min(point.x),
            top: rect.top.min(point.y),
            right: rect.right.max(point.x),
            bottom: rect.bottom.max(point.y),
        })
    }

    /// The bounding box of both.
    pub fn union(self, other: Self) -> Self {
        Self {
            left: self.left.min(other.left),
            top: self.top.min(other.top),
            right: self.right.max(other.right),
            bottom: self.bottom.max(other.bottom),
        }
    }

    /// From left to right.
    pub fn width(&self) -> f64 {
        self.right - self.left
    }

    /// From top to bottom.
    pub fn height(&self) -> f64 {
        self.bottom - self.top
    }

    /// The middle.
    pub fn center(&self) -> Point {
        Point { x: (self.left + self.right) / 2.0, y: (self.top + self.bottom) / 2.0 }
    }

    /// The longer side.
    pub fn size(&self) -> f64 {
        self.width().max(self.height())
    }
}

/// Transforms every point.
pub fn transform(strokes: &mut [Stroke], change: impl Fn(Point) -> Point) {
    strokes.iter_mut().flat_map(|stroke| &mut stroke.points).for_each(|point| *point = change(*point));
}

/// Fits strokes into a box. Their proportions change by at most the factor `most`; 1 keeps them.
pub fn fit(strokes: &mut [Stroke], target: Rect, most: f64) {
    let own = Rect::of(&*strokes);
    let longest = if own.size() > 0.0 { target.size() / own.size() } else { 1.0 };
    let along = |target: f64, own: f64| match target / own {
        factor if factor.is_finite() && factor > 0.0 => factor.clamp(longest / most, longest * most),
        _ => longest,
    };
    let (across, down) = (along(target.width(), own.width()), along(target.height(), own.height()));
    let (from, to) = (own.center(), target.center());
    transform(strokes, |point| Point {
        x: to.x + (point.x - from.x) * across,
        y: to.y + (point.y - from.y) * down,
    });
}

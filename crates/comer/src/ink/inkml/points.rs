//! The points of a trace.

use crate::ink::{MOST_POINTS, Point};

/// Which of a point's values are X and Y.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Channels {
    pub(super) x: usize,
    pub(super) y: usize,
}

/// The points of a trace's text: values apart by white space, points by commas.
pub(super) fn points(text: &str, channels: Channels, most: usize) -> Result<Vec<Point>, String> {
    let mut points = Vec::new();
    for (number, values) in text.trim().trim_end_matches(',').split(',').enumerate() {
        if number == most {
            return Err(format!("there are more than {MOST_POINTS} points"));
        }
        let named = |reason: String| format!("point {number}: {reason}");
        let mut point = [None; 2];
        for (place, value) in Values(values).enumerate() {
            let value = value.map_err(named)?;
            for (slot, channel) in point.iter_mut().zip([channels.x, channels.y]) {
                if place == channel {
                    *slot = Some(parse(value).map_err(named)?);
                }
            }
        }
        let [Some(x), Some(y)] = point else {
            let expected = channels.x.max(channels.y) + 1;
            return Err(named(format!(
                "{:?} has too few values, expected at least {expected}",
                values.trim()
            )));
        };
        points.push(Point { x, y });
    }
    Ok(points)
}

/// The values of one point. A sign starts a new one even without white space before it: `3-5` is 3 and -5.
struct Values<'a>(&'a str);

impl<'a> Iterator for Values<'a> {
    type Item = Result<&'a str, String>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0 = self.0.trim_start();
        let first = self.0.chars().next()?;
        if let '\'' | '"' | '*' | '?' | '!' = first {
            self.0 = "";
            return Some(Err(format!(
                "has the modifier {first}, expected plain values: relative ones are not read"
            )));
        }
        let mut before = first;
        let ends = |(_, next): &(usize, char)| {
            let sign = matches!(next, '-' | '+') && !matches!(before, 'e' | 'E');
            before = *next;
            sign || next.is_whitespace() || matches!(next, '\'' | '"' | '*' | '?' | '!')
        };
        let end = self.0.char_indices().skip(1).find(ends).map_or(self.0.len(), |(index, _)| index);
        let (value, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(Ok(value))
    }
}

/// A decimal number, perhaps with an exponent.
fn parse(value: &str) -> Result<f64, String> {
    value.parse().map_err(|_| format!("{value:?} is not a number"))
}

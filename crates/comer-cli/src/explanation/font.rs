//! A stroke font for printable ASCII.
//!
//! A glyph is a list of strokes separated by `|`, each `/` for straight lines or `~` for a smooth curve through its points. A
//! point is two digits of base 36, x then y down: capitals reach from 0 to `e` (14), small letters start at 5, tails end
//! at `i` (18).

/// A glyph's outline: polylines, in units of a fourteenth of the height of capitals.
pub struct Glyph {
    pub strokes: Vec<Vec<(f32, f32)>>,
    /// From its left to its right edge, without the space after it.
    pub width: f32,
}

/// The height of capitals in the font's units.
pub const CAPITAL: f32 = 14.0;
/// Between two glyphs.
pub const GAP: f32 = 4.0;

/// The glyph of a character; a box for an unknown one.
pub fn glyph(character: char) -> Glyph {
    let place = (character as usize).wrapping_sub(usize::from(b'!'));
    let text = match character {
        ' ' => "",
        _ => GLYPHS.get(place).copied().unwrap_or("/00 80 8e 0e 00"),
    };
    let strokes: Vec<Vec<(f32, f32)>> =
        text.split('|').filter(|stroke| !stroke.is_empty()).map(stroke).collect();
    let right = strokes.iter().flatten().map(|point| point.0).fold(0.0, f32::max);
    Glyph { strokes, width: if character == ' ' { 4.0 } else { right } }
}

/// The width of a text, in the font's units.
pub fn width(text: &str) -> f32 {
    let advance: f32 = text.chars().map(|character| glyph(character).width + GAP).sum();
    (advance - GAP).max(0.0)
}

fn stroke(text: &str) -> Vec<(f32, f32)> {
    let digit = |byte: u8| char::from(byte).to_digit(36).unwrap_or(0) as f32;
    let (kind, points) = text.split_at(1);
    let points: Vec<(f32, f32)> = points
        .split(' ')
        .filter_map(|point| Some((digit(*point.as_bytes().first()?), digit(*point.as_bytes().get(1)?))))
        .collect();
    if kind == "/" { points } else { smooth(&points) }
}

/// A Catmull-Rom curve through the points, closed if the last is the first.
fn smooth(points: &[(f32, f32)]) -> Vec<(f32, f32)> {
    const PARTS: usize = 6;
    let last = points.len() - 1;
    let closed = points[0] == points[last];
    let mut curve = vec![points[0]];
    for start in 0..last {
        let before = if start > 0 {
            points[start - 1]
        } else if closed {
            points[last - 1]
        } else {
            points[0]
        };
        let (from, to) = (points[start], points[start + 1]);
        let after = if start + 2 <= last {
            points[start + 2]
        } else if closed {
            points[1]
        } else {
            points[last]
        };
        for part in 1..=PARTS {
            let t = part as f32 / PARTS as f32;
            let mix = |a: f32, b: f32, c: f32, d: f32| {
                b + 0.5 * t * (c - a + t * (2.0 * a - 5.0 * b + 4.0 * c - d + t * (3.0 * (b - c) + d - a)))
            };
            curve.push((mix(before.0, from.0, to.0, after.0), mix(before.1, from.1, to.1, after.1)));
        }
    }
    curve
}

/// From `!` to `~`, in the order of ASCII.
#[rustfmt::skip]
const GLYPHS: [&str; 94] = [
    "/10 19|/1d 1e", "/00 04|/30 34", "/30 1e|/80 6e|/15 95|/09 89",
    "~82 60 20 03 16 68 8b 6e 2e 0c|/40 4e", "~20 42 24 02 20|~8a ac 8e 6c 8a|/90 1e",
    "~ab 8d 4e 1d 0b 18 56 63 40 23 36 ae", "/00 04", "~40 14 09 1e 4i", "~00 34 49 3e 0i",
    "/32 3a|/04 68|/64 08", "/44 4c|/08 88", "/1d 1e 0h", "/08 68", "/0d 0e", "/70 0g",
    "~40 71 87 7d 4e 1d 07 11 40", "/03 40 4e|/0e 8e", "~03 11 40 71 83 76 4a 0e|/0e 8e",
    "~02 20 50 72 74 56 37|~37 68 8a 8c 5e 2e 0c", "/6e 60 0a 8a", "/70 10 06|~06 35 66 8a 7d 4e 1d 0c",
    "~71 50 23 08 0b 2e 5e 8c 89 66 36 08", "/00 80 3e",
    "~40 61 73 65 46 25 13 21 40|~46 77 8a 7d 4e 1d 0a 17 46", "~1d 3e 6b 86 83 60 30 02 05 28 58 86",
    "/06 07|/0d 0e", "/16 17|/1d 1e 0h", "/83 08 8d", "/06 86|/0a 8a", "/03 88 0d",
    "~03 11 40 71 73 56 48 4a|/4d 4e", "~78 56 48 5b 78|~78 8b ab b8 92 60 22 08 2d 6e 9d",
    "/0e 50 ae|/29 89", "/40 00 0e 5e|/06 46|~40 71 83 75 46|~46 87 9a 8d 5e", "~a3 91 50 12 07 1c 5e 9d ab",
    "/40 00 0e 4e|~40 82 a7 8c 4e", "/90 00 0e 9e|/07 77", "/90 00 0e|/07 77", "~a3 91 50 12 07 1c 5e 9c a8|/68 a8",
    "/00 0e|/a0 ae|/07 a7", "/00 40|/20 2e|/0e 4e", "/70 7a|~7a 6d 3e 1d 0b", "/00 0e|/90 08|/35 9e", "/00 0e 8e",
    "/0e 00 69 c0 ce", "/0e 00 ae a0", "~50 92 a7 9c 5e 1c 07 12 50", "/0e 00 40|~40 81 94 87 47|/47 07",
    "~50 92 a7 9c 5e 1c 07 12 50|/6a bf", "/0e 00 40|~40 81 94 87 47|/47 07|/47 9e", "~92 70 30 03 26 78 9b 6e 2e 0c",
    "/00 a0|/50 5e", "/00 09|~09 1d 5e 9d a9|/a9 a0", "/00 5e a0", "/00 3e 72 be e0", "/00 ae|/a0 0e",
    "/00 57 a0|/57 5e", "/00 a0 0e ae", "/40 00 0i 4i", "/00 7g", "/00 40 4i 0i", "/05 40 85", "/0g ag", "/00 23",
    "~45 76 89 8b 7d 4e 1d 0b 09 16 45|/85 8e", "/00 0e|~45 76 89 8b 7d 4e 1d 0b 09 16 45", "~77 65 45 16 09 0b 1d 4e 6e 7c",
    "/80 8e|~45 76 89 8b 7d 4e 1d 0b 09 16 45", "/09 89|~89 76 45 16 09 0b 1d 4e 6e 7d", "~60 40 22 26|/26 2e|/05 55",
    "/85 8f|~8f 7h 4i 1h|~45 76 89 8b 7d 4e 1d 0b 09 16 45", "/00 0e|~09 26 45 66 79|/79 7e", "/05 0e|/01 02",
    "/35 3f|~3f 2h 0i|/31 32", "/00 0e|/75 0a|/38 7e", "/00 0b|~0b 1e 2e", "/05 0e|~08 25 45 58|/58 5e|~58 75 95 a8|/a8 ae",
    "/05 0e|~09 26 45 66 79|/79 7e", "~45 76 89 8a 7d 4e 1d 0a 09 16 45", "/05 0i|~45 76 89 8b 7d 4e 1d 0b 09 16 45",
    "/85 8i|~45 76 89 8b 7d 4e 1d 0b 09 16 45", "/05 0e|~09 26 45 55", "~67 55 25 07 19 5a 6c 5e 2e 0c",
    "/20 2b|~2b 3e 5e|/05 55", "/05 0a|~0a 1d 3e 5d 7a|/75 7e", "/05 4e 85", "/05 2e 56 8e a5", "/05 8e|/85 0e",
    "/05 4e|/85 4e 2i 0i", "/05 75 0e 7e", "~50 31 34 37 09|~09 3b 3e 3h 5i", "/00 0i", "~00 21 24 27 59|~59 2b 2e 2h 0i",
    "~09 27 48 69 87",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_printable_character_has_a_glyph_of_its_own_within_the_line() {
        let mut seen = std::collections::HashSet::new();
        for character in '!'..='~' {
            let drawn = glyph(character);
            assert!(!drawn.strokes.is_empty(), "{character}");
            assert!(drawn.strokes.iter().all(|stroke| stroke.len() > 1), "{character}");
            let inside = |&(x, y): &(f32, f32)| (-1.0..=15.0).contains(&x) && (-1.0..=19.0).contains(&y);
            assert!(drawn.strokes.iter().flatten().all(inside), "{character}");
            assert!(seen.insert(format!("{:?}", drawn.strokes)), "{character} looks like another");
        }
    }

    #[test]
    fn what_the_font_lacks_is_a_box() {
        for character in ['é', '∑', '\u{1f600}', '\n', '\u{7f}'] {
            assert_eq!(glyph(character).strokes, [stroke("/00 80 8e 0e 00")]);
        }
        assert_eq!(width(""), 0.0);
        assert_eq!(width("HH"), 10.0 + GAP + 10.0);
    }
}

//! Assigns strokes to symbols by bounding boxes. Strokes that were traced from a picture may run through several symbols and
//! are split between them.

use comer_train::stroke_set::Record;

/// A bounding box.
struct Bounds {
    left: i32,
    top: i32,
    right: i32,
    bottom: i32,
}

impl Bounds {
    /// The Chebyshev distance of a point to the box.
    fn distance(&self, [x, y]: [i32; 2]) -> i32 {
        let beyond = |value: i32, least: i32, most: i32| (least - value).max(value - most).max(0);
        beyond(x, self.left, self.right).max(beyond(y, self.top, self.bottom))
    }

    fn area(&self) -> i64 {
        i64::from(self.right - self.left) * i64::from(self.bottom - self.top)
    }
}

/// Minimum extent of a piece in quarter pixels; shorter ones are joined with the previous piece.
const SHORTEST: i32 = 12;

/// Splits the strokes of a record by the boxes of its symbols (label and two corners, in any order) and assigns the pieces to
/// the symbols. Boxes without strokes are ignored.
pub fn assign(record: &mut Record, boxes: &[(String, i32, i32, i32, i32)]) -> Result<(), String> {
    let bounds: Vec<Bounds> = boxes
        .iter()
        .map(|&(_, x0, y0, x1, y1)| Bounds {
            left: x0.min(x1),
            top: y0.min(y1),
            right: x0.max(x1),
            bottom: y0.max(y1),
        })
        .collect();
    // The nearest box; the smallest of those that contain the point, as the box of a root contains its radicand.
    let nearest = |at: [i32; 2]| {
        (0..bounds.len()).min_by_key(|&index| (bounds[index].distance(at), bounds[index].area()))
    };
    let mut symbols: Vec<(String, Vec<usize>)> =
        boxes.iter().map(|(label, ..)| (label.clone(), Vec::new())).collect();
    let mut strokes = Vec::new();
    for packed in &record.strokes {
        let points = unpack(packed);
        // A stroke that is almost entirely within one box, and mostly not in a smaller one, belongs to that symbol.
        let own: Vec<usize> = points.iter().filter_map(|&at| nearest(at)).collect();
        let whole = (0..bounds.len()).find(|&index| {
            let inside = points.iter().filter(|&&at| bounds[index].distance(at) <= 2).count();
            let nearest = own.iter().filter(|&&own| own == index).count();
            10 * inside >= 9 * points.len() && 10 * nearest >= 6 * points.len()
        });
        let owners: Vec<usize> = match whole {
            Some(index) => vec![index; points.len().max(2) - 1],
            None if points.len() == 1 => nearest(points[0]).into_iter().collect(),
            None => points.windows(2).filter_map(|pair| nearest(middle(pair[0], pair[1]))).collect(),
        };
        for (piece, owner) in split(&points, &owners) {
            symbols[owner].1.push(strokes.len());
            strokes.push(pack(&piece));
        }
    }
    symbols.retain(|(_, strokes)| !strokes.is_empty());
    if symbols.is_empty() {
        return Err("no stroke is in any box".into());
    }
    (record.strokes, record.symbols) = (strokes, symbols);
    Ok(())
}

fn middle(a: [i32; 2], b: [i32; 2]) -> [i32; 2] {
    [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2]
}

/// Pieces of a stroke whose segments have the same owner; neighbours share a point.
fn split(points: &[[i32; 2]], owners: &[usize]) -> Vec<(Vec<[i32; 2]>, usize)> {
    let mut pieces: Vec<(Vec<[i32; 2]>, usize)> = Vec::new();
    if points.len() == 1 {
        return owners.iter().map(|&owner| (points.to_vec(), owner)).collect();
    }
    for (pair, &owner) in points.windows(2).zip(owners) {
        match pieces.last_mut() {
            Some((piece, last)) if *last == owner => piece.push(pair[1]),
            _ => pieces.push((pair.to_vec(), owner)),
        }
    }
    let mut joined: Vec<(Vec<[i32; 2]>, usize)> = Vec::new();
    for (piece, owner) in pieces {
        match joined.last_mut() {
            Some((before, last)) if *last == owner || extent(&piece) < SHORTEST => before.extend(&piece[1..]),
            // A short first piece is joined with the next one.
            Some((before, last)) if extent(before) < SHORTEST => {
                before.extend(&piece[1..]);
                *last = owner;
            }
            _ => joined.push((piece, owner)),
        }
    }
    joined
}

/// The longer side of the bounding box.
fn extent(points: &[[i32; 2]]) -> i32 {
    let side = |axis: usize| {
        let values = || points.iter().map(|point| point[axis]);
        values().max().unwrap_or(0) - values().min().unwrap_or(0)
    };
    side(0).max(side(1))
}

fn unpack(packed: &[i32]) -> Vec<[i32; 2]> {
    let mut at = [0, 0];
    let step = |step: &[i32]| {
        at = [at[0] + step[0], at[1] + step[1]];
        at
    };
    packed.chunks_exact(2).map(step).collect()
}

fn pack(points: &[[i32; 2]]) -> Vec<i32> {
    let mut last = [0, 0];
    let step = |point: &[i32; 2]| {
        let step = [point[0] - last[0], point[1] - last[1]];
        last = *point;
        step
    };
    points.iter().flat_map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stroke_through_two_symbols_is_split_and_short_pieces_are_joined() {
        let label = |label: &str, corners: [i32; 4]| {
            (label.to_string(), corners[0], corners[1], corners[2], corners[3])
        };
        let boxes =
            [label("1", [0, 100, 40, 0]), label("2", [44, 0, 100, 100]), label("3", [0, 0, 400, 300])];
        let points = [[10, 10], [10, 90], [38, 90], [48, 90], [90, 10], [104, 10]];
        let far = [[200, 200], [300, 250]];
        let dot = [[20, 20]];
        let mut record = Record {
            id: String::new(),
            tokens: String::new(),
            strokes: vec![pack(&points), pack(&far), pack(&dot)],
            symbols: Vec::new(),
            writer: None,
            pen: Some(3.0),
        };
        assign(&mut record, &boxes).unwrap();
        let symbols: Vec<(&str, &[usize])> =
            record.symbols.iter().map(|(label, strokes)| (&label[..], &strokes[..])).collect();
        // The segment between both is in the large box, but too short for a piece.
        assert_eq!(symbols, [("1", &[0, 3][..]), ("2", &[1]), ("3", &[2])]);
        assert_eq!(unpack(&record.strokes[0]).first(), Some(&points[0]));
        assert_eq!(unpack(&record.strokes[1]).last(), Some(&points[5]));
        assert_eq!(unpack(&record.strokes[0]).last(), unpack(&record.strokes[1]).first());
    }
}

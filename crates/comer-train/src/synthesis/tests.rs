//! Tests of synthesis with a few expressions of zigzags.

use comer::Point;

use super::*;
use crate::stroke_set::Record;

/// A symbol's strokes: a zigzag that depends on the token.
fn glyph(token: TokenId, bounds: Rect) -> Vec<Stroke> {
    let points = (0..6).map(|step| {
        let turn = f64::from((u32::from(token) * (step + 3)) % 7) / 7.0;
        let x = bounds.left
            + bounds.width()
                * if step == 0 {
                    0.0
                } else if step == 5 {
                    1.0
                } else {
                    turn
                };
        Point { x, y: bounds.top + bounds.height() * f64::from(step) / 5.0 }
    });
    vec![Stroke { points: points.collect() }]
}

/// Expressions written side by side, one of them a fraction, and every symbol of the vocabulary once.
fn training(vocab: &Vocab) -> Vec<Sample> {
    let grammar = TreeGrammar::new(vocab).unwrap();
    let mut samples = Vec::new();
    let mut add = |caption: &str, boxes: &[Rect], writer: &str| {
        let tokens = vocab.encode(caption).unwrap();
        let leaves = grammar.leaves(&grammar.parse(&tokens).unwrap());
        assert_eq!(leaves.len(), boxes.len(), "{caption}");
        let symbols = leaves
            .iter()
            .enumerate()
            .map(|(index, &leaf)| InkSymbol { label: vocab.decode(&[leaf]), strokes: vec![index] });
        let strokes = leaves.iter().zip(boxes).flat_map(|(&leaf, &bounds)| glyph(leaf, bounds)).collect();
        let ink = Ink::new(strokes).unwrap().with_symbols(symbols.collect()).unwrap();
        let record = Record::of(caption, caption, &ink);
        let (tokens, ink, strokes) = record.read(vocab).unwrap();
        let mut sample = Sample::with_ink(caption.into(), tokens, ink, strokes).unwrap();
        sample.writer = Some(writer.into());
        samples.push(sample);
    };
    let rect = |left: f64, top: f64, width: f64, height: f64| Rect {
        left,
        top,
        right: left + width,
        bottom: top + height,
    };
    let beside =
        |count: usize| (0..count).map(|x| rect(30.0 * x as f64, 0.0, 20.0, 28.0)).collect::<Vec<_>>();
    for (number, token) in vocab.tokens().iter().enumerate() {
        let id = vocab.encode(token).unwrap();
        if id.len() == 1 && id[0] > 2 && grammar.is_symbol(id[0]) {
            let writer = ["anna", "bert", "carl"][number % 3];
            add(&format!("x + {token}"), &beside(3), writer);
        }
    }
    let fraction = [
        rect(0.0, 30.0, 60.0, 1.0),
        rect(5.0, 0.0, 20.0, 25.0),
        rect(30.0, -8.0, 12.0, 14.0),
        rect(20.0, 35.0, 20.0, 25.0),
        rect(70.0, 20.0, 15.0, 15.0),
        rect(90.0, 10.0, 20.0, 28.0),
    ];
    add("\\frac { a ^ { 2 } } { b } + c", &fraction, "dora");
    let root = [
        rect(0.0, 0.0, 60.0, 30.0),
        rect(15.0, 5.0, 15.0, 24.0),
        rect(35.0, 5.0, 15.0, 24.0),
        rect(70.0, 2.0, 15.0, 28.0),
    ];
    add("\\sqrt { y z } 3", &root, "dora");
    samples
}

fn synthesizer(vocab: &Vocab, training: &[Sample], lists: &[(&str, &str)]) -> Result<Synthesizer> {
    let folder = tempfile::tempdir().unwrap();
    let mut set = DataSet { path: "made".into(), ..DataSet::default() };
    for (name, text) in lists {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    set.formulas = vec!["formulas".into()];
    set.exclude = vec!["exclude".into()];
    Synthesizer::new(folder.path(), &set, training, vocab)
}

const FORMULAS: &str = "1\t\\frac { x } { y } = \\sqrt [ 3 ] { z }\n2\t\\sum \\limits _ { i = 1 } ^ { n } ( \\frac { 1 } { i } ) ^ { 2 }\nx + 1\n\\int a \\sin b _ { 0 }\n";

#[test]
fn samples_are_deterministic_and_their_symbols_match_their_caption() {
    let vocab = Vocab::crohme();
    let training = training(&vocab);
    let made = synthesizer(&vocab, &training, &[("formulas", FORMULAS), ("exclude", "t\tx + 1\n")]).unwrap();
    let mut kinds = [0; 3];
    for number in 0..120 {
        let sample = made.generate(&training, 7, number);
        let again = made.generate(&training, 7, number);
        assert_eq!(sample.picture().unwrap(), again.picture().unwrap());
        assert_eq!((&sample.tokens, &sample.strokes), (&again.tokens, &again.strokes));
        kinds[made.kind(7, number) as usize] += 1;
        let row = made.grammar.parse(&sample.tokens).unwrap();
        let ink = sample.ink.as_ref().unwrap();
        // The symbols are the leaves of the tree of the caption.
        let names: Vec<TokenId> =
            ink.symbols().iter().map(|symbol| sample.strokes[symbol.strokes[0]]).collect();
        assert_eq!(names, made.grammar.leaves(&row));
        assert_ne!(vocab.decode(&sample.tokens), "x + 1");
        assert!(made.area(&training, 7, number) > 0);
    }
    assert!(kinds.iter().all(|&count| count > 20), "{kinds:?}");
    assert_ne!(
        made.generate(&training, 7, 0).picture().unwrap(),
        made.generate(&training, 8, 0).picture().unwrap()
    );
}

#[test]
fn most_new_formulas_can_be_aligned_again() {
    let vocab = Vocab::crohme();
    let training = training(&vocab);
    let made = synthesizer(&vocab, &training, &[("formulas", FORMULAS), ("exclude", "")]).unwrap();
    let mut aligned = 0;
    for number in 0..40 {
        let sample = made.generate_kind(SynthesisKind::Formulas, &training, 3, number);
        aligned += usize::from(find_layout(&made.grammar, 0, &sample).is_some());
    }
    assert!(aligned >= 34, "only {aligned} of 40 could be aligned");
}

#[test]
fn every_token_can_be_generated() {
    let vocab = Vocab::crohme();
    let training = training(&vocab);
    let grammar = TreeGrammar::new(&vocab).unwrap();
    for token in vocab.tokens() {
        let id = vocab.encode(token).unwrap();
        let caption = match &token[..] {
            _ if id[0] <= 2 => continue,
            "{" | "}" | "\\frac" => "\\frac { 1 } { 2 }".to_string(),
            "^" | "_" => "x _ { 1 } ^ { 2 }".into(),
            "\\limits" => "\\sum \\limits _ { i } i".into(),
            "\\sqrt" => "\\sqrt { 2 }".into(),
            other => format!("{other} {other}"),
        };
        assert!(grammar.parse(&vocab.encode(&caption).unwrap()).is_some(), "{caption}");
        let lists = [("formulas", &caption[..]), ("exclude", "")];
        let made =
            synthesizer(&vocab, &training, &lists).unwrap_or_else(|error| panic!("{caption}: {error}"));
        let sample = made.generate_kind(SynthesisKind::Formulas, &training, 1, 1);
        assert_eq!(vocab.decode(&sample.tokens), caption);
        assert!(sample.name.starts_with("made"));
    }
}

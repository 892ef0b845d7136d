//! InkML of every kind, good and bad, and back again.

use crate::error::Result;
use crate::ink::{Ink, InkSymbol, Point, Stroke};
use proptest::prelude::*;

fn coordinates(ink: &Ink) -> Vec<Vec<(f64, f64)>> {
    ink.strokes()
        .iter()
        .map(|stroke| stroke.points.iter().map(|point| (point.x, point.y)).collect())
        .collect()
}

fn ink(body: &str) -> Result<Ink> {
    Ink::from_inkml(format!("<ink xmlns=\"http://www.w3.org/2003/InkML\">{body}</ink>").as_bytes())
}

#[test]
fn values_of_a_trace() {
    let xyt = "<traceFormat><channel name='X'/><channel name='Y'/><channel name='T'/></traceFormat>";
    let fyx = "<definitions><context><inkSource><traceFormat><channel name='F'/><channel name='Y'/>\
               <channel name='X'/></traceFormat></inkSource></context></definitions>";
    let penup = "<intermittentChannels><channel name='P'/></intermittentChannels>";
    type Expected = &'static [(f64, f64)];
    let table: [(&str, String, Expected); 9] = [
        ("whole", "<trace>1 2, 3 4</trace>".into(), &[(1.0, 2.0), (3.0, 4.0)]),
        ("one point", "<trace> 1 2 </trace>".into(), &[(1.0, 2.0)]),
        ("fractions, signs", "<trace>-1.5 +2,\n.25 -0</trace>".into(), &[(-1.5, 2.0), (0.25, 0.0)]),
        ("exponents", "<trace>1e-3 2.5E+2</trace>".into(), &[(0.001, 250.0)]),
        ("a sign parts values", "<trace>3-5,7 -3</trace>".into(), &[(3.0, -5.0), (7.0, -3.0)]),
        ("a last comma", "<trace>1 2,3 4,</trace>".into(), &[(1.0, 2.0), (3.0, 4.0)]),
        ("a third channel", format!("{xyt}<trace>1 2 99,3 4 100</trace>"), &[(1.0, 2.0), (3.0, 4.0)]),
        ("another order", format!("{fyx}<trace>T 2 1,F 4 3</trace>"), &[(1.0, 2.0), (3.0, 4.0)]),
        (
            "intermittent channels",
            format!(
                "<traceFormat><channel name='X'/><channel name='Y'/>{penup}</traceFormat><trace>1 2,3 4 9</trace>"
            ),
            &[(1.0, 2.0), (3.0, 4.0)],
        ),
    ];
    for (name, body, expected) in table {
        assert_eq!(coordinates(&ink(&body).unwrap()), [expected], "{name}");
    }
}

#[test]
fn symbols_and_annotations() {
    let body = "<annotation type='truth'>$a&lt;b&#x21;$</annotation><annotation type='writer'>w 1</annotation>\
        <annotationXML type='truth'><math><annotation type='truth'>no</annotation></math></annotationXML>\
        <trace id='t0'>0 0</trace><trace xml:id='t1' type='penUp'>5 5</trace><trace xml:id='t2'>1 1</trace>\
        <traceGroup><annotation type='truth'>Segmentation</annotation>\
        <traceGroup><annotation type='truth'>a</annotation><traceView traceDataRef='#t2'/>\
        <traceView traceDataRef='t0'/><traceView traceDataRef='t1'/><traceView traceDataRef='t9'/></traceGroup>\
        <traceGroup><annotation type='truth'>\\lt</annotation><trace>2 2</trace></traceGroup></traceGroup>";
    let ink = ink(body).unwrap();
    assert_eq!(ink.latex(), Some("a<b!"));
    assert_eq!(ink.annotation("writer"), Some("w 1"));
    assert_eq!(coordinates(&ink), [[(0.0, 0.0)], [(1.0, 1.0)], [(2.0, 2.0)]]);
    let expected = [("a", vec![1, 0]), ("\\lt", vec![2])]
        .map(|(label, strokes)| InkSymbol { label: label.into(), strokes });
    assert_eq!(ink.symbols(), expected);
}

#[test]
fn bad_files_are_refused_with_their_reason() {
    let table: [(&str, &str); 20] = [
        ("", "no traces"),
        ("<traceGroup/>", "no traces"),
        ("<trace></trace>", "trace 0: point 0: \"\" has too few values, expected at least 2"),
        ("<trace id='a'>1 2, 3</trace>", "trace a: point 1: \"3\" has too few values"),
        ("<trace>1 2,,3 4</trace>", "point 1: \"\" has too few values"),
        ("<trace>1 two</trace>", "\"two\" is not a number"),
        ("<trace>#1F 2</trace>", "\"#1F\" is not a number"),
        ("<trace>1125 18432,'23'43</trace>", "point 1: has the modifier '"),
        ("<trace>1 2,\"7 8</trace>", "modifier \""),
        ("<trace>1 2,* 8</trace>", "modifier *"),
        ("<trace>1 2,? 8</trace>", "modifier ?"),
        ("<trace>1 NaN</trace>", "y is NaN, expected a number within 1e9"),
        ("<trace>inf 1</trace>", "x is inf"),
        ("<trace>1e300 1</trace>", "expected a number within 1e9"),
        ("<trace>1e999 1</trace>", "x is inf"),
        ("<traceFormat><channel name='X'/></traceFormat><trace>1 2</trace>", "expected X and Y among them"),
        (
            "<traceFormat><channel name='X'/><channel name='Y'/></traceFormat>\
             <traceFormat><channel name='Y'/><channel name='X'/></traceFormat><trace>1 2</trace>",
            "unlike places",
        ),
        ("<trace continuation='begin'>1 2</trace>", "expected whole traces"),
        ("<trace>1 2</trace><trace>", "not well-formed XML"),
        ("<annotation type='truth'>&bomb;</annotation><trace>1 2</trace>", "&bomb; is not known"),
    ];
    for (body, expected) in table {
        let message = ink(body).unwrap_err().to_string();
        assert!(message.starts_with("InkML: ") && message.contains(expected), "{body}: {message}");
    }
    let whole: [(&[u8], &str); 6] = [
        (b"", "no element, expected <ink>"),
        (b"x", "no element, expected <ink>"),
        (b"<svg><trace>1 2</trace></svg>", "the root is <svg>, expected <ink>"),
        (b"<ink><trace>1 2</trace>", "cut short"),
        (b"<ink><trace>1 2</tr", "not well-formed"),
        (b"\xff\xfe<\0i\0", "not well-formed"),
    ];
    for (bytes, expected) in whole {
        let message = Ink::from_inkml(bytes).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn too_much_is_refused() {
    let cases = [
        ("<trace>1 2</trace>".repeat(100_000), "more than 5000 traces"),
        (format!("<trace>{}</trace>", "1 2,".repeat(300_000)), "more than 200000 points"),
        ("<a>".repeat(100_000), "nested deeper"),
        (" ".repeat(crate::ink::MOST_BYTES), "expected at most 33554432"),
    ];
    for (body, expected) in cases {
        let message = ink(&body).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn not_utf_8_in_an_annotation_is_no_obstacle() {
    let bytes = b"<ink><annotation type='writer'>Andr\xe9</annotation><trace>1 2</trace></ink>";
    assert_eq!(Ink::from_inkml(bytes).unwrap().annotation("writer"), Some("Andr\u{fffd}"));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Ink::from_inkml(&bytes);
    }

    #[test]
    fn anything_like_ink_is_read_or_refused(body in "(<trace>|</trace>|<traceGroup>|</traceGroup>|[0-9 ,.'e-]|&#x?[0-9]{1,3};|<annotation type=\"truth\">|</annotation>){0,30}") {
        let _ = ink(&body);
    }

    #[test]
    fn what_is_written_is_read_back(
        strokes in prop::collection::vec(prop::collection::vec((-1e6..1e6, -1e6..1e6), 1..9), 1..6),
        label in "[a-z<>&\"'\\\\]{1,6}",
        latex in "[ -~]{0,12}",
    ) {
        let stroke = |points: &Vec<(f64, f64)>| Stroke { points: points.iter().map(|&(x, y)| Point { x, y }).collect() };
        let last = strokes.len() - 1;
        let ink = Ink::new(strokes.iter().map(stroke).collect()).unwrap()
            .with_symbols(vec![InkSymbol { label, strokes: vec![last] }]).unwrap()
            .with_annotation("truth", latex.trim());
        prop_assert_eq!(Ink::from_inkml(ink.to_inkml().as_bytes()).unwrap(), ink);
    }
}

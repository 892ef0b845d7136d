//! The renderings of a made-up reading: against golden pictures, against each other, and in a real browser.
//!
//! `COMER_UPDATE_GOLDEN=1 cargo test --release -p comer-cli --lib explanation` updates the golden images; look at them.

use std::path::Path;

use comer::alignment::{Alignment, InkCoverage, Pass, PassStep};
use comer::{Image, Ink};
use comer_testing::browser;

use super::*;

const LAYERS: usize = 2;
const HEADS: usize = 2;

/// A picture of ours, and a reading of it that goes over it from one side to the other.
struct Story {
    picture: Image,
    tokens: Vec<Token>,
    alignment: Alignment,
}

impl Story {
    /// A reader that looks at each token's place; with `skip` it never looks at the left half, with `stay` it always
    /// looks at the same place.
    fn new(skip: bool, stay: bool) -> Self {
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/square.inkml");
        let ink = Ink::from_inkml(&std::fs::read(sample).unwrap()).unwrap();
        let picture = ink.draw().unwrap().fit().unwrap();
        let token = |text: &str, confidence| Token::new(text, confidence);
        let tokens: Vec<Token> =
            ink.latex().unwrap().split_whitespace().map(|text| token(text, 0.9)).collect();
        let (width, height) = (picture.width().div_ceil(16), picture.height().div_ceil(16));
        let place = |step: usize, count: usize| {
            let share = if stay { 0.5 } else { (step as f32 + 0.5) / count as f32 };
            if skip { 0.65 + 0.35 * share } else { share }
        };
        let spot = |at: f32, wide: f32| -> Vec<f32> {
            let near = |cell: usize| {
                let x = (cell % width) as f32 + 0.5 - at * width as f32;
                let y = (cell / width) as f32 + 0.5 - 0.5 * height as f32;
                (-(x * x + y * y / 2.0) / wide).exp()
            };
            let map: Vec<f32> = (0..width * height).map(near).collect();
            let sum: f32 = map.iter().sum();
            map.into_iter().map(|value| value / sum).collect()
        };
        let pass = |direction: Direction| {
            let mut order: Vec<usize> = (0..tokens.len()).collect();
            if direction == Direction::RightToLeft {
                order.reverse();
            }
            let mut coverage = vec![0.0; LAYERS * HEADS * width * height];
            let steps = order.iter().map(|&index| Some(index)).chain([None]).map(|index| {
                let at = index.map_or(0.95, |index| place(index, tokens.len()));
                let attention: Vec<f32> =
                    (0..LAYERS * HEADS).flat_map(|map| spot(at, 0.6 + map as f32)).collect();
                let before = coverage.clone();
                coverage.iter_mut().zip(&attention).for_each(|(sum, now)| *sum += now);
                let refine = |(place, sum): (usize, &f32)| {
                    if place < HEADS * width * height { 0.0 } else { 3.0 * sum - 1.0 }
                };
                let mut step = PassStep::default();
                step.index = index;
                step.token = index.map_or(token("<eos>", 0.99), |index| tokens[index].clone());
                step.runners_up = vec![token("z", 0.06), token(r"\alpha", 0.03), token("<eos>", 0.001)];
                step.attention = attention;
                step.refinement = before.iter().enumerate().map(refine).collect();
                step.coverage = before;
                step
            });
            let mut pass = Pass::new(direction, LAYERS, HEADS);
            pass.steps = steps.collect();
            pass
        };
        let passes = vec![pass(Direction::LeftToRight), pass(Direction::RightToLeft)];
        let attention: Vec<Vec<f32>> =
            (0..tokens.len()).map(|index| spot(place(index, tokens.len()), 1.0)).collect();
        let read = tokens.iter().zip(&attention).map(|(token, map)| (token.text.as_str(), map.as_slice()));
        let ink = InkCoverage::new(&picture, width, read);
        let mut alignment = Alignment::default();
        (alignment.height, alignment.width) = (height, width);
        (alignment.attention, alignment.ink, alignment.passes) = (attention, ink, passes);
        Self { picture, tokens, alignment }
    }

    fn view(&self) -> View<'_> {
        View { picture: &self.picture, tokens: &self.tokens, alignment: &self.alignment }
    }
}

const CHOICE: Choice =
    Choice { map: Map::Refinement, layer: None, head: None, direction: Direction::LeftToRight };

/// The mean difference of two pictures in levels, and the share of pixels that differ by more than a tenth.
fn difference(one: &[u8], other: &[u8]) -> (f64, f64) {
    assert_eq!(one.len(), other.len());
    let each = || one.iter().zip(other).map(|(a, b)| f64::from(a.abs_diff(*b)));
    let far = each().filter(|&difference| difference > 25.0).count();
    (each().sum::<f64>() / one.len() as f64, far as f64 / one.len() as f64)
}

/// Half as wide and high, each pixel the mean of four: enough to see what changed, and small to keep.
fn halved(canvas: &canvas::Canvas) -> canvas::Canvas {
    let mut half = canvas::Canvas::new(canvas.width / 2, canvas.height / 2, [0; 3]);
    for (place, pixel) in half.pixels.iter_mut().enumerate() {
        let (x, y) = (2 * (place % half.width), 2 * (place / half.width));
        let four = [(x, y), (x + 1, y), (x, y + 1), (x + 1, y + 1)];
        for (colour, level) in pixel.iter_mut().enumerate() {
            let level_at = |(x, y): (usize, usize)| u32::from(canvas.pixels[y * canvas.width + x][colour]);
            *level = (four.map(level_at).iter().sum::<u32>() / 4) as u8;
        }
    }
    half
}

fn assert_golden(name: &str, canvas: &canvas::Canvas) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let canvas = halved(canvas);
    if std::env::var_os("COMER_UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, png::png(&canvas).unwrap()).unwrap();
    }
    let golden = image::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).into_rgb8();
    let size = (golden.width() as usize, golden.height() as usize);
    assert_eq!(size, (canvas.width, canvas.height), "{name}");
    let (mean, far) = difference(golden.as_raw(), canvas.pixels.as_flattened());
    assert!(mean < 0.5 && far < 0.002, "{name}: {mean} levels off, {far} of the pixels far off");
}

#[test]
fn sheets_look_as_they_did() {
    let story = Story::new(false, false);
    assert_golden("explain-refinement.png", &sheet::sheet(&story.view(), &CHOICE));
    let attention =
        Choice { map: Map::Attention, layer: Some(1), head: Some(0), direction: Direction::RightToLeft };
    assert_golden("explain-attention.png", &sheet::sheet(&story.view(), &attention));
    let coverage = Choice { map: Map::Coverage, ..CHOICE };
    let lost = Story::new(true, false);
    assert!(lost.alignment.ink.unread > 0.0);
    assert_golden("explain-unread.png", &sheet::sheet(&lost.view(), &coverage));
    let looping = Story::new(false, true);
    assert!(looping.alignment.ink.reread > 0.0);
    assert_golden("explain-reread.png", &sheet::sheet(&looping.view(), &coverage));
}

#[test]
fn a_golden_picture_notices_another_map() {
    let story = Story::new(false, false);
    let sheet = |map| sheet::sheet(&story.view(), &Choice { map, ..CHOICE });
    let (one, other) = (sheet(Map::Refinement), sheet(Map::Coverage));
    let (mean, _) = difference(one.pixels.as_flattened(), other.pixels.as_flattened());
    assert!(mean > 2.0, "{mean}");
}

#[test]
fn the_animation_has_a_frame_for_each_step_and_one_for_the_end() {
    use image::AnimationDecoder;
    let story = Story::new(true, false);
    let bytes = animation::gif(&story.view(), &CHOICE).unwrap();
    let decoder = image::codecs::gif::GifDecoder::new(std::io::Cursor::new(bytes)).unwrap();
    let found = decoder.into_frames().collect_frames().unwrap();
    let drawn = animation::frames(&story.view(), &CHOICE);
    assert_eq!((found.len(), drawn.len()), (story.tokens.len() + 2, story.tokens.len() + 2));
    for (found, (drawn, time)) in found.iter().zip(&drawn) {
        assert_eq!(std::time::Duration::from(found.delay()), *time);
        let rgb: Vec<u8> = found.buffer().pixels().flat_map(|pixel| pixel.0[..3].to_vec()).collect();
        let (mean, far) = difference(&rgb, drawn.pixels.as_flattened());
        assert!(mean < 3.0 && far < 0.01, "{mean} {far}");
    }
    assert_golden("explain-frame.png", &drawn[2].0);
    assert_golden("explain-last-frame.png", &drawn.last().unwrap().0);
}

#[test]
fn any_token_can_be_shown() {
    let mut story = Story::new(false, false);
    for text in ["<script>alert(1)</script>", "日本語", &"long".repeat(200), "&amp;"] {
        story.tokens[0].text = text.into();
        for pass in &mut story.alignment.passes {
            pass.steps[0].token.text = text.into();
        }
        sheet::sheet(&story.view(), &CHOICE);
        animation::frames(&story.view(), &CHOICE);
        let page = html::html(text, &story.view(), &CHOICE).unwrap();
        assert_eq!(page.matches("<script").count(), 2, "{text}");
        assert!(!page.contains("http"), "the page is to work offline");
        let svg = svg::svg(&story.view(), &CHOICE).unwrap();
        assert!(!svg.contains("<script"), "{text}");
    }
}

/// A browser draws the vector picture as the sheet is drawn, but for the letters.
#[test]
fn the_vector_picture_is_the_sheet() {
    let story = Story::new(true, false);
    let (sheet, folder) = (sheet::sheet(&story.view(), &CHOICE), tempfile::tempdir().unwrap());
    let file = folder.path().join("sheet.svg");
    std::fs::write(&file, svg::svg(&story.view(), &CHOICE).unwrap()).unwrap();
    let shot = folder.path().join("shot.png");
    let flags = [
        format!("--screenshot={}", shot.display()),
        // Headless windows have a least width; what is beyond the sheet is cut off below.
        format!("--window-size={},{}", sheet.width.max(800), sheet.height.max(600)),
        "--hide-scrollbars".into(),
        "--force-device-scale-factor=1".into(),
    ];
    if browser::load_file(&file, &flags).is_none() {
        return;
    }
    let shot = image::open(shot).unwrap().into_rgb8();
    let drawn: Vec<u8> = (0..sheet.height)
        .flat_map(|y| (0..sheet.width).map(move |x| (x as u32, y as u32)))
        .flat_map(|(x, y)| shot.get_pixel(x, y).0)
        .collect();
    let (mean, far) = difference(&drawn, sheet.pixels.as_flattened());
    assert!(mean < 5.0 && far < 0.06, "{mean} levels off, {far} of the pixels far off");
}

/// Uses the page as a reader would, and leaves what it found in the title.
const USE: &str = "
addEventListener('load', async () => {
  const $ = (id) => document.getElementById(id);
  const key = (key) => document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
  const choose = (id, value) => { $(id).value = value; $(id).dispatchEvent(new Event('input')); };
  const pixels = () => $('picture').getContext('2d').getImageData(0, 0, $('picture').width, $('picture').height).data;
  const count = ([r, g, b]) => {
    const data = pixels();
    let found = 0;
    for (let i = 0; i < data.length; i += 4) found += data[i] === r && data[i + 1] === g && data[i + 2] === b;
    return found;
  };
  const mean = () => pixels().reduce((sum, value) => sum + value, 0);
  const step = () => Number($('step').value);
  const selected = () => Array.from($('tokens').children).findIndex((one) => one.getAttribute('aria-selected') === 'true');
  const found = { start: [$('map').value, step(), $('token').textContent], tokens: $('tokens').children.length };
  const first = mean();
  key('ArrowRight');
  found.right = [step(), selected(), $('token').textContent];
  found.redrawn = mean() !== first;
  key('End');
  found.end = [step(), selected(), $('token').textContent];
  key('ArrowRight');
  found.stays = step();
  $('tokens').children[1].click();
  found.clicked = [step(), $('others').rows.length, $('others').rows[0].cells[2].textContent];
  key('d');
  found.turned = [$('pass').value, step(), selected()];
  choose('pass', '0');
  choose('step', 0);
  found.slid = [step(), selected()];
  key('ArrowUp');
  found.layer = $('layer').value;
  key('ArrowUp');
  found.mean = $('layer').value;
  key(']');
  found.head = $('head').value;
  choose('map', 'attention');
  const attention = mean();
  choose('layer', '0');
  found.layers = mean() !== attention;
  choose('map', 'ink');
  found.unread = count([214, 40, 40]) > 20;
  choose('map', 'coverage');
  found.nothing = count([214, 40, 40]);
  key(' ');
  await new Promise((done) => setTimeout(done, 1500));
  found.played = step() > 0;
  key(' ');
  found.formula = document.querySelectorAll('#formula math').length;
  found.wrong = wrong;
  document.title = JSON.stringify(found);
});";

#[test]
fn the_page_works_in_a_browser() {
    let story = Story::new(true, false);
    let page = html::html("a page", &story.view(), &CHOICE).unwrap();
    let Some(found) = browser::run_script(&page, USE) else { return };
    let count = story.tokens.len();
    let token = |index: usize| story.tokens[index].text.clone();
    let expected = serde_json::json!({
        "start": ["refinement", 0, token(0)],
        "tokens": count + 1,
        "right": [1, 1, token(1)],
        "redrawn": true,
        "end": [count, count, "end"],
        "stays": count,
        "clicked": [1, 4, "90.0 %"],
        "turned": ["1", count - 2, 1],
        "slid": [0, 0],
        "layer": "1",
        "mean": "",
        "head": "0",
        "layers": true,
        "unread": true,
        "nothing": 0,
        "played": true,
        "formula": 1,
        "wrong": [],
    });
    assert_eq!(found, expected);
}

//! `comer bench`: measures recognition speed, beside sgemm in the same run.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use comer::internal::dataset::Dataset;
use comer::internal::engine::encoder::Encoder;
use comer::internal::engine::kernels::{Isa, Kernels};
use comer::{Image, Input, RecognizeOptions, Recognizer};
use gemm_common::Parallelism;
use rayon::prelude::*;
use serde_json::json;

use crate::args::{ModelArgs, SearchArgs, ThreadArgs};
use crate::clock::{cpu_time, wall_time};
use crate::output::{print, print_json};

/// Measure recognition speed: GFLOP/s of the encoder beside sgemm, milliseconds per stage, images per second.
///
/// Images per second are those of complete recognition as `comer recognize` does it, which reads images that make no sense in other
/// directions too.
///
/// Each round measures everything once, and the best round counts, so that other load affects all figures alike. One
/// thread is measured in CPU time, several in wall time.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer bench --model fusion.safetensors --data crohme.zip --split 2014 --take 100
  comer bench --model fusion.safetensors --threads 2 --json")]
pub struct Arguments {
    #[command(flatten)]
    model: ModelArgs,
    /// CROHME folder or zip with the images [default: synthetic images of typical sizes].
    #[arg(long, value_name = "DIR_OR_ZIP")]
    data: Option<PathBuf>,
    /// Split of the data.
    #[arg(long, default_value = "2014")]
    split: String,
    /// Number of images, evenly spread over the split.
    #[arg(long, value_name = "N", default_value_t = 50)]
    take: usize,
    /// Number of rounds.
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    #[command(flatten)]
    search: SearchArgs,
    /// Number of threads.
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Instruction set to use instead of the best one: avx512, avx2, neon, scalar.
    #[arg(long, value_name = "NAME")]
    isa: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Width and height of synthetic images: CROHME's median and about its 5th and 95th percentile.
const SIZES: [(usize, usize); 5] = [(82, 64), (160, 82), (265, 95), (340, 103), (668, 172)];

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.rounds == 0 || arguments.take == 0 {
        bail!("--rounds and --take: expected at least 1");
    }
    if let Some(name) = &arguments.isa {
        let Some(isa) = Isa::from_name(name) else {
            let available: Vec<&str> = Isa::available().map(Isa::name).collect();
            bail!("--isa {name}: not available here; this machine has {}", available.join(", "));
        };
        isa.choose();
    }
    ThreadArgs { threads: Some(arguments.threads) }.apply()?;
    let start = Instant::now();
    let recognizer = arguments.model.open()?;
    let opening = start.elapsed();
    let pictures = pictures(arguments)?;
    let options = RecognizeOptions::new().search(arguments.search.resolve(1)?);
    let clock = if arguments.threads == 1 { cpu_time } else { wall_time };

    let mut sgemm = Sgemm::new(768, arguments.threads);
    let [mut product, mut encoding, mut whole, mut batch] = [Duration::MAX; 4];
    let mut operations = 0;
    for _ in 0..arguments.rounds {
        product = product.min(timed(clock, || sgemm.run()));
        encoding = encoding.min(timed(clock, || operations = encode(recognizer.encoder(), &pictures)));
        whole = whole.min(timed(clock, || read_all(&recognizer, &pictures, &options)));
        batch = batch.min(timed(clock, || read_in_parallel(&recognizer, &pictures, &options)));
    }
    let speed = |operations: u64, time: Duration| operations as f64 / time.as_secs_f64() / 1e9;
    let (sgemm, encoder) = (speed(sgemm.operations(), product), speed(operations, encoding));
    let each = |time: Duration| time.as_secs_f64() * 1000.0 / pictures.len() as f64;
    let figures = json!({
        "isa": Kernels::detect().isa().name(),
        "threads": arguments.threads,
        "images": pictures.len(),
        "beam": arguments.search.beam,
        "open_milliseconds": opening.as_secs_f64() * 1000.0,
        "sgemm_gflops": sgemm,
        "encoder_gflops": encoder,
        "encoder_percent_of_sgemm": 100.0 * encoder / sgemm,
        "encoder_milliseconds": each(encoding),
        "search_milliseconds": each(whole.saturating_sub(encoding)),
        "images_per_second": pictures.len() as f64 / batch.as_secs_f64(),
    });
    if arguments.json {
        print_json(&figures)?;
    } else {
        let mut out = String::new();
        writeln!(
            out,
            "{} images, {}, {} thread(s), best of {} rounds",
            pictures.len(),
            Kernels::detect().isa().name(),
            arguments.threads,
            arguments.rounds
        )?;
        writeln!(out, "open the model     {:8.1} ms", opening.as_secs_f64() * 1000.0)?;
        writeln!(out, "sgemm 768^3        {sgemm:8.1} GFLOP/s")?;
        writeln!(out, "encoder            {encoder:8.1} GFLOP/s, {:.1} % of sgemm", 100.0 * encoder / sgemm)?;
        writeln!(out, "encoder            {:8.2} ms per image", each(encoding))?;
        writeln!(out, "search             {:8.2} ms per image", each(whole.saturating_sub(encoding)))?;
        writeln!(out, "throughput         {:8.2} images/s", pictures.len() as f64 / batch.as_secs_f64())?;
        print(out)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn pictures(arguments: &Arguments) -> Result<Vec<Input>> {
    let Some(data) = &arguments.data else {
        return SIZES
            .iter()
            .map(|&(width, height)| Ok(Input::from_image(scribble(width, height)?)?))
            .collect();
    };
    let set = Dataset::open(data, &arguments.split)?;
    let step = set.samples.len().div_ceil(arguments.take).max(1);
    let pictures: Result<Vec<Input>> = set
        .samples
        .into_iter()
        .step_by(step)
        .map(|sample| Ok(Input::from_image(sample.image.decode()?)?))
        .collect();
    let pictures = pictures?;
    if pictures.is_empty() {
        bail!("{}: no image of split {:?} could be read", data.display(), arguments.split);
    }
    Ok(pictures)
}

/// A wave in a pen of three pixels.
fn scribble(width: usize, height: usize) -> Result<Image> {
    let middle = |x: usize| (height as f64 * (0.5 + 0.35 * (x as f64 / 9.0).sin())) as usize;
    let ink = |x: usize, y: usize| if middle(x).abs_diff(y) <= 1 { 255 } else { 0 };
    let pixels = (0..width * height).map(|i| ink(i % width, i / width)).collect();
    Image::new(width, height, pixels).context("a scribble")
}

fn encode(encoder: &Encoder, pictures: &[Input]) -> u64 {
    let mut operations = 0;
    for picture in pictures {
        let _ = encoder.encode_profiled(picture.image(), &mut |step| operations += step.operations);
    }
    operations
}

fn read_all(recognizer: &Recognizer, pictures: &[Input], options: &RecognizeOptions) {
    for picture in pictures {
        let _ = recognizer.recognize_with(picture, options);
    }
}

/// Complete recognition, one thread for each picture.
fn read_in_parallel(recognizer: &Recognizer, pictures: &[Input], options: &RecognizeOptions) {
    let options = options.clone().threads(1);
    pictures.par_iter().with_max_len(1).for_each(|picture| {
        let _ = recognizer.recognize_formula(picture.clone(), &options);
    });
}

fn timed(clock: fn() -> Duration, run: impl FnOnce()) -> Duration {
    let start = clock();
    run();
    clock() - start
}

/// The product of two square matrices by the `gemm` crate.
struct Sgemm {
    side: usize,
    parallelism: Parallelism,
    factors: [Vec<f32>; 2],
    product: Vec<f32>,
}

impl Sgemm {
    fn new(side: usize, threads: usize) -> Self {
        let numbers = || (0..side * side).map(|i| (i % 17) as f32 / 17.0).collect();
        let parallelism = if threads == 1 { Parallelism::None } else { Parallelism::Rayon(threads) };
        Self { side, parallelism, factors: [numbers(), numbers()], product: vec![0.0; side * side] }
    }

    fn operations(&self) -> u64 {
        2 * (self.side as u64).pow(3)
    }

    #[allow(unsafe_code, reason = "the crate's only entry takes pointers")]
    fn run(&mut self) {
        let (side, stride) = (self.side, self.side as isize);
        let [left, right] = &self.factors;
        // SAFETY: all three slices hold side * side numbers, in columns that lie side apart.
        unsafe {
            gemm_f32::gemm::f32::get_gemm_fn()(
                side,
                side,
                side,
                self.product.as_mut_ptr(),
                stride,
                1,
                false,
                left.as_ptr(),
                stride,
                1,
                right.as_ptr(),
                stride,
                1,
                0.0,
                1.0,
                false,
                false,
                false,
                self.parallelism,
            );
        }
    }
}

//! How fast the encoder is, beside this machine's sgemm in the same run: `cargo bench -p comer --bench encoder`.
//!
//! One thread, CPU time, the best of several rounds in which everything takes its turn, so that a busy machine slows
//! all alike. Operations are those of the convolutions as the network defines them: two for each weight and pixel.
//! `--isa avx2` (or `scalar`, ...) forces an instruction set, `--threads N` measures wall time on that many threads.
//! `--json` prints milliseconds by size only, for `benches/against.py`; `--rounds N`.
#![allow(clippy::print_stdout, reason = "printing is its purpose")]

use std::collections::BTreeMap;
use std::time::Duration;

use comer::Image;
use comer::internal::engine::encoder::Encoder;
use comer::internal::engine::kernels::{Isa, Kernels};
use comer::internal::weights::{Tensor, Weights, tensor_specs};
use comer::internal::{ModelConfig, ModelFile, Vocab};
use comer_testing::{thread_cpu_time, wall_time};

/// Width and height of pictures: a large one, CROHME's median and quartiles, and its mean area at two aspects.
const SIZES: [(usize, usize); 7] =
    [(384, 128), (265, 95), (340, 103), (160, 82), (82, 64), (668, 172), (1024, 256)];
const ROUNDS: usize = 15;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        arguments.iter().position(|argument| argument == name).and_then(|i| arguments.get(i + 1)).cloned()
    };
    let kernels = match option("--isa") {
        Some(name) => Isa::from_name(&name)
            .and_then(Kernels::with)
            .unwrap_or_else(|| panic!("no instruction set {name} here")),
        None => Kernels::detect(),
    };
    let threads = option("--threads").map_or(1, |number| number.parse().expect("a number of threads"));
    let model = made_up_model();
    let encoder = Encoder::with_kernels(&model.config, &model.weights, kernels);
    let clock: fn() -> Duration = if threads == 1 { thread_cpu_time } else { wall_time };
    let rounds = option("--rounds").map_or(ROUNDS, |number| number.parse().expect("a number of rounds"));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    if arguments.iter().any(|argument| argument == "--json") {
        return pool.install(|| print_json(&encoder, clock, rounds));
    }
    println!("{}, {threads} thread(s), best of {rounds} rounds", kernels.isa().name());
    pool.install(|| measure(&encoder, clock, threads, rounds));
}

fn print_json(encoder: &Encoder, clock: fn() -> Duration, rounds: usize) {
    let time = |(width, height): (usize, usize)| {
        let picture = scribble(width, height);
        let once = |_| {
            let start = clock();
            encoder.encode(&picture).expect("a size within the limits");
            clock() - start
        };
        let best = (0..=rounds).map(once).min().expect("at least one round");
        format!("\"{width}x{height}\": {:.3}", best.as_secs_f64() * 1e3)
    };
    println!("{{{}}}", SIZES.map(time).join(", "));
}

fn measure(encoder: &Encoder, clock: fn() -> Duration, threads: usize, rounds: usize) {
    let pictures: Vec<Image> = SIZES.iter().map(|&(width, height)| scribble(width, height)).collect();
    let mut sgemm = Sgemm::new(768, threads);
    let mut best_sgemm = Duration::MAX;
    let mut best = vec![Duration::MAX; pictures.len()];
    let mut operations = vec![0; pictures.len()];
    // By picture and step: operations, and the best time of a round.
    let mut steps: Vec<BTreeMap<&str, (u64, Duration)>> = vec![BTreeMap::new(); pictures.len()];
    for _ in 0..rounds {
        let start = clock();
        sgemm.run();
        best_sgemm = best_sgemm.min(clock() - start);
        for (index, picture) in pictures.iter().enumerate() {
            let start = clock();
            encoder.encode(picture).expect("a size within the limits");
            best[index] = best[index].min(clock() - start);

            let mut round: BTreeMap<&str, (u64, Duration)> = BTreeMap::new();
            let mut last = clock();
            let mut observe = |step: comer::internal::engine::encoder::Stage| {
                let now = clock();
                let entry = round.entry(step.name).or_default();
                *entry = (entry.0 + step.operations, entry.1 + (now - last));
                last = clock();
            };
            encoder.encode_profiled(picture, &mut observe).expect("a size within the limits");
            operations[index] = round.values().map(|(operations, _)| operations).sum();
            for (name, (operations, time)) in round {
                let entry = steps[index].entry(name).or_insert((operations, Duration::MAX));
                entry.1 = entry.1.min(time);
            }
        }
    }
    let scale = gigaflops(sgemm.operations(), best_sgemm);
    println!("sgemm 768^3: {scale:.1} GFLOP/s");
    for (index, (width, height)) in SIZES.into_iter().enumerate() {
        let speed = gigaflops(operations[index], best[index]);
        println!(
            "{width:4} x {height:3}: {:6.2} GFLOP {:7.2} ms {speed:6.1} GFLOP/s, {:5.1} % of sgemm",
            operations[index] as f64 / 1e9,
            best[index].as_secs_f64() * 1e3,
            100.0 * speed / scale
        );
    }
    for index in [0, 1] {
        println!("{} x {} step by step:", SIZES[index].0, SIZES[index].1);
        for (name, &(operations, time)) in &steps[index] {
            let speed = gigaflops(operations, time);
            let share = 100.0 * time.as_secs_f64() / best[index].as_secs_f64();
            println!("  {name:14} {:7.3} ms {share:5.1} % {speed:6.1} GFLOP/s", time.as_secs_f64() * 1e3);
        }
    }
}

fn gigaflops(operations: u64, time: Duration) -> f64 {
    operations as f64 / time.as_secs_f64() / 1e9
}

/// The `gemm` crate's product of two square matrices.
struct Sgemm {
    side: usize,
    threads: usize,
    matrices: [Vec<f32>; 3],
}

impl Sgemm {
    fn new(side: usize, threads: usize) -> Self {
        Self { side, threads, matrices: [(); 3].map(|()| vec![0.5; side * side]) }
    }

    fn operations(&self) -> u64 {
        2 * (self.side as u64).pow(3)
    }

    #[allow(unsafe_code, reason = "the crate's only interface")]
    fn run(&mut self) {
        let (side, stride) = (self.side, self.side as isize);
        let parallelism = match self.threads {
            1 => gemm_common::Parallelism::None,
            threads => gemm_common::Parallelism::Rayon(threads),
        };
        let [output, left, right] = &mut self.matrices;
        // SAFETY: three square matrices of this side, column by column.
        unsafe {
            gemm_f32::gemm::f32::get_gemm_fn()(
                side,
                side,
                side,
                output.as_mut_ptr(),
                stride,
                1,
                false,
                left.as_ptr(),
                stride,
                1,
                right.as_ptr(),
                stride,
                1,
                0.0f32,
                1.0f32,
                false,
                false,
                false,
                parallelism,
            );
        }
    }
}

/// The paper's model with made-up weights: speed does not depend on them.
fn made_up_model() -> ModelFile {
    let (config, vocab) = (ModelConfig::default(), Vocab::crohme());
    let tensor = |shape: Vec<usize>| {
        let inputs: usize = shape[1..].iter().product();
        let count = shape.iter().product();
        let data = (0..count).map(|i| (i * 7919 % 101) as f32 / (50.0 * inputs as f32) - 0.9 / inputs as f32);
        Tensor { data: data.collect(), shape }
    };
    let mut weights = Weights::new();
    for spec in tensor_specs(&config, vocab.len()) {
        let mut tensor = tensor(spec.shape);
        if spec.name.ends_with("variance") {
            tensor.data.fill(1.0);
        }
        weights.insert(spec.name, tensor);
    }
    ModelFile { config, vocab, provenance: Default::default(), weights, language_model: None }
}

/// A picture with some ink.
fn scribble(width: usize, height: usize) -> Image {
    let pixels = (0..width * height).map(|i| if (i % width + i / width * 3) % 29 < 3 { 255 } else { 0 });
    Image::new(width, height, pixels.collect()).expect("a picture")
}

//! Every kernel on every instruction set of this machine against sums written out, at shapes that cut every tile.

use super::*;

/// Numbers from -1 to 1 that look random and are the same each time.
pub(super) fn noise(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    std::iter::repeat_with(next).take(count).collect()
}

pub(super) fn all_kernels() -> Vec<Kernels> {
    Isa::available().filter_map(Kernels::with).collect()
}

pub(super) fn assert_close(found: f32, expected: f64, depth: usize, what: &str) {
    let allowed = 1e-6 * (depth as f64).max(8.0);
    assert!((f64::from(found) - expected).abs() <= allowed, "{what}: {found}, expected {expected}");
}

#[test]
fn products_of_every_shape_are_the_sums_written_out() {
    let shapes = [
        (1, 1, 1usize),
        (8, 5, 48),
        (24, 48, 49),
        (13, 7, 63),
        (96, 33, 112),
        (5, 0, 20),
        (9, 3, 64),
        (17, 2, 255),
    ];
    for kernels in all_kernels() {
        for (rows, depth, pixels) in shapes {
            let (matrix, bias) = (noise(rows * depth, 1), noise(rows, 2));
            let weights = PackedRows::new(&kernels, &matrix, &bias);
            let stride = pixels.next_multiple_of(BLOCK);
            for (input_layout, output_layout, activation) in [
                (Layout::rows(stride), Layout::blocks(rows + 1), Activation::None),
                (Layout::blocks(depth + 2), Layout::rows(stride), Activation::Relu),
            ] {
                let input = noise(input_layout.length(depth, pixels), 3);
                let mut output = vec![9.0; output_layout.length(rows, pixels)];
                kernels.multiply(
                    &weights,
                    (&input, input_layout),
                    pixels,
                    activation,
                    (&mut output, output_layout),
                );
                let at = |layout: Layout, row: usize, pixel: usize| {
                    row * layout.row + pixel / BLOCK * layout.block + pixel % BLOCK
                };
                let mut written = 0;
                for row in 0..rows {
                    for pixel in 0..pixels {
                        let product = |d: usize| {
                            f64::from(matrix[row * depth + d]) * f64::from(input[at(input_layout, d, pixel)])
                        };
                        let mut sum = f64::from(bias[row]) + (0..depth).map(product).sum::<f64>();
                        if activation == Activation::Relu {
                            sum = sum.max(0.0);
                        }
                        let found = output[at(output_layout, row, pixel)];
                        assert_close(found, sum, depth, &format!("{:?} {row} {pixel}", kernels.isa()));
                        written += 1;
                    }
                }
                let untouched = output.iter().filter(|&&value| value == 9.0).count();
                assert_eq!(untouched, output.len() - written, "nothing beyond the last column is written");
            }
        }
    }
}

#[test]
fn convolutions_of_every_shape_are_the_sums_written_out() {
    let shapes = [
        (1, 1, 1, 1),
        (8, 3, 4, 12),
        (24, 5, 6, 17),
        (7, 2, 9, 33),
        (10, 4, 2, 3),
        (3, 6, 1, 50),
        (3, 2, 40, 1),
    ];
    for kernels in all_kernels() {
        for (rows, channels, height, width) in shapes {
            let planes = Planes::new(height, width);
            let mut input = noise(planes.length(channels), 4);
            planes.clear(&mut input, channels);
            let (matrix, bias) = (noise(rows * channels * SIDE * SIDE, 5), noise(rows, 6));
            let weights = PackedRows::new(&kernels, &matrix, &bias);
            let layout = Layout::blocks(rows);
            let mut output = vec![0.0; layout.length(rows, planes.pixels())];
            kernels.convolve(&weights, (&input, planes), Activation::Relu, (&mut output, layout));
            for (row, y, x) in positions(rows, height, width) {
                let mut sum = f64::from(bias[row]);
                for (channel, dy, dx) in positions(channels, SIDE, SIDE) {
                    let (y, x) = (y + dy, x + dx);
                    if y >= SIDE / 2 && x >= SIDE / 2 && y - SIDE / 2 < height && x - SIDE / 2 < width {
                        let pixel = (y - SIDE / 2) * width + x - SIDE / 2;
                        let weight = matrix[((row * channels + channel) * SIDE + dy) * SIDE + dx];
                        let value = input[planes.origin + channel * planes.stride + pixel];
                        sum += f64::from(weight) * f64::from(value);
                    }
                }
                let pixel = y * width + x;
                let found = output[pixel / BLOCK * layout.block + row * BLOCK + pixel % BLOCK];
                let what = format!("{:?} {row} {y} {x}", kernels.isa());
                assert_close(found, sum.max(0.0), channels * SIDE * SIDE, &what);
            }
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    for kernels in all_kernels() {
        let (rows, channels, planes) = (27, 12, Planes::new(9, 31));
        let mut input = noise(planes.length(channels), 10);
        planes.clear(&mut input, channels);
        let weights = PackedRows::new(&kernels, &noise(rows * channels * 9, 11), &noise(rows, 12));
        let point = PackedRows::new(&kernels, &noise(rows * channels, 13), &noise(rows, 14));
        let layout = Layout::rows(planes.stride);
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut outputs = [(); 2].map(|()| vec![0.0; planes.length(rows)]);
            pool.install(|| {
                let [first, second] = &mut outputs;
                kernels.convolve(&weights, (&input, planes), Activation::Relu, (first, layout));
                kernels.multiply(&point, (&input, layout), 279, Activation::Relu, (second, layout));
            });
            outputs
        };
        let alone = run(1);
        for threads in [2, 3, 16] {
            assert!(run(threads) == alone, "{:?} on {threads} threads", kernels.isa());
        }
    }
}

#[test]
#[should_panic(expected = "input too short")]
fn short_slices_are_refused() {
    let kernels = Kernels::detect();
    let weights = PackedRows::new(&kernels, &[1.0; 4], &[0.0; 2]);
    let mut output = [0.0; 64];
    kernels.multiply(
        &weights,
        (&[0.0; 31], Layout::rows(16)),
        16,
        Activation::None,
        (&mut output, Layout::rows(16)),
    );
}

fn positions(a: usize, b: usize, c: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..a).flat_map(move |i| (0..b).flat_map(move |j| (0..c).map(move |k| (i, j, k))))
}

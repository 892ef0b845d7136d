//! The channels-last kernels on every instruction set of this machine: against sums written out, and Winograd's convolution
//! against the direct one, at shapes that cut every tile.

use proptest::prelude::*;

use super::*;

/// Numbers from -1 to 1 that look random and are the same each time.
fn noise(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    std::iter::repeat_with(next).take(count).collect()
}

fn all_kernels() -> Vec<Kernels> {
    Isa::available().filter_map(Kernels::with).collect()
}

fn assert_close(found: f32, expected: f64, depth: usize, what: &str) {
    let allowed = 1e-6 * (depth as f64).max(8.0);
    assert!((f64::from(found) - expected).abs() <= allowed, "{what}: {found}, expected {expected}");
}

/// The 3 x 3 convolution as it is defined: calls `each` with input and output pixel and the tap that joins them.
fn taps(sizes: &[(usize, usize)], mut each: impl FnMut(usize, usize, usize)) {
    let mut start = 0;
    for &(height, width) in sizes {
        for pixel in 0..height * width {
            for tap in 0..9 {
                let (y, x) = (pixel / width + tap / 3, pixel % width + tap % 3);
                if (1..=height).contains(&y) && (1..=width).contains(&x) {
                    each(start + (y - 1) * width + x - 1, start + pixel, tap);
                }
            }
        }
        start += height * width;
    }
}

fn pixels(sizes: &[(usize, usize)]) -> usize {
    sizes.iter().map(|(height, width)| height * width).sum()
}

#[test]
fn products_of_every_shape_are_the_sums_written_out() {
    let shapes = [(1, 1, 1), (24, 5, 48), (13, 200, 7), (96, 33, 97), (5, 0, 20), (40, 3, 64), (17, 400, 11)];
    for kernels in all_kernels() {
        for (columns, depth, rows) in shapes {
            let (matrix, bias) = (noise(columns * depth, 1), noise(columns, 2));
            let weights = PackedMatrix::from_rows(&kernels, &matrix, &bias);
            assert_eq!((weights.columns(), weights.depth()), (columns, depth));
            let (input_stride, output_stride) = (depth + 3, columns + 2);
            let input = noise(rows * input_stride, 3);
            let start = noise(rows * output_stride, 4);
            let (mut found, mut added) = (start.clone(), start.clone());
            kernels.matmul(
                &weights,
                (&input, input_stride),
                rows,
                Activation::Relu,
                (&mut found, output_stride),
            );
            kernels.matmul_add(&weights, (&input, input_stride), rows, (&mut added, output_stride));
            for place in 0..rows * output_stride {
                let (row, column) = (place / output_stride, place % output_stride);
                if column >= columns {
                    assert_eq!(
                        (found[place], added[place]),
                        (start[place], start[place]),
                        "between the rows"
                    );
                    continue;
                }
                let product = |k: usize| {
                    f64::from(matrix[column * depth + k]) * f64::from(input[row * input_stride + k])
                };
                let sum = (0..depth).map(product).sum::<f64>();
                let what = format!("{:?} {row} {column}", kernels.isa());
                assert_close(found[place], (sum + f64::from(bias[column])).max(0.0), depth, &what);
                assert_close(added[place], sum + f64::from(start[place]), depth, &what);
            }
        }
    }
}

#[test]
fn direct_convolutions_are_the_sums_written_out() {
    let batches: [&[(usize, usize)]; 4] = [&[(1, 1)], &[(4, 12), (3, 1)], &[(1, 50), (6, 17)], &[(40, 1)]];
    for kernels in all_kernels() {
        for ((columns, depth), sizes) in [(1, 1), (24, 5), (7, 2), (50, 9)].into_iter().zip(batches) {
            let (matrix, bias) = (noise(columns * depth * 9, 5), noise(columns, 6));
            let weights = PackedConv::from_rows(&kernels, Algorithm::Direct, &matrix, &bias);
            let input = noise(pixels(sizes) * depth, 7);
            let mut found = vec![9.0; pixels(sizes) * columns];
            kernels.conv3x3(&weights, (&input, depth), sizes, Activation::Relu, (&mut found, columns));
            let mut expected: Vec<f64> =
                bias.iter().map(|&x| f64::from(x)).cycle().take(found.len()).collect();
            taps(sizes, |from, to, tap| {
                for column in 0..columns {
                    for k in 0..depth {
                        let weight = f64::from(matrix[(column * depth + k) * 9 + tap]);
                        expected[to * columns + column] += weight * f64::from(input[from * depth + k]);
                    }
                }
            });
            for (place, (&found, &expected)) in found.iter().zip(&expected).enumerate() {
                assert_close(found, expected.max(0.0), depth * 9, &format!("{:?} {place}", kernels.isa()));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn winograd_convolutions_are_the_direct_ones(
        sizes in prop::collection::vec((1usize..14, 1usize..23), 1..4),
        columns in 1usize..60,
        depth in 1usize..110,
        relu: bool,
        seed: u64,
    ) {
        let activation = if relu { Activation::Relu } else { Activation::None };
        for kernels in all_kernels() {
            let (matrix, bias) = (noise(columns * depth * 9, seed), noise(columns, seed ^ 1));
            let (input_stride, output_stride) = (depth + 1, columns + 5);
            let input = noise(pixels(&sizes) * input_stride, seed ^ 2);
            let run = |algorithm| {
                let weights = PackedConv::from_rows(&kernels, algorithm, &matrix, &bias);
                let mut output = vec![9.0; pixels(&sizes) * output_stride];
                let target = (&mut output[..], output_stride);
                kernels.conv3x3(&weights, (&input, input_stride), &sizes, activation, target);
                output
            };
            let (direct, winograd) = (run(Algorithm::Direct), run(Algorithm::Winograd));
            // The transforms magnify the rounding of the sums, which grows like the root of their length.
            let allowed = 1.5e-5 * (9.0 * depth as f32).sqrt();
            for (place, (a, b)) in direct.iter().zip(&winograd).enumerate() {
                prop_assert!((a - b).abs() <= allowed, "{:?} {place}: {a} and {b}", kernels.isa());
            }
        }
    }

    #[test]
    fn weight_gradients_are_the_sums_written_out(
        sizes in prop::collection::vec((1usize..9, 1usize..20), 1..4),
        columns in 1usize..30,
        depth in 1usize..40,
        seed: u64,
    ) {
        for kernels in all_kernels() {
            let count = pixels(&sizes);
            let (input_stride, gradient_stride) = (depth + 1, columns + 2);
            let (input, gradient) = (noise(count * input_stride, seed), noise(count * gradient_stride, seed ^ 1));
            let rows = ((&input[..], input_stride), (&gradient[..], gradient_stride));
            let conv = kernels.conv3x3_weight_grad(rows.0, depth, rows.1, columns, &sizes);
            let matrix = kernels.matmul_weight_grad(rows.0, depth, rows.1, columns, count);
            let mut expected = vec![0f64; columns * depth * 9];
            taps(&sizes, |from, to, tap| {
                for column in 0..columns {
                    for k in 0..depth {
                        expected[(column * depth + k) * 9 + tap] += f64::from(input[from * input_stride + k])
                            * f64::from(gradient[to * gradient_stride + column]);
                    }
                }
            });
            for (index, (&found, &expected)) in conv.iter().zip(&expected).enumerate() {
                let what = format!("{:?} tap {index}", kernels.isa());
                prop_assert!((f64::from(found) - expected).abs() <= 2e-4, "{what}: {found}, {expected}");
            }
            // The tap in the middle joins a pixel with itself.
            for (index, &found) in matrix.iter().enumerate() {
                assert_close(found, expected[9 * index + 4], count, &format!("{:?} {index}", kernels.isa()));
            }
        }
    }

    #[test]
    fn sparse_products_and_their_gradients_are_the_sums_written_out(
        count in 1usize..200,
        columns in 1usize..220,
        depth in 1usize..150,
        zeros in 0f32..1.0,
        first in 0usize..130,
        seed: u64,
    ) {
        for kernels in all_kernels() {
            let (input_stride, stride) = (depth + 3, columns + 2);
            let kept = noise(count * input_stride, seed ^ 1);
            let mut input = noise(count * input_stride, seed);
            input.iter_mut().zip(kept).filter(|(_, kept)| kept.abs() < zeros).for_each(|(x, _)| *x = 0.0);
            let (matrix, gradient) = (noise(columns * depth, seed ^ 2), noise(count * stride, seed ^ 3));
            let bias = noise(columns, seed ^ 4);
            let weights = SparseMatrix::from_rows(&kernels, &matrix, &bias);
            prop_assert_eq!((weights.columns(), weights.depth()), (columns, depth));
            // The rows begin somewhere in those of the mask, which are marked in two parts.
            let mut mask = NonzeroMask::new(count, first + depth + 2);
            let middle = depth / 2;
            kernels.mark_nonzero(&mut mask, first..first + middle, (&input, input_stride));
            kernels.mark_nonzero(&mut mask, first + middle..first + depth, (&input[middle..], input_stride));
            let rows = input.chunks(input_stride).map(|row| row[..depth].iter().filter(|&&x| x != 0.0).count());
            prop_assert_eq!(mask.count(), rows.sum::<usize>());
            let from = SparseRows { values: &input, stride: input_stride, mask: &mask, first };
            let (mut output, mut activated) = (vec![0.5; count * stride], vec![0.5; count * stride]);
            kernels.sparse_matmul_add(&weights, from, count, (&mut output, stride));
            kernels.sparse_matmul(&weights, from, count, Activation::Relu, (&mut activated, stride));
            let mut sum = vec![0.5; count * input_stride];
            kernels.sparse_input_grad_add(&weights, from, (&gradient, stride), count, &mut sum);
            let weight_grad = kernels.sparse_weight_grad(from, depth, (&gradient, stride), columns, count);
            let product = |a: f32, b: f32| f64::from(a) * f64::from(b);
            for row in 0..count {
                let (input, gradient) = (&input[row * input_stride..], &gradient[row * stride..]);
                for column in 0..stride {
                    let terms = (0..depth).filter(|_| column < columns);
                    let expected = 0.5 + terms.map(|k| product(input[k], matrix[column * depth + k])).sum::<f64>();
                    let what = format!("{:?} output {row} {column}", kernels.isa());
                    assert_close(output[row * stride + column], expected, depth, &what);
                    let bias = bias.get(column).map_or(0.5, |&bias| f64::from(bias));
                    let activated = activated[row * stride + column];
                    assert_close(activated, (expected - 0.5 + bias).max(0.0), depth, &what);
                }
                for k in 0..input_stride {
                    let terms = (0..columns).filter(|_| k < depth && input[k] != 0.0);
                    let expected = 0.5 + terms.map(|c| product(gradient[c], matrix[c * depth + k])).sum::<f64>();
                    let what = format!("{:?} input {row} {k}", kernels.isa());
                    assert_close(sum[row * input_stride + k], expected, columns, &what);
                }
            }
            for (index, &found) in weight_grad.iter().enumerate() {
                let (column, k) = (index / depth, index % depth);
                let terms = (0..count).map(|row| product(gradient[row * stride + column], input[row * input_stride + k]));
                assert_close(found, terms.sum(), count, &format!("{:?} weight {column} {k}", kernels.isa()));
            }
        }
    }
}

#[test]
fn convolutions_of_5_x_5_and_their_gradients_are_the_sums_written_out() {
    let shapes = [
        (&[(1, 1)][..], 1, 1),
        (&[(4, 6), (4, 6)], 16, 32),
        (&[(7, 9), (2, 3), (8, 30)], 16, 32),
        (&[(5, 1), (1, 13)], 5, 17),
        (&[(3, 8)], 50, 7),
    ];
    for kernels in all_kernels() {
        for (sizes, depth, columns) in shapes {
            let (count, input_stride, output_stride) = (pixels(sizes), depth + 2, columns + 1);
            let (input, weights) = (noise(count * input_stride, 1), noise(columns * depth * 25, 2));
            let bias = noise(columns, 3);
            let packed = PackedConv5x5::from_rows(&kernels, &weights, &bias);
            let mut output = vec![9.0; count * output_stride];
            let (from, to) = ((&input[..], input_stride), (&mut output[..], output_stride));
            kernels.conv5x5(&packed, from, sizes, Activation::Relu, to);
            let gradient = noise(count * output_stride, 4);
            let found_gradient =
                kernels.conv5x5_weight_grad(from, depth, (&gradient, output_stride), columns, sizes);
            let mut expected_gradient = vec![0f64; weights.len()];
            let mut start = 0;
            for &(height, width) in sizes {
                for (pixel, column) in
                    (0..height * width).flat_map(|pixel| (0..=columns).map(move |column| (pixel, column)))
                {
                    let found = output[(start + pixel) * output_stride + column];
                    if column == columns {
                        assert_eq!(found, 9.0, "between the pixels");
                        continue;
                    }
                    let mut sum = f64::from(bias[column]);
                    for tap in 0..25 {
                        let (y, x) = (pixel / width + tap / 5, pixel % width + tap % 5);
                        if (2..height + 2).contains(&y) && (2..width + 2).contains(&x) {
                            let from = (start + (y - 2) * width + x - 2) * input_stride;
                            for k in 0..depth {
                                let index = (column * depth + k) * 25 + tap;
                                sum += f64::from(input[from + k]) * f64::from(weights[index]);
                                expected_gradient[index] += f64::from(input[from + k])
                                    * f64::from(gradient[(start + pixel) * output_stride + column]);
                            }
                        }
                    }
                    let what = format!("{:?} {sizes:?} {pixel} {column}", kernels.isa());
                    assert_close(found, sum.max(0.0), 25 * depth, &what);
                }
                start += height * width;
            }
            for (index, (&found, &expected)) in found_gradient.iter().zip(&expected_gradient).enumerate() {
                let what = format!("{:?} {sizes:?} gradient {index}", kernels.isa());
                assert!((f64::from(found) - expected).abs() <= 2e-4, "{what}: {found}, {expected}");
            }
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    for kernels in all_kernels() {
        let (columns, depth, sizes) = (27, 60, [(9, 31), (30, 40), (5, 5)]);
        let count = pixels(&sizes);
        let (input, weights) = (noise(count * depth, 10), noise(columns * depth * 9, 11));
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let bias = noise(columns, 12);
                let mut outputs = Vec::new();
                for algorithm in [Algorithm::Direct, Algorithm::Winograd] {
                    let packed = PackedConv::from_rows(&kernels, algorithm, &weights, &bias);
                    let mut output = vec![0.0; count * columns];
                    let target = (&mut output[..], columns);
                    kernels.conv3x3(&packed, (&input, depth), &sizes, Activation::None, target);
                    outputs.push(output);
                }
                let packed = PackedMatrix::from_rows(&kernels, &weights[..columns * depth], &bias);
                let mut output = vec![0.0; count * columns];
                kernels.matmul(&packed, (&input, depth), count, Activation::None, (&mut output, columns));
                let gradient = outputs[0].clone();
                let rows = ((&input[..], depth), (&gradient[..], columns));
                outputs.push(kernels.conv3x3_weight_grad(rows.0, depth, rows.1, columns, &sizes));
                outputs.push(kernels.matmul_weight_grad(rows.0, depth, rows.1, columns, count));
                let mut sparse = output.clone();
                let weight = |column: usize, k: usize| weights[column * depth + k];
                let packed = SparseMatrix::new(&kernels, &bias, depth, weight);
                let mut mask = NonzeroMask::new(count, depth);
                kernels.mark_nonzero(&mut mask, 0..depth, rows.0);
                let from = SparseRows { values: &input, stride: depth, mask: &mask, first: 0 };
                kernels.sparse_matmul_add(&packed, from, count, (&mut sparse, columns));
                let mut sum = vec![0.0; count * depth];
                kernels.sparse_input_grad_add(&packed, from, rows.1, count, &mut sum);
                outputs.push(kernels.sparse_weight_grad(from, depth, rows.1, columns, count));
                outputs.extend([output, sparse, sum]);
                outputs
            })
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
    let weights = PackedConv::from_rows(&kernels, Algorithm::Winograd, &[1.0; 18], &[0.0; 2]);
    let (input, mut output) = ([0.0; 11], [0.0; 24]);
    kernels.conv3x3(&weights, (&input, 1), &[(3, 4)], Activation::None, (&mut output, 2));
}

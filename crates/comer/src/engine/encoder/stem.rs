//! The encoder's first step: a 7 x 7 convolution with stride 2 and the 2 x 2 maximum over it, in one go.
//!
//! What a row of the kernel sees of neighbouring pixels are seven numbers each, two apart in the picture. So a row of
//! results is the sum of seven products, one for each row of the kernel, whose inputs overlap in the picture itself.

use std::cell::RefCell;

use super::fold::Folded;
use super::window;
use crate::engine::kernels::{Activation, Buffer, Kernels, PackedMatrix};
use crate::image::Image;

const SIDE: usize = 7;

thread_local! {
    /// Two rows of results.
    static SCRATCH: RefCell<Buffer> = RefCell::default();
}

pub(super) struct Stem {
    /// One for each row of the kernel; the first has the bias.
    rows: Vec<PackedMatrix>,
}

impl Stem {
    pub(super) fn new(kernels: &Kernels, folded: &Folded) -> Self {
        let none = vec![0.0; folded.bias.len()];
        let row = |row: usize| {
            let bias = if row == 0 { &folded.bias } else { &none };
            PackedMatrix::new(kernels, bias, SIDE, |channel, x| {
                folded.matrix[(channel * SIDE + row) * SIDE + x]
            })
        };
        Self { rows: (0..SIDE).map(row).collect() }
    }

    /// Height and width after the convolution.
    fn middle_size(picture: &Image) -> (usize, usize) {
        (picture.height().div_ceil(2), picture.width().div_ceil(2))
    }

    /// Height and width after the convolution and the maximum.
    pub(super) fn output_size(picture: &Image) -> (usize, usize) {
        let (height, width) = Self::middle_size(picture);
        (height.div_ceil(2), width.div_ceil(2))
    }

    fn channels(&self) -> usize {
        self.rows[0].columns()
    }

    /// Multiplications and additions of the convolution.
    pub(super) fn operations(&self, picture: &Image) -> u64 {
        let (height, width) = Self::middle_size(picture);
        2 * (height * width * self.channels() * SIDE * SIDE) as u64
    }

    /// Fills the first channels of `output`, whose pixels lie `stride` apart.
    pub(super) fn run(&self, kernels: &Kernels, picture: &Image, (output, stride): (&mut [f32], usize)) {
        let (middle_height, middle_width) = Self::middle_size(picture);
        let (_, width) = Self::output_size(picture);
        let (bordered, pitch) = bordered(picture);
        let (alone, channels) = (kernels.alone(), self.channels());
        kernels.for_each_chunk(output, width * stride, |y, output| {
            SCRATCH.with_borrow_mut(|scratch| {
                let length = middle_width * channels;
                let scratch = scratch.at_least(2 * length);
                let count = (middle_height - 2 * y).min(2);
                for (row, results) in scratch.chunks_exact_mut(length).take(count).enumerate() {
                    for (down, weights) in self.rows.iter().enumerate() {
                        let input = (&bordered[(2 * (2 * y + row) + down) * pitch..], 2);
                        match down {
                            0 => {
                                let target = (&mut *results, channels);
                                alone.matmul(weights, input, middle_width, Activation::None, target);
                            }
                            _ => alone.matmul_add(weights, input, middle_width, (results, channels)),
                        }
                    }
                }
                for (x, output) in output.chunks_exact_mut(stride).enumerate() {
                    let [a, b, c, d] = window(count, middle_width, 0, x)
                        .map(|pixel| &scratch[pixel * channels..][..channels]);
                    let output = &mut output[..channels];
                    let larger = |a: f32, b: f32| if a > b { a } else { b };
                    for i in 0..channels {
                        output[i] = larger(larger(larger(a[i], b[i]), larger(c[i], d[i])), 0.0);
                    }
                }
            });
        });
    }
}

/// The picture with zeros around it, as many as the kernel reaches, and the length of a row.
fn bordered(picture: &Image) -> (Vec<f32>, usize) {
    let border = SIDE / 2;
    let pitch = picture.width() + 2 * border + 1;
    let mut values = vec![0.0; (picture.height() + 2 * border + 1) * pitch];
    for (y, row) in picture.pixels().chunks_exact(picture.width()).enumerate() {
        let target = &mut values[(y + border) * pitch + border..][..row.len()];
        target.iter_mut().zip(row).for_each(|(value, &pixel)| *value = f32::from(pixel) / 255.0);
    }
    (values, pitch)
}

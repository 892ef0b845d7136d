//! The interface of the products that skip zeros: packs weights, checks every length and hands pointers to the loops in `sparse`.

use super::conv::extent;
use super::gradient::PART_ROWS;
use super::nonzero::SparseRows;
use super::sparse::{BITS, Outputs, ROWS, SparseInputGradient, SparseProduct, SparseWeightGradient, panels};
use super::{Activation, Buffer, Kernels};

/// A linear map from `depth` numbers that are mostly zeros to `columns` numbers.
#[derive(Clone, Debug)]
pub struct SparseMatrix {
    columns: usize,
    depth: usize,
    lanes: usize,
    /// Panels of `[depth, registers * lanes]`; columns past the last are zero. Some rows follow that are read, but not used.
    values: Buffer,
    bias: Buffer,
}

impl SparseMatrix {
    /// Packs the map whose weight from input `k` to output `column` is `weight(column, k)`.
    pub fn new(kernels: &Kernels, bias: &[f32], depth: usize, weight: impl Fn(usize, usize) -> f32) -> Self {
        let (columns, lanes) = (bias.len(), kernels.pixels.lanes);
        let (panels, registers) = panels(columns, lanes);
        let width = registers * lanes;
        let mut values = Buffer::default();
        let rows = values.at_least((panels * depth + BITS + 1) * width).chunks_exact_mut(width);
        for (index, row) in rows.take(panels * depth).enumerate() {
            let (first, k) = (index / depth * width, index % depth);
            for (column, value) in (first..columns).zip(row) {
                *value = weight(column, k);
            }
        }
        let mut padded = Buffer::default();
        padded.at_least(panels * width)[..columns].copy_from_slice(bias);
        Self { columns, depth, lanes, values, bias: padded }
    }

    /// Packs a row-major matrix with a row of inputs for each number of the bias.
    ///
    /// # Panics
    /// If the matrix is not a whole number of such rows.
    pub fn from_rows(kernels: &Kernels, matrix: &[f32], bias: &[f32]) -> Self {
        let depth = matrix.len().checked_div(bias.len()).unwrap_or(0);
        assert_eq!(matrix.len(), bias.len() * depth, "matrix of {} rows", bias.len());
        Self::new(kernels, bias, depth, |column, k| matrix[column * depth + k])
    }

    /// Numbers that the map gives.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Numbers that the map takes.
    pub fn depth(&self) -> usize {
        self.depth
    }
}

impl Kernels {
    /// [`Self::matmul`] for an input that is mostly zeros.
    ///
    /// # Panics
    /// As [`Self::matmul`].
    pub fn sparse_matmul(
        &self,
        weights: &SparseMatrix,
        input: SparseRows,
        rows: usize,
        activation: Activation,
        output: (&mut [f32], usize),
    ) {
        self.sparse_product(weights, input, rows, activation, output, false);
    }

    /// [`Self::matmul_add`] for an input that is mostly zeros.
    ///
    /// # Panics
    /// As [`Self::matmul`].
    pub fn sparse_matmul_add(
        &self,
        weights: &SparseMatrix,
        input: SparseRows,
        rows: usize,
        output: (&mut [f32], usize),
    ) {
        self.sparse_product(weights, input, rows, Activation::None, output, true);
    }

    fn sparse_product(
        &self,
        weights: &SparseMatrix,
        input: SparseRows,
        rows: usize,
        activation: Activation,
        (output, output_stride): (&mut [f32], usize),
        accumulate: bool,
    ) {
        let &SparseMatrix { columns, depth, .. } = weights;
        assert_eq!(weights.lanes, self.pixels.lanes, "weights packed for other kernels");
        assert!(output.len() >= extent(rows, output_stride, columns), "output too short");
        assert!(output_stride >= columns, "rows of the output overlap");
        let job = SparseProduct {
            weights: weights.values.as_ptr(),
            bias: weights.bias.as_ptr(),
            input: input.checked(rows, depth),
            output: output.as_mut_ptr(),
            output_stride,
            columns,
            accumulate,
            floor: activation.floor(),
        };
        self.split_rows(rows, ROWS, |rows| {
            // SAFETY: the lengths were checked above, `pixels` exist only where their instruction set does, and no two
            // parts share a row.
            unsafe { (self.pixels.sparse_product)(&job, rows) }
        });
    }

    /// Adds the gradient of the input of [`Self::sparse_matmul_add`] to `sum`, from that of its output, where the input is not
    /// zero: a ReLU or dropout before it stops all other gradients. The rows of `sum` are as far apart as those of the input.
    ///
    /// # Panics
    /// As [`Self::matmul`].
    pub fn sparse_input_grad_add(
        &self,
        weights: &SparseMatrix,
        input: SparseRows,
        (gradient, gradient_stride): (&[f32], usize),
        rows: usize,
        sum: &mut [f32],
    ) {
        let &SparseMatrix { columns, depth, .. } = weights;
        assert_eq!(weights.lanes, self.pixels.lanes, "weights packed for other kernels");
        assert!(gradient.len() >= extent(rows, gradient_stride, columns), "gradient too short");
        assert!(sum.len() >= extent(rows, input.stride, depth), "sum too short");
        assert!(input.stride >= depth, "rows of the sum overlap");
        let job = SparseInputGradient {
            weights: weights.values.as_ptr(),
            input: input.checked(rows, depth),
            gradient: Outputs { values: gradient.as_ptr(), stride: gradient_stride, columns },
            sum: sum.as_mut_ptr(),
            sum_stride: input.stride,
        };
        self.split_rows(rows, ROWS, |rows| {
            // SAFETY: as in `sparse_product`.
            unsafe { (self.pixels.sparse_input_gradient)(&job, rows) }
        });
    }

    /// The gradient of a matrix `[columns, depth]` as [`Self::matmul_weight_grad`], skipping zeros of the input.
    ///
    /// # Panics
    /// If a slice is too short for its rows.
    pub fn sparse_weight_grad(
        &self,
        input: SparseRows,
        depth: usize,
        (gradient, gradient_stride): (&[f32], usize),
        columns: usize,
        rows: usize,
    ) -> Vec<f32> {
        assert!(gradient.len() >= extent(rows, gradient_stride, columns), "gradient too short");
        let job = SparseWeightGradient {
            input: input.checked(rows, depth),
            gradient: Outputs { values: gradient.as_ptr(), stride: gradient_stride, columns },
        };
        let (panels, registers) = panels(columns, self.pixels.lanes);
        let width = registers * self.pixels.lanes;
        let length = panels * depth * width;
        let sums = self.sum_parts(rows, PART_ROWS, length, BITS * width, |rows, sums, scratch| {
            // SAFETY: the lengths were checked above, and `pixels` exist only where their instruction set does.
            unsafe { (self.pixels.sparse_weight_gradient)(&job, rows, sums, scratch) }
        });
        let sum = |column: usize, k: usize| sums[(column / width * depth + k) * width + column % width];
        (0..columns)
            .flat_map(|column| (0..depth).map(move |k| (column, k)))
            .map(|(column, k)| sum(column, k))
            .collect()
    }
}

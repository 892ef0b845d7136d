//! Matrix products over slices: the only unsafe code of this crate.
#![allow(unsafe_code)]

use gemm_common::Parallelism;

/// A matrix in a slice: element `(r, c)` is at `r * row_stride + c * column_stride`.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    pub values: &'a [f32],
    pub rows: usize,
    pub columns: usize,
    pub row_stride: usize,
    pub column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// Rows that lie `stride` apart.
    pub fn rows(values: &'a [f32], rows: usize, columns: usize, stride: usize) -> Self {
        Self { values, rows, columns, row_stride: stride, column_stride: 1 }
    }

    pub fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }

    fn last(&self) -> usize {
        (self.rows - 1) * self.row_stride + (self.columns - 1) * self.column_stride
    }
}

/// How many threads a product may use.
#[derive(Clone, Copy)]
pub(super) enum Threads {
    One,
    All,
}

/// Writes `left * right` to the rows of `target`, which lie `stride` apart; accumulates if `add`.
pub(super) fn multiply(
    target: &mut [f32],
    stride: usize,
    left: Matrix,
    right: Matrix,
    add: bool,
    threads: Threads,
) {
    let (m, n, k) = (left.rows, right.columns, left.columns);
    if m == 0 || n == 0 || k == 0 {
        assert!(m == 0 || n == 0 || add, "a product with an empty inner dimension would have to write zeros");
        return;
    }
    assert_eq!(k, right.rows, "inner dimensions are equal");
    assert!(
        left.last() < left.values.len() && right.last() < right.values.len(),
        "factors are within their slices"
    );
    assert!(stride >= n && (m - 1) * stride + n <= target.len(), "the product is within its slice");
    let parallelism = match threads {
        Threads::One => Parallelism::None,
        Threads::All => Parallelism::Rayon(0),
    };
    let signed = |stride: usize| stride as isize;
    // The kernels need contiguous columns; a row-major product is the transposed column-major one.
    let transposed = stride > 1;
    let (m, n, left, right) =
        if transposed { (n, m, right.transposed(), left.transposed()) } else { (m, n, left, right) };
    let (column_stride, row_stride) = if transposed { (stride, 1) } else { (1, stride) };
    // SAFETY: by the checks above, every element that the product reads or writes is within its slice, and the rows of
    // the target do not overlap. The target is borrowed mutably, so it is neither of the factors.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            m,
            n,
            k,
            target.as_mut_ptr(),
            signed(column_stride),
            signed(row_stride),
            add,
            left.values.as_ptr(),
            signed(left.column_stride),
            signed(left.row_stride),
            right.values.as_ptr(),
            signed(right.column_stride),
            signed(right.row_stride),
            if add { 1.0 } else { 0.0 },
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_add_and_transpose() {
        let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]; // 2 x 3
        let b = [1.0, 0.0, 2.0, 1.0, 0.0, 3.0]; // 3 x 2
        let (left, right) = (Matrix::rows(&a, 2, 3, 3), Matrix::rows(&b, 3, 2, 2));
        let mut product = [0.0; 6];
        multiply(&mut product, 3, left, right, false, Threads::One);
        assert_eq!(product, [5.0, 11.0, 0.0, 14.0, 23.0, 0.0]);
        multiply(&mut product, 3, left, right, true, Threads::All);
        assert_eq!(product, [10.0, 22.0, 0.0, 28.0, 46.0, 0.0]);
        let mut other = [0.0; 4];
        multiply(&mut other, 2, right.transposed(), left.transposed(), false, Threads::One);
        assert_eq!(other, [5.0, 14.0, 11.0, 23.0]);
    }
}

//! Weights in the order in which the kernels read them.

use super::{BLOCK, Kernels};

/// A matrix of weights and a bias for each row, for [`Kernels::multiply`] and [`Kernels::convolve`].
#[derive(Clone, Debug)]
pub struct PackedRows {
    pub(super) rows: usize,
    pub(super) depth: usize,
    /// Rows of a panel.
    pub(super) panel: usize,
    /// `[panels, depth, panel]`, rows past the last being zero.
    pub(super) values: Vec<f32>,
    /// `[panels, panel]`
    pub(super) bias: Vec<f32>,
}

impl PackedRows {
    /// Packs a row-major matrix with as many rows as `bias` has numbers.
    ///
    /// # Panics
    /// If the matrix is not a whole number of such rows.
    pub fn new(kernels: &Kernels, matrix: &[f32], bias: &[f32]) -> Self {
        let (rows, panel) = (bias.len(), kernels.entries.rows);
        let depth = matrix.len().checked_div(rows).unwrap_or(0);
        assert_eq!(matrix.len(), rows * depth, "matrix of {rows} rows");
        let panels = rows.div_ceil(panel);
        let mut packed = Self {
            rows,
            depth,
            panel,
            values: vec![0.0; panels * depth * panel],
            bias: vec![0.0; panels * panel],
        };
        packed.bias[..rows].copy_from_slice(bias);
        if depth > 0 {
            for (row, values) in matrix.chunks_exact(depth).enumerate() {
                let start = row / panel * depth * panel + row % panel;
                for (d, &value) in values.iter().enumerate() {
                    packed.values[start + d * panel] = value;
                }
            }
        }
        packed
    }

    /// Rows of the matrix.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of the matrix.
    pub fn depth(&self) -> usize {
        self.depth
    }
}

/// The transpose of a matrix of weights and a bias for each of its columns, for [`Kernels::linear`].
#[derive(Clone, Debug)]
pub struct PackedColumns {
    pub(super) depth: usize,
    pub(super) columns: usize,
    /// `[blocks, depth, BLOCK]`, columns past the last being zero.
    pub(super) values: Vec<f32>,
    /// `[blocks, BLOCK]`
    pub(super) bias: Vec<f32>,
}

impl PackedColumns {
    /// Packs a row-major matrix `[bias.len(), depth]`, the layout of a linear map's weights: `[out, in]`.
    ///
    /// # Panics
    /// If the matrix is not a whole number of such rows.
    pub fn new(matrix: &[f32], bias: &[f32]) -> Self {
        let columns = bias.len();
        let depth = matrix.len().checked_div(columns).unwrap_or(0);
        assert_eq!(matrix.len(), columns * depth, "matrix of {columns} rows");
        let blocks = columns.div_ceil(BLOCK);
        let mut packed = Self {
            depth,
            columns,
            values: vec![0.0; blocks * depth * BLOCK],
            bias: vec![0.0; blocks * BLOCK],
        };
        packed.bias[..columns].copy_from_slice(bias);
        if depth > 0 {
            for (column, values) in matrix.chunks_exact(depth).enumerate() {
                let start = column / BLOCK * depth * BLOCK + column % BLOCK;
                for (d, &value) in values.iter().enumerate() {
                    packed.values[start + d * BLOCK] = value;
                }
            }
        }
        packed
    }

    /// Numbers that a row of results has.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Numbers that a row of input has.
    pub fn depth(&self) -> usize {
        self.depth
    }
}

//! Weights in the order in which the kernels read them.

use super::Kernels;

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
            // Written in order, each panel once: a row at a time would pass over the panel for every row.
            let panels = packed.values.chunks_exact_mut(depth * panel);
            for (values, rows) in panels.zip(matrix.chunks(depth * panel)) {
                for (d, values) in values.chunks_exact_mut(panel).enumerate() {
                    for (value, row) in values.iter_mut().zip(rows.chunks_exact(depth)) {
                        *value = row[d];
                    }
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

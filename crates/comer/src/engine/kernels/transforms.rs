//! The transforms of Winograd's F(4 x 4, 3 x 3) and of its backward pass, and those of F(2 x 2, 5 x 5).
//!
//! `Y = A^T [(G g G^T) . (B^T d B)] A` for a 6 x 6 window `d` of the input and the 4 x 4 results `Y` in its middle
//! (Lavin and Gray, 2016), with the points 0, a, -a, b, -b and infinity. `a = sqrt(1/2)` and `b = sqrt(2)` instead of
//! the usual 1 and 2 halve the rounding error: it is twice that of the direct convolution.
#![allow(
    clippy::needless_range_loop,
    reason = "counted loops are unrolled for certain, iterators only mostly"
)]

use std::f32::consts::{FRAC_1_SQRT_2, SQRT_2};

use super::vector::Vector;

/// Side of a tile of results of a 3 x 3 convolution.
pub(super) const SIDE: usize = 4;
/// Side of a tile of results of a 5 x 5 convolution.
pub(super) const SMALL_SIDE: usize = 2;
/// Side of the window that a tile depends on.
pub(super) const WINDOW: usize = SIDE + 2;
/// Points at which the products are taken.
pub(super) const POINTS: usize = WINDOW * WINDOW;

/// The points and their squares, which are exact.
const A: f32 = FRAC_1_SQRT_2;
const B: f32 = SQRT_2;
const A2: f32 = 0.5;
const B2: f32 = 2.0;

/// `2 p^2 (p^2 - q^2)`, inverse, for the points `p` = a and b.
const NORM_A: f32 = 1.0 / (2.0 * A2 * (A2 - B2));
const NORM_B: f32 = 1.0 / (2.0 * B2 * (B2 - A2));

/// `B^T d` of one line.
#[inline(always)]
pub(super) unsafe fn window_line<V: Vector>(d: [V; WINDOW]) -> [V; WINDOW] {
    // SAFETY: the caller vouches for the instruction set.
    unsafe {
        let (even_a, odd_a) = (d[4].mul_add(d[2], V::splat(-B2)), d[3].mul_add(d[1], V::splat(-B2)));
        let (even_b, odd_b) = (d[4].mul_add(d[2], V::splat(-A2)), d[3].mul_add(d[1], V::splat(-A2)));
        [
            d[0].add(d[4]).mul_add(d[2], V::splat(-A2 - B2)),
            even_a.mul_add(odd_a, V::splat(A)),
            even_a.mul_add(odd_a, V::splat(-A)),
            even_b.mul_add(odd_b, V::splat(B)),
            even_b.mul_add(odd_b, V::splat(-B)),
            d[1].add(d[5]).mul_add(d[3], V::splat(-A2 - B2)),
        ]
    }
}

/// `A^T m` of one line, for tiles of the side `S`: [`SIDE`] or [`SMALL_SIDE`].
#[inline(always)]
pub(super) unsafe fn sum_line<V: Vector, const S: usize>(m: [V; WINDOW]) -> [V; S] {
    // SAFETY: the caller vouches for the instruction set.
    unsafe {
        let (even_a, odd_a) = (m[1].add(m[2]), m[1].sub(m[2]));
        let (even_b, odd_b) = (m[3].add(m[4]), m[3].sub(m[4]));
        let mut y = [m[0].add(even_a).add(even_b); S];
        if S == SMALL_SIDE {
            y[1] = m[5].mul_add(odd_a, V::splat(A)).mul_add(odd_b, V::splat(B));
        } else {
            y[1] = odd_a.mul(V::splat(A)).mul_add(odd_b, V::splat(B));
            y[2] = even_a.mul(V::splat(A2)).mul_add(even_b, V::splat(B2));
            y[3] = m[5].mul_add(odd_a, V::splat(A2 * A)).mul_add(odd_b, V::splat(B2 * B));
        }
        y
    }
}

/// `A y` of one line, for tiles of the side `S`: [`SIDE`] or [`SMALL_SIDE`].
#[inline(always)]
pub(super) unsafe fn gradient_line<V: Vector, const S: usize>(y: [V; S]) -> [V; WINDOW] {
    // SAFETY: the caller vouches for the instruction set.
    unsafe {
        if S == SMALL_SIDE {
            return [
                y[0],
                y[0].mul_add(y[1], V::splat(A)),
                y[0].mul_add(y[1], V::splat(-A)),
                y[0].mul_add(y[1], V::splat(B)),
                y[0].mul_add(y[1], V::splat(-B)),
                y[1],
            ];
        }
        let (even_a, odd_a) = (y[0].mul_add(y[2], V::splat(A2)), y[1].mul_add(y[3], V::splat(A2)));
        let (even_b, odd_b) = (y[0].mul_add(y[2], V::splat(B2)), y[1].mul_add(y[3], V::splat(B2)));
        [
            y[0],
            even_a.mul_add(odd_a, V::splat(A)),
            even_a.mul_add(odd_a, V::splat(-A)),
            even_b.mul_add(odd_b, V::splat(B)),
            even_b.mul_add(odd_b, V::splat(-B)),
            y[3],
        ]
    }
}

/// `G g G^T` of 3 x 3 weights.
#[inline(always)]
pub(super) unsafe fn transform_weights<V: Vector>(weights: [V; 9]) -> [V; POINTS] {
    // SAFETY: the caller vouches for the instruction set.
    unsafe {
        let mut columns = [[weights[0]; 3]; WINDOW];
        for x in 0..3 {
            let column = weight_line([weights[x], weights[3 + x], weights[6 + x]]);
            for y in 0..WINDOW {
                columns[y][x] = column[y];
            }
        }
        let mut points = [weights[0]; POINTS];
        for y in 0..WINDOW {
            points[y * WINDOW..][..WINDOW].copy_from_slice(&weight_line(columns[y]));
        }
        points
    }
}

/// `G g` of one line.
#[inline(always)]
unsafe fn weight_line<V: Vector>(g: [V; 3]) -> [V; WINDOW] {
    // SAFETY: the caller vouches for the instruction set.
    unsafe {
        let even_a = g[0].mul_add(g[2], V::splat(A2)).mul(V::splat(NORM_A));
        let even_b = g[0].mul_add(g[2], V::splat(B2)).mul(V::splat(NORM_B));
        [
            g[0],
            even_a.mul_add(g[1], V::splat(A * NORM_A)),
            even_a.mul_add(g[1], V::splat(-A * NORM_A)),
            even_b.mul_add(g[1], V::splat(B * NORM_B)),
            even_b.mul_add(g[1], V::splat(-B * NORM_B)),
            g[2],
        ]
    }
}

/// `G^T u G`: the gradient of 3 x 3 weights from that of [`transform_weights`].
#[inline(always)]
pub(super) unsafe fn weight_gradient<V: Vector>(points: [V; POINTS]) -> [V; 9] {
    // SAFETY: the caller vouches for the instruction set.
    unsafe {
        let mut rows = [[points[0]; WINDOW]; 3];
        for x in 0..WINDOW {
            let column = weight_gradient_line(std::array::from_fn(|y| points[y * WINDOW + x]));
            for y in 0..3 {
                rows[y][x] = column[y];
            }
        }
        let mut weights = [points[0]; 9];
        for y in 0..3 {
            weights[3 * y..][..3].copy_from_slice(&weight_gradient_line(rows[y]));
        }
        weights
    }
}

/// `G^T u` of one line.
#[inline(always)]
unsafe fn weight_gradient_line<V: Vector>(u: [V; WINDOW]) -> [V; 3] {
    // SAFETY: the caller vouches for the instruction set.
    unsafe {
        let (even_a, odd_a) = (u[1].add(u[2]), u[1].sub(u[2]));
        let (even_b, odd_b) = (u[3].add(u[4]), u[3].sub(u[4]));
        [
            u[0].mul_add(even_a, V::splat(NORM_A)).mul_add(even_b, V::splat(NORM_B)),
            odd_a.mul(V::splat(A * NORM_A)).mul_add(odd_b, V::splat(B * NORM_B)),
            u[5].mul_add(even_a, V::splat(A2 * NORM_A)).mul_add(even_b, V::splat(B2 * NORM_B)),
        ]
    }
}

/// `G g G^T` of 5 x 5 weights, row by row.
pub(super) fn transform_weights_5x5(weights: &[f32; 25]) -> [f32; POINTS] {
    let mut columns = [[0.0; 5]; WINDOW];
    for x in 0..5 {
        let column = weight_line_of_5(std::array::from_fn(|y| weights[5 * y + x]));
        for y in 0..WINDOW {
            columns[y][x] = column[y];
        }
    }
    let mut points = [0.0; POINTS];
    for y in 0..WINDOW {
        points[y * WINDOW..][..WINDOW].copy_from_slice(&weight_line_of_5(columns[y]));
    }
    points
}

/// `G g` of one line of 5 weights.
fn weight_line_of_5(g: [f32; 5]) -> [f32; WINDOW] {
    let even_a = (g[0] + A2 * g[2] + A2 * A2 * g[4]) * NORM_A;
    let even_b = (g[0] + B2 * g[2] + B2 * B2 * g[4]) * NORM_B;
    let (odd_a, odd_b) = ((g[1] + A2 * g[3]) * A * NORM_A, (g[1] + B2 * g[3]) * B * NORM_B);
    [g[0], even_a + odd_a, even_a - odd_a, even_b + odd_b, even_b - odd_b, g[4]]
}

/// `G^T u G`: the gradient of 5 x 5 weights from that of [`transform_weights_5x5`].
pub(super) fn weight_gradient_5x5(points: &[f32; POINTS]) -> [f32; 25] {
    let mut rows = [[0.0; WINDOW]; 5];
    for x in 0..WINDOW {
        let column = weight_gradient_line_of_5(std::array::from_fn(|y| points[y * WINDOW + x]));
        for y in 0..5 {
            rows[y][x] = column[y];
        }
    }
    let mut weights = [0.0; 25];
    for y in 0..5 {
        weights[5 * y..][..5].copy_from_slice(&weight_gradient_line_of_5(rows[y]));
    }
    weights
}

/// `G^T u` of one line of 5 weights.
fn weight_gradient_line_of_5(u: [f32; WINDOW]) -> [f32; 5] {
    let (even_a, odd_a) = ((u[1] + u[2]) * NORM_A, (u[1] - u[2]) * A * NORM_A);
    let (even_b, odd_b) = ((u[3] + u[4]) * NORM_B, (u[3] - u[4]) * B * NORM_B);
    [
        u[0] + even_a + even_b,
        odd_a + odd_b,
        A2 * even_a + B2 * even_b,
        A2 * odd_a + B2 * odd_b,
        u[5] + A2 * A2 * even_a + B2 * B2 * even_b,
    ]
}

//! 3 x 3 convolutions by Winograd's F(4 x 4, 3 x 3): 36 products for 16 results where the definition takes 144; and 5 x 5
//! ones by F(2 x 2, 5 x 5): 36 products for 4 results where the definition takes 100.
//!
//! The arithmetic of it is in `transforms`.
//!
//! The windows of a group of tiles are transformed for some channels, the products are taken for each of the 36 points, and
//! the sums are transformed back, all while they are in the second cache.
#![allow(
    clippy::needless_range_loop,
    reason = "counted loops are unrolled for certain, iterators only mostly"
)]

use std::ops::Range;

use super::pairs::{PairTile, halves};
use super::pixels::{LINE, REGISTERS, Tile, panels};
use super::transforms::{POINTS, SIDE, SMALL_SIDE, WINDOW, gradient_line, sum_line, window_line};
use super::vector::Vector;

/// Tiles that are worked on together: a multiple of every number of rows of a register tile.
pub(super) const GROUP: usize = 24;
/// Input channels that are worked on at a time.
const DEPTH: usize = 48;
/// Pairs of tiles that a register tile of a narrow matrix has, or half as many: with three registers of sums for each and three of
/// weights, 24 of 32 registers.
const TILE_PAIRS: usize = 6;

/// A tile of results: its picture's first pixel and size, and its place there.
#[derive(Clone, Copy)]
pub(super) struct Place {
    start: usize,
    height: usize,
    width: usize,
    y: usize,
    x: usize,
    /// How far the window reaches beyond the tile on each side.
    reach: usize,
}

/// The tiles of pictures that lie one after the other; `side` is that of a tile.
pub(super) fn places(sizes: &[(usize, usize)], side: usize) -> Vec<Place> {
    let mut places = Vec::new();
    let reach = (WINDOW - side) / 2;
    let mut start = 0;
    for &(height, width) in sizes {
        for y in (0..height).step_by(side) {
            places.extend((0..width).step_by(side).map(|x| Place { start, height, width, y, x, reach }));
        }
        start += height * width;
    }
    places
}

/// A convolution of some pictures.
pub(super) struct Winograd {
    /// For each point a matrix as that of a product: panels of `[depth, registers * lanes]`.
    pub weights: *const f32,
    /// One for each column of all panels.
    pub bias: *const f32,
    pub depth: usize,
    pub columns: usize,
    pub input: Pixels,
    pub output: *mut f32,
    pub output_stride: usize,
    /// Results below become this.
    pub floor: f32,
    pub places: Vec<Place>,
}

/// Pixels of pictures.
#[derive(Clone, Copy)]
pub(super) struct Pixels {
    pub values: *const f32,
    /// From one pixel to the next.
    pub stride: usize,
    /// What lies outside of the pictures: as many zeros as there are channels.
    pub zeros: *const f32,
}

// SAFETY: the pointers of a job stay valid while it runs, its inputs are only read, and whoever runs parts of it on
// several threads gives each part tiles of its own.
unsafe impl Sync for Winograd {}

/// From one point to the next in memory: an odd number of cache lines, for points a power of two apart would fight for the
/// same lines of the cache.
pub(super) fn spaced(length: usize) -> usize {
    (length.div_ceil(16) | 1) * 16
}

/// From one point to the next among the transformed windows.
fn window_stride(depth: usize) -> usize {
    spaced(GROUP * depth.min(DEPTH))
}

/// From one point to the next among the sums.
fn sum_stride(lanes: usize) -> usize {
    spaced(GROUP * REGISTERS * lanes)
}

/// The numbers that [`winograd_part`] needs as scratch space.
pub(super) fn scratch_length(depth: usize, lanes: usize) -> usize {
    POINTS * (window_stride(depth) + sum_stride(lanes))
}

/// The convolution for some groups of tiles.
#[inline(always)]
pub(super) unsafe fn winograd_part<V: Vector, const THREE: usize, const TWO: usize>(
    job: &Winograd,
    groups: Range<usize>,
    scratch: *mut f32,
) {
    let (windows, sums) = (scratch, scratch.wrapping_add(POINTS * window_stride(job.depth)));
    let blocks = job.depth.div_ceil(DEPTH);
    // A narrow matrix is one panel.
    let halves = halves(job.columns, V::LANES, V::HALF);
    for group in groups {
        let places = &job.places[group * GROUP..job.places.len().min((group + 1) * GROUP)];
        for panel in panels(job.columns, V::LANES) {
            for block in 0..blocks {
                let depth = block * job.depth / blocks..(block + 1) * job.depth / blocks;
                // SAFETY: the caller vouches for the job, the instruction set and the scratch space.
                unsafe {
                    if blocks > 1 || panel.start == 0 {
                        for (index, place) in places.iter().enumerate() {
                            let to = windows.add(index * depth.len());
                            let stride = window_stride(job.depth);
                            transform_window::<V>(&job.input, place, depth.clone(), (to, stride));
                        }
                    }
                    let part = Part { job, panel: panel.start, depth, windows, sums, tiles: places.len() };
                    match (halves, panel.len()) {
                        (Some(3), _) => part.multiply_pairs::<V, 3>(),
                        (Some(_), _) => part.multiply_pairs::<V, 1>(),
                        (None, 3) => part.multiply::<V, THREE, 3>(),
                        (None, 2) => part.multiply::<V, TWO, 2>(),
                        (None, _) => part.multiply::<V, TWO, 1>(),
                    }
                }
            }
            for (index, place) in places.iter().enumerate() {
                let width = halves.map_or(panel.len() * V::LANES, |count| count * V::HALF);
                let first = panel.start * V::LANES;
                // SAFETY: as above.
                unsafe {
                    let sums = sums.add(index * width);
                    if place.reach == (WINDOW - SMALL_SIDE) / 2 {
                        transform_sums::<V, SMALL_SIDE>(job, place, sums, first, width);
                    } else {
                        transform_sums::<V, SIDE>(job, place, sums, first, width);
                    }
                }
            }
        }
    }
}

/// The products of a group for one panel and some input channels.
struct Part<'a> {
    job: &'a Winograd,
    /// First register of the panel.
    panel: usize,
    depth: Range<usize>,
    windows: *const f32, // [points][tiles][depth]
    sums: *mut f32,      // [points][tiles][panel]
    tiles: usize,
}

impl Part<'_> {
    #[inline(always)]
    unsafe fn multiply<V: Vector, const ROWS: usize, const COUNT: usize>(&self) {
        let Self { job, depth, .. } = self;
        let (count, width) = (depth.len(), COUNT * V::LANES);
        let padded = job.columns.div_ceil(V::LANES) * V::LANES;
        for point in 0..POINTS {
            // SAFETY: the caller vouches for the job, the instruction set and the scratch space.
            unsafe {
                let windows = self.windows.add(point * window_stride(job.depth));
                let sums = self.sums.add(point * sum_stride(V::LANES));
                let weights = job.weights.add(point * padded * job.depth);
                let weights = weights.add(self.panel * V::LANES * job.depth + depth.start * width);
                for first in (0..self.tiles).step_by(ROWS) {
                    // What the next point needs, a part with each tile.
                    for k in (0..ROWS * count).step_by(LINE) {
                        V::prefetch(windows.wrapping_add(window_stride(job.depth) + first * count + k));
                    }
                    for k in
                        (first * count * width / GROUP..(first + ROWS) * count * width / GROUP).step_by(LINE)
                    {
                        V::prefetch(weights.wrapping_add(padded * job.depth + k));
                    }
                    // Rows past the last tile are computed from what is there, and overwritten by the next group.
                    let output = sums.add(first * width);
                    let tile = Tile::<V, ROWS, COUNT>::new(output, width);
                    let mut tile = if depth.start == 0 { tile } else { tile.resume() };
                    tile.accumulate(
                        std::array::from_fn(|r| windows.add((first + r) * count)),
                        count,
                        weights,
                    );
                    tile.finish(None);
                }
            }
        }
    }

    /// As [`Self::multiply`], for a narrow matrix.
    #[inline(always)]
    unsafe fn multiply_pairs<V: Vector, const COUNT: usize>(&self) {
        // SAFETY: the caller vouches for the job, the instruction set and the scratch space.
        unsafe {
            for point in 0..POINTS {
                let mut first = 0;
                while first < self.tiles {
                    // Rows past the last tile are computed from what is there, and overwritten by the next group.
                    if self.tiles - first > TILE_PAIRS {
                        self.multiply_rows::<V, TILE_PAIRS, COUNT>(point, first);
                        first += 2 * TILE_PAIRS;
                    } else {
                        self.multiply_rows::<V, { TILE_PAIRS / 2 }, COUNT>(point, first);
                        first += TILE_PAIRS;
                    }
                }
            }
        }
    }

    /// The products of a point for twice `PAIRS` tiles.
    #[inline(always)]
    unsafe fn multiply_rows<V: Vector, const PAIRS: usize, const COUNT: usize>(
        &self,
        point: usize,
        first: usize,
    ) {
        let Self { job, depth, .. } = self;
        let (count, width) = (depth.len(), COUNT * V::HALF);
        // SAFETY: as above.
        unsafe {
            let windows = self.windows.add(point * window_stride(job.depth) + first * count);
            let sums = self.sums.add(point * sum_stride(V::LANES) + first * width);
            let weights = job.weights.add((point * job.depth + depth.start) * width);
            // What the next point needs, a part with each tile.
            for k in (0..2 * PAIRS * count).step_by(LINE) {
                V::prefetch(windows.wrapping_add(window_stride(job.depth) + k));
            }
            let ahead = |row: usize| row * count * width / GROUP;
            for k in (ahead(first)..ahead(first + 2 * PAIRS)).step_by(LINE) {
                V::prefetch(weights.wrapping_add(job.depth * width + k));
            }
            let mut tile = match depth.start {
                0 => PairTile::<V, PAIRS, COUNT>::zeros(),
                _ => PairTile::load(sums),
            };
            tile.accumulate(windows, count, weights);
            tile.store(sums);
        }
    }
}

/// `B^T d B` of a tile's window for some channels: point `p` of channel `c` goes to `to[p * stride + c]`.
#[inline(always)]
pub(super) unsafe fn transform_window<V: Vector>(
    input: &Pixels,
    place: &Place,
    depth: Range<usize>,
    (to, stride): (*mut f32, usize),
) {
    let mut pixels = [[input.zeros; WINDOW]; WINDOW];
    for i in 0..WINDOW {
        for j in 0..WINDOW {
            let (y, x) = (place.y + i, place.x + j);
            let reach = place.reach;
            if (reach..reach + place.height).contains(&y) && (reach..reach + place.width).contains(&x) {
                let pixel = place.start + (y - reach) * place.width + x - reach;
                pixels[i][j] = input.values.wrapping_add(pixel * input.stride);
            }
        }
    }
    // SAFETY: the caller vouches for the pixels: each has the channels `depth`, and so have the zeros.
    unsafe { window_channels::<V>(&pixels, depth, to, stride) }
}

#[inline(always)]
unsafe fn window_channels<V: Vector>(
    pixels: &[[*const f32; WINDOW]; WINDOW],
    channels: Range<usize>,
    to: *mut f32,
    stride: usize,
) {
    let whole = channels.len() / V::LANES * V::LANES;
    // SAFETY: the caller vouches for the channels behind every pointer and after `to`.
    unsafe {
        for c in (0..whole).step_by(V::LANES) {
            window_lanes::<V>(pixels, channels.start + c, to.add(c), stride);
        }
        if V::LANES > 1 && whole < channels.len() {
            window_channels::<V::Rest>(pixels, channels.start + whole..channels.end, to.add(whole), stride);
        }
    }
}

#[inline(always)]
unsafe fn window_lanes<V: Vector>(
    pixels: &[[*const f32; WINDOW]; WINDOW],
    channel: usize,
    to: *mut f32,
    stride: usize,
) {
    // SAFETY: the caller vouches for `V::LANES` channels from `channel` on behind every pointer and after `to`.
    unsafe {
        let mut half = [[V::splat(0.0); WINDOW]; WINDOW];
        for j in 0..WINDOW {
            let mut column = [V::splat(0.0); WINDOW];
            for i in 0..WINDOW {
                column[i] = V::load(pixels[i][j].add(channel));
            }
            let column = window_line(column);
            for i in 0..WINDOW {
                half[i][j] = column[i];
            }
        }
        for i in 0..WINDOW {
            let row = window_line(half[i]);
            for j in 0..WINDOW {
                row[j].store(to.add((i * WINDOW + j) * stride));
            }
        }
    }
}

/// `A^T m A` of a tile for the `width` columns from `first` on, with bias and floor, into the pixels that exist.
#[inline(always)]
unsafe fn transform_sums<V: Vector, const S: usize>(
    job: &Winograd,
    place: &Place,
    sums: *const f32,
    first: usize,
    width: usize,
) {
    let stride = sum_stride(V::LANES);
    let count = width.min(job.columns - first);
    // SAFETY: the caller vouches for the job: `columns` numbers for each pixel of the output, and as many of the bias.
    unsafe { sum_channels::<V, S>(job, place, (sums, stride), first..first + count) }
}

#[inline(always)]
unsafe fn sum_channels<V: Vector, const S: usize>(
    job: &Winograd,
    place: &Place,
    (sums, stride): (*const f32, usize),
    channels: Range<usize>,
) {
    let whole = channels.len() / V::LANES * V::LANES;
    // SAFETY: the caller vouches for the job and the channels of the sums.
    unsafe {
        for c in (0..whole).step_by(V::LANES) {
            sum_lanes::<V, S>(job, place, sums.add(c), stride, channels.start + c);
        }
        if V::LANES > 1 && whole < channels.len() {
            let rest = channels.start + whole..channels.end;
            sum_channels::<V::Rest, S>(job, place, (sums.add(whole), stride), rest);
        }
    }
}

#[inline(always)]
unsafe fn sum_lanes<V: Vector, const S: usize>(
    job: &Winograd,
    place: &Place,
    sums: *const f32,
    stride: usize,
    channel: usize,
) {
    // SAFETY: the caller vouches for the job and for `V::LANES` channels from `channel` on in it and in the sums.
    unsafe {
        let pixel = place.start + place.y * place.width + place.x;
        let output = job.output.add(pixel * job.output_stride + channel);
        let mut half = [[V::splat(0.0); WINDOW]; S];
        for j in 0..WINDOW {
            let mut column = [V::splat(0.0); WINDOW];
            for i in 0..WINDOW {
                column[i] = V::load(sums.add((i * WINDOW + j) * stride));
            }
            let column = sum_line::<V, S>(column);
            for i in 0..S {
                half[i][j] = column[i];
            }
        }
        let (bias, floor) = (V::load(job.bias.add(channel)), V::splat(job.floor));
        for i in 0..S.min(place.height - place.y) {
            let row = sum_line::<V, S>(half[i]);
            for j in 0..S {
                if place.x + j < place.width {
                    let to = output.add((i * place.width + j) * job.output_stride);
                    row[j].add(bias).at_least(floor).store(to);
                }
            }
        }
    }
}

/// `A y A^T` of a tile's pixels for some channels, from the first on: the backward pass of [`transform_sums`].
#[inline(always)]
pub(super) unsafe fn transform_gradient<V: Vector>(
    gradient: &Pixels,
    place: &Place,
    columns: Range<usize>,
    to: (*mut f32, usize),
) {
    // SAFETY: the caller vouches for the pixels: each has the channels `columns`, and so have the zeros.
    unsafe {
        if place.reach == (WINDOW - SMALL_SIDE) / 2 {
            gradient_channels::<V, SMALL_SIDE>(&tile_pixels(gradient, place), columns, to);
        } else {
            gradient_channels::<V, SIDE>(&tile_pixels(gradient, place), columns, to);
        }
    }
}

/// The pixels of a tile, or zeros where it has none.
#[inline(always)]
fn tile_pixels<const S: usize>(gradient: &Pixels, place: &Place) -> [[*const f32; S]; S] {
    let mut pixels = [[gradient.zeros; S]; S];
    for i in 0..S.min(place.height - place.y) {
        for j in 0..S.min(place.width - place.x) {
            let pixel = place.start + (place.y + i) * place.width + place.x + j;
            pixels[i][j] = gradient.values.wrapping_add(pixel * gradient.stride);
        }
    }
    pixels
}

#[inline(always)]
unsafe fn gradient_channels<V: Vector, const S: usize>(
    pixels: &[[*const f32; S]; S],
    channels: Range<usize>,
    (to, stride): (*mut f32, usize),
) {
    let whole = channels.len() / V::LANES * V::LANES;
    // SAFETY: the caller vouches for the channels behind every pointer and after `to`.
    unsafe {
        for c in (0..whole).step_by(V::LANES) {
            gradient_lanes::<V, S>(pixels, channels.start + c, to.add(c), stride);
        }
        if V::LANES > 1 && whole < channels.len() {
            let rest = channels.start + whole..channels.end;
            gradient_channels::<V::Rest, S>(pixels, rest, (to.add(whole), stride));
        }
    }
}

#[inline(always)]
unsafe fn gradient_lanes<V: Vector, const S: usize>(
    pixels: &[[*const f32; S]; S],
    channel: usize,
    to: *mut f32,
    stride: usize,
) {
    // SAFETY: the caller vouches for `V::LANES` channels from `channel` on behind every pointer and after `to`.
    unsafe {
        let mut half = [[V::splat(0.0); S]; WINDOW];
        for j in 0..S {
            let mut column = [V::splat(0.0); S];
            for i in 0..S {
                column[i] = V::load(pixels[i][j].add(channel));
            }
            let column = gradient_line(column);
            for i in 0..WINDOW {
                half[i][j] = column[i];
            }
        }
        for i in 0..WINDOW {
            let row = gradient_line(half[i]);
            for j in 0..WINDOW {
                row[j].store(to.add((i * WINDOW + j) * stride));
            }
        }
    }
}

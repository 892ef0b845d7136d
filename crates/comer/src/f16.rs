//! Conversions between f32 and the 16-bit formats that weights are stored in.

/// Widens an IEEE half. Without branches or calls, so that compilers use vectors: model files have millions of them.
#[inline]
pub fn f16_to_f32(bits: u16) -> f32 {
    const INFINITY: u32 = 0x7c00;
    const LEAST_NORMAL: u32 = 0x0400;
    let (sign, magnitude) = (u32::from(bits & 0x8000) << 16, u32::from(bits & 0x7fff));
    // The exponent moves from a bias of 15 to one of 127; that of infinity and NaN is all ones in both.
    let normal = (magnitude << 13) + (112 << 23);
    let endless = magnitude << 13 | 0x7f80_0000;
    let subnormal = (magnitude as f32 * 2f32.powi(-24)).to_bits();
    let value = if magnitude < LEAST_NORMAL { subnormal } else { normal };
    f32::from_bits(sign | if magnitude >= INFINITY { endless } else { value })
}

/// Rounds to the nearest IEEE half, ties to even.
pub fn f32_to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    // The exponent moves from a bias of 127 to one of 15, and 13 bits of the fraction go.
    let rounded = |shifted: u32, lost: u32, bits: u32| {
        let half = 1 << (bits - 1);
        shifted + u32::from(lost > half || lost == half && shifted & 1 == 1)
    };
    sign | match magnitude {
        0x7f80_0001.. => 0x7e00,
        // From 65520 on the nearest half is infinity.
        0x477f_f000.. => 0x7c00,
        // 2^-14 and above are normal.
        0x3880_0000.. => {
            let shifted = magnitude - (112 << 23);
            rounded(shifted >> 13, shifted & 0x1fff, 13) as u16
        }
        // Below 2^-25 everything rounds to zero, and so does 2^-25 itself.
        ..=0x3300_0000 => 0,
        _ => {
            let fraction = magnitude & 0x7f_ffff | 0x80_0000;
            let bits = 126 - (magnitude >> 23);
            rounded(fraction >> bits, fraction & ((1 << bits) - 1), bits) as u16
        }
    }
}

/// Widens a bfloat16.
#[cfg(any(feature = "import", test))]
pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_is_its_definition() {
        for bits in 0..=u16::MAX {
            let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
            let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
            let expected = match exponent {
                0 => sign * fraction * 2f32.powi(-24),
                0x1f if fraction == 0.0 => sign * f32::INFINITY,
                0x1f => f32::NAN,
                _ => sign * (1.0 + fraction / 1024.0) * 2f32.powi(exponent - 15),
            };
            let found = f16_to_f32(bits);
            let both_nan = found.is_nan() && expected.is_nan();
            assert!(both_nan || found.to_bits() == expected.to_bits(), "{bits:#x}: {found}, {expected}");
        }
    }

    #[test]
    fn known_halves() {
        for (bits, value) in [
            (0x0000, 0.0),
            (0x8000, -0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x7bff, 65504.0),
            (0x0400, 6.103_515_6e-5),
            (0x0001, 5.960_464_5e-8),
            (0x7c00, f32::INFINITY),
        ] {
            assert_eq!(f16_to_f32(bits).to_bits(), f32::to_bits(value), "{bits:#x}");
        }
        assert!(f16_to_f32(0x7e01).is_nan() && f32_to_f16(f32::NAN) == 0x7e00);
        assert_eq!(bf16_to_f32(0xc049), -3.140_625);
    }

    #[test]
    fn every_half_comes_back() {
        for bits in (0..=u16::MAX).filter(|bits| bits & 0x7fff <= 0x7c00) {
            assert_eq!(f32_to_f16(f16_to_f32(bits)), bits, "{bits:#x}");
        }
    }

    #[test]
    fn the_nearest_half_is_taken_and_ties_go_to_even() {
        for bits in 0..0x7bff_u16 {
            let (below, above) = (f16_to_f32(bits), f16_to_f32(bits + 1));
            // Exact: both have at most 11 significant bits.
            let middle = (below + above) / 2.0;
            let even = bits + bits % 2;
            assert_eq!(f32_to_f16(middle), even, "{middle}");
            assert_eq!(f32_to_f16(f32::from_bits(middle.to_bits() - 1)), bits, "below {middle}");
            assert_eq!(f32_to_f16(f32::from_bits(middle.to_bits() + 1)), bits + 1, "above {middle}");
        }
        for (value, expected) in [(65519.99, 0x7bff), (65520.0, 0x7c00), (1e30, 0x7c00), (-1e30, 0xfc00)] {
            assert_eq!(f32_to_f16(value), expected, "{value}");
        }
    }
}

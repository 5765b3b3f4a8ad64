//! Images of stripes with a random phase: every pixel is equally bright in all classes, so no weights of single pixels
//! separate them. Classes differ in direction and width, which a few small filters detect anywhere.

use std::f32::consts::{PI, TAU};

use crate::random::philox_fill;

pub(super) const CLASSES: [&str; 10] = [
    "narrow 0°",
    "narrow 36°",
    "narrow 72°",
    "narrow 108°",
    "narrow 144°",
    "wide 0°",
    "wide 36°",
    "wide 72°",
    "wide 108°",
    "wide 144°",
];

/// Wavelengths in pixels, narrow and wide.
const WAVELENGTHS: [f32; 2] = [4.0, 8.0];

/// The maximum deviation of a direction: a tenth of the angle between directions.
const TILT: f32 = PI / 50.0;

/// The span of Philox counters per image.
const NUMBERS_OF_AN_IMAGE: u64 = 1 << 32;

/// Direction, phase, contrast, brightness and position (2).
const NUMBERS_OF_STRIPES: usize = 6;

#[derive(Clone, Copy)]
pub(super) struct Gratings {
    pub(super) shape: [usize; 3],
    pub(super) seed: u64,
}

impl Gratings {
    /// Draws an image and returns its class.
    pub(super) fn draw(&self, index: usize, out: &mut [u8]) -> i64 {
        let [channels, height, width] = self.shape;
        let class = index % CLASSES.len();
        let pixels = height * width;
        let mut numbers = vec![0; NUMBERS_OF_STRIPES + channels + channels * pixels.div_ceil(4)];
        let first = (index as u64).wrapping_mul(NUMBERS_OF_AN_IMAGE).wrapping_add(1);
        philox_fill(self.seed, first, &mut numbers);
        let mut numbers = numbers.into_iter();
        let mut bits = || numbers.next().unwrap_or_default(); // Enough by construction.
        let mut between =
            |low: f32, high: f32| low + (high - low) * ((bits() >> 8) as f32 / (1 << 24) as f32);

        let angle = (class % 5) as f32 * (PI / 5.0) + between(-TILT, TILT);
        let wavelength = WAVELENGTHS[class / 5];
        let (across, down) = (TAU / wavelength * libm::cosf(angle), TAU / wavelength * libm::sinf(angle));
        let (phase, contrast, brightness) = (between(0.0, TAU), between(0.2, 0.4), between(0.4, 0.6));
        // Stripes fade out around a centre away from the edges.
        let (y, x) = (between(0.3, 0.7) * height as f32, between(0.3, 0.7) * width as f32);
        let radius = 0.6 * height.max(width) as f32;
        let strengths: Vec<f32> = (0..channels).map(|_| between(0.5, 1.0) * contrast).collect();

        let stripes: Vec<f32> = (0..pixels)
            .map(|i| {
                let (dx, dy) = ((i % width) as f32 - x, (i / width) as f32 - y);
                let fading = (1.0 - (dx * dx + dy * dy) / (radius * radius)).max(0.0);
                fading * libm::sinf(across * dx + down * dy + phase)
            })
            .collect();
        // Each 32-bit number is one byte of noise for each of four pixels.
        for (of_channel, strength) in out.chunks_mut(pixels).zip(strengths) {
            for (pixels, stripes) in of_channel.chunks_mut(4).zip(stripes.chunks(4)) {
                for ((pixel, stripe), noise) in pixels.iter_mut().zip(stripes).zip(bits().to_le_bytes()) {
                    let noise = (f32::from(noise) - 127.5) / 255.0 * 0.4;
                    *pixel = ((brightness + strength * stripe + noise) * 255.0) as u8; // Saturates to 0..=255.
                }
            }
        }
        class as i64
    }
}

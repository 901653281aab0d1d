//! From the OK colour spaces to what a screen shows. The numbers are those of Björn Ottosson's
//! definition of OKLab. OKHSL is approximated: saturation is a share of the chroma that a screen can
//! show at that lightness and hue, without the curve of the original in between.

use super::Colour;

/// How often the interval in which the greatest chroma lies is halved: to less than a step of a channel.
const STEPS: usize = 16;

/// More than a screen can show at any lightness and hue.
const MOST_CHROMA: f64 = 0.5;

/// Lightness from 0 to 1, chroma, hue in degrees. What a screen cannot show is shown with less chroma.
pub(super) fn oklch(lightness: f64, chroma: f64, hue: f64) -> Colour {
    let lightness = lightness.clamp(0.0, 1.0);
    let channels = linear(lightness, chroma, hue);
    let channels = match is_shown(channels) {
        true => channels,
        false => linear(lightness, chroma.min(most_chroma(lightness, hue)), hue),
    };
    let [red, green, blue] = channels.map(channel);
    Colour::Rgb(red, green, blue)
}

/// Hue in degrees, saturation and lightness from 0 to 1.
pub(super) fn okhsl(hue: f64, saturation: f64, lightness: f64) -> Colour {
    let lightness = unbent(lightness.clamp(0.0, 1.0));
    let chroma = saturation.clamp(0.0, 1.0) * most_chroma(lightness, hue);
    oklch(lightness, chroma, hue)
}

/// The lightness of OKLab that looks as light as a lightness of OKHSL says.
fn unbent(lightness: f64) -> f64 {
    const K1: f64 = 0.206;
    const K2: f64 = 0.03;
    const K3: f64 = (1.0 + K1) / (1.0 + K2);
    (lightness * lightness + K1 * lightness) / (K3 * (lightness + K2))
}

fn most_chroma(lightness: f64, hue: f64) -> f64 {
    let (mut shown, mut too_much) = (0.0, MOST_CHROMA);
    for _ in 0..STEPS {
        let middle = f64::midpoint(shown, too_much);
        match is_shown(linear(lightness, middle, hue)) {
            true => shown = middle,
            false => too_much = middle,
        }
    }
    shown
}

fn is_shown(channels: [f64; 3]) -> bool {
    // White is a hair outside by its own numbers.
    const SLACK: f64 = 1e-3;
    let range = -SLACK..=1.0 + SLACK;
    channels.iter().all(|channel| range.contains(channel))
}

/// Red, green and blue, before the curve of a screen.
fn linear(lightness: f64, chroma: f64, hue: f64) -> [f64; 3] {
    let (sin, cos) = hue.to_radians().sin_cos();
    let (a, b) = (chroma * cos, chroma * sin);
    let long = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let middle = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let short = (lightness - 0.089_484_177_5 * a - 1.291_485_548 * b).powi(3);
    [
        4.076_741_662_1 * long - 3.307_711_591_3 * middle + 0.230_969_929_2 * short,
        -1.268_438_004_6 * long + 2.609_757_401_1 * middle - 0.341_319_396_5 * short,
        -0.004_196_086_3 * long - 0.703_418_614_7 * middle + 1.707_614_701 * short,
    ]
}

/// A channel as a screen takes it.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn channel(linear: f64) -> u8 {
    let linear = linear.clamp(0.0, 1.0);
    let curved = match linear <= 0.003_130_8 {
        true => 12.92 * linear,
        false => 1.055 * linear.powf(1.0 / 2.4) - 0.055,
    };
    (curved * 255.0).round() as u8
}

//! Images for a model (`extensions.md` §8.2): told by their first bytes, turned upright, made small
//! enough. What is small enough already keeps its bytes.

use std::io::Cursor;

use ::image::codecs::jpeg::JpegEncoder;
use ::image::imageops::FilterType;
use ::image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Rgb, RgbImage};
use serde::Deserialize;
use serde_json::Value;

/// Image formats that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Png,
    Jpeg,
    Gif,
    Webp,
    Bmp,
}

impl Format {
    /// The format of a file that starts with these bytes.
    pub(crate) fn of(start: &[u8]) -> Option<Self> {
        match start {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'W',
                b'E',
                b'B',
                b'P',
                ..,
            ] => Some(Self::Webp),
            // "BM" alone begins ordinary words; the header's length settles it.
            [b'B', b'M', ..] => match start.get(14..18)? {
                [12 | 40 | 52 | 56 | 64 | 108 | 124, 0, 0, 0] => Some(Self::Bmp),
                _ => None,
            },
            _ => None,
        }
    }

    pub(crate) fn mime_type(self) -> &'static str {
        self.library().to_mime_type()
    }

    fn library(self) -> ImageFormat {
        match self {
            Self::Png => ImageFormat::Png,
            Self::Jpeg => ImageFormat::Jpeg,
            Self::Gif => ImageFormat::Gif,
            Self::Webp => ImageFormat::WebP,
            Self::Bmp => ImageFormat::Bmp,
        }
    }
}

/// What a model takes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Limits {
    max_width: u32,
    max_height: u32,
    /// Base64 stays below this.
    max_bytes: usize,
    jpeg_quality: u8,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_width: 2000,
            max_height: 2000,
            max_bytes: 9 * 1024 * 1024 / 2,
            jpeg_quality: 80,
        }
    }
}

impl Limits {
    /// The model's own limits (`inputLimits.images`) where it has some.
    pub(crate) fn of_model(limits: &Value) -> Self {
        let resize = limits.get("resize").cloned();
        let own = resize.and_then(|resize| serde_json::from_value::<Self>(resize).ok());
        own.unwrap_or_default()
    }

    fn fit(&self, bytes: &[u8]) -> bool {
        bytes.len().div_ceil(3) * 4 < self.max_bytes
    }
}

/// An image ready for a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prepared {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mime_type: &'static str,
    /// Width and height, upright, before and after.
    original: (u32, u32),
    shown: (u32, u32),
}

impl Prepared {
    /// What the model should know of the picture.
    pub(crate) fn note(&self, format: Format) -> String {
        let ((width, height), (shown_width, shown_height)) = (self.original, self.shown);
        let mut note = format!("Image file ({}), {width}x{height}.", format.mime_type());
        if format.mime_type() != self.mime_type {
            note += &format!("\nShown as {}.", self.mime_type);
        }
        if self.original != self.shown {
            let factor = f64::from(width) / f64::from(shown_width);
            note += &format!(
                "\nShown at {shown_width}x{shown_height}: multiply coordinates by {factor:.2} to \
                 find them in the file."
            );
        }
        note
    }
}

/// Makes an image fit, or says why it cannot be shown.
pub(crate) fn prepare(
    bytes: Vec<u8>,
    format: Format,
    limits: &Limits,
    cancelled: &dyn Fn() -> bool,
) -> Result<Prepared, String> {
    let image = decode(&bytes, format).map_err(|e| format!("it cannot be decoded ({e})"))?;
    let original = (image.width(), image.height());
    let (bytes, mime_type) = match format {
        Format::Bmp => (encode(&image, ImageFormat::Png)?, "image/png"),
        _ => (bytes, format.mime_type()),
    };
    let small = original.0 <= limits.max_width && original.1 <= limits.max_height;
    if small && limits.fit(&bytes) {
        return Ok(Prepared {
            bytes,
            mime_type,
            original,
            shown: original,
        });
    }
    shrink(&image, limits, cancelled)
}

/// Decodes even what will be passed on untouched: a service refuses a request with a broken image,
/// and would refuse every later one of the conversation too.
fn decode(bytes: &[u8], format: Format) -> ::image::ImageResult<DynamicImage> {
    let mut decoder =
        ImageReader::with_format(Cursor::new(bytes), format.library()).into_decoder()?;
    let orientation = decoder.orientation()?;
    let mut image = DynamicImage::from_decoder(decoder)?;
    image.apply_orientation(orientation);
    // Two kinds of pixels are left, so that every encoder takes them.
    Ok(if image.color().has_alpha() {
        image.into_rgba8().into()
    } else {
        image.into_rgb8().into()
    })
}

fn shrink(
    image: &DynamicImage,
    limits: &Limits,
    cancelled: &dyn Fn() -> bool,
) -> Result<Prepared, String> {
    let original = (image.width(), image.height());
    let (mut width, mut height) = within(original, limits);
    loop {
        if cancelled() {
            return Err("the call was aborted".to_owned());
        }
        let scaled = image.resize_exact(width, height, FilterType::Lanczos3);
        if let Some((bytes, mime_type)) = encode_to_fit(&scaled, limits)? {
            return Ok(Prepared {
                bytes,
                mime_type,
                original,
                shown: (width, height),
            });
        }
        if (width, height) == (1, 1) {
            return Err("no size of it is small enough".to_owned());
        }
        (width, height) = (three_quarters(width), three_quarters(height));
    }
}

/// The largest size of the same shape within the limits.
fn within((width, height): (u32, u32), limits: &Limits) -> (u32, u32) {
    let factor = (f64::from(limits.max_width) / f64::from(width))
        .min(f64::from(limits.max_height) / f64::from(height))
        .min(1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive and not larger than a side of the image"
    )]
    let scaled = |side: u32| ((f64::from(side) * factor).round() as u32).max(1);
    (scaled(width), scaled(height))
}

fn three_quarters(side: u32) -> u32 {
    (side / 4 * 3 + side % 4 * 3 / 4).max(1)
}

fn encode_to_fit(
    image: &DynamicImage,
    limits: &Limits,
) -> Result<Option<(Vec<u8>, &'static str)>, String> {
    let png = encode(image, ImageFormat::Png)?;
    let opaque = on_white(image);
    let jpeg = encode_jpeg(&opaque, limits.jpeg_quality)?;
    let smaller = if jpeg.len() < png.len() {
        (jpeg, "image/jpeg")
    } else {
        (png, "image/png")
    };
    if limits.fit(&smaller.0) {
        return Ok(Some(smaller));
    }
    for quality in [85, 70, 55, 40] {
        let jpeg = encode_jpeg(&opaque, quality)?;
        if limits.fit(&jpeg) {
            return Ok(Some((jpeg, "image/jpeg")));
        }
    }
    Ok(None)
}

fn encode(image: &DynamicImage, format: ImageFormat) -> Result<Vec<u8>, String> {
    let mut bytes = Cursor::new(Vec::new());
    let written = image.write_to(&mut bytes, format);
    written.map_err(|e| format!("it cannot be encoded ({e})"))?;
    Ok(bytes.into_inner())
}

fn encode_jpeg(image: &RgbImage, quality: u8) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let written = image.write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, quality));
    written.map_err(|e| format!("it cannot be encoded ({e})"))?;
    Ok(bytes)
}

/// JPEG has no transparency, and what lies under transparent pixels is arbitrary.
fn on_white(image: &DynamicImage) -> RgbImage {
    let DynamicImage::ImageRgba8(image) = image else {
        return image.to_rgb8();
    };
    RgbImage::from_fn(image.width(), image.height(), |x, y| {
        let [r, g, b, alpha] = image.get_pixel(x, y).0.map(u16::from);
        let blend = |c: u16| u8::try_from((c * alpha + 255 * (255 - alpha)) / 255).unwrap_or(255);
        Rgb([blend(r), blend(g), blend(b)])
    })
}

#[cfg(test)]
mod tests {
    use ::image::RgbaImage;

    use super::*;

    fn limits(side: u32, max_bytes: usize) -> Limits {
        Limits {
            max_width: side,
            max_height: side,
            max_bytes,
            ..Limits::default()
        }
    }

    fn noise(width: u32, height: u32) -> DynamicImage {
        let mut state = 1_u32;
        RgbImage::from_fn(width, height, |_, _| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            Rgb([state.to_be_bytes()[0], state.to_be_bytes()[1], 7])
        })
        .into()
    }

    fn run(bytes: Vec<u8>, format: Format, limits: &Limits) -> Result<Prepared, String> {
        prepare(bytes, format, limits, &|| false)
    }

    fn size_of(prepared: &Prepared) -> (u32, u32) {
        let image = ::image::load_from_memory(&prepared.bytes).unwrap();
        (image.width(), image.height())
    }

    #[test]
    fn a_format_is_told_by_content() {
        let image = noise(3, 2);
        for (format, library) in [
            (Format::Png, ImageFormat::Png),
            (Format::Jpeg, ImageFormat::Jpeg),
            (Format::Gif, ImageFormat::Gif),
            (Format::Webp, ImageFormat::WebP),
            (Format::Bmp, ImageFormat::Bmp),
        ] {
            let bytes = encode(&image, library).unwrap();
            assert_eq!(Format::of(&bytes), Some(format));
            assert!(run(bytes, format, &Limits::default()).is_ok(), "{format:?}");
        }
        for text in [
            "",
            "B",
            "BMW is a car maker of Munich",
            "GIF89 is a format",
            "RIFF of text",
        ] {
            assert_eq!(Format::of(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn an_image_within_the_limits_keeps_its_bytes() {
        let bytes = encode(&noise(8, 8), ImageFormat::Png).unwrap();
        let prepared = run(bytes.clone(), Format::Png, &limits(8, 4096)).unwrap();
        assert_eq!(prepared.bytes, bytes);
        assert_eq!(prepared.note(Format::Png), "Image file (image/png), 8x8.");
    }

    #[test]
    fn a_bmp_is_shown_as_png() {
        let bytes = encode(&noise(4, 4), ImageFormat::Bmp).unwrap();
        let prepared = run(bytes, Format::Bmp, &Limits::default()).unwrap();
        assert_eq!(Format::of(&prepared.bytes), Some(Format::Png));
        assert_eq!(
            prepared.note(Format::Bmp),
            "Image file (image/bmp), 4x4.\nShown as image/png."
        );
    }

    #[test]
    fn a_large_image_is_scaled_to_fit_and_the_factor_is_told() {
        let bytes = encode(&noise(40, 20), ImageFormat::Png).unwrap();
        let prepared = run(bytes, Format::Png, &limits(10, 100_000)).unwrap();
        assert_eq!(size_of(&prepared), (10, 5));
        let note = prepared.note(Format::Png);
        assert!(
            note.contains("40x20") && note.contains("10x5") && note.contains("by 4.00"),
            "{note}"
        );
    }

    #[test]
    fn exactly_the_largest_side_is_untouched_and_one_more_is_scaled() {
        for (side, expected) in [(10, 10), (11, 10)] {
            let bytes = encode(&noise(side, side), ImageFormat::Png).unwrap();
            let prepared = run(bytes, Format::Png, &limits(10, 100_000)).unwrap();
            assert_eq!(size_of(&prepared), (expected, expected));
        }
    }

    #[test]
    fn base64_stays_below_the_byte_limit() {
        let bytes = encode(&noise(64, 64), ImageFormat::Png).unwrap();
        let exact = bytes.len().div_ceil(3) * 4;
        assert_eq!(
            run(bytes.clone(), Format::Png, &limits(64, exact + 1))
                .unwrap()
                .bytes,
            bytes
        );
        assert_ne!(
            run(bytes.clone(), Format::Png, &limits(64, exact))
                .unwrap()
                .bytes,
            bytes
        );
        for max_bytes in [6000, 3000, 1500, 1000] {
            let prepared = run(bytes.clone(), Format::Png, &limits(64, max_bytes)).unwrap();
            assert!(prepared.bytes.len().div_ceil(3) * 4 < max_bytes);
            assert_eq!(size_of(&prepared), prepared.shown);
        }
        assert!(
            run(bytes, Format::Png, &limits(64, 10))
                .unwrap_err()
                .contains("small enough")
        );
    }

    #[test]
    fn broken_bytes_are_a_reason_not_a_panic() {
        let mut bytes = encode(&noise(8, 8), ImageFormat::Png).unwrap();
        bytes.truncate(60);
        assert!(
            run(bytes, Format::Png, &Limits::default())
                .unwrap_err()
                .contains("decoded")
        );
    }

    #[test]
    fn limits_of_the_model_override_one_by_one() {
        let own = Limits::of_model(&serde_json::json!({"resize": {"maxWidth": 512}}));
        assert_eq!(
            own,
            Limits {
                max_width: 512,
                ..Limits::default()
            }
        );
        for none in [Value::Null, serde_json::json!({"maxPerMessage": 3})] {
            assert_eq!(Limits::of_model(&none), Limits::default());
        }
    }

    #[test]
    fn transparent_pixels_become_white_in_a_jpeg() {
        let clear = RgbaImage::from_pixel(2, 2, ::image::Rgba([9, 9, 9, 0]));
        assert_eq!(
            on_white(&clear.into()).get_pixel(0, 0),
            &Rgb([255, 255, 255])
        );
    }

    #[test]
    fn a_photo_taken_sideways_is_turned_when_it_is_scaled() {
        let jpeg = encode(&noise(40, 20), ImageFormat::Jpeg).unwrap();
        // An APP1 segment with one EXIF entry: orientation 6, a quarter turn.
        let exif = b"\xff\xe1\x00\x22Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
        let turned = [&jpeg[..2], exif, &jpeg[2..]].concat();
        let prepared = run(turned.clone(), Format::Jpeg, &limits(10, 100_000)).unwrap();
        assert_eq!((prepared.original, size_of(&prepared)), ((20, 40), (5, 10)));
        let untouched = run(turned.clone(), Format::Jpeg, &Limits::default()).unwrap();
        assert_eq!(untouched.bytes, turned);
    }
}

//! Pictures, inside the page. Only kinds that are pixels are shown: an SVG is a document of its own.

use pliant_sdk::message::Image;

use super::markup::Html;

const SHOWN: [&str; 6] = [
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "image/bmp",
    "image/avif",
];

/// Writes the picture, or what is known of one that is not shown.
pub(super) fn write(out: &mut Html, image: &Image) {
    // Four characters of Base64 hold three bytes.
    let kilobytes = (image.data.len() / 4 * 3).div_ceil(1000) as u64;
    let kind = SHOWN
        .iter()
        .find(|kind| image.mime_type.eq_ignore_ascii_case(kind));
    match kind {
        Some(kind) if !image.data.is_empty() => {
            out.raw("<img alt=\"image\" loading=\"lazy\" src=\"data:")
                .raw(kind)
                .raw(";base64,");
            out.letters(&image.data).raw("\">");
        }
        _ => {
            out.raw("<p class=\"remark\">An image of type ")
                .text(&image.mime_type);
            out.raw(", ")
                .number(kilobytes)
                .raw(" kB, which is not shown.</p>");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(mime_type: &str, data: &str) -> String {
        let mut out = Html::default();
        let image = Image {
            data: data.to_owned(),
            mime_type: mime_type.to_owned(),
            ..Image::default()
        };
        write(&mut out, &image);
        out.take()
    }

    #[test]
    fn pixels_are_shown_and_documents_are_not() {
        assert_eq!(
            shown("image/PNG", "iVBO\nRw0=\" onerror=\"x"),
            "<img alt=\"image\" loading=\"lazy\" src=\"data:image/png;base64,iVBORw0=onerror=x\">"
        );
        for kind in ["image/svg+xml", "text/html", "image/png\" onerror=\"x", ""] {
            assert!(!shown(kind, "PHN2Zz4=").contains("<img"), "{kind}");
        }
    }
}

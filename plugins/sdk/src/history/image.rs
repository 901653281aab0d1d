//! Images: which can be sent, and what stands for those that cannot (`providers.md` §6, 2).

use crate::message::Image;

/// For the user's images, where the model sees none.
pub(super) const OMITTED: &str = "(image omitted: model does not support images)";

/// For images of tools, where the model sees none.
pub(super) const OMITTED_OF_TOOL: &str = "(tool image omitted: model does not support images)";

/// For images that no service could read.
pub(super) const DAMAGED: &str =
    "(image omitted: its data is damaged or of a kind that models do not take)";

/// The kinds that every service with images takes. Others make it refuse the whole request, this
/// time and ever after.
const KINDS: [&str; 5] = ["png", "jpeg", "jpg", "gif", "webp"];

/// Whether services can take the image, as far as can be told without decoding it.
pub(super) fn is_usable(image: &Image) -> bool {
    let kind = image.mime_type.strip_prefix("image/");
    kind.is_some_and(|kind| KINDS.contains(&kind)) && is_base64(&image.data)
}

fn is_base64(data: &str) -> bool {
    let digits = data.trim_end_matches('=');
    let padding = data.len() - digits.len();
    let whole = data.len().is_multiple_of(4) && padding <= 2;
    // Images are megabytes: pieces without branches are what compilers make fast.
    let mut pieces = digits.as_bytes().chunks(4096);
    let all_digits = |piece: &[u8]| piece.iter().fold(true, |all, byte| all & is_digit(*byte));
    !digits.is_empty() && whole && pieces.all(all_digits)
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() | (byte == b'+') | (byte == b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_needs_a_known_kind_and_whole_base64() {
        let usable = |mime_type: &str, data: &str| {
            is_usable(&Image {
                mime_type: mime_type.into(),
                data: data.into(),
                ..Image::default()
            })
        };
        assert!(usable("image/png", "QQ==") && usable("image/webp", "QUJD"));
        for data in [
            "", "==", "QQ", "QQ=", "Q===", "QQ==QQ==", "QU JD", "Q_JD", "é==",
        ] {
            assert!(!usable("image/png", data), "{data:?}");
        }
        for kind in ["", "png", "image/", "image/bmp", "text/plain"] {
            assert!(!usable(kind, "QQ=="), "{kind:?}");
        }
    }
}

//! Bytes that arrive in pieces become text, and a character cut by the edge of a piece stays whole.

/// Decodes one stream of bytes.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// A character that began in the last piece: three bytes at most.
    begun: Vec<u8>,
}

impl Decoder {
    /// The text of the next piece. Bytes that are no UTF-8 become replacement characters.
    pub(crate) fn push(&mut self, piece: &[u8]) -> String {
        let mut bytes = std::mem::take(&mut self.begun);
        bytes.extend_from_slice(piece);
        // Without broken bytes, which is nearly always, the text is the bytes as they are.
        let error = match String::from_utf8(bytes) {
            Ok(text) => return text,
            Err(error) => error,
        };
        let mut text = String::new();
        let mut chunks = error.as_bytes().utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if chunks.peek().is_none() && is_beginning(invalid) {
                self.begun = invalid.to_vec();
            } else if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        text
    }

    /// What is left when the stream is over: a begun character will never be complete.
    pub(crate) fn finish(&mut self) -> &'static str {
        match std::mem::take(&mut self.begun).is_empty() {
            true => "",
            false => "\u{FFFD}",
        }
    }
}

/// Whether more bytes could make this a character.
fn is_beginning(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8], size: usize) -> String {
        let mut decoder = Decoder::default();
        let mut text: String = bytes
            .chunks(size)
            .map(|piece| decoder.push(piece))
            .collect();
        text.push_str(decoder.finish());
        text
    }

    #[test]
    fn t07_an_edge_inside_a_character_does_not_show() {
        let text = "a é € 🦀 👩‍👩‍👧 \u{FEFF}z";
        for size in 1..=text.len() {
            assert_eq!(decode(text.as_bytes(), size), text, "pieces of {size}");
        }
    }

    #[test]
    fn broken_bytes_become_the_same_text_in_pieces_of_any_size() {
        let bytes = b"a\xff\xc3(\xe2\x82\xf0\x9f\xa6z\xed\xa0\x80\x80\xf4\x90\xe2\x82";
        for size in 1..=bytes.len() {
            assert_eq!(
                decode(bytes, size),
                String::from_utf8_lossy(bytes),
                "pieces of {size}"
            );
        }
    }
}

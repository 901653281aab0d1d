//! Bytes that arrive in chunks become text, for tools that stream files and output. A character cut by a chunk's edge is put together
//! again; bytes that are no UTF-8 become replacement characters, as many as for the whole text.

/// Decodes one stream.
#[derive(Debug, Clone, Default)]
pub struct Decoder {
    /// The begun character at the end of the last chunk, at most three bytes.
    begun: Vec<u8>,
}

impl Decoder {
    /// Hands the text of the next chunk to `sink`, in pieces.
    pub fn push(&mut self, chunk: &[u8], mut sink: impl FnMut(&str)) {
        let joined;
        let mut rest = chunk;
        if !self.begun.is_empty() {
            self.begun.extend_from_slice(chunk);
            joined = std::mem::take(&mut self.begun);
            rest = &joined;
        }
        loop {
            let error = match std::str::from_utf8(rest) {
                Ok(text) => return sink(text),
                Err(error) => error,
            };
            let (valid, after) = rest.split_at(error.valid_up_to());
            sink(std::str::from_utf8(valid).unwrap_or_default());
            let Some(invalid) = error.error_len() else {
                self.begun = after.to_vec();
                return;
            };
            sink("\u{FFFD}");
            rest = &after[invalid..];
        }
    }

    /// The stream is over: a begun character will never be complete.
    pub fn finish(&mut self, mut sink: impl FnMut(&str)) {
        if !std::mem::take(&mut self.begun).is_empty() {
            sink("\u{FFFD}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8], chunk: usize) -> String {
        let mut text = String::new();
        let mut decoder = Decoder::default();
        for chunk in bytes.chunks(chunk) {
            decoder.push(chunk, |piece| text.push_str(piece));
        }
        decoder.finish(|piece| text.push_str(piece));
        text
    }

    #[test]
    fn a_chunk_edge_inside_a_character_does_not_show() {
        // T07
        let text = "a é € 👩‍👩‍👧 \u{FEFF}z";
        for chunk in 1..=text.len() {
            assert_eq!(decode(text.as_bytes(), chunk), text);
        }
    }

    #[test]
    fn broken_bytes_become_the_same_replacement_characters_in_any_chunks() {
        let bytes = b"a\xff\xc3(\xe2\x82\xf0\x9f\xa6z\xed\xa0\x80\xe2\x82";
        for chunk in 1..=bytes.len() {
            assert_eq!(decode(bytes, chunk), String::from_utf8_lossy(bytes));
        }
    }
}

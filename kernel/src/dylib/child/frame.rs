//! What crosses the link between the kernel and a child: frames of one layout. Payloads are the bytes
//! they are everywhere else and are not looked into.
//!
//! `length u32 | kind u8 | ok u8 | id u64 | scope u64 | length of name u16 | name | payload`, little
//! endian; the first length counts what follows it.

use std::io;

/// A frame longer than this is a fault of who sent it.
const LARGEST: usize = 256 << 20;

const HEAD: usize = 1 + 1 + 8 + 8 + 2;

/// What a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// To the child, first: what to load. Payload: JSON.
    Start,
    /// From the child: it is loaded and described by the payload, or it is not and the payload is the
    /// error.
    Started,
    /// To the child: begin call `id` of contribution `scope`, operation `name`.
    Invoke,
    /// To the child: nobody waits for call `id`.
    Cancel,
    /// To the child: run the lifecycle operation `name`.
    Control,
    /// From the child: the answer of a call or operation, or the acknowledgement of a cancel.
    Answer,
    /// From the child: call `id` says something on its way.
    Emit,
    /// To the child: what the caller thinks of what call `id` said; `scope` is one of the `EMIT_*`.
    Flow,
    /// From the child: ask service `name` for call `scope`, 0 being the plugin itself.
    Ask,
    /// From the child: likewise, for a stream.
    Open,
    /// From the child: likewise, without an answer.
    Notify,
    /// From the child: nobody waits for the answer or stream `id`.
    Drop,
    /// From the child: it has room for `scope` more items of stream `id`.
    Credit,
    /// To the child: the answer of a question, or that a stream is open.
    Told,
    /// To the child: an item of stream `id`; without `ok` an error.
    Item,
    /// To the child: stream `id` is over.
    End,
}

const KINDS: [Kind; 16] = [
    Kind::Start,
    Kind::Started,
    Kind::Invoke,
    Kind::Cancel,
    Kind::Control,
    Kind::Answer,
    Kind::Emit,
    Kind::Flow,
    Kind::Ask,
    Kind::Open,
    Kind::Notify,
    Kind::Drop,
    Kind::Credit,
    Kind::Told,
    Kind::Item,
    Kind::End,
];

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) ok: bool,
    pub(super) id: u64,
    pub(super) scope: u64,
    pub(super) name: String,
    pub(super) payload: Vec<u8>,
}

impl Frame {
    /// A frame with nothing in it.
    pub(super) fn new(kind: Kind, id: u64) -> Self {
        Self {
            kind,
            ok: true,
            id,
            scope: 0,
            name: String::new(),
            payload: Vec::new(),
        }
    }

    /// A frame with a payload.
    pub(super) fn with(kind: Kind, id: u64, payload: Vec<u8>) -> Self {
        Self {
            payload,
            ..Self::new(kind, id)
        }
    }

    /// A frame that carries an answer: bytes, or an error as JSON.
    pub(super) fn answer(kind: Kind, id: u64, answer: Result<Vec<u8>, pliant_sdk::Error>) -> Self {
        let (ok, payload) = match answer {
            Ok(bytes) => (true, bytes),
            Err(error) => (false, error.to_bytes()),
        };
        Self {
            ok,
            ..Self::with(kind, id, payload)
        }
    }

    /// The answer in it.
    pub(super) fn into_answer(self) -> Result<Vec<u8>, pliant_sdk::Error> {
        match self.ok {
            true => Ok(self.payload),
            false => Err(pliant_sdk::Error::from_bytes(&self.payload)),
        }
    }

    /// Writes it behind `bytes`.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        // Names are those of services and operations.
        let name = &self.name.as_bytes()[..self.name.len().min(usize::from(u16::MAX))];
        let name_len = u16::try_from(name.len()).unwrap_or_default();
        let len = HEAD + name.len() + self.payload.len();
        bytes.reserve(4 + len);
        bytes.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend_from_slice(&[self.kind as u8, u8::from(self.ok)]);
        bytes.extend_from_slice(&self.id.to_le_bytes());
        bytes.extend_from_slice(&self.scope.to_le_bytes());
        bytes.extend_from_slice(&name_len.to_le_bytes());
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(&self.payload);
    }

    /// Reads the first frame and how many bytes it takes; `None` while it is not whole.
    ///
    /// # Errors
    /// When what stands there is no frame.
    pub(super) fn read(bytes: &[u8]) -> io::Result<Option<(Self, usize)>> {
        let garbage = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let Some(len) = bytes.first_chunk::<4>() else {
            return Ok(None);
        };
        let len = usize::try_from(u32::from_le_bytes(*len)).unwrap_or(usize::MAX);
        if !(HEAD..=LARGEST).contains(&len) {
            return Err(garbage("a frame of a length that no frame has"));
        }
        let Some(frame) = bytes.get(4..4 + len) else {
            return Ok(None);
        };
        let number = |at: usize| -> u64 {
            let bytes: [u8; 8] = std::array::from_fn(|byte| frame[at + byte]);
            u64::from_le_bytes(bytes)
        };
        let name_len = usize::from(u16::from_le_bytes([frame[18], frame[19]]));
        let kind = KINDS.get(usize::from(frame[0])).copied();
        let name = frame.get(HEAD..HEAD + name_len);
        let (Some(kind), Some(name)) = (kind, name) else {
            return Err(garbage("a frame of no kind there is"));
        };
        let name = std::str::from_utf8(name).map_err(|_| garbage("a name that is no text"))?;
        let frame = Self {
            kind,
            ok: frame[1] != 0,
            id: number(2),
            scope: number(10),
            name: name.to_owned(),
            payload: frame[HEAD + name_len..].to_vec(),
        };
        Ok(Some((frame, 4 + len)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_frame_is_read_as_it_was_written_once_it_is_whole(
            kind in 0..KINDS.len(), ok: bool, id: u64, scope: u64, name in "[a-z.]{0,20}",
            payload in prop::collection::vec(any::<u8>(), 0..200), cut in 0_usize..300
        ) {
            let frame = Frame { kind: KINDS[kind], ok, id, scope, name, payload };
            let mut bytes = Vec::new();
            frame.write(&mut bytes);
            let len = bytes.len();
            prop_assert_eq!(bytes[4], frame.kind as u8);
            frame.write(&mut bytes);
            prop_assert_eq!(Frame::read(&bytes).unwrap(), Some((frame, len)));
            prop_assert_eq!(Frame::read(&bytes[..cut.min(len - 1)]).unwrap(), None);
        }

        /// What a child that went wrong writes looks like frames: one of its bytes is another, its
        /// lengths are wrong, it was cut and goes on with something else.
        #[test]
        fn a_spoilt_frame_is_refused_waited_for_or_a_frame_within_its_bytes(
            kind in 0..KINDS.len(), name in "[a-z.]{0,20}",
            payload in prop::collection::vec(any::<u8>(), 0..60),
            at in 0_usize..8, byte: u8, len: u16, cut in 0_usize..90
        ) {
            let frame = Frame { name, ..Frame::with(KINDS[kind], 7, payload) };
            let mut whole = Vec::new();
            frame.write(&mut whole);

            let mut cut_off = whole[..cut.min(whole.len())].to_vec();
            cut_off.extend_from_slice(&whole);
            let mut another_byte = whole.clone();
            another_byte[at] = byte;
            let mut another_name = whole.clone();
            another_name[4 + HEAD - 2..4 + HEAD].copy_from_slice(&len.to_le_bytes());
            for bytes in [cut_off, another_byte, another_name] {
                if let Ok(Some((read, taken))) = Frame::read(&bytes) {
                    prop_assert!((4 + HEAD..=bytes.len()).contains(&taken));
                    prop_assert_eq!(taken, 4 + HEAD + read.name.len() + read.payload.len());
                }
            }
        }
    }

    #[test]
    fn what_no_frame_says_is_refused() {
        let mut whole = Vec::new();
        Frame::with(Kind::Ask, 7, b"null".to_vec()).write(&mut whole);
        let spoilt = |at: usize, bytes: &[u8]| {
            let mut frame = whole.clone();
            frame[at..at + bytes.len()].copy_from_slice(bytes);
            frame
        };
        let too_short = u32::try_from(HEAD - 1).unwrap().to_le_bytes();
        let too_long = u32::try_from(LARGEST + 1).unwrap().to_le_bytes();
        let cases = [
            ("a length below the head's", spoilt(0, &too_short)),
            ("a length above the largest", spoilt(0, &too_long)),
            (
                "a kind there is none of",
                spoilt(4, &[u8::try_from(KINDS.len()).unwrap()]),
            ),
            (
                "a name longer than the frame",
                spoilt(4 + HEAD - 2, &[5, 0]),
            ),
            (
                "a name that is no text",
                [&spoilt(4 + HEAD - 2, &[4, 0])[..4 + HEAD], &[0xff; 4]].concat(),
            ),
        ];
        for (what, bytes) in cases {
            assert!(Frame::read(&bytes).is_err(), "{what}");
        }
    }
}

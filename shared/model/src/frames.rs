//! Bytes of an answer to its frames: server-sent events, lines, or one document. Pure, and bounded.

use crate::failure::FailureKind;

/// Most bytes of one frame.
const FRAME_BYTES_MAX: usize = 2 * 1_024 * 1_024;

/// How frames follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events; one document where the first character is a brace.
    Events,
    /// One frame a line.
    Lines,
    /// One document to the end.
    Whole,
}

/// Cuts bytes into frames. Pieces may be cut anywhere, also inside a character.
#[derive(Debug)]
pub(crate) struct Framer {
    framing: Framing,
    begun: bool,
    /// What there is of the current line, or of the document.
    line: Vec<u8>,
    /// The data of the current event, without its lines' names.
    data: Vec<u8>,
}

impl Framer {
    pub(crate) fn new(framing: Framing) -> Self {
        Self { framing, begun: false, line: Vec::new(), data: Vec::new() }
    }

    /// Whether the answer is one document.
    pub(crate) fn is_whole(&self) -> bool {
        self.framing == Framing::Whole
    }

    /// Takes a piece, and hands over each frame that has become complete, until one is the last.
    pub(crate) fn push(
        &mut self,
        piece: &[u8],
        each: &mut dyn FnMut(&str) -> Result<bool, FailureKind>,
    ) -> Result<bool, FailureKind> {
        let mut rest = if self.begun { piece } else { self.begin(piece) };
        if self.framing != Framing::Whole {
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                self.keep(&rest[..end])?;
                rest = &rest[end + 1..];
                if self.end_of_line(each)? {
                    return Ok(true);
                }
            }
        }
        self.keep(rest)?;
        Ok(false)
    }

    /// Hands over what is left when the answer has ended.
    pub(crate) fn end(
        &mut self,
        each: &mut dyn FnMut(&str) -> Result<bool, FailureKind>,
    ) -> Result<(), FailureKind> {
        match self.framing {
            Framing::Whole => hand(&std::mem::take(&mut self.line), each).map(|_| ()),
            Framing::Lines => self.end_of_line(each).map(|_| ()),
            Framing::Events => {
                if self.end_of_line(each)? {
                    return Ok(());
                }
                self.end_of_line(each).map(|_| ())
            }
        }
    }

    fn begin<'a>(&mut self, piece: &'a [u8]) -> &'a [u8] {
        let piece = piece.trim_ascii_start();
        let Some(first) = piece.first() else { return piece };
        self.begun = true;
        if self.framing == Framing::Events && matches!(first, b'{' | b'[') {
            self.framing = Framing::Whole;
        }
        piece
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), FailureKind> {
        if self.line.len() + self.data.len() + bytes.len() > FRAME_BYTES_MAX {
            return Err(FailureKind::TooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_of_line(
        &mut self,
        each: &mut dyn FnMut(&str) -> Result<bool, FailureKind>,
    ) -> Result<bool, FailureKind> {
        let mut line = std::mem::take(&mut self.line);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if self.framing == Framing::Lines {
            return hand(&line, each);
        }
        if line.is_empty() {
            return hand(&std::mem::take(&mut self.data), each);
        }
        if let Some(data) = line.strip_prefix(b"data:") {
            if !self.data.is_empty() {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
        }
        Ok(false)
    }
}

/// Hands over a frame with something in it.
fn hand(
    frame: &[u8],
    each: &mut dyn FnMut(&str) -> Result<bool, FailureKind>,
) -> Result<bool, FailureKind> {
    let frame = std::str::from_utf8(frame).map_err(|_| FailureKind::Malformed)?.trim();
    if frame.is_empty() { Ok(false) } else { each(frame) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(framing: Framing, bytes: &[u8], step: usize) -> Vec<String> {
        let mut found = Vec::new();
        let mut each = |frame: &str| {
            found.push(frame.to_owned());
            Ok(frame == "[DONE]")
        };
        let mut framer = Framer::new(framing);
        for piece in bytes.chunks(step) {
            if framer.push(piece, &mut each).unwrap() {
                return found;
            }
        }
        framer.end(&mut each).unwrap();
        found
    }

    #[test]
    fn frames_are_the_same_wherever_the_pieces_are_cut() {
        let events = "\n: hello\r\nevent: x\r\ndata: {\"ä\":1}\r\n\r\ndata:two\ndata: lines\n\nid: 7\n\n\
            data: [DONE]\n\ndata: never\n\n";
        let lines = "{\"a\":1}\n\n{\"b\":\"€\"}\n{\"c\":3}";
        let whole = " {\"a\":\n\n\"ü\"}\n";
        for step in 1..80 {
            let expected = ["{\"ä\":1}", "two\nlines", "[DONE]"];
            assert_eq!(frames(Framing::Events, events.as_bytes(), step), expected, "{step}");
            let expected = ["{\"a\":1}", "{\"b\":\"€\"}", "{\"c\":3}"];
            assert_eq!(frames(Framing::Lines, lines.as_bytes(), step), expected, "{step}");
            assert_eq!(frames(Framing::Events, whole.as_bytes(), step), [whole.trim()], "{step}");
        }
    }

    #[test]
    fn an_event_without_an_end_is_handed_over_at_the_end() {
        assert_eq!(frames(Framing::Events, b"data: one\n\ndata: two", 3), ["one", "two"]);
        assert_eq!(frames(Framing::Events, b"<html>\n<body>no</body>\n", 3), Vec::<String>::new());
    }

    #[test]
    fn a_frame_is_bounded_however_it_comes() {
        let mut each = |_: &str| Ok(false);
        for framing in [Framing::Events, Framing::Lines, Framing::Whole] {
            let mut framer = Framer::new(framing);
            let mut pushed = 0;
            let failed = loop {
                let result = framer.push(&[b'x'; 1_000], &mut each);
                pushed += 1_000;
                if let Err(kind) = result {
                    break kind;
                }
            };
            assert_eq!(failed, FailureKind::TooLarge);
            assert!(pushed <= FRAME_BYTES_MAX + 1_000);
        }
        let mut framer = Framer::new(Framing::Events);
        let line = [b"data: ".as_slice(), &[b'x'; 1_000], b"\n"].concat();
        let many = (0..4_000).map(|_| framer.push(&line, &mut each)).find(Result::is_err);
        assert_eq!(many, Some(Err(FailureKind::TooLarge)));
        let mut framer = Framer::new(Framing::Lines);
        assert_eq!(framer.push(b"\xff\xfe\n", &mut each), Err(FailureKind::Malformed));
    }
}

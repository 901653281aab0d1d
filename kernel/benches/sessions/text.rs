//! The prepared pieces of a session's texts, already escaped for JSON, and the dice that choose
//! among them.

const PIECES: usize = 2048;

const WORDS: [&str; 24] = [
    "session", "entry", "branch", "leaf", "reader", "writer", "index", "parent", "buffer", "lease",
    "answer", "request", "stream", "cursor", "token", "größe", "naïve", "キー", "config",
    "handler", "offset", "length", "result", "timeout",
];

/// Splitmix64.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    /// The same seed rolls the same numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.roll() % end as u64).unwrap_or(0)
    }

    /// A number from `start` to before `end`.
    pub fn between(&mut self, start: usize, end: usize) -> usize {
        start + self.below(end - start)
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.below(WORDS.len())]
    }
}

/// Texts of four kinds to cut from.
#[derive(Debug)]
pub struct Pool {
    prose: Vec<String>,
    code: Vec<String>,
    log: Vec<String>,
    signatures: String,
}

impl Pool {
    /// Writes the pieces.
    pub fn new(dice: &mut Dice) -> Self {
        let mut pieces = |piece: fn(&mut Dice) -> String| -> Vec<String> {
            (0..PIECES).map(|_| piece(dice)).collect()
        };
        Self {
            prose: pieces(sentence),
            code: pieces(code_line),
            log: pieces(log_line),
            signatures: pieces(signature).concat(),
        }
    }

    /// Adds sentences of at least `size` bytes together.
    pub fn prose(&self, dice: &mut Dice, size: usize, to: &mut String) {
        fill(&self.prose, dice, size, to);
    }

    /// Adds lines of code.
    pub fn code(&self, dice: &mut Dice, size: usize, to: &mut String) {
        fill(&self.code, dice, size, to);
    }

    /// Adds lines of a log.
    pub fn log(&self, dice: &mut Dice, size: usize, to: &mut String) {
        fill(&self.log, dice, size, to);
    }

    /// Adds base64.
    pub fn signature(&self, dice: &mut Dice, size: usize, to: &mut String) {
        let start = dice.below(self.signatures.len() - size);
        to.push_str(&self.signatures[start..start + size]);
    }

    /// A file's name.
    pub fn path(&self, dice: &mut Dice) -> String {
        format!("src/{}/{}.rs", dice.word(), dice.word())
    }
}

fn fill(pieces: &[String], dice: &mut Dice, size: usize, to: &mut String) {
    let start = dice.below(pieces.len());
    let end = to.len() + size;
    for piece in pieces.iter().cycle().skip(start) {
        if to.len() >= end {
            break;
        }
        to.push_str(piece);
    }
}

fn sentence(dice: &mut Dice) -> String {
    let (a, b, c) = (dice.word(), dice.word(), dice.word());
    match dice.below(6) {
        0 => format!(r"\n\n- The {a} belongs to the {b}, so the {c} waits. "),
        1 => format!(r#"It says \"{a} of {b}\" where the {c} is meant; "#),
        2 => format!("first I look at how `{a}` uses {b} and {c} → then at the rest. "),
        _ => format!("The {a} of that {b} was changed before the {c} had been read. "),
    }
}

fn code_line(dice: &mut Dice) -> String {
    let (a, b, number) = (dice.word(), dice.word(), dice.below(900));
    match dice.below(8) {
        0 => r"\n".to_owned(),
        1 => format!(r#"{number:>6}\t    let {a} = {b}.get(\"{a}\")?;\n"#),
        2 => format!(r#"{number:>6}\t        assert_eq!({a}.{b}(), {number}, \"{a} – {b}\");\n"#),
        3 => format!(r"{number:>6}\t    // {a}: C:\\{b}\\{a} is as good as /{b}/{a}\n"),
        4 => format!(r"\t\tif err := {a}.{b}({number}); err != nil {{\n\t\t\treturn err\n\t\t}}\n"),
        5 => format!(r"{number:>6}\t    }}\n"),
        _ => format!(r"{number:>6}\tpub fn {a}_{b}(&self, at: usize) -> Option<&str> {{\n"),
    }
}

fn log_line(dice: &mut Dice) -> String {
    let (a, b, number) = (dice.word(), dice.word(), dice.below(60));
    match dice.below(5) {
        0 => format!(r"test {a}::{b} ... \u001b[32mok\u001b[0m\n"),
        1 => format!(r#"{{\"level\":\"warn\",\"{a}\":{{\"{b}\":[{number},null]}}}}\r\n"#),
        2 => format!(r"\u001b[31merror[E03{number}]\u001b[0m: cannot find `{a}` in `{b}`\n"),
        _ => format!(
            r"2026-01-01T10:{number:02}:11.220Z INFO {a}: {b} took {number} ms (id={number:06x})\n"
        ),
    }
}

fn signature(dice: &mut Dice) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits = dice.roll();
    let mut letters = String::new();
    for _ in 0..10 {
        let at = usize::try_from(bits & 63).unwrap_or(0);
        letters.push(char::from(LETTERS[at]));
        bits >>= 6;
    }
    letters
}

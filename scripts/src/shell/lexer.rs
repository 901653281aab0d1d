//! From text to words and operators, with quotes taken away and substitutions set aside.

use std::str::Chars;

/// A word as the command will get it, as far as that is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// Without quotes; expansions stand in it as they are written.
    pub(super) text: String,
    /// Some of it was quoted.
    pub(super) quoted: bool,
    /// What it comes to is known only when it runs.
    pub(super) dynamic: bool,
    /// It has an unquoted `*`, `?`, `[` or a brace, so it may become other words.
    pub(super) pattern: bool,
    /// Commands that run so that it gets its value.
    pub(super) inner: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(Word),
    /// `;`, `&`, `&&`, `||`, `|`, `|&`, `;;`, `(`, `)` and the end of a line, as `\n`.
    Operator(&'static str),
    /// Without its number.
    Redirect(&'static str),
}

/// Longest first.
const OPERATORS: [&str; 9] = ["&&", "||", "|&", ";;", ";", "&", "|", "(", ")"];
const REDIRECTS: [&str; 11] = [
    "<<<", "<<-", "&>>", "<<", "<>", "<&", ">>", ">&", ">|", "&>", "<",
];

struct Lexer<'a> {
    rest: &'a str,
    tokens: Vec<Token>,
    /// Here-documents whose bodies begin at the next line: the last line of each, whether its tabs are
    /// taken away, whether it is expanded.
    waiting: Vec<(String, bool, bool)>,
}

/// The tokens of a text, and what is not understood, as clauses. Behind that it goes on with the next
/// command, so that a rule that forbids one still sees it.
pub(super) fn tokens(text: &str) -> (Vec<Token>, Vec<String>) {
    let mut lexer = Lexer {
        rest: text,
        tokens: Vec::new(),
        waiting: Vec::new(),
    };
    let mut unknown = Vec::new();
    loop {
        match lexer.step() {
            Ok(true) => {}
            Ok(false) => break,
            Err(reason) => {
                if !unknown.contains(&reason) {
                    unknown.push(reason);
                }
                lexer.skip();
            }
        }
    }
    if !lexer.waiting.is_empty() {
        unknown.push("a here-document has no end".to_owned());
    }
    (lexer.tokens, unknown)
}

impl Lexer<'_> {
    /// To where a command may begin.
    fn skip(&mut self) {
        let begins = |c: char| "\n;&|(){}`".contains(c);
        let at = self.rest.char_indices().find(|(_, c)| begins(*c));
        self.rest = at.map_or("", |(at, c)| &self.rest[at + c.len_utf8()..]);
        self.tokens.push(Token::Operator(";"));
    }

    fn step(&mut self) -> Result<bool, String> {
        let blank = |c: char| c == ' ' || c == '\t';
        self.rest = self.rest.trim_start_matches(blank);
        if let Some(rest) = self.rest.strip_prefix("\\\n") {
            self.rest = rest;
            return Ok(true);
        }
        let Some(first) = self.rest.chars().next() else {
            return Ok(false);
        };
        match first {
            '\n' => {
                self.rest = &self.rest[1..];
                self.tokens.push(Token::Operator("\n"));
                self.here_documents()?;
            }
            '#' => {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.rest = &self.rest[end..];
            }
            '\r' => return Err("it holds a carriage return".to_owned()),
            _ => self.operator_or_word()?,
        }
        Ok(true)
    }

    fn operator_or_word(&mut self) -> Result<(), String> {
        let number = self.rest.trim_start_matches(|c: char| c.is_ascii_digit());
        // `<(…)` and `>(…)` are words.
        let is_word = |rest: &str| rest.starts_with("<(") || rest.starts_with(">(");
        let redirect = |rest: &str| {
            let mut all = REDIRECTS.iter().chain(&[">"]);
            all.find(|op| rest.starts_with(**op)).copied()
        };
        if !is_word(number)
            && let Some(op) = redirect(number)
            && (number.len() == self.rest.len() || !op.starts_with('&'))
        {
            self.rest = &number[op.len()..];
            self.tokens.push(Token::Redirect(op));
            return Ok(());
        }
        if let Some(op) = OPERATORS.iter().find(|op| self.rest.starts_with(**op)) {
            self.rest = &self.rest[op.len()..];
            self.tokens.push(Token::Operator(op));
            return Ok(());
        }
        let mut chars = Source(self.rest.chars());
        let word = word(&mut chars)?;
        self.rest = chars.0.as_str();
        if let Some(Token::Redirect(op @ ("<<" | "<<-"))) = self.tokens.last() {
            let end = (word.text.clone(), *op == "<<-", !word.quoted);
            self.waiting.push(end);
        }
        self.tokens.push(Token::Word(word));
        Ok(())
    }

    /// Reads the bodies that begin here. What runs in them counts.
    fn here_documents(&mut self) -> Result<(), String> {
        for (end, tabs, expanded) in std::mem::take(&mut self.waiting) {
            let mut body = String::new();
            loop {
                if self.rest.is_empty() {
                    return Err("a here-document has no end".to_owned());
                }
                let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
                self.rest = rest;
                let bare = if tabs {
                    line.trim_start_matches('\t')
                } else {
                    line
                };
                if bare == end {
                    break;
                }
                body.push_str(line);
                body.push('\n');
            }
            if expanded && body.contains("\\\n") {
                return Err("a here-document joins lines, so its end is not sure".to_owned());
            }
            if expanded {
                let mut word = Word::default();
                let mut chars = Source(body.chars());
                while let Some(c) = chars.next() {
                    expand(c, &mut chars, &mut word)?;
                }
                if !word.inner.is_empty() {
                    // Before the line's end, where the command is that reads it.
                    let text = Token::Word(Word {
                        text: String::new(),
                        quoted: true,
                        ..word
                    });
                    self.tokens
                        .insert(self.tokens.len() - 1, Token::Redirect("<<"));
                    self.tokens.insert(self.tokens.len() - 1, text);
                }
            }
        }
        Ok(())
    }
}

/// Characters, of which the next one can be looked at.
#[derive(Clone)]
struct Source<'a>(Chars<'a>);

impl Source<'_> {
    fn peek(&self) -> Option<char> {
        self.0.clone().next()
    }
}

impl Iterator for Source<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        self.0.next()
    }
}

/// One word, up to what ends it.
fn word(chars: &mut Source<'_>) -> Result<Word, String> {
    let mut word = Word::default();
    while let Some(c) = chars.peek() {
        match c {
            ' ' | '\t' | '\n' | ';' | '&' | '|' | ')' => break,
            '(' => {
                // `name()` and `array=(…)`.
                return Err("it defines a function or a list".to_owned());
            }
            '<' | '>' => {
                let mut ahead = chars.clone();
                ahead.next();
                if !word.text.is_empty() || ahead.peek() != Some('(') {
                    break;
                }
                chars.next();
                chars.next();
                let inner = until_closed(chars)?;
                word.text.push_str("<(…)");
                word.dynamic = true;
                word.inner.push(inner);
            }
            _ => {
                chars.next();
                piece(c, chars, &mut word)?;
            }
        }
    }
    Ok(word)
}

fn piece(c: char, chars: &mut Source<'_>, word: &mut Word) -> Result<(), String> {
    match c {
        '\'' => {
            word.quoted = true;
            loop {
                match chars.next() {
                    Some('\'') => break,
                    Some(c) => word.text.push(c),
                    None => return Err("a quote is not closed".to_owned()),
                }
            }
        }
        '"' => {
            word.quoted = true;
            loop {
                match chars.next() {
                    Some('"') => break,
                    Some(c) => expand(c, chars, word)?,
                    None => return Err("a quote is not closed".to_owned()),
                }
            }
        }
        '\\' => match chars.next() {
            Some('\n') | None => {}
            Some(c) => {
                word.quoted = true;
                word.text.push(c);
            }
        },
        '$' if matches!(chars.peek(), Some('\'' | '"')) => {
            return Err("it has a $'…' or $\"…\" text".to_owned());
        }
        '*' | '?' | '[' | '{' => {
            word.pattern = true;
            word.text.push(c);
        }
        c => expand(c, chars, word)?,
    }
    Ok(())
}

/// A character where expansions count and quotes do not: in double quotes and in here-documents.
fn expand(c: char, chars: &mut Source<'_>, word: &mut Word) -> Result<(), String> {
    match c {
        '\\' => match chars.next() {
            Some('\n') | None => {}
            Some(c @ ('$' | '`' | '"' | '\\')) => word.text.push(c),
            Some(c) => word.text.extend(['\\', c]),
        },
        '`' => {
            word.dynamic = true;
            let mut inner = String::new();
            loop {
                match chars.next() {
                    Some('`') => break,
                    Some('\\') => match chars.next() {
                        Some(c @ ('$' | '`' | '\\')) => inner.push(c),
                        // In double quotes this is a quote, elsewhere it stays what it is.
                        Some('"') => return Err("it has quotes in ` in quotes".to_owned()),
                        other => inner.extend(Some('\\').into_iter().chain(other)),
                    },
                    Some(c) => inner.push(c),
                    None => return Err("a ` is not closed".to_owned()),
                }
            }
            word.text.push_str("`…`");
            word.inner.push(inner);
        }
        '$' => dollar(chars, word)?,
        c => word.text.push(c),
    }
    Ok(())
}

fn dollar(chars: &mut Source<'_>, word: &mut Word) -> Result<(), String> {
    match chars.peek() {
        Some('(') => {
            chars.next();
            word.dynamic = true;
            let inner = until_closed(chars)?;
            word.text.push_str("$(…)");
            // `$((…))` is arithmetic, in which commands may stand too; `$((…) …)` is none.
            let simple = |c: char| c.is_ascii_alphanumeric() || "_+-*/%<>=!&|^~?:, ()".contains(c);
            match inner.strip_prefix('(') {
                Some(sum) if sum.ends_with(')') && sum.chars().all(simple) => {}
                Some(_) => return Err("it has a $(( that may be no sum".to_owned()),
                None => word.inner.push(inner),
            }
        }
        Some('{') => {
            chars.next();
            word.dynamic = true;
            let mut depth = 1;
            let mut inside = String::new();
            while depth > 0 {
                let c = chars.next().ok_or("a ${ is not closed")?;
                depth += i32::from(c == '{') - i32::from(c == '}');
                inside.push(c);
            }
            if inside.contains(['$', '`', '@', '[', '\'', '"', '\\']) {
                return Err("it has an expansion in an expansion".to_owned());
            }
            word.text.push_str("${…}");
        }
        Some('\\') => return Err("a line may end in an expansion".to_owned()),
        Some('[') => return Err("it has a $[ that may be a sum".to_owned()),
        Some(c) if c.is_alphanumeric() || "_@*#?-$!".contains(c) => {
            word.dynamic = true;
            word.text.push('$');
        }
        _ => word.text.push('$'),
    }
    Ok(())
}

/// The text up to the parenthesis that closes an open one.
fn until_closed(chars: &mut Source<'_>) -> Result<String, String> {
    let (mut depth, mut inner) = (1, String::new());
    let mut quote = None;
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '\\') | (Some('"'), '\\') => {
                inner.push(c);
                inner.extend(chars.next());
                continue;
            }
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            (None, '#') if inner.ends_with([' ', '\t', '\n', ';']) || inner.is_empty() => {
                return Err("a comment stands in a substitution".to_owned());
            }
            _ => {}
        }
        if depth == 0 {
            // A here-document's text has quotes that are none, so the end may be elsewhere.
            let document = inner
                .split_once("<<")
                .and_then(|(_, rest)| rest.split_once('\n'));
            if document.is_some_and(|(_, text)| text.contains(['\'', '"', '`'])) {
                return Err("a here-document with quotes stands in a substitution".to_owned());
            }
            return Ok(inner);
        }
        inner.push(c);
    }
    Err("a ( is not closed".to_owned())
}

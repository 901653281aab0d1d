//! From words and operators to simple commands.

use std::collections::VecDeque;

use super::lexer::{Token, Word};
use super::{MOST, read, wrappers};

/// Everything that a line runs, as far as it is understood.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Commands {
    /// In the order they are written; what a command runs comes behind it.
    pub(crate) commands: Vec<Command>,
    /// What is not understood, as clauses. With one of them, more may run than is told.
    pub(crate) unknown: Vec<String>,
}

impl Commands {
    pub(super) fn unsure(&mut self, reason: impl Into<String>) {
        let reason = reason.into();
        if !self.unknown.contains(&reason) {
            self.unknown.push(reason);
        }
    }
}

/// One program with its arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Command {
    /// Its name and its arguments, without quotes; expansions stand in them as they are written.
    pub(crate) words: Vec<String>,
    /// Variables that are set for it, `NAME=value`.
    pub(crate) assignments: Vec<String>,
    /// Files that are read or written.
    pub(crate) redirects: Vec<Redirect>,
    /// It may get other arguments than those that are written.
    pub(crate) dynamic: bool,
}

/// Where something is read from or written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    /// `<`, `>`, `>>` and the like.
    pub(crate) operator: &'static str,
    /// The file, or the number of a stream.
    pub(crate) target: String,
}

/// Words that are followed by a command.
const BEFORE_COMMANDS: [&str; 9] = [
    "if", "then", "else", "elif", "while", "until", "do", "!", "time",
];

/// Words that end something.
const ENDINGS: [&str; 3] = ["fi", "done", "}"];

/// Words that begin something that is not followed.
const UNKNOWN_WORDS: [&str; 6] = ["case", "esac", "function", "select", "coproc", "[["];

/// Variables that change which programs run, or what they do before anything else.
const POWERFUL: [&str; 11] = [
    "PATH",
    "IFS",
    "ENV",
    "BASH_ENV",
    "PROMPT_COMMAND",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "PAGER",
    "EDITOR",
    "VISUAL",
];
const POWERFUL_BEGINNINGS: [&str; 4] = ["LD_", "DYLD_", "GIT_", "BASH_FUNC_"];

/// Reads tokens.
pub(super) struct Reader<'a> {
    tokens: VecDeque<Token>,
    depth: usize,
    found: &'a mut Commands,
}

impl<'a> Reader<'a> {
    pub(super) fn new(tokens: Vec<Token>, depth: usize, found: &'a mut Commands) -> Self {
        Self {
            tokens: tokens.into(),
            depth,
            found,
        }
    }

    pub(super) fn run(mut self) {
        let mut command = Vec::new();
        let mut redirects = Vec::new();
        while let Some(token) = self.tokens.pop_front() {
            match token {
                Token::Operator(_) => {
                    self.end(&mut command, &mut redirects);
                }
                Token::Redirect(operator) => self.redirect(operator, &mut redirects),
                Token::Word(word) if command.is_empty() && self.is_keyword(&word) => {}
                Token::Word(word) => command.push(word),
            }
        }
        self.end(&mut command, &mut redirects);
    }

    /// Passes by what is no part of a command.
    fn is_keyword(&mut self, word: &Word) -> bool {
        if word.quoted || word.dynamic {
            return false;
        }
        let text = word.text.as_str();
        if text == "for" {
            // Its words up to the end of the line are no command; what they run counts.
            while let Some(Token::Word(word)) = self.tokens.front() {
                // `for x do …` has no list.
                if word.text == "do" && !word.quoted {
                    break;
                }
                for inner in word.inner.clone() {
                    read(&inner, self.depth + 1, self.found);
                }
                self.tokens.pop_front();
            }
            return true;
        }
        if UNKNOWN_WORDS.contains(&text) || text.starts_with("((") {
            self.found.unsure(format!("it uses `{text}`"));
            return true;
        }
        let option = |token: &Token| matches!(token, Token::Word(word) if word.text == "-p");
        if text == "time" && self.tokens.front().is_some_and(option) {
            self.tokens.pop_front();
        }
        text == "{" || BEFORE_COMMANDS.contains(&text) || ENDINGS.contains(&text)
    }

    fn redirect(&mut self, operator: &'static str, redirects: &mut Vec<Redirect>) {
        let Some(Token::Word(word)) = self.tokens.front().cloned() else {
            return self.found.unsure("a redirection names no file");
        };
        self.tokens.pop_front();
        for inner in &word.inner {
            read(inner, self.depth + 1, self.found);
        }
        if !operator.starts_with("<<") {
            redirects.push(Redirect {
                operator,
                target: word.text,
            });
        }
    }

    fn end(&mut self, words: &mut Vec<Word>, redirects: &mut Vec<Redirect>) {
        let (words, redirects) = (std::mem::take(words), std::mem::take(redirects));
        if words.is_empty() && redirects.is_empty() {
            return;
        }
        let is_assignment = |word: &&Word| assigned(&word.text).is_some();
        let first = words.iter().take_while(is_assignment).count();
        let (assignments, rest) = words.split_at(first);
        // `export` and `env` set them too.
        for name in words.iter().filter_map(|word| assigned(&word.text)) {
            if is_powerful(name) {
                self.found.unsure(format!("it sets {name}"));
            }
        }
        if let Some(name) = rest.first() {
            self.name(name);
        }
        if self.found.commands.len() >= MOST {
            self.tokens.clear();
            return self.found.unsure("it has too many commands");
        }
        let texts = |words: &[Word]| words.iter().map(|word| word.text.clone()).collect();
        self.found.commands.push(Command {
            dynamic: rest.iter().any(|word| word.dynamic || word.pattern),
            words: texts(rest),
            assignments: texts(assignments),
            redirects,
        });
        for inner in words.iter().flat_map(|word| &word.inner) {
            read(inner, self.depth + 1, self.found);
        }
        wrappers::follow(rest, self.depth, self.found);
    }

    /// A command whose name is not known may be any.
    fn name(&mut self, word: &Word) {
        if word.dynamic {
            self.found
                .unsure("the name of a command is known only when it runs");
        } else if word.pattern && word.text != "[" {
            self.found.unsure("the name of a command is a pattern");
        } else if word.text.is_empty() {
            self.found.unsure("the name of a command is empty");
        }
    }
}

fn is_powerful(variable: &str) -> bool {
    let mut beginnings = POWERFUL_BEGINNINGS.iter();
    POWERFUL.contains(&variable) || beginnings.any(|beginning| variable.starts_with(beginning))
}

/// The variable that a word sets, if it does.
pub(super) fn assigned(word: &str) -> Option<&str> {
    let (name, _) = word.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (begins && name.chars().all(fits)).then_some(name)
}

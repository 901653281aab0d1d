//! Code with its comments, strings, numbers and keywords marked: enough to find one's way in it. No
//! grammar is known, and what is not recognised is text.

use super::diff;
use super::markup::Html;

/// Longer code is shown as text: nobody reads it here, and every mark costs the browser something.
const MOST_BYTES: usize = 200_000;

/// What has to be known of a language.
struct Language {
    /// As fences and endings of files name it.
    names: &'static [&'static str],
    line_comments: &'static [&'static str],
    block_comments: Option<(&'static str, &'static str)>,
    /// What strings begin and end with.
    quotes: &'static str,
    /// Those of them that go over lines.
    long_quotes: &'static str,
    keywords: &'static [&'static str],
}

const C: &[&str] = &[
    "abstract",
    "as",
    "async",
    "await",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "constexpr",
    "continue",
    "default",
    "delete",
    "do",
    "double",
    "else",
    "enum",
    "export",
    "extends",
    "extern",
    "false",
    "final",
    "finally",
    "float",
    "for",
    "from",
    "fun",
    "func",
    "function",
    "goto",
    "if",
    "implements",
    "import",
    "in",
    "inline",
    "instanceof",
    "int",
    "interface",
    "let",
    "long",
    "namespace",
    "new",
    "nil",
    "null",
    "nullptr",
    "of",
    "override",
    "package",
    "private",
    "protected",
    "public",
    "range",
    "readonly",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "super",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "type",
    "typedef",
    "typeof",
    "undefined",
    "union",
    "unsigned",
    "using",
    "val",
    "var",
    "virtual",
    "void",
    "while",
    "yield",
    "defer",
    "go",
    "chan",
    "map",
    "select",
    "fallthrough",
];
const RUST: &[&str] = &[
    "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern",
    "false", "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub",
    "ref", "return", "self", "Self", "static", "struct", "super", "trait", "true", "type",
    "unsafe", "use", "where", "while", "switch", "throw", "private", "import", "export",
];
const SCRIPT: &[&str] = &[
    "and",
    "as",
    "assert",
    "async",
    "await",
    "begin",
    "break",
    "case",
    "class",
    "continue",
    "def",
    "del",
    "do",
    "done",
    "elif",
    "else",
    "elsif",
    "end",
    "ensure",
    "esac",
    "except",
    "export",
    "False",
    "false",
    "fi",
    "finally",
    "for",
    "from",
    "function",
    "global",
    "if",
    "import",
    "in",
    "is",
    "lambda",
    "local",
    "module",
    "nil",
    "None",
    "nonlocal",
    "not",
    "null",
    "or",
    "pass",
    "raise",
    "require",
    "rescue",
    "return",
    "self",
    "set",
    "then",
    "True",
    "true",
    "try",
    "unless",
    "until",
    "when",
    "while",
    "with",
    "yield",
    "FROM",
    "RUN",
    "COPY",
    "CMD",
    "ENTRYPOINT",
    "ENV",
];
const QUERY: &[&str] = &[
    "select", "from", "where", "insert", "into", "values", "update", "set", "delete", "create",
    "table", "index", "view", "join", "left", "right", "inner", "outer", "on", "and", "or", "not",
    "null", "is", "in", "as", "by", "group", "order", "limit", "having", "union", "primary", "key",
    "SELECT", "FROM", "WHERE", "INSERT", "INTO", "VALUES", "UPDATE", "SET", "DELETE", "CREATE",
    "TABLE", "INDEX", "VIEW", "JOIN", "LEFT", "RIGHT", "INNER", "OUTER", "ON", "AND", "OR", "NOT",
    "NULL", "IS", "IN", "AS", "BY", "GROUP", "ORDER", "LIMIT", "HAVING", "UNION", "PRIMARY", "KEY",
    "local", "function", "end", "then", "if", "else", "elseif", "for", "while", "do", "return",
    "nil", "true", "false", "repeat", "until", "module", "let", "data", "type", "case", "of",
];

const LANGUAGES: &[Language] = &[
    Language {
        names: &["rust", "rs", "rhai"],
        line_comments: &["//"],
        block_comments: Some(("/*", "*/")),
        quotes: "\"",
        long_quotes: "\"",
        keywords: RUST,
    },
    Language {
        names: &[
            "c",
            "h",
            "cc",
            "cpp",
            "hpp",
            "c++",
            "java",
            "cs",
            "csharp",
            "kotlin",
            "kt",
            "swift",
            "go",
            "js",
            "mjs",
            "cjs",
            "javascript",
            "jsx",
            "ts",
            "typescript",
            "tsx",
            "php",
            "scala",
            "dart",
            "zig",
            "proto",
        ],
        line_comments: &["//"],
        block_comments: Some(("/*", "*/")),
        quotes: "\"'`",
        long_quotes: "`",
        keywords: C,
    },
    Language {
        names: &[
            "py",
            "python",
            "rb",
            "ruby",
            "sh",
            "bash",
            "zsh",
            "fish",
            "shell",
            "dockerfile",
            "make",
            "makefile",
            "r",
            "pl",
            "perl",
            "elixir",
            "ex",
            "exs",
            "nix",
        ],
        line_comments: &["#"],
        block_comments: None,
        quotes: "\"'",
        long_quotes: "",
        keywords: SCRIPT,
    },
    Language {
        names: &[
            "toml", "yaml", "yml", "ini", "conf", "json", "jsonc", "jsonl", "json5",
        ],
        line_comments: &["#", "//"],
        block_comments: None,
        quotes: "\"'",
        long_quotes: "",
        keywords: &["true", "false", "null", "yes", "no"],
    },
    Language {
        names: &["sql", "lua", "haskell", "hs", "elm", "ada"],
        line_comments: &["--"],
        block_comments: Some(("/*", "*/")),
        quotes: "\"'",
        long_quotes: "",
        keywords: QUERY,
    },
    Language {
        names: &["html", "xml", "svg", "vue", "svelte"],
        line_comments: &[],
        block_comments: Some(("<!--", "-->")),
        quotes: "\"",
        long_quotes: "\"",
        keywords: &[],
    },
    Language {
        names: &["css", "scss", "less"],
        line_comments: &[],
        block_comments: Some(("/*", "*/")),
        quotes: "\"'",
        long_quotes: "",
        keywords: &[],
    },
];

/// Writes a block of code. `name` is the word of a fence or the ending of a file; it may be any text.
pub(super) fn write(out: &mut Html, name: &str, code: &str) {
    let name = name.trim().to_ascii_lowercase();
    if matches!(&*name, "diff" | "patch") {
        diff::write(out, code);
        return;
    }
    out.raw("<pre><code>");
    let language = LANGUAGES
        .iter()
        .find(|language| language.names.contains(&&*name));
    match language {
        Some(language) if code.len() <= MOST_BYTES => language.write(out, code),
        _ => drop(out.text(code)),
    }
    out.raw("</code></pre>");
}

/// The name of a file's language: its ending.
pub(super) fn of_path(path: &str) -> &str {
    let file = path.rsplit(['/', '\\']).next().unwrap_or_default();
    file.rsplit('.').next().unwrap_or_default()
}

impl Language {
    fn write(&self, out: &mut Html, code: &str) {
        let mut rest = code;
        while let Some(first) = rest.chars().next() {
            let (class, len) = self.token(rest, first);
            let token = &rest[..len];
            if class.is_empty() {
                out.text(token);
            } else {
                out.raw("<span class=\"")
                    .raw(class)
                    .raw("\">")
                    .text(token)
                    .raw("</span>");
            }
            rest = &rest[len..];
        }
    }

    /// The class and length of what the code begins with.
    fn token(&self, code: &str, first: char) -> (&'static str, usize) {
        if self
            .line_comments
            .iter()
            .any(|start| code.starts_with(start))
        {
            return ("hc", code.find('\n').unwrap_or(code.len()));
        }
        if let Some((start, end)) = self.block_comments
            && code.starts_with(start)
        {
            let end = code[start.len()..]
                .find(end)
                .map(|at| start.len() + at + end.len());
            return ("hc", end.unwrap_or(code.len()));
        }
        if self.quotes.contains(first) {
            return ("hs", self.string(code, first));
        }
        if first.is_ascii_digit() {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
            return ("hn", code.find(|c| !is_part(c)).unwrap_or(code.len()));
        }
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        if is_word(first) {
            let len = code.find(|c| !is_word(c)).unwrap_or(code.len());
            let is_keyword = self.keywords.contains(&&code[..len]);
            return (if is_keyword { "hk" } else { "" }, len);
        }
        // Everything up to what may begin something else.
        let plain = |c: char| c.is_whitespace() || "(){}[];:,.=&|!?+*%^~@$".contains(c);
        let len = code.find(|c| !plain(c)).unwrap_or(code.len());
        ("", len.max(first.len_utf8()))
    }

    fn string(&self, code: &str, quote: char) -> usize {
        let triple = [quote; 3].iter().collect::<String>();
        if self.long_quotes.is_empty() && code.starts_with(&*triple) {
            let end = code[3..].find(&*triple).map(|at| at + 6);
            return end.unwrap_or(code.len());
        }
        let over_lines = self.long_quotes.contains(quote);
        let mut escaped = false;
        for (at, c) in code.char_indices().skip(1) {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '\n' if !over_lines => return at,
                c if c == quote => return at + c.len_utf8(),
                _ => {}
            }
        }
        code.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn code(name: &str, code: &str) -> String {
        let mut out = Html::default();
        write(&mut out, name, code);
        let text = out.take();
        text.replace("<pre><code>", "").replace("</code></pre>", "")
    }

    #[test]
    fn comments_strings_numbers_and_keywords_are_marked() {
        assert_eq!(
            code("rust", "let x = 1; // \"<\""),
            "<span class=\"hk\">let</span> x = <span class=\"hn\">1</span>; \
             <span class=\"hc\">// &quot;&lt;&quot;</span>"
        );
        assert_eq!(
            code("Py", "f('a\\'b') # c"),
            "f(<span class=\"hs\">&#39;a\\&#39;b&#39;</span>) <span class=\"hc\"># c</span>"
        );
        assert_eq!(code("no such", "let"), "let");
        assert_eq!(of_path("/a.b/c.rs"), "rs");
    }

    proptest! {
        #[test]
        fn marks_change_no_text(any in any::<String>(), at in 0..LANGUAGES.len()) {
            let mut marked = code(LANGUAGES[at].names[0], &any);
            for class in ["hc", "hs", "hn", "hk"] {
                marked = marked.replace(&format!("<span class=\"{class}\">"), "");
            }
            let mut plain = Html::default();
            let plain = plain.text(&any).take().replace("</span>", "");
            prop_assert_eq!(marked.replace("</span>", ""), plain);
        }
    }
}

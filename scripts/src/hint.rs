//! Hints: what a mistake that others made before was probably meant to be. Many authors come from
//! JavaScript, and so do models, so its habits have a table.

use rhai::{ASTNode, EvalAltResult, LexError, ParseError, ParseErrorType, Stmt};

use crate::program::Program;

const NOTHING: &str = "nothing is written `()`";
const CLOSURE: &str = "a function is written `fn name(a) { … }`, a closure `|a| …`";
const WAITING: &str = "functions that wait just wait; leave `async` and `await` out";
const TEXT: &str = "text stands in double quotes, and with `${…}` in it in backticks";

/// Words of other languages, with what takes their place.
const WORDS: &[(&str, &str)] = &[
    ("function", CLOSURE),
    ("null", NOTHING),
    ("nil", NOTHING),
    ("undefined", NOTHING),
    ("None", NOTHING),
    ("async", WAITING),
    ("await", WAITING),
    (
        "console",
        "write to the log with `log(text)` or `print(text)`",
    ),
    ("JSON", "use `json_parse(text)` and `json_stringify(value)`"),
    (
        "Math",
        "numbers have methods: `x.floor()`, `x.abs()`, `max(a, b)`",
    ),
    (
        "process",
        "environment and programs come from the host: `exec(…)`, `ctx.cwd`",
    ),
    (
        "require",
        "code of another file comes with `import \"file\" as name;`",
    ),
    ("setTimeout", "use `after(ms, || …)`"),
    ("setInterval", "use `every(ms, || …)`"),
    ("typeof", "use `type_of(x)`"),
    ("instanceof", "use `type_of(x)`"),
    (
        "new",
        "values are not made with `new`; a map is `#{ a: 1 }`",
    ),
    ("var", "variables are declared with `let`"),
    ("elif", "write `else if`"),
];

/// Spellings of other languages, with what takes their place; looked for where the parser stopped.
const SPELLINGS: &[(&str, &str)] = &[
    ("===", "compare with `==` and `!=`"),
    ("!==", "compare with `==` and `!=`"),
    (
        "let {",
        "`let` takes one name; take the fields one by one: `let a = x.a;`",
    ),
    (
        "let [",
        "`let` takes one name; take the elements one by one: `let a = x[0];`",
    ),
    (
        "for (",
        "a loop is `for x in list { … }` or `for i in 0..n { … }`",
    ),
    ("=>", CLOSURE),
    ("++", "write `x += 1`"),
    ("--", "write `x -= 1`"),
    (" ? ", "write `if a { b } else { c }`, which is a value"),
];

/// Methods and properties of other languages, with their names here.
const METHODS: &[(&str, &str)] = &[
    ("length", "len"),
    ("size", "len"),
    ("toString", "to_string"),
    ("toUpperCase", "to_upper"),
    ("toLowerCase", "to_lower"),
    ("includes", "contains"),
    ("indexOf", "index_of"),
    ("startsWith", "starts_with"),
    ("endsWith", "ends_with"),
    ("slice", "extract"),
    ("substring", "sub_string"),
];

/// For an error of the compiler.
pub(crate) fn of_parse(source: &str, error: &ParseError) -> Option<String> {
    let kind = error.err_type();
    match kind {
        ParseErrorType::Reserved(word) => return Some(word_hint(word)),
        ParseErrorType::BadInput(LexError::ImproperSymbol(word, _)) if is_word(word) => {
            return Some(word_hint(word));
        }
        ParseErrorType::BadInput(LexError::MalformedChar(_)) => return Some(TEXT.to_owned()),
        ParseErrorType::VariableUndefined(name) => {
            let arrow = [") =>", &format!("{name} =>")];
            let line = line_of(source, error).unwrap_or_default();
            let closure = arrow.iter().any(|arrow| line.contains(arrow));
            let known = of_word(name).or_else(|| closure.then_some(CLOSURE));
            return Some(known.map_or_else(|| unseen_variable(name), str::to_owned));
        }
        _ => {}
    }
    let line = line_of(source, error)?;
    let words = || WORDS.iter().find(|(word, _)| has_word(line, word));
    let spelt = SPELLINGS
        .iter()
        .find(|(spelling, _)| line.contains(spelling));
    spelt.or_else(words).map(|(_, hint)| (*hint).to_owned())
}

/// For an error while the script runs.
pub(crate) fn of_failure(program: &Program, cause: &EvalAltResult) -> Option<String> {
    match cause {
        EvalAltResult::ErrorFunctionNotFound(signature, _) => {
            let name = signature.split(['(', ' ']).next()?;
            if declares_variable(program, name) {
                return Some(format!(
                    "`{name}` is a variable; call the function in it with `{name}.call(…)`"
                ));
            }
            match name {
                "forEach" => Some("loop with `for x in list { … }`".to_owned()),
                name => of_word(name).map(str::to_owned).or_else(|| renamed(name)),
            }
        }
        EvalAltResult::ErrorPropertyNotFound(name, _) => renamed(name),
        EvalAltResult::ErrorDotExpr(said, _) => {
            let named = |(name, _): &&(&str, &str)| said.contains(&format!("'{name}'"));
            METHODS
                .iter()
                .find(named)
                .and_then(|(name, _)| renamed(name))
        }
        // Rhai holds a variable that closures share for as long as a chain of methods on it runs.
        EvalAltResult::ErrorDataRace(..) => Some(
            "a closure uses the variable that its own method was called on; take the value first: `let names = map.keys(); names.map(|name| map[name])`".to_owned(),
        ),
        EvalAltResult::ErrorStackOverflow(_) => {
            Some("calls may be nested 64 deep; use a loop instead".to_owned())
        }
        _ => None,
    }
}

fn word_hint(word: &str) -> String {
    let reserved = format!(
        "`{word}` is a reserved word; as a property write `x[\"{word}\"]`, as a key `\"{word}\": …`"
    );
    match of_word(word) {
        Some(meant) => format!("{reserved}; {meant}"),
        None => reserved,
    }
}

fn unseen_variable(name: &str) -> String {
    format!(
        "a `fn` sees only its parameters; make `{name}` a parameter, read a top-level `const` as \
         `global::{name}`, or use a closure"
    )
}

fn renamed(name: &str) -> Option<String> {
    let (_, here) = METHODS.iter().find(|(there, _)| *there == name)?;
    Some(format!("it is called `{here}` here"))
}

fn of_word(word: &str) -> Option<&'static str> {
    let (_, hint) = WORDS.iter().find(|(known, _)| *known == word)?;
    Some(hint)
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphabetic())
}

fn has_word(line: &str, word: &str) -> bool {
    let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|one| one == word)
}

/// The line where the parser stopped.
fn line_of<'a>(source: &'a str, error: &ParseError) -> Option<&'a str> {
    source.lines().nth(error.position().line()?.checked_sub(1)?)
}

/// Whether the script declares a variable or parameter of that name anywhere.
fn declares_variable(program: &Program, name: &str) -> bool {
    let ast = program.ast();
    if ast.iter_functions().any(|f| f.params.contains(&name)) {
        return true;
    }
    let mut found = false;
    ast.walk(&mut |path| {
        if let Some(ASTNode::Stmt(Stmt::Var(variable, ..))) = path.last() {
            found |= variable.0.name == name;
        }
        !found
    });
    found
}

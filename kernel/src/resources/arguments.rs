//! Arguments of prompt templates: how a line is split into them, and where they go (P27, P28).

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Splits what stands behind a template's name.
///
/// White space separates. A quote opens at the start of an argument, and only if it is closed; what
/// follows the closing quote directly goes on with the same argument.
#[must_use]
pub fn split_arguments(text: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (mut argument, unquoted) = quoted(rest).unwrap_or((String::new(), rest));
        let end = unquoted.find(char::is_whitespace).unwrap_or(unquoted.len());
        argument.push_str(&unquoted[..end]);
        arguments.push(argument);
        rest = unquoted[end..].trim_start();
    }
    arguments
}

/// What stands in the quotes that the text begins with, and what follows them.
fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let mut content = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return Some((content, &text[at + c.len_utf8()..]));
        }
        let escaped = c == '\\' && chars.next_if(|(_, next)| *next == quote).is_some();
        content.push(if escaped { quote } else { c });
    }
    None
}

static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x)
        \$(?<plain> [0-9]+ | @ | ARGUMENTS)
        | \$\{ (?<named> [0-9]+ | @ | ARGUMENTS) :- (?<default> [^}]*) \}
        | \$\{ @ : (?<from> [0-9]+) (?: : (?<count> [0-9]+))? \}",
    )
    .expect("the pattern is constant")
});

/// Puts arguments in the places that a template leaves for them. What is put in is not looked at
/// again, so an argument may hold anything.
#[must_use]
pub fn substitute<'a>(template: &'a str, arguments: &[String]) -> Cow<'a, str> {
    PLACEHOLDER.replace_all(template, |found: &Captures<'_>| {
        if let Some(name) = found.name("plain") {
            return value(name.as_str(), arguments);
        }
        if let Some(name) = found.name("named") {
            let value = value(name.as_str(), arguments);
            return if value.is_empty() {
                found["default"].to_owned()
            } else {
                value
            };
        }
        let from = number(&found["from"]).max(1);
        let count = found
            .name("count")
            .map_or(usize::MAX, |count| number(count.as_str()));
        let from = arguments.get(from - 1..).unwrap_or_default();
        from[..count.min(from.len())].join(" ")
    })
}

/// One argument, counted from 1, or all of them.
fn value(name: &str, arguments: &[String]) -> String {
    if matches!(name, "@" | "ARGUMENTS") {
        return arguments.join(" ");
    }
    let at = number(name).checked_sub(1);
    at.and_then(|at| arguments.get(at))
        .cloned()
        .unwrap_or_default()
}

/// Digits too many for a number are beyond every list.
fn number(digits: &str) -> usize {
    digits.parse().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check_split(text: &str, arguments: &[&str]) {
        assert_eq!(split_arguments(text), arguments, "{text:?}");
    }

    fn check(template: &str, arguments: &[&str], result: &str) {
        let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
        assert_eq!(
            substitute(template, &arguments),
            result,
            "{template:?} {arguments:?}"
        );
    }

    #[test]
    fn white_space_separates_arguments() {
        // P27
        check_split("", &[]);
        check_split("  \n\t ", &[]);
        check_split(" a  b\tc\nd ", &["a", "b", "c", "d"]);
        check_split("é ü", &["é", "ü"]);
    }

    #[test]
    fn a_quote_opens_only_at_the_start_of_an_argument() {
        // P27
        check_split(r#""a b" 'c d'"#, &["a b", "c d"]);
        check_split("it's x's", &["it's", "x's"]);
        check_split(r#""a"b c"#, &["ab", "c"]);
        check_split(r#""a""b c""#, &["a\"b", "c\""]);
        check_split(r#""" '' x"#, &["", "", "x"]);
        check_split("\"two\nlines\"", &["two\nlines"]);
    }

    #[test]
    fn in_quotes_a_backslash_protects_that_quote_and_nothing_else() {
        // P27
        check_split(r#""say \"hi\"""#, &["say \"hi\""]);
        check_split(r"'a\b'", &[r"a\b"]);
        check_split(r#"'a\"b'"#, &[r#"a\"b"#]);
        check_split(r"a\ b", &["a\\", "b"]);
    }

    #[test]
    fn a_quote_that_is_never_closed_is_a_letter() {
        // P27
        check_split(r#""x y"#, &["\"x", "y"]);
        check_split(r#"'x "y z""#, &["'x", "y z"]);
        check_split(r#""a\" b"#, &[r#""a\""#, "b"]);
        check_split("'", &["'"]);
    }

    #[test]
    fn a_number_stands_for_an_argument() {
        // P28
        check("$1-$2-$3", &["a", "b"], "a-b-");
        check("[$0]", &["a"], "[]");
        check("$1.5 $1x", &["a"], "a.5 ax");
        let many: Vec<String> = (1..=12).map(|n| format!("v{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        check("$10 $12", &many, "v10 v12");
        check("[$99999999999999999999999]", &["a"], "[]");
    }

    #[test]
    fn all_arguments_are_joined_by_one_space() {
        // P28
        check("$@|$ARGUMENTS", &["a", "b c"], "a b c|a b c");
        check("[$@]", &[], "[]");
        check("$arguments $ARGUMENTSX", &["a"], "$arguments aX");
    }

    #[test]
    fn a_default_stands_in_for_what_is_missing_or_empty() {
        // P28
        check("${1:-x}${2:-y}", &["a", ""], "ay");
        check("${0:-zero}", &["a"], "zero");
        check("${@:-none} ${ARGUMENTS:-none}", &[], "none none");
        check("${@:-none} ${ARGUMENTS:-none}", &["a", "b"], "a b a b");
        check(
            "${1:-two words, $2\nand :-}",
            &["", "b"],
            "two words, $2\nand :-",
        );
        check("[${1:-}]", &[], "[]");
        check("${1:-a}}", &[], "a}");
    }

    #[test]
    fn slices_take_what_there_is() {
        // P28
        let args = ["a", "b", "c"];
        check("${@:2}", &args, "b c");
        check("${@:0}", &args, "a b c");
        check("${@:2:1}", &args, "b");
        check("${@:0:2}", &args, "a b");
        check("[${@:2:0}][${@:4}][${@:9:9}]", &args, "[][][]");
        check("${@:3:99999999999999999999999}", &args, "c");
        check("[${@:99999999999999999999999:1}]", &args, "[]");
    }

    #[test]
    fn everything_else_is_literal() {
        // P28
        for text in [
            "$",
            "$x",
            "${1}",
            "${x:-y}",
            "${@:}",
            "${@:1:}",
            "${1:-x",
            "{{1}}",
            "$ 1",
            "${ARGUMENTS:1}",
            "$٣",
        ] {
            check(text, &["a"], text);
        }
        check(r"\$1 $$1", &["a"], r"\a $a");
    }

    /// A piece of a template, and what becomes of it.
    fn piece(arguments: &[String]) -> impl Strategy<Value = (String, String)> + use<> {
        let (args, count) = (arguments.to_vec(), arguments.len());
        (0..5_u8, 0..=count, "[a-z .{}é]{0,5}").prop_map(move |(kind, at, text)| {
            let one = at.checked_sub(1).map_or("", |at| &*args[at]);
            let or = |value: &str, other: &str| match value {
                "" => other.to_owned(),
                value => value.to_owned(),
            };
            match kind {
                0 => (format!("${at}|"), format!("{one}|")),
                1 => ("$@".to_owned(), args.join(" ")),
                2 => (format!("${{{at}:-none}}"), or(one, "none")),
                3 => {
                    let rest = args[at.max(1).min(args.len() + 1) - 1..].join(" ");
                    (format!("${{@:{at}}}"), rest)
                }
                _ => (text.clone(), text),
            }
        })
    }

    fn template() -> impl Strategy<Value = (Vec<String>, Vec<(String, String)>)> {
        prop::collection::vec("[a-z0-9$@{}:\\- '\"é]{0,8}", 1..5).prop_flat_map(|arguments| {
            let pieces = prop::collection::vec(piece(&arguments), 0..8);
            (Just(arguments), pieces)
        })
    }

    proptest! {
        #[test]
        fn invariant_31_arguments_arrive_as_they_are_and_are_never_looked_at_again(
            (arguments, pieces) in template()
        ) {
            let (template, expected): (Vec<String>, Vec<String>) = pieces.into_iter().unzip();
            let template = template.concat();
            prop_assert_eq!(substitute(&template, &arguments), expected.concat());
        }

        #[test]
        fn invariant_31_quoted_arguments_are_split_as_they_were_written(
            arguments in prop::collection::vec("[a-z $@{}'\"\né]{0,8}", 0..6)
        ) {
            let quote = |argument: &String| format!("\"{}\"", argument.replace('"', "\\\""));
            let written: Vec<String> = arguments.iter().map(quote).collect();
            prop_assert_eq!(split_arguments(&written.join(" ")), arguments);
        }

        #[test]
        fn splitting_loses_nothing_but_white_space_quotes_and_backslashes(text in "[a\"'\\\\ \n]{0,30}") {
            let kept = |text: &str| text.chars().filter(|c| *c == 'a').count();
            let split = split_arguments(&text);
            prop_assert_eq!(kept(&split.concat()), kept(&text));
        }
    }
}

//! Commands that run other commands: what they run is told behind them.

use super::commands::{Command, Commands, assigned};
use super::lexer::Word;
use super::read;

/// A program that runs the command in its arguments.
struct Wrapper {
    name: &'static str,
    /// Options without a value of their own.
    flags: &'static str,
    /// Options whose value is the next word, unless it stands right behind.
    with_value: &'static str,
    /// Arguments before the command.
    arguments: usize,
}

const fn wrapper(
    name: &'static str,
    flags: &'static str,
    with_value: &'static str,
    arguments: usize,
) -> Wrapper {
    Wrapper {
        name,
        flags,
        with_value,
        arguments,
    }
}

/// Options that are not here make whoever judges ask.
const WRAPPERS: [Wrapper; 16] = [
    wrapper("builtin", "", "", 0),
    wrapper("busybox", "", "", 0),
    wrapper("chroot", "", "", 1),
    wrapper("command", "pvV", "", 0),
    wrapper("doas", "nL", "uC", 0),
    wrapper("env", "i0v", "uC", 0),
    wrapper("exec", "cl", "a", 0),
    wrapper("ionice", "t", "cn", 0),
    wrapper("nice", "", "n", 0),
    wrapper("nohup", "", "", 0),
    wrapper("setsid", "cfw", "", 0),
    wrapper("stdbuf", "", "ioe", 0),
    wrapper("sudo", "AbEHKkNnPSsi", "CDghpRrTtUu", 0),
    wrapper("time", "pavq", "fo", 0),
    wrapper("timeout", "", "ks", 1),
    wrapper("xargs", "0prtx", "adEILnPs", 0),
];

const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ksh", "zsh", "ash"];

/// Programs whose arguments or files are commands in ways that are not followed, and those that make
/// other names of commands.
const ANYTHING: [&str; 26] = [
    "su", "ssh", "parallel", "watch", "script", "trap", "source", ".", "alias", "enable", "hash",
    "shopt", "bind", "complete", "fc", "fish", "runuser", "flock", "strace", "ltrace", "gdb",
    "entr", "unshare", "nsenter", "at", "batch",
];

/// Programs that run text of their own languages.
const INTERPRETERS: [&str; 11] = [
    "python",
    "perl",
    "ruby",
    "node",
    "php",
    "lua",
    "deno",
    "bun",
    "osascript",
    "pwsh",
    "tclsh",
];

/// Parts of the shell that look for sums in their arguments, in which commands may stand.
const CALCULATING: [&str; 14] = [
    "let",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "read",
    "unset",
    "printf",
    "test",
    "[",
    "mapfile",
    "readarray",
    "wait",
];

/// Tells what a command runs.
pub(super) fn follow(words: &[Word], depth: usize, found: &mut Commands) {
    let Some(name) = words.first() else { return };
    let name = name.text.rsplit('/').next().unwrap_or_default();
    let arguments = &words[1..];
    if name == "eval" {
        return line(arguments, "eval", depth, found);
    }
    if name == "find" {
        return found_files(arguments, depth, found);
    }
    if SHELLS.contains(&name) {
        return shell(arguments, name, depth, found);
    }
    if let Some(reason) = doubt(name, arguments) {
        found.unsure(reason);
    }
    // What it would run is told all the same, for a rule that forbids it.
    if name == "trap" {
        return line(&arguments[..arguments.len().min(1)], name, depth, found);
    }
    if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
        wrapped(wrapper, arguments, depth, found);
    }
}

/// Why nobody can tell what a program does with its arguments, if so.
fn doubt(name: &str, arguments: &[Word]) -> Option<String> {
    let any = |is: &dyn Fn(&str) -> bool| arguments.iter().any(|word| is(&word.text));
    let is_code = |text: &str| {
        let letters = text.strip_prefix('-').unwrap_or_default();
        matches!(text, "eval" | "--eval" | "--print" | "-")
            || (!letters.starts_with('-') && letters.contains(['c', 'e', 'E', 'r', 'p']))
    };
    let language = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let redefines = |text: &str| {
        text == "-c" || text.starts_with("--exec-path") || text.starts_with("--config-env")
    };
    let runs = |text: &str| ["system", "|", "@"].iter().any(|part| text.contains(part));
    if ANYTHING.contains(&name) || name.starts_with('-') {
        return Some(format!("`{name}` may run anything"));
    }
    if INTERPRETERS.contains(&language) && (arguments.is_empty() || any(&is_code)) {
        return Some(format!("`{name}` runs text of another language"));
    }
    if name.ends_with("awk") && any(&runs) {
        return Some(format!("`{name}` may run commands"));
    }
    if name == "git" && any(&redefines) {
        return Some("`git` is given settings, which may name commands".to_owned());
    }
    let hides = |text: &str| text.contains('[') && text.contains(['$', '`']);
    if CALCULATING.contains(&name) && any(&hides) {
        return Some(format!("`{name}` may find commands in a sum"));
    }
    None
}

/// Words that make a line of shell together.
fn line(words: &[Word], name: &str, depth: usize, found: &mut Commands) {
    if words.iter().any(|word| word.dynamic) {
        return found.unsure(format!("what `{name}` runs is known only when it runs"));
    }
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    read(&texts.join(" "), depth + 1, found);
}

/// `sh -c TEXT`; a script in a file is judged by the name of the shell.
fn shell(arguments: &[Word], name: &str, depth: usize, found: &mut Commands) {
    let mut rest = arguments;
    while let Some((first, after)) = rest.split_first() {
        let text = first.text.as_str();
        if first.dynamic {
            return found.unsure(format!("what `{name}` runs is known only when it runs"));
        }
        if !text.starts_with('-') && !text.starts_with('+') {
            return;
        }
        let is_short = !text.starts_with("--");
        if is_short && text.contains('c') {
            let texts = after.iter().position(|word| !word.text.starts_with('-'));
            return match texts {
                Some(at) => line(&after[at..=at], name, depth, found),
                None => found.unsure(format!("`{name} -c` has no text")),
            };
        }
        if is_short && text.contains('o') {
            rest = after.get(1..).unwrap_or_default();
            continue;
        }
        if text.starts_with("--") && text.len() > 2 && text != "--norc" && text != "--noprofile" {
            return found.unsure(format!("`{name}` has the option {text}"));
        }
        rest = after;
    }
    // Without arguments it reads what is piped to it.
    found.unsure(format!("`{name}` runs what it reads"));
}

fn wrapped(wrapper: &Wrapper, arguments: &[Word], depth: usize, found: &mut Commands) {
    let mut rest = arguments;
    while let Some(first) = rest.first() {
        let text = first.text.as_str();
        if first.dynamic && text.starts_with('-') {
            return found.unsure(format!("an option of `{}` is not known", wrapper.name));
        }
        if ["env", "sudo", "doas"].contains(&wrapper.name) && assigned(text).is_some() {
            rest = &rest[1..];
            continue;
        }
        let Some(options) = text.strip_prefix('-') else {
            break;
        };
        rest = &rest[1..];
        match options {
            "-" => break,
            "" => continue,
            _ => {}
        }
        match taken(wrapper, options) {
            Some(skip) => rest = rest.get(skip..).unwrap_or_default(),
            None => {
                return found.unsure(format!("`{}` has the option {text}", wrapper.name));
            }
        }
    }
    let rest = rest.get(wrapper.arguments..).unwrap_or_default();
    let Some(first) = rest.first() else {
        if ["sudo", "doas"].contains(&wrapper.name) {
            found.unsure(format!("`{}` may open a shell", wrapper.name));
        }
        return;
    };
    if first.dynamic || first.pattern {
        found.unsure("the name of a command is known only when it runs");
    }
    found.commands.push(Command {
        dynamic: wrapper.name == "xargs" || rest.iter().any(|word| word.dynamic || word.pattern),
        words: rest.iter().map(|word| word.text.clone()).collect(),
        ..Command::default()
    });
    follow_deeper(rest, depth, found);
}

/// How many more words the options take; `None` for one that is not known.
fn taken(wrapper: &Wrapper, options: &str) -> Option<usize> {
    // `nice -10`
    if wrapper.name == "nice" && options.chars().all(|c| c.is_ascii_digit()) {
        return Some(0);
    }
    let mut letters = options.chars();
    while let Some(letter) = letters.next() {
        if wrapper.with_value.contains(letter) {
            return Some(usize::from(letters.as_str().is_empty()));
        }
        if !wrapper.flags.contains(letter) {
            return None;
        }
    }
    Some(0)
}

/// `find … -exec COMMAND ;`
fn found_files(arguments: &[Word], depth: usize, found: &mut Commands) {
    let runs = ["-exec", "-execdir", "-ok", "-okdir"];
    let mut rest = arguments;
    while let Some(at) = rest
        .iter()
        .position(|word| runs.contains(&word.text.as_str()))
    {
        rest = &rest[at + 1..];
        let end = rest
            .iter()
            .position(|word| [";", "+"].contains(&word.text.as_str()));
        let (command, after) = rest.split_at(end.unwrap_or(rest.len()));
        found.commands.push(Command {
            dynamic: true,
            words: command.iter().map(|word| word.text.clone()).collect(),
            ..Command::default()
        });
        if command
            .first()
            .is_none_or(|name| name.dynamic || name.pattern)
        {
            found.unsure("the name of a command is known only when it runs");
        }
        follow_deeper(command, depth, found);
        rest = after;
    }
}

fn follow_deeper(words: &[Word], depth: usize, found: &mut Commands) {
    match depth < super::DEEPEST {
        true => follow(words, depth + 1, found),
        false => found.unsure("it is nested too deeply"),
    }
}

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command as Process, Stdio};

use proptest::prelude::*;
use proptest::sample::select;

use super::{Commands, commands};

/// The commands, one a line; then what is not understood, in brackets.
fn told(text: &str) -> String {
    let Commands { commands, unknown } = commands(text);
    let line = |one: &super::Command| match one.words.is_empty() {
        true => one
            .redirects
            .iter()
            .map(|one| format!("{} {}", one.operator, one.target))
            .collect(),
        false => one.words.join(" "),
    };
    let mut lines: Vec<String> = commands.iter().map(line).collect();
    lines.extend(unknown.iter().map(|reason| format!("[{reason}]")));
    lines.join("\n")
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).collect();
    assert_eq!(told(text), expected.join("\n").trim(), "{text}");
}

/// Whether the line is not understood.
fn is_unsure(text: &str) -> bool {
    !commands(text).unknown.is_empty()
}

#[test]
fn every_simple_command_is_told() {
    // reports T09
    check("git log", "git log");
    for between in [";", "&&", "||", "|", "|&", "&", "\n", ";\n"] {
        check(&format!("git log {between} rm -rf x"), "git log\nrm -rf x");
        check(&format!("git log{between}rm -rf x"), "git log\nrm -rf x");
    }
    check("{ git log; rm x; }", "git log\nrm x");
    check("(git log; (rm x))", "git log\nrm x");
    check("echo $(rm x)", "echo $(…)\nrm x");
    check("echo \"a $(rm \"x y\") b\"", "echo a $(…) b\nrm x y");
    check("echo `rm x`", "echo `…`\nrm x");
    check("diff <(rm a) <(rm b)", "diff <(…) <(…)\nrm a\nrm b");
    check("cat > $(rm x)", "rm x\ncat");
    check("A=$(rm x) B=1 git log", "git log\nrm x");
    check("cat <<E\n$(rm x)\nE\ngit log", "rm x\ncat\ngit log");
    check("cat <<'E'\n$(rm x)\nE\ngit log", "cat\ngit log");
    check("cat <<-E && git log\n\t\tx\n\tE\nls", "cat\ngit log\nls");
    check("if true; then rm x; else ls; fi", "true\nrm x\nls");
    check("for f in a $(ls); do rm $f; done", "ls\nrm $f");
    check(
        "while read x; do rm $x; done < list",
        "read x\nrm $x\n< list",
    );
    check("! git log", "git log");
    check("git log # ; rm x", "git log");
    check("git \\\n log", "git log");
}

#[test]
fn quotes_and_backslashes_are_taken_away_and_join_words() {
    check("'r'm -\"rf\" 'a b' \\; x\\ y", "rm -rf a b ; x y");
    check("echo 'a;b' \"c&&d\" e\\|f", "echo a;b c&&d e|f");
    check("echo '$(rm x)' \"\\$(rm x)\"", "echo $(rm x) $(rm x)");
    check("echo \"a'b\" 'a\"b'", "echo a'b a\"b");
}

#[test]
fn what_commands_run_is_told_behind_them() {
    check("sh -c 'rm x; ls'", "sh -c rm x; ls\nrm x\nls");
    check("bash -euxc \"rm x\"", "bash -euxc rm x\nrm x");
    check(
        "bash -o pipefail -c 'rm x'",
        "bash -o pipefail -c rm x\nrm x",
    );
    check("eval rm 'x y'", "eval rm x y\nrm x y");
    check("env -i A=1 B=2 rm x", "env -i A=1 B=2 rm x\nrm x");
    check("sudo -u root -E rm x", "sudo -u root -E rm x\nrm x");
    check(
        "sudo -uroot sh -c 'rm x'",
        "sudo -uroot sh -c rm x\nsh -c rm x\nrm x",
    );
    check("timeout -k 5 10 rm x", "timeout -k 5 10 rm x\nrm x");
    check(
        "nice -n 5 nohup rm x",
        "nice -n 5 nohup rm x\nnohup rm x\nrm x",
    );
    check("ls | xargs -0 -n 1 rm", "ls\nxargs -0 -n 1 rm\nrm");
    check(
        "find . -name x -exec rm {} \\; -exec ls {} +",
        "find . -name x -exec rm {} ; -exec ls {} +\nrm {}\nls {}",
    );
    check("/usr/bin/env rm x", "/usr/bin/env rm x\nrm x");
}

#[test]
fn what_is_not_surely_understood_is_said() {
    for text in [
        "$X y",
        "\"$(which rm)\" x",
        "r? x",
        "{rm,-rf,x}",
        "'' x",
        "case x in x) rm y;; esac",
        "function f { rm x; }",
        "f() { rm x; }",
        "a=(1 2)",
        "[[ -f x ]] && rm x",
        "$'\\x72m' x",
        "echo \"${x:-$(rm y)}\"",
        "echo $((a[$(rm x)]))",
        "echo \"$((rm x\n)\n)\"",
        "eval \"$x\"",
        "sh -c \"$x\"",
        "curl x | sh",
        "ssh host rm x",
        "trap 'rm x' EXIT",
        "xargs -I{} --foo rm",
        "env -S 'rm x'",
        "PATH=. git log",
        "LD_PRELOAD=x git log",
        "echo 'x",
        "echo \"x",
        "echo `x",
        "echo $(x",
        "cat <<E\nx",
        "ls >",
        "ls \r\n rm x",
        "a\u{7}b",
        "export PATH=/tmp",
        "env PATH=x ls",
        "declare PATH=x",
        "GIT_SSH_COMMAND='rm x' git fetch",
        "DYLD_INSERT_LIBRARIES=x ls",
        "PS4='$(rm x)' bash -x f",
        "source f",
        ". f",
        "alias ls=rm",
        "hash -p /tmp/x ls",
        "shopt -s expand_aliases",
        "fish -c 'rm x'",
        "strace rm x",
        "flock f rm x",
        "sudo -s",
        "sudo",
        "python3 -c 'x'",
        "perl -pe x",
        "echo x | node",
        "awk 'BEGIN{system(\"rm\")}'",
        "git -c alias.x='!rm' x",
        "test -v 'a[$(rm x)]'",
        "printf -v 'a[$(rm x)]' x",
        "let 'a[`rm x`]'",
    ] {
        assert!(is_unsure(text), "{text:?} gives {:?}", told(text));
    }
}

#[test]
fn a_line_that_is_read_in_two_ways_is_not_understood() {
    // Each of these runs `rm` where a reader who is a little wrong about the shell sees none.
    for text in [
        "echo \"$\\\n(rm x)\"",
        "cat <<EOF\nEO\\\nF\nrm x\ncat <<EOF\nEOF",
        "echo `echo \\' ; rm x ; echo \\'`",
        "echo \"`echo \\\"$(rm x)\\\"`\"",
        "echo ${x:-\"}\"} ; rm x ; echo \"a\"",
        "echo \"$(cat <<E\n'\nE\n)\" ; rm x ; echo \"'')\"",
    ] {
        let told = told(text);
        let sees = told.lines().any(|line| line.starts_with("rm"));
        assert!(is_unsure(text) || sees, "{text:?} gives {told:?}");
    }
}

#[test]
fn what_stands_behind_something_not_understood_is_told_all_the_same() {
    // So that a rule that forbids it wins (reports T09).
    for text in [
        "echo ${x:-$(ls)}; rm x",
        "f() { rm x; }",
        "case y in y) rm x;; esac",
        "a=(1 2); rm x",
        "trap 'rm x' EXIT",
        "for y do rm x; done",
        "sudo A=1 rm x",
        "time -p rm x",
        "chroot / rm x",
        "busybox rm x",
    ] {
        let told = told(text);
        assert!(
            told.lines().any(|line| line.starts_with("rm x")),
            "{text:?} gives {told:?}"
        );
    }
}

#[test]
fn a_command_whose_arguments_may_become_others_says_so() {
    for (text, dynamic) in [
        ("git push", false),
        ("git $X", true),
        ("git pus?", true),
        ("git {push,-f}", true),
        ("git 'pus?' \"\\$X\"", false),
    ] {
        assert_eq!(commands(text).commands[0].dynamic, dynamic, "{text}");
    }
    assert!(commands("ls | xargs git").commands[2].dynamic);
}

#[test]
fn assignments_and_redirections_are_told_apart_from_words() {
    let found = commands("A=1 B='x y' git log 2>&1 >out.txt < in >> more &> all");
    let command = &found.commands[0];
    assert_eq!(command.words, ["git", "log"]);
    assert_eq!(command.assignments, ["A=1", "B=x y"]);
    let redirects: Vec<String> = command
        .redirects
        .iter()
        .map(|one| format!("{} {}", one.operator, one.target))
        .collect();
    assert_eq!(
        redirects,
        [">& 1", "> out.txt", "< in", ">> more", "&> all"]
    );
    assert!(found.unknown.is_empty());
}

#[test]
fn no_line_is_too_large_or_too_deep() {
    assert!(is_unsure(&"x".repeat(1 << 20)));
    assert!(is_unsure(&"$(".repeat(20_000)));
    assert!(is_unsure(&format!(
        "{}x{}",
        "$(".repeat(100),
        ")".repeat(100)
    )));
    assert!(is_unsure(&"a;".repeat(30_000)));
    assert!(is_unsure(&format!("{} rm x", "nohup ".repeat(100))));
}

/// Pieces of lines. The programs are called `p0` to `p9`.
fn piece() -> impl Strategy<Value = String> {
    let leaf = select(&[
        "p0",
        "p1 'a b'",
        "p2 \"$(p3)\"",
        "p4 `p5`",
        "X=$(p6) p7",
        "p8 <(p9)",
        "p0 \\; p1",
        "p2 '; p3'",
        "p4 \"; p5\"",
        "p6 # ; p7\n",
        "p8 <<E\n$(p9)\nE\n",
        "p0 <<'E'\n$(p1)\nE\n",
        "sh -c 'p2; p3'",
        "env Y=1 p4",
        "eval p5",
        "nohup p6",
        "p7 2>&1",
        "p8 >/dev/null",
        "p9 $X",
        "! p0",
        "p1 a\\\nb",
        "p2 \"a\\\"b\"",
        "p3 'a'\\''b'",
        "echo p4",
        "$Z",
        "p''5",
        "\"p6\"",
        "p7 {a,b}",
        "p8 *",
        "p9 ~",
        "timeout 5 p0",
        "p1 <<-E\n\tx $(p2)\n\tE\n",
        "p3 <<<\"$(p4)\"",
        "for y do p4; done",
        "echo `echo \\\\' ; p5 ; echo \\\\'`",
        "echo ${X:-\"}\"} ; p6 ; echo \"a\"",
        "echo \"$\\\n(p7)\"",
        "cat <<EOF\nEO\\\nF\np8\ncat <<EOF\nEOF\n",
        "p5 ${X:-p6}",
        "p7 $((1+1))",
        "Z=p8",
        "xargs p9 </dev/null",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(3, 12, 3, |inner| {
        let joins = select(&["; ", " && ", " || ", " | ", "\n", " & "]);
        prop_oneof![
            (inner.clone(), joins, inner.clone()).prop_map(|(a, op, b)| format!("{a}{op}{b}")),
            inner.clone().prop_map(|a| format!("{{ {a}\n}}")),
            inner.clone().prop_map(|a| format!("({a}\n)")),
            inner.clone().prop_map(|a| format!("if {a}\nthen p0\nfi")),
            inner
                .clone()
                .prop_map(|a| format!("for i in 1 $(p1); do {a}\ndone")),
            inner.prop_map(|a| format!("echo \"$({a}\n)\"")),
        ]
    })
}

/// What bash really runs of a line: the names of the programs that were started.
fn really_run(folder: &std::path::Path, text: &str) -> BTreeSet<String> {
    let log = folder.join("log");
    fs::write(&log, "").unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let mut shell = Process::new("bash");
    shell
        .args(["--norc", "--noprofile", "-c", text])
        .current_dir(folder)
        .env_clear()
        .env("PATH", path)
        .env("LOG", &log)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let _ = shell.status().unwrap();
    let log = fs::read_to_string(&log).unwrap();
    log.lines().map(str::to_owned).collect()
}

/// Programs that note their names.
fn folder_of_programs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..10 {
        let file = folder.path().join(format!("p{number}"));
        fs::write(&file, format!("#!/bin/sh\necho p{number} >> \"$LOG\"\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The shell itself is the judge: nothing runs that was not told, unless the line is not understood.
    #[test]
    fn bash_runs_nothing_that_was_not_told(text in piece()) {
        let folder = folder_of_programs();
        let found = commands(&text);
        if found.unknown.is_empty() {
            let names = found.commands.iter().filter_map(|one| one.words.first());
            let told: BTreeSet<String> = names.cloned().collect();
            for run in really_run(folder.path(), &text) {
                prop_assert!(told.contains(&run), "{run} ran of {text:?}; told: {told:?}");
            }
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "[a-c $(){}`'\"\\\\;&|<>#\n=\\[\\]*!-]{0,60}") {
        let found = commands(&text);
        prop_assert!(found.commands.len() <= 1001);
    }
}

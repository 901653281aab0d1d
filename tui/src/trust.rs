//! Whether the files of the project that pliant was started in count: what the command line says of it,
//! and asking whoever sits at the terminal (`interfaces.md` §14).

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;

use pliant_kernel::boot::has_gatekeeper;
use pliant_kernel::trust::{TrustAnswer, TrustPolicy, TrustQuestion};
use pliant_kernel::{Kernel, KernelOptions};

use crate::args::Options;
use crate::launch::{Mode, publish_scripts};
use crate::say::{self, printable};

/// Only at a terminal is anybody asked.
pub fn policy(asked: &Options, mode: Mode) -> TrustPolicy {
    let decided = match (asked.approve, asked.no_approve) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    TrustPolicy {
        decided,
        ask: match mode {
            Mode::Line => Some(Arc::new(|question| {
                let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
                // Who cannot be asked has not agreed.
                ask(question, &mut stdin.lock(), &mut stdout.lock())
                    .unwrap_or(TrustAnswer::RefuseOnce)
            })),
            Mode::Print | Mode::Json | Mode::Rpc => None,
        },
    }
}

/// Lets extensions of the user decide where there are some that want to. They are started without the
/// project for that, and anew with all there is to be afterwards.
///
/// # Errors
/// As the start itself.
pub async fn ask_extensions(asked: &Options, options: &mut KernelOptions) -> anyhow::Result<()> {
    let ending = if asked.no_extensions { "" } else { "rhai" };
    if !has_gatekeeper(options, ending, &asked.extension) {
        return Ok(());
    }
    let mut without = options.clone();
    without.trust.decided = Some(false);
    let kernel = Kernel::boot(without)?;
    // What fails here fails again, and is told, when all of it is started.
    publish_scripts(&kernel, asked, &mut Vec::new()).await?;
    let (decided, told) = kernel.ask_about_project().await;
    told.iter().for_each(say::warning);
    options.trust.decided = decided;
    Ok(())
}

fn ask(
    question: &TrustQuestion,
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> std::io::Result<TrustAnswer> {
    write!(output, "{}", printable(&explained(question)))?;
    loop {
        write!(output, "Trust this project? [1-5] ")?;
        output.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(TrustAnswer::RefuseOnce);
        }
        match line.trim() {
            "1" => return Ok(TrustAnswer::Trust),
            "2" => return Ok(TrustAnswer::TrustParent),
            "3" => return Ok(TrustAnswer::TrustOnce),
            "4" => return Ok(TrustAnswer::Refuse),
            "5" => return Ok(TrustAnswer::RefuseOnce),
            _ => {}
        }
    }
}

fn explained(question: &TrustQuestion) -> String {
    let TrustQuestion {
        project,
        files,
        has_changed,
    } = question;
    let says = match has_changed {
        false => "This project has files that change how pliant works here:",
        true => "You trusted this project, and what of it runs has changed since then:",
    };
    let names: String = files
        .iter()
        .map(|file| {
            format!(
                "  {}\n",
                file.strip_prefix(project).unwrap_or(file).display()
            )
        })
        .collect();
    let parent = project.parent().unwrap_or(Path::new("/")).display();
    format!(
        "{says}\n{names}\
         They may run programs with your rights, and trust is no sandbox. Without trust they are left out;\n\
         AGENTS.md and the like are read in any case.\n\
         1  trust this project\n\
         2  trust everything in {parent}\n\
         3  trust it this time\n\
         4  do not trust it\n\
         5  not this time\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(typed: &str) -> (TrustAnswer, String) {
        let question = TrustQuestion {
            project: "/w/p".into(),
            files: vec![
                "/w/p/.pliant/settings.json".into(),
                "/w/.agents/skills".into(),
            ],
            has_changed: false,
        };
        let mut shown = Vec::new();
        let answer = ask(&question, &mut typed.as_bytes(), &mut shown).unwrap();
        (answer, String::from_utf8(shown).unwrap())
    }

    #[test]
    fn there_are_five_answers_and_silence_is_the_last() {
        // interfaces §14
        for (typed, answer) in [
            ("1\n", TrustAnswer::Trust),
            (" 2 \n", TrustAnswer::TrustParent),
            ("3\n", TrustAnswer::TrustOnce),
            ("4\n", TrustAnswer::Refuse),
            ("5\n", TrustAnswer::RefuseOnce),
            ("yes\n\n9\n1\n", TrustAnswer::Trust),
            ("", TrustAnswer::RefuseOnce),
            ("x", TrustAnswer::RefuseOnce),
        ] {
            assert_eq!(answered(typed).0, answer, "{typed:?}");
        }
    }

    #[test]
    fn the_question_names_the_files_and_the_folder_above() {
        let shown = answered("5\n").1;
        for words in [
            "  .pliant/settings.json\n  /w/.agents/skills\n",
            "everything in /w\n",
            "no sandbox",
        ] {
            assert!(shown.contains(words), "{shown}");
        }
    }
}

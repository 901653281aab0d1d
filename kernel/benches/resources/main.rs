//! What it costs to look through the user's folders: a thousand skills and prompt templates, for the first
//! time and again when one of them was saved.

use std::fs;
use std::path::Path;
use std::time::Instant;

use pliant_kernel::resources::{LiveResources, ResourceOptions};
use pliant_tests::table::{Table, Unit};

const SKILLS: usize = 500;
const TEMPLATES: usize = 500;
const RUNS: usize = 21;

fn main() {
    if !std::env::args().any(|arg| arg == "--bench") {
        println!("Resources are measured by `cargo bench -p pliant-kernel --bench resources`.");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let agent = folder.path().join("agent");
    fill(&agent);
    let load = || {
        let options = ResourceOptions::default();
        let begun = Instant::now();
        let (live, warnings) = LiveResources::load(options, agent.clone(), folder.path().into())
            .expect("nothing is named that is missing");
        let taken = begun.elapsed().as_secs_f64() * 1e3;
        assert!(warnings.is_empty(), "{warnings:?}");
        assert_eq!(live.current().skills().len(), SKILLS);
        assert_eq!(live.current().templates().len(), TEMPLATES);
        (live, taken)
    };
    let mut table = Table::default();
    let first: Vec<f64> = (0..RUNS).map(|_| load().1).collect();
    table.row("1,000 skills and templates, read", Unit::Ms, first, 30.0);
    let (live, _) = load();
    let again = (0..RUNS).map(|run| {
        let changed = agent.join("skills/s7/SKILL.md");
        fs::write(changed, skill(7, run + 1)).expect("the folder can be written");
        let begun = Instant::now();
        let reread = live.reread().expect("nothing is named that is missing");
        let taken = begun.elapsed().as_secs_f64() * 1e3;
        assert!(reread.before != reread.after, "the change was not seen");
        taken
    });
    table.row("the same, after one was saved", Unit::Ms, again, 30.0);
    println!("{table}");
}

fn skill(number: usize, version: usize) -> String {
    format!("---\nname: s{number}\ndescription: Use for {version}.\n---\n\n# Skill\n\nDo it.\n")
}

fn fill(agent: &Path) {
    for number in 0..SKILLS {
        let folder = agent.join(format!("skills/s{number}"));
        fs::create_dir_all(&folder).expect("the folder can be made");
        fs::write(folder.join("SKILL.md"), skill(number, 0)).expect("the folder can be written");
    }
    fs::create_dir_all(agent.join("prompts")).expect("the folder can be made");
    for number in 0..TEMPLATES {
        let file = agent.join(format!("prompts/t{number}.md"));
        fs::write(file, "---\ndescription: Says it.\n---\nSay $1.\n").expect("it can be written");
    }
}

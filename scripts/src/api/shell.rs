//! `shell_commands(text)`: which simple commands a line of shell runs, for whoever judges it before it
//! does. Runs nothing.

use rhai::{Array, Dynamic, Engine, Map};

use crate::shell::{Command, Commands, Redirect, commands};

pub(super) fn install(engine: &mut Engine) {
    engine.register_fn("shell_commands", |text: &str| as_map(commands(text)));
}

/// `#{commands: [#{words, assignments, redirects: [#{operator, target}],
/// text, dynamic}], unknown: […]}`
fn as_map(found: Commands) -> Map {
    let commands = found.commands.into_iter().map(command);
    Map::from([
        ("commands".into(), commands.collect::<Array>().into()),
        ("unknown".into(), texts(found.unknown)),
    ])
}

fn command(command: Command) -> Dynamic {
    let redirect = |one: Redirect| -> Dynamic {
        Map::from([
            ("operator".into(), one.operator.into()),
            ("target".into(), one.target.into()),
        ])
        .into()
    };
    let redirects: Array = command.redirects.into_iter().map(redirect).collect();
    Map::from([
        ("text".into(), command.words.join(" ").into()),
        ("words".into(), texts(command.words)),
        ("assignments".into(), texts(command.assignments)),
        ("redirects".into(), redirects.into()),
        ("dynamic".into(), command.dynamic.into()),
    ])
    .into()
}

fn texts(texts: Vec<String>) -> Dynamic {
    texts
        .into_iter()
        .map(Dynamic::from)
        .collect::<Array>()
        .into()
}

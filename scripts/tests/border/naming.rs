//! The naming table of `extensions.md` §7.3: every name of it can be called.

use std::collections::BTreeSet;

use pliant_scripts::callables;

/// Names that are not there yet, with the reason. One that is there leaves the list.
const NOT_YET: [(&str, &str); 1] = [(
    "ctx.ui.set_working_message",
    "there is no interface yet that shows one",
)];

#[test]
fn every_name_of_the_table_is_there_or_known_to_be_missing() {
    let table = include_str!("../../../tests/fixtures/scripts/naming.tsv");
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    let wanted: Vec<&str> = lines.filter_map(|line| line.split('\t').nth(1)).collect();
    assert!(wanted.len() > 70, "{}", wanted.len());
    let full = |one: pliant_scripts::Callable| match one.of {
        "" => one.name.to_owned(),
        of => format!("{of}.{}", one.name),
    };
    let there: BTreeSet<String> = callables().into_iter().map(full).collect();
    let missing: Vec<&str> = wanted
        .into_iter()
        .filter(|name| !there.contains(*name))
        .collect();
    assert_eq!(missing, NOT_YET.map(|(name, _)| name));
}

//! Which tools a user wants: what the command line and the settings say of them (`interfaces.md` §2).

use pliant_sdk::tool::{Exposure, ToolSpec};

use crate::registry::{Rank, Registered, Snapshot};

/// Active at the start unless the settings say otherwise (`extensions.md` §8).
pub const DEFAULT_TOOLS: [&str; 4] = ["read", "bash", "edit", "write"];

/// Tools of MCP servers, which a list without such a name does not speak of.
const MCP: &str = "mcp__";

/// Which tools a user wants. An entry is a name, or a pattern with `*`; in lists that may change the
/// defaults, `+name` adds one and `-name` takes one away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolSelection {
    /// Only these, in this order; or changes of the defaults.
    pub allow: Option<Vec<String>>,
    /// Never these.
    pub exclude: Vec<String>,
    /// Instead of the default set, from the settings; or changes of it.
    pub defaults: Option<Vec<String>>,
}

impl ToolSelection {
    /// No tool at all.
    #[must_use]
    pub fn none() -> Self {
        Self {
            allow: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// Whether a tool of that name may be there at all; of sources that ship with pliant, those that
    /// bring no such tool are not loaded.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        let listed = self.only().is_none_or(|only| {
            let is_free = name.starts_with(MCP) && !only.is_empty();
            matched(only, name) || (is_free && !only.iter().any(|entry| entry.starts_with(MCP)))
        });
        listed && !matched(&self.exclude, name)
    }

    /// The first name of the allow list that is none of `known`: a typing mistake. Patterns may match
    /// nothing, and MCP servers come late.
    #[must_use]
    pub fn unknown(&self, known: &[String]) -> Option<&str> {
        let names = self.allow.iter().flatten().map(|entry| bare(entry));
        let mut names = names.filter(|name| !name.contains('*') && !name.starts_with(MCP));
        names.find(|name| !known.iter().any(|known| known == name))
    }

    /// Whether the allow list has names beside changes of the defaults.
    #[must_use]
    pub fn is_mixed(&self) -> bool {
        let changes = |list: &Vec<String>| list.iter().filter(|entry| is_change(entry)).count();
        let mixed = |list: &Vec<String>| (1..list.len()).contains(&changes(list));
        self.allow.as_ref().is_some_and(mixed)
    }

    /// The list that everything else is kept out by.
    pub(super) fn only(&self) -> Option<&[String]> {
        let list = self.allow.as_deref()?;
        let changes = !list.is_empty() && list.iter().all(|entry| is_change(entry));
        (!changes).then_some(list)
    }

    /// The tools that a new session starts with, whether or not anybody has registered them yet.
    pub(super) fn at_start(&self, snapshot: &Snapshot) -> Vec<String> {
        let mut names = Vec::new();
        if let Some(only) = self.only() {
            for entry in only {
                if entry.contains('*') {
                    let tools = snapshot.tools().filter(|tool| is_declared(&tool.spec));
                    let matching = tools.filter(|tool| matches(entry, &tool.spec.name));
                    add(&mut names, matching.map(|tool| tool.spec.name.clone()));
                } else {
                    add(&mut names, [entry.clone()]);
                }
            }
            return names;
        }
        add(&mut names, DEFAULT_TOOLS.map(str::to_owned));
        if let Some(defaults) = &self.defaults {
            change(&mut names, defaults, snapshot);
        }
        if let Some(changes) = &self.allow {
            change(&mut names, changes, snapshot);
        }
        let tools = snapshot.tools().filter(|tool| self.activates(tool));
        add(&mut names, tools.map(|tool| tool.spec.name.clone()));
        names
    }

    /// What the command line changes of the tools that a conversation had.
    pub(super) fn change(&self, names: &mut Vec<String>, snapshot: &Snapshot) {
        if let Some(changes) = &self.allow {
            change(names, changes, snapshot);
        }
    }

    /// Whether a tool becomes active when it is registered (T22): one of an extension, unless it says
    /// otherwise or the user does. Under an allow list, whatever matches one of its patterns.
    pub(super) fn activates(&self, tool: &Registered<ToolSpec>) -> bool {
        let name = &tool.spec.name;
        if !is_declared(&tool.spec) || !self.wants(name) {
            return false;
        }
        match self.only() {
            Some(only) => matched(only, name),
            None => {
                let changes = self.defaults.iter().chain(&self.allow).flatten();
                let mut taken = changes.filter_map(|entry| entry.strip_prefix('-'));
                tool.source().rank != Rank::BuiltIn && !taken.any(|entry| matches(entry, name))
            }
        }
    }
}

fn is_declared(spec: &ToolSpec) -> bool {
    matches!(spec.exposure, Exposure::Direct | Exposure::ModelOnly)
        && spec.default_active != Some(false)
}

fn is_change(entry: &str) -> bool {
    entry.starts_with(['+', '-'])
}

fn bare(entry: &str) -> &str {
    entry.strip_prefix(['+', '-']).unwrap_or(entry)
}

/// Plain names replace; then the changes are made in their order (`resources.md` §10).
fn change(names: &mut Vec<String>, list: &[String], snapshot: &Snapshot) {
    if list.iter().any(|entry| !is_change(entry)) || list.is_empty() {
        names.clear();
        add(
            names,
            list.iter().filter(|entry| !is_change(entry)).cloned(),
        );
    }
    for entry in list {
        if let Some(taken) = entry.strip_prefix('-') {
            names.retain(|name| !matches(taken, name));
        } else if let Some(added) = entry.strip_prefix('+') {
            if added.contains('*') {
                let all = snapshot.tools().map(|tool| tool.spec.name.clone());
                add(names, all.filter(|name| matches(added, name)));
            } else {
                add(names, [added.to_owned()]);
            }
        }
    }
}

fn add(names: &mut Vec<String>, more: impl IntoIterator<Item = String>) {
    for name in more {
        if !names.contains(&name) {
            names.push(name);
        }
    }
}

fn matched(list: &[String], name: &str) -> bool {
    list.iter().any(|entry| matches(entry, name))
}

/// `*` stands for any characters, also none.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(head) else {
        return false;
    };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*').filter(|part| !part.is_empty()) {
        let Some(at) = name.find(part) else {
            return false;
        };
        name = &name[at + part.len()..];
    }
    name.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|entry| (*entry).to_owned()).collect()
    }

    fn only(entries: &[&str]) -> ToolSelection {
        ToolSelection {
            allow: Some(list(entries)),
            ..ToolSelection::default()
        }
    }

    fn at_start(selection: &ToolSelection) -> Vec<String> {
        selection.at_start(&Snapshot::default())
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, fits) in [
            ("read", "read", true),
            ("read", "reader", false),
            ("*", "", true),
            ("mcp__*", "mcp__a", true),
            ("*_a_*", "x_a_y", true),
            ("a*b*c", "abbc", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn an_allow_list_keeps_out_all_but_mcp_tools_unless_it_names_one() {
        // extensions §4.1
        let some = only(&["re*", "bash"]);
        assert!(some.wants("read") && some.wants("bash") && some.wants("mcp__a"));
        assert!(!some.wants("write"));
        assert!(!only(&["read", "mcp__b"]).wants("mcp__a"));
        assert!(!ToolSelection::none().wants("mcp__a"));
        let without = ToolSelection {
            exclude: list(&["mcp__*"]),
            ..some
        };
        assert!(!without.wants("mcp__a") && without.wants("read"));
    }

    #[test]
    fn changes_are_made_to_the_defaults_and_plain_names_replace_them() {
        // interfaces §2, resources §10
        let of = |entries: &[&str]| ToolSelection {
            defaults: Some(list(entries)),
            ..ToolSelection::default()
        };
        assert_eq!(
            at_start(&of(&["+grep", "-bash"])),
            ["read", "edit", "write", "grep"]
        );
        assert_eq!(at_start(&of(&["-ls", "ls", "find"])), ["find"]);
        assert_eq!(at_start(&of(&[])), Vec::<String>::new());
        let both = ToolSelection {
            allow: Some(list(&["-grep", "+ls"])),
            ..of(&["+grep"])
        };
        assert_eq!(at_start(&both), ["read", "bash", "edit", "write", "ls"]);
        assert!(both.wants("anything"));
        assert_eq!(at_start(&only(&["x", "y*", "x"])), ["x"]);
    }

    #[test]
    fn a_name_that_nobody_has_is_found_and_a_mixture_is_told() {
        let known = list(&["read"]);
        assert_eq!(only(&["read", "x*", "mcp__a"]).unknown(&known), None);
        assert_eq!(only(&["+read", "-raed"]).unknown(&known), Some("raed"));
        assert!(only(&["read", "+write"]).is_mixed());
        assert!(!only(&["+read", "-write"]).is_mixed() && !only(&["read"]).is_mixed());
    }
}

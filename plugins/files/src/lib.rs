//! The tools that look at files and change them: `read`, `write`, `edit`, `ls`, `find`, `grep`
//! (`extensions.md` §8).
//!
//! A tool takes arguments from the model and answers with text; a failure is a sentence for the
//! model. Single files go through the host's services, so that they may be elsewhere; `find` and
//! `grep` walk the local file system on the host's blocking pool. What can be computed without a
//! host (limits, paths, matching, diffs) is plain functions in files of its own.

mod edit;
mod find;
mod grep;
mod ls;
mod read;
mod write;

mod listing;
mod paths;
mod truncate;
mod walk;

#[cfg(test)]
mod testing;

use pliant_sdk::{Error, Host, Init, Plugin};

fn create(_host: Host, _init: Init) -> Result<Plugin, Error> {
    Ok(Plugin::new()
        .tool(read::Read)
        .tool(write::Write)
        .tool(edit::Edit)
        .tool(ls::Ls)
        .tool(find::Find)
        .tool(grep::Grep))
}

pliant_sdk::export! {
    name: "files",
    provides: {
        tool "read",
        tool "write",
        tool "edit",
        tool "ls",
        tool "find",
        tool "grep",
    },
    create: create,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Dir;

    #[test]
    fn reading_and_changing_is_active_and_searching_waits_to_be_asked_for() {
        // extensions §8
        let plugin = create(Dir::new().host(), Init::default()).unwrap();
        let tools: Vec<_> = plugin
            .describe()
            .iter()
            .map(|tool| (tool["name"].to_string(), tool.get("defaultActive").cloned()))
            .collect();
        let tool = |name: &str, active: Option<bool>| (format!("{name:?}"), active.map(Into::into));
        let expected = [
            tool("read", None),
            tool("write", None),
            tool("edit", None),
            tool("ls", Some(false)),
            tool("find", Some(false)),
            tool("grep", Some(false)),
        ];
        assert_eq!(tools, expected);
    }

    #[test]
    fn every_guideline_names_its_tool() {
        // extensions §4.1
        let plugin = create(Dir::new().host(), Init::default()).unwrap();
        for tool in plugin.describe() {
            let name = tool["name"].as_str().unwrap();
            for line in tool
                .get("promptGuidelines")
                .and_then(|g| g.as_array())
                .into_iter()
                .flatten()
            {
                assert!(line.as_str().unwrap().contains(name), "{name}: {line}");
            }
            assert!(tool["promptSnippet"].is_string(), "{name}");
        }
    }
}

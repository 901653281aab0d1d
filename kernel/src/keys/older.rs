//! The short names that actions had once, and that files of key bindings still have (`tui.md` §10).

use super::Action;

/// Those that are not the last word of an action of the editor or its input.
const OLDER: [(&str, &str); 34] = [
    ("selectUp", "tui.select.up"),
    ("selectDown", "tui.select.down"),
    ("selectPageUp", "tui.select.pageUp"),
    ("selectPageDown", "tui.select.pageDown"),
    ("selectConfirm", "tui.select.confirm"),
    ("selectCancel", "tui.select.cancel"),
    ("interrupt", "app.interrupt"),
    ("clear", "app.clear"),
    ("exit", "app.exit"),
    ("suspend", "app.suspend"),
    ("cycleThinkingLevel", "app.thinking.cycle"),
    ("toggleThinking", "app.thinking.toggle"),
    ("cycleModelForward", "app.model.cycleForward"),
    ("cycleModelBackward", "app.model.cycleBackward"),
    ("selectModel", "app.model.select"),
    ("expandTools", "app.tools.expand"),
    ("externalEditor", "app.editor.external"),
    ("followUp", "app.message.followUp"),
    ("dequeue", "app.message.dequeue"),
    ("pasteImage", "app.clipboard.pasteImage"),
    ("newSession", "app.session.new"),
    ("tree", "app.session.tree"),
    ("fork", "app.session.fork"),
    ("resume", "app.session.resume"),
    ("toggleSessionPath", "app.session.togglePath"),
    ("toggleSessionSort", "app.session.toggleSort"),
    ("toggleSessionNamedFilter", "app.session.toggleNamedFilter"),
    ("renameSession", "app.session.rename"),
    ("deleteSession", "app.session.delete"),
    ("deleteSessionNoninvasive", "app.session.deleteNoninvasive"),
    ("treeFoldOrUp", "app.tree.foldOrUp"),
    ("treeUnfoldOrDown", "app.tree.unfoldOrDown"),
    ("treeEditLabel", "app.tree.editLabel"),
    ("treeToggleLabelTimestamp", "app.tree.toggleLabelTimestamp"),
];

/// The action that a short name stands for.
pub(super) fn action(name: &str) -> Option<Action> {
    if let Some((_, id)) = OLDER.iter().find(|(short, _)| *short == name) {
        return Action::parse(id);
    }
    let of = |folder: &str| Action::parse(&format!("{folder}.{name}"));
    of("tui.editor").or_else(|| of("tui.input"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_short_name_stands_for_an_action_that_there_is() {
        // tui §10
        for (short, id) in OLDER {
            assert_eq!(action(short).map(Action::id), Some(id));
        }
        assert_eq!(
            action("cursorUp").map(Action::id),
            Some("tui.editor.cursorUp")
        );
        assert_eq!(action("submit").map(Action::id), Some("tui.input.submit"));
        assert_eq!(action("nothing"), None);
    }
}

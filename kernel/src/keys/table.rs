//! The actions and the keys that they have where the user says nothing (`tui.md` §10). Keys are written as
//! [`normal`](pliant_sdk::shortcut::normal) writes them.

use super::Context;
use super::Context::{
    App, Editor, History, Models, Search, Select, Sessions, Thinking, Transcript, Tree,
};

/// An action. Where a platform has no keys of its own, `keys` hold there too.
pub(super) struct Row {
    pub(super) id: &'static str,
    pub(super) context: Context,
    pub(super) keys: &'static [&'static str],
    pub(super) windows: Option<&'static [&'static str]>,
    pub(super) wsl: Option<&'static [&'static str]>,
}

const fn row(id: &'static str, context: Context, keys: &'static [&'static str]) -> Row {
    Row {
        id,
        context,
        keys,
        windows: None,
        wsl: None,
    }
}

impl Row {
    const fn on_windows(self, keys: &'static [&'static str]) -> Self {
        Self {
            windows: Some(keys),
            ..self
        }
    }

    const fn on_wsl(self, keys: &'static [&'static str]) -> Self {
        Self {
            wsl: Some(keys),
            ..self
        }
    }
}

pub(super) const ACTIONS: &[Row] = &[
    row("tui.editor.cursorUp", Editor, &["up"]),
    row("tui.editor.cursorDown", Editor, &["down"]),
    row("tui.editor.historyPrevious", History, &[]),
    row("tui.editor.historyNext", History, &[]),
    row("tui.editor.cursorLeft", Editor, &["left", "ctrl+b"]),
    row("tui.editor.cursorRight", Editor, &["right", "ctrl+f"]),
    row(
        "tui.editor.cursorWordLeft",
        Editor,
        &["alt+left", "ctrl+left", "alt+b"],
    ),
    row(
        "tui.editor.cursorWordRight",
        Editor,
        &["alt+right", "ctrl+right", "alt+f"],
    ),
    row("tui.editor.cursorLineStart", Editor, &["home", "ctrl+a"]),
    row("tui.editor.cursorLineEnd", Editor, &["end", "ctrl+e"]),
    row("tui.editor.jumpForward", Editor, &["ctrl+]"]),
    row("tui.editor.jumpBackward", Editor, &["ctrl+alt+]"]),
    row("tui.editor.pageUp", Editor, &["pageup", "ctrl+pageup"]),
    row(
        "tui.editor.pageDown",
        Editor,
        &["pagedown", "ctrl+pagedown"],
    ),
    row("tui.editor.deleteCharBackward", Editor, &["backspace"]),
    row(
        "tui.editor.deleteCharForward",
        Editor,
        &["delete", "ctrl+d"],
    ),
    row(
        "tui.editor.deleteWordBackward",
        Editor,
        &["ctrl+w", "alt+backspace"],
    ),
    row(
        "tui.editor.deleteWordForward",
        Editor,
        &["alt+d", "alt+delete"],
    ),
    row("tui.editor.deleteToLineStart", Editor, &["ctrl+u"]),
    row("tui.editor.deleteToLineEnd", Editor, &["ctrl+k"]),
    row("tui.editor.yank", Editor, &["ctrl+y"]),
    row("tui.editor.yankPop", Editor, &["alt+y"]),
    row("tui.editor.undo", Editor, &["ctrl+-"])
        .on_windows(&["ctrl+z"])
        .on_wsl(&["alt+z"]),
    row("tui.input.newLine", Editor, &["shift+enter", "ctrl+j"]),
    row("tui.input.submit", Editor, &["enter"]),
    row("tui.input.tab", Editor, &["tab"]),
    row("tui.input.copy", Editor, &["ctrl+c"]),
    row("tui.select.up", Select, &["up"]),
    row("tui.select.down", Select, &["down"]),
    row("tui.select.pageUp", Select, &["pageup"]),
    row("tui.select.pageDown", Select, &["pagedown"]),
    row("tui.select.confirm", Select, &["enter"]),
    row("tui.select.cancel", Select, &["escape", "ctrl+c"]),
    row("tui.altScreen.pageUp", Transcript, &["pageup"]),
    row("tui.altScreen.pageDown", Transcript, &["pagedown"]),
    row("tui.altScreen.halfPageUp", Transcript, &[]),
    row("tui.altScreen.halfPageDown", Transcript, &[]),
    row("tui.altScreen.lineUp", Transcript, &[]),
    row("tui.altScreen.lineDown", Transcript, &[]),
    row(
        "tui.altScreen.previousPrompt",
        Transcript,
        &["ctrl+shift+up", "ctrl+up"],
    )
    .on_windows(&["ctrl+up"])
    .on_wsl(&["ctrl+up"]),
    row(
        "tui.altScreen.nextPrompt",
        Transcript,
        &["ctrl+shift+down", "ctrl+down"],
    )
    .on_windows(&["ctrl+down"])
    .on_wsl(&["ctrl+down"]),
    row("tui.altScreen.search", Transcript, &["ctrl+shift+f"])
        .on_windows(&["ctrl+f"])
        .on_wsl(&["ctrl+f"]),
    row("tui.altScreen.searchNext", Search, &["enter", "ctrl+g"]),
    row(
        "tui.altScreen.searchPrevious",
        Search,
        &["shift+enter", "ctrl+shift+g"],
    ),
    row("tui.altScreen.searchClose", Search, &["escape"]),
    row("tui.altScreen.top", Transcript, &["ctrl+home"]),
    row("tui.altScreen.bottom", Transcript, &["ctrl+end"]),
    row("app.interrupt", App, &["escape"]),
    row("app.clear", App, &["ctrl+c"]),
    row("app.exit", App, &["ctrl+d"]),
    row("app.suspend", App, &["ctrl+z"]).on_windows(&[]),
    row("app.editor.external", App, &["ctrl+g"]),
    row("app.clipboard.pasteImage", App, &["ctrl+v"])
        .on_windows(&["alt+v", "ctrl+v"])
        .on_wsl(&["alt+v", "ctrl+v"]),
    row("app.session.new", App, &[]),
    row("app.session.tree", App, &[]),
    row("app.session.fork", App, &[]),
    row("app.session.resume", App, &[]),
    row("app.session.togglePath", Sessions, &["ctrl+p"]),
    row("app.session.toggleSort", Sessions, &["ctrl+s"]),
    row("app.session.toggleNamedFilter", Sessions, &["ctrl+n"]),
    row("app.session.rename", Sessions, &["ctrl+r"]),
    row("app.session.delete", Sessions, &["ctrl+d"]),
    row(
        "app.session.deleteNoninvasive",
        Sessions,
        &["ctrl+backspace"],
    ),
    row("app.model.select", App, &["ctrl+l"]),
    row("app.model.cycleForward", App, &["ctrl+p"]),
    row("app.model.cycleBackward", App, &["ctrl+shift+p"])
        .on_windows(&["alt+p"])
        .on_wsl(&["alt+p"]),
    row("app.models.save", Models, &["ctrl+s"]),
    row("app.models.enableAll", Models, &["ctrl+a"]),
    row("app.models.clearAll", Models, &["ctrl+x"]),
    row("app.models.toggleProvider", Models, &["ctrl+p"]),
    row("app.models.reorderUp", Models, &["alt+up"]),
    row("app.models.reorderDown", Models, &["alt+down"]),
    row("app.thinking.cycle", App, &["shift+tab"]),
    row("app.thinking.save", Thinking, &["ctrl+s"]),
    row("app.thinking.toggle", App, &["ctrl+t"]),
    row("app.tools.expand", App, &["ctrl+o"]),
    row("app.message.copy", App, &["ctrl+x"]),
    row("app.message.followUp", App, &["alt+enter"])
        .on_windows(&["ctrl+q"])
        .on_wsl(&["ctrl+q"]),
    row("app.message.dequeue", App, &["alt+up"])
        .on_windows(&["alt+q"])
        .on_wsl(&["alt+q"]),
    row("app.tree.foldOrUp", Tree, &["ctrl+left", "alt+left"]),
    row("app.tree.unfoldOrDown", Tree, &["ctrl+right", "alt+right"]),
    row("app.tree.editLabel", Tree, &["shift+l"]),
    row("app.tree.toggleLabelTimestamp", Tree, &["shift+t"]),
    row("app.tree.filter.default", Tree, &["ctrl+d"]),
    row("app.tree.filter.noTools", Tree, &["ctrl+t"]),
    row("app.tree.filter.userOnly", Tree, &["ctrl+u"]),
    row("app.tree.filter.labeledOnly", Tree, &["ctrl+l"]),
    row("app.tree.filter.all", Tree, &["ctrl+a"]),
    row("app.tree.filter.cycleForward", Tree, &["ctrl+o"]),
    row("app.tree.filter.cycleBackward", Tree, &["ctrl+shift+o"]),
];

/// The actions whose keys extensions may not have (`extensions.md` §4.5, `tui.md` §17).
pub(super) const RESERVED: [&str; 18] = [
    "app.interrupt",
    "app.clear",
    "app.exit",
    "app.suspend",
    "app.thinking.cycle",
    "app.thinking.toggle",
    "app.model.cycleForward",
    "app.model.cycleBackward",
    "app.model.select",
    "app.tools.expand",
    "app.editor.external",
    "app.message.copy",
    "app.message.followUp",
    "tui.input.submit",
    "tui.input.copy",
    "tui.select.confirm",
    "tui.select.cancel",
    "tui.editor.deleteToLineEnd",
];

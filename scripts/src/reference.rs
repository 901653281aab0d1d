//! Everything that a script can call, in words: what `pliant script docs` prints. A test holds it against
//! the functions that are really there.

use std::fmt::Write;

/// How it is written, and what it does.
type Entry = (&'static str, &'static str);

/// What can be called where, group by group.
const REFERENCE: &[(&str, &[Entry])] = &[
    (
        "At the top level, and later in handlers, tools and commands",
        &[
            (
                "on(event, |event, ctx| …)",
                "Hears of an event; what the closure answers decides. Answers a function that ends it: `off.call()`.",
            ),
            (
                "register_tool(#{ name, description, parameters, execute: |args, ctx| … })",
                "Gives the model a tool. `execute` answers a text, a map with `content`, or any value; `renderCall: |args, options|` and `renderResult: |result, options|` show its calls.",
            ),
            (
                "register_command(name, #{ description, run: |args, ctx| …, complete: |prefix| … })",
                "Gives the user a command, `/name`.",
            ),
            (
                "register_flag(name, #{ kind, default_value, description })",
                "Adds an option of the command line, `--name`; `kind` is `boolean` or `string`.",
            ),
            (
                "register_provider(name, #{ baseUrl, api, apiKey, models, stream: |request, out| … })",
                "Adds a service with models: one that speaks a known wire, or one that `stream` answers for.",
            ),
            (
                "register_virtual_model(#{ provider, id, name, route: |request, ctx| … })",
                "Adds a model whose requests `route` hands to another one.",
            ),
            (
                "register_shortcut(key, #{ description, run: |ctx| … })",
                "Gives a key something to do, such as \"ctrl+alt+g\".",
            ),
            (
                "register_message_renderer(type, |message, options| …)",
                "Shows messages of a type: a text, a list, or a map with a `type` of text, markdown, box, row, column, spacer, image, diff.",
            ),
            (
                "register_entry_renderer(type, |entry, options| …)",
                "Shows entries of a type, as `append_entry` keeps them; likewise.",
            ),
            (
                "register_tool_renderer(|name, next, shown| …)",
                "Shows calls of tools; `()` leaves it to the next, whose view is `next.call()`.",
            ),
            (
                "register_markdown_transformer(|markdown, info| …)",
                "Changes Markdown before it is shown; `info.surface` says where.",
            ),
            (
                "register_autocomplete(#{ trigger, suggest: |line, column, word| … })",
                "Completes words that begin with the trigger: a list of texts, or of maps with `value`, `label`, `description`.",
            ),
            (
                "register_mcp_server(name, #{ command, args, env, url, headers })",
                "Brings a server of the Model Context Protocol, as an entry of `mcpServers`.",
            ),
            (
                "bus_on(channel, |data| …)",
                "Hears what other extensions say on a channel. Answers a function that ends it.",
            ),
        ],
    ),
    (
        "In handlers, tools and commands",
        &[
            (
                "send_message(#{ customType, content, display, details }, #{ deliverAs, triggerTurn })",
                "Adds a message of the extension to the conversation; `deliverAs` is `steer`, `followUp` or `nextTurn`.",
            ),
            (
                "send_user_message(text, #{ deliverAs, expandPromptTemplates })",
                "Says something as if the user had.",
            ),
            (
                "append_entry(type, data)",
                "Keeps something in the session's tree that no model reads. Answers its id.",
            ),
            (
                "mcp_servers()",
                "The servers that extensions have registered, each with `name`, `config` and `source`.",
            ),
            (
                "unregister_mcp_server(name)",
                "Takes back a server of this script. Answers whether there was one.",
            ),
            (
                "unregister_provider(name)",
                "Takes back a provider of this script; what it stood in for is there again.",
            ),
            (
                "snapshot_files()",
                "Keeps the files of the session's folder as they are: `#{ id, files, bytes, leftOut }`. What `.gitignore` names is left out.",
            ),
            (
                "file_changes(id)",
                "How they differ from a snapshot: a list of `#{ path, what }` with `added`, `changed`, `removed`.",
            ),
            (
                "restore_files(id)",
                "Goes back to a snapshot, in a command: `#{ undo, written, removed, failed }`; `undo` is a snapshot of the files before.",
            ),
            (
                "set_label(id, text)",
                "Names a place in the tree; `()` takes the name away.",
            ),
            (
                "set_session_name(text)",
                "Names the session; `()` takes the name away.",
            ),
            (
                "active_tools()",
                "Names of the tools that the model is told of.",
            ),
            (
                "set_active_tools([name, …])",
                "Chooses them, from the next request on.",
            ),
            (
                "all_tools()",
                "All tools there are, with their declarations.",
            ),
            (
                "set_model(\"provider/id\")",
                "Chooses the model for this session; false when it has no key.",
            ),
            (
                "set_thinking_level(level)",
                "Chooses how long the model thinks, for this session.",
            ),
            ("models()", "All models there are."),
            ("commands()", "Everything that can be called by a slash."),
            (
                "settings(key)",
                "A setting by its key, `a.b`, or `()`; without a key all of them.",
            ),
            (
                "flag(name)",
                "What the user gave for a flag of this script.",
            ),
            (
                "bus_emit(channel, data)",
                "Says something to other extensions, and returns when all have heard it.",
            ),
            (
                "state_get(key)",
                "What was kept under a key, also by an earlier version or run; else `()`.",
            ),
            (
                "state_put(key, value)",
                "Keeps a value beyond reloads and the end of the process; `()` removes it.",
            ),
            (
                "after(ms, || …)",
                "Runs something once, later. Answers a function that stops it.",
            ),
            (
                "every(ms, || …)",
                "Runs something again and again. Answers a function that stops it.",
            ),
            (
                "sleep(seconds)",
                "Waits; ends at once when nobody waits for the script any more.",
            ),
            ("now_ms()", "Milliseconds since 1970."),
        ],
    ),
    (
        "Programs, services, files and texts",
        &[
            (
                "exec(program, [argument, …], #{ cwd, timeout, env, max_buffer })",
                "Runs a program, without a shell. Answers `#{ stdout, stderr, code, killed, truncated }`.",
            ),
            (
                "http(#{ url, method, headers, body, timeout_ms })",
                "Makes a request. Answers `#{ status, headers, body }`.",
            ),
            (
                "http_stream(#{ url, method, headers, body, timeout_ms, max_retries, credential })",
                "Makes a request whose answer is read while it comes: `status`, `headers`, and of its body `events()`, `lines()`, `chunks()` in a `for` loop, or `text()`. `credential: \"name\"` adds the key of a provider.",
            ),
            (
                "answer.events()",
                "Of `http_stream`: the events of its body, `#{ event, data, id }`, for a loop.",
            ),
            (
                "answer.lines()",
                "Of `http_stream`: the lines of its body, for a loop.",
            ),
            (
                "answer.chunks()",
                "Of `http_stream`: its text as it comes, for a loop.",
            ),
            (
                "answer.text()",
                "Of `http_stream`: all the text that is left.",
            ),
            ("answer.status", "Of `http_stream`: the status code."),
            (
                "answer.headers",
                "Of `http_stream`: the headers, by lower-case name.",
            ),
            (
                "answer.close()",
                "Of `http_stream`: ends the connection; the end of the call does so too.",
            ),
            (
                "http_all([#{ url, … }, …])",
                "Makes several at once; answers in their order, failures among them.",
            ),
            ("read_file(path)", "The text of a file."),
            (
                "list_dir(path)",
                "What a folder holds: `#{ name, kind }`, sorted.",
            ),
            (
                "shell_commands(text)",
                "Which simple commands a line of shell runs: `#{ commands, unknown }`. Runs nothing.",
            ),
            ("json_parse(text)", "A value from JSON."),
            ("json_stringify(value)", "JSON from a value."),
            ("json_pretty(value)", "The same over several lines."),
            ("trimmed(text)", "The text without blanks at its ends."),
            (
                "replaced(text, find, with)",
                "The text with each `find` replaced.",
            ),
            ("lines(text)", "Its lines."),
            ("join(list, separator)", "The texts of a list as one."),
            (
                "log(level, text)",
                "Writes to pliant's log; `level` may be left out.",
            ),
        ],
    ),
    (
        "`ctx`, the last argument of closures",
        &[
            ("ctx.cwd", "Where the session works."),
            ("ctx.mode", "`tui`, `rpc`, `json` or `print`."),
            ("ctx.has_ui", "Whether somebody can be asked."),
            ("ctx.model", "The model, or `()`."),
            ("ctx.thinking_level", "How long it thinks."),
            (
                "ctx.scoped_models",
                "The models the user cycles through; empty for all.",
            ),
            (
                "ctx.usage()",
                "How full the context is: `#{ tokens, contextWindow, percent }`.",
            ),
            ("ctx.is_idle()", "Whether no run is active."),
            (
                "ctx.has_pending()",
                "Whether messages wait to be delivered.",
            ),
            ("ctx.system_prompt()", "The prompt as it stands."),
            (
                "ctx.system_prompt_options()",
                "What it is built from; in commands.",
            ),
            (
                "ctx.is_project_trusted()",
                "Whether the project's own files count.",
            ),
            ("ctx.abort()", "Stops what runs, as Escape does."),
            (
                "ctx.compact(#{ customInstructions })",
                "Begins a compaction.",
            ),
            ("ctx.shutdown()", "Ends the program when it is idle."),
            (
                "ctx.reload()",
                "Loads plugins, scripts and texts anew; in commands.",
            ),
            (
                "ctx.wait_for_idle()",
                "Waits for the end of the run; in commands.",
            ),
            (
                "ctx.navigate_tree(id, #{ summarize, customInstructions, replaceInstructions, label })",
                "Goes to another place of the tree; in commands.",
            ),
            (
                "ctx.new_session(#{ parentSession, then: |ctx| … })",
                "Begins another session in the place of this one; in commands. The command goes on there.",
            ),
            (
                "ctx.switch_session(path, #{ then: |ctx| … })",
                "Opens the session of a file in the place of this one; in commands.",
            ),
            (
                "ctx.fork_at(id, #{ position, then: |ctx| … })",
                "Opens a fork in the place of this one, `before` or `at` an entry; in commands.",
            ),
            ("ctx.call_id", "In tools: id of the call."),
            (
                "ctx.cancelled()",
                "In tools: whether nobody waits for it any more.",
            ),
            ("ctx.update(result)", "In tools: shows a partial result."),
            (
                "ctx.call_tool(name, arguments, #{ on_update })",
                "In tools: calls another one. Answers `#{ isError, text, content, structuredContent }`.",
            ),
            ("ctx.session", "The session, for reading."),
            ("ctx.ui", "Displays and dialogs."),
        ],
    ),
    (
        "`ctx.session`",
        &[
            ("ctx.session.id()", "Its id."),
            ("ctx.session.file()", "Its file, or `()`."),
            ("ctx.session.dir()", "The folder of sessions."),
            ("ctx.session.name()", "Its name, or `()`."),
            ("ctx.session.header()", "The first line of its file."),
            ("ctx.session.entries()", "All entries."),
            ("ctx.session.entry(id)", "One of them, or `()`."),
            (
                "ctx.session.branch(id)",
                "The entries from the root to a place; without an id to where the session is.",
            ),
            ("ctx.session.tree()", "All entries as a tree."),
            ("ctx.session.leaf_id()", "Where the session is."),
            ("ctx.session.leaf_entry()", "The entry there."),
            ("ctx.session.label(id)", "The name of a place, or `()`."),
            (
                "ctx.session.context_entries()",
                "The entries that the model's context is made of.",
            ),
            (
                "ctx.session.projection()",
                "The messages that it is, and where each comes from.",
            ),
        ],
    ),
    (
        "`ctx.ui`",
        &[
            (
                "ctx.ui.notify(text, level)",
                "Tells the user something; `level` is `info`, `warning` or `error`.",
            ),
            (
                "ctx.ui.select(title, [choice, …], #{ timeout })",
                "Lets the user choose; `()` if he does not.",
            ),
            (
                "ctx.ui.confirm(title, text, #{ timeout })",
                "Asks yes or no; false if nobody answers.",
            ),
            (
                "ctx.ui.input(title, placeholder, #{ timeout })",
                "Asks for a line; `()` if there is none.",
            ),
            (
                "ctx.ui.editor(title, prefill, #{ timeout })",
                "Asks for a text; `()` if there is none.",
            ),
            (
                "ctx.ui.set_status(key, text)",
                "Shows a word in the footer; `()` takes it away.",
            ),
            (
                "ctx.ui.set_widget(key, lines, #{ placement })",
                "Shows lines by the editor; `()` takes them away.",
            ),
            ("ctx.ui.set_title(text)", "Names the terminal's window."),
            (
                "ctx.ui.set_editor_text(text)",
                "Puts a text into the editor.",
            ),
            (
                "ctx.ui.get_all_themes()",
                "The themes there are: `name`, `path` of one that is a file, `appearance`.",
            ),
            (
                "ctx.ui.get_theme(name)",
                "One of them with its `colors`, by token; `()` if there is none.",
            ),
            (
                "ctx.ui.set_theme(name)",
                "Shows another theme; `#{ success, error }`, without success where there is no interface.",
            ),
        ],
    ),
    (
        "`request` and `out`, of a provider's `stream`",
        &[
            ("request.messages", "The conversation."),
            ("request.model", "The model that is asked."),
            ("request.tools", "The tools it is told of."),
            (
                "request.options",
                "What else is wanted: level, limits, key.",
            ),
            ("request.session_id", "Id of the session."),
            ("request.last_user_text", "What the user said last."),
            ("request.messages.len", "How many messages there are."),
            (
                "request.messages.get(index)",
                "One of them; also `messages[index]`.",
            ),
            ("request.messages.last(count)", "The last ones."),
            ("out.text(piece)", "A piece of the answer's text."),
            ("out.thinking(piece)", "A piece of what the model thinks."),
            (
                "out.tool_call(name, arguments)",
                "A call of a tool; an id may stand before the arguments.",
            ),
            ("out.usage(#{ input, output })", "What it cost so far."),
            (
                "out.finish(reason)",
                "The end: `stop`, `length` or `toolUse`.",
            ),
        ],
    ),
];

/// The reference as Markdown; with a word, only what has it in its line.
#[must_use]
pub fn reference(word: Option<&str>) -> String {
    let wanted =
        |entry: &&Entry| word.is_none_or(|word| entry.0.contains(word) || entry.1.contains(word));
    let mut text = String::new();
    for (group, entries) in REFERENCE {
        let entries: Vec<&Entry> = entries.iter().filter(wanted).collect();
        if entries.is_empty() {
            continue;
        }
        // A string takes everything.
        let _ = write!(text, "## {group}\n\n");
        for (written, says) in entries {
            let _ = writeln!(text, "- `{written}`: {says}");
        }
        text.push('\n');
    }
    text
}

/// One thing that a script can call or read.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Callable {
    /// Where, in words.
    pub group: &'static str,
    /// How it is written: `ctx.ui.notify(text, level)`.
    pub written: &'static str,
    /// Its name alone: `notify`.
    pub name: &'static str,
    /// What it is called on: `ctx.ui`; empty for a function.
    pub of: &'static str,
    /// Names of its parameters; `None` for a property.
    pub parameters: Option<Vec<String>>,
    /// What it does.
    pub text: &'static str,
}

/// The reference as data, in its order.
#[must_use]
pub fn callables() -> Vec<Callable> {
    let all = REFERENCE.iter();
    let all = all.flat_map(|(group, entries)| entries.iter().map(move |entry| (*group, entry)));
    all.map(|(group, (written, text))| {
        let path = written.split('(').next().unwrap_or_default();
        let (of, name) = path.rsplit_once('.').unwrap_or(("", path));
        Callable {
            group,
            written,
            name,
            of,
            parameters: parameters(written),
            text,
        }
    })
    .collect()
}

/// What stands between the brackets, by a name for each.
fn parameters(written: &str) -> Option<Vec<String>> {
    let (_, rest) = written.split_once('(')?;
    let inside = rest.strip_suffix(')').unwrap_or(rest);
    let mut parts = vec![String::new()];
    let (mut depth, mut in_bars) = (0_usize, false);
    for c in inside.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '|' => in_bars = !in_bars,
            ',' if depth == 0 && !in_bars => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    let name = |part: &String| {
        let part = part.trim();
        match part.chars().next() {
            Some('#') => "options".to_owned(),
            Some('|') => "callback".to_owned(),
            Some('[') => "list".to_owned(),
            _ => part
                .chars()
                .filter(|c| c.is_ascii_alphanumeric() || *c == '_')
                .collect(),
        }
    };
    let names = parts.iter().filter(|part| !part.trim().is_empty());
    Some(names.map(name).collect())
}

/// Definitions for Rhai's language server, to be saved as `pliant.d.rhai` beside scripts.
#[must_use]
pub fn definitions() -> String {
    let mut text = "// What pliant gives to scripts, for editors. Made by: pliant script docs --definitions\nmodule static;\n".to_owned();
    for callable in callables() {
        let Callable {
            name,
            of,
            parameters,
            text: says,
            written,
            ..
        } = callable;
        let receiver = match of {
            "" => None,
            of => Some(of.rsplit('.').next().unwrap_or(of)),
        };
        let (name, parameters) = match parameters {
            Some(parameters) => (name.to_owned(), parameters),
            // A property is a function with a receiver.
            None => (format!("get {name}"), Vec::new()),
        };
        let all = receiver.into_iter().map(str::to_owned).chain(parameters);
        let all: Vec<String> = all.map(|name| format!("{name}: ?")).collect();
        // A string takes everything.
        let _ = write!(
            text,
            "\n/// {says}\n///\n/// `{written}`\nfn {name}({}) -> ?;\n",
            all.join(", ")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::engine::Profile;

    /// The name that an entry is about.
    fn name(written: &str) -> &str {
        let path = written.split('(').next().unwrap_or_default();
        path.rsplit('.').next().unwrap_or_default()
    }

    #[test]
    fn what_can_be_called_is_in_the_reference_and_nothing_else() {
        let name_of = |info: rhai::FuncInfo<'_>| {
            let name = info.metadata.name.to_string();
            let name = name.strip_prefix("get$").unwrap_or(&name).to_owned();
            (!name.starts_with("index$")).then_some(name)
        };
        let engine = Profile::Extension.engine();
        let there = engine.collect_fn_metadata(None, name_of, false);
        let there: BTreeSet<String> = there.into_iter().collect();
        let told = REFERENCE.iter().flat_map(|(_, entries)| *entries);
        let told: BTreeSet<String> = told.map(|entry| name(entry.0).to_owned()).collect();
        assert_eq!(there, told);
    }

    #[test]
    fn each_entry_is_known_by_its_name_and_parameters() {
        let all = callables();
        let of = |written: &str| {
            let one = all.iter().find(|one| one.written.starts_with(written));
            let one = one.unwrap_or_else(|| panic!("no {written}"));
            let parameters = one.parameters.as_ref().map(|names| names.join(" "));
            format!(
                "{}|{}|{}",
                one.of,
                one.name,
                parameters.unwrap_or_else(|| "-".to_owned())
            )
        };
        assert_eq!(of("on(event"), "|on|event callback");
        assert_eq!(of("register_tool("), "|register_tool|options");
        assert_eq!(
            of("register_tool_renderer("),
            "|register_tool_renderer|callback"
        );
        assert_eq!(of("ctx.ui.select("), "ctx.ui|select|title list options");
        assert_eq!(of("ctx.cwd"), "ctx|cwd|-");
        assert_eq!(of("ctx.is_idle()"), "ctx|is_idle|");
        assert_eq!(
            all.len(),
            REFERENCE
                .iter()
                .map(|(_, entries)| entries.len())
                .sum::<usize>()
        );
        let names = |one: &Callable| one.parameters.clone().unwrap_or_default();
        assert!(all.iter().flat_map(names).all(|name| !name.is_empty()));
    }

    #[test]
    fn definitions_are_functions_of_a_module() {
        let text = definitions();
        assert!(text.contains("\nmodule static;\n"));
        assert!(text.contains("\nfn notify(ui: ?, text: ?, level: ?) -> ?;\n"));
        assert!(text.contains("\nfn get cwd(ctx: ?) -> ?;\n"));
        assert_eq!(text.matches("\nfn ").count(), callables().len());
    }

    #[test]
    fn a_word_leaves_only_what_has_it() {
        let all = reference(None);
        assert!(all.contains("## `ctx.ui`") && all.contains("- `exec("));
        let some = reference(Some("navigate_tree"));
        assert_eq!(some.matches("- `").count(), 1, "{some}");
        assert_eq!(reference(Some("no such thing")), "");
    }
}

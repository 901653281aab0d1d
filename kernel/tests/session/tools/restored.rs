//! The active tools of a conversation that is opened again (T24).

use pliant_kernel::registry::{InProcess, Rank, Source};
use pliant_kernel::session::{Session, ToolSelection};
use pliant_kernel::{Kernel, KernelOptions, OpenOptions, SessionChoice};
use pliant_sdk::Plugin;
use pliant_sdk::tool::{Exposure, ToolSpec};

use super::*;

/// A place with one conversation.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("agent")).unwrap();
        let settings = json!({"compaction": {"keepRecentTokens": 1}}).to_string();
        std::fs::write(dir.path().join("agent/settings.json"), settings).unwrap();
        Self(dir)
    }

    /// Opens the conversation with these tools: `x` is direct, `~x` for scripts, `(x)` off.
    async fn open(&self, tools: &str, allow: Option<&[&str]>) -> Opened {
        let dir = self.0.path();
        let mut options = KernelOptions::new(dir.into(), dir.join("agent"));
        options.tools = ToolSelection {
            allow: allow.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
            ..ToolSelection::default()
        };
        let kernel = Kernel::boot(options).unwrap();
        let script = Script::default();
        let fake = Plugin::new()
            .wire(ScriptedWire(script.clone()))
            .provider(ScriptedProvider);
        publish(&kernel, "fake", Rank::User, fake);
        publish(&kernel, "tools", Rank::User, plugin(tools));
        publish(&kernel, "own", Rank::BuiltIn, plugin("read grep"));
        let open = OpenOptions {
            session: SessionChoice::Continue,
            ..OpenOptions::default()
        };
        let session = kernel.open_session(open).await.unwrap();
        Opened {
            kernel,
            session,
            script,
        }
    }
}

fn plugin(tools: &str) -> Plugin {
    tools
        .split_whitespace()
        .fold(Plugin::new(), |plugin, word| {
            let spec = ToolSpec::new(word.trim_matches(['~', '(', ')']), "");
            plugin.tool(named(match &word[..1] {
                "~" => spec.exposed(Exposure::Codemode),
                "(" => spec.inactive(),
                _ => spec,
            }))
        })
}

fn publish(kernel: &Kernel, name: &str, rank: Rank, plugin: Plugin) {
    let generation = InProcess::new(Source::inline(name, rank), plugin).unwrap();
    kernel.registry().publish(Arc::new(generation));
}

struct Opened {
    kernel: Kernel,
    session: Session,
    script: Script,
}

impl Opened {
    async fn says(&self, text: &'static str) {
        self.script
            .replies
            .lock()
            .unwrap()
            .push_back(Reply::Text("ok"));
        let prompt = pliant_kernel::pipeline::Prompt::text(text);
        self.session.prompt(prompt, |_| ()).await.unwrap();
    }

    fn set(&self, names: &[&str]) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        self.session.set_active_tools(&names);
    }

    fn active(&self) -> Vec<String> {
        self.session.active_tools()
    }

    async fn close(self) {
        self.session.close("quit").await;
    }
}

#[tokio::test]
async fn a_conversation_goes_on_with_the_tools_it_had_and_those_it_never_knew() {
    // T24, L24
    let home = Home::new();
    let first = home.open("a b ~script", None).await;
    assert_eq!(first.active(), ["read", "a", "b"]);
    first.says("with the defaults").await;
    first.set(&["read", "b", "script", "grep"]);
    first.says("without a").await;
    first.close().await;

    let again = home.open("new a b ~script (off)", None).await;
    assert_eq!(again.active(), ["read", "b", "script", "grep", "new"]);
    again.says("on").await;
    assert_eq!(
        declared(&again.script),
        [["read", "b", "script", "grep", "new"]]
    );
    again.close().await;

    // The user's own list counts, and so do changes that the command line makes.
    let only = home.open("a b ~script", Some(&["a", "read"])).await;
    assert_eq!(only.active(), ["a", "read"]);
    only.close().await;
    let changed = home.open("new a b ~script", Some(&["+a", "-b"])).await;
    assert_eq!(changed.active(), ["read", "script", "grep", "new", "a"]);
    changed.close().await;
}

#[tokio::test]
async fn what_was_said_before_a_compaction_counts_too() {
    // T24
    let home = Home::new();
    let first = home.open("a b", None).await;
    first.says("with both").await;
    first.set(&["b"]);
    first.says("without a").await;
    for summary in ["of the history", "of the last turn"] {
        let mut replies = first.script.replies.lock().unwrap();
        replies.push_back(Reply::Text(summary));
    }
    first.session.compact(None).await.unwrap();
    first.says("after it").await;
    first.close().await;
    let again = home.open("a b c", None).await;
    assert_eq!(again.active(), ["b", "c"]);
    again.close().await;
}

#[tokio::test]
async fn a_tool_whose_source_comes_late_keeps_its_place_until_a_run_starts() {
    // T24
    let home = Home::new();
    let first = home.open("a b ~z", None).await;
    first.set(&["a", "b", "z"]);
    first.says("with all").await;
    first.close().await;

    let late = home.open("b", None).await;
    assert_eq!(late.active(), ["b"]);
    publish(&late.kernel, "late", Rank::User, plugin("~a"));
    assert_eq!(late.active(), ["a", "b"]);
    late.says("z has not come").await;
    publish(&late.kernel, "later", Rank::User, plugin("~z"));
    assert_eq!(late.active(), ["a", "b"]);
    late.close().await;

    // Whoever turns a tool off does not want what is not there either; whoever adds one does.
    let home = Home::new();
    let first = home.open("~a b c", None).await;
    first.set(&["a", "b"]);
    first.says("with both").await;
    first.close().await;
    for (wanted, then) in [
        (&["b", "read"][..], &["b", "a", "read"][..]),
        (&["read"], &["read"]),
    ] {
        let late = home.open("b", None).await;
        late.set(wanted);
        publish(&late.kernel, "late", Rank::User, plugin("~a"));
        assert_eq!(late.active(), then);
        late.close().await;
    }
}

#[tokio::test]
async fn a_conversation_that_never_spoke_of_tools_says_nothing_about_them() {
    let home = Home::new();
    let first = home.open("a", Some(&[])).await;
    first.says("without any").await;
    assert_eq!(declared(&first.script), [Vec::<String>::new()]);
    first.close().await;
    let again = home.open("a", None).await;
    assert_eq!(again.active(), ["read", "a"]);
    again.close().await;
}

#[tokio::test]
async fn another_place_of_the_tree_has_its_own_tools() {
    // T24
    let home = Home::new();
    let opened = home.open("a b", None).await;
    opened.says("with both").await;
    let there = opened.session.leaf().unwrap();
    opened.set(&["b"]);
    opened.says("without a").await;
    let options = pliant_kernel::run::NavigateOptions::default();
    opened.session.navigate_tree(&there, options).await.unwrap();
    assert_eq!(opened.active(), ["read", "a", "b"]);
    opened.says("with both again").await;
    let all = ["read", "a", "b"];
    let without: &[&str] = &["b"];
    assert_eq!(declared(&opened.script), [&all[..], without, &all[..]]);
    opened.close().await;
}

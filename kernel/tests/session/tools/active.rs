//! Which tools there are and which are active (`kernel.md` T22, T23, L24–L26; `extensions.md` §4.1–4.2).

use pliant_kernel::registry::InProcess;
use pliant_kernel::session::ToolSelection;
use pliant_kernel::{Kernel, KernelOptions};
use pliant_sdk::message::SystemMessage;
use pliant_sdk::tool::{Exposure, ToolResult, ToolSpec};
use pliant_sdk::{Plugin, Tool};
use serde_json::{Value, json};

use super::*;

/// Makes the tools of its arguments the active ones.
fn switch() -> impl Tool {
    does("switch", |input, ctx| async move {
        let names: Vec<String> = serde_json::from_value(input["to"].clone())?;
        let session = ctx.host().session();
        session.set_active_tools(&names).await?;
        let active = session.active_tools().await?;
        Ok(ToolResult::text(active.join(" ")))
    })
}

fn plain(name: &str) -> impl Tool {
    named(ToolSpec::new(name, ""))
}

/// The system messages of the last request.
fn systems(scene: &Scene) -> Vec<SystemMessage> {
    let requests = scene.script.requests.lock().unwrap();
    let system = |message: &Arc<Message>| match &**message {
        Message::System(system) => Some(system.clone()),
        _ => None,
    };
    requests.last().unwrap().iter().filter_map(system).collect()
}

#[tokio::test]
async fn a_change_of_the_active_tools_takes_effect_with_the_next_request() {
    // T23, L24, L26, invariant 14, extensions §5.3
    let plugin = Plugin::new()
        .tool(switch())
        .tool(plain("a"))
        .tool(plain("b"))
        .tool(plain("c"));
    let to = |names: Value| calls([("1", "switch", json!({"to": names}))]);
    let script = Script::new([
        // Those that stay keep their places, whatever order is asked for.
        to(json!(["c", "nobody", "a", "switch", "a"])),
        calls([("2", "b", json!({}))]),
        // The same again changes nothing.
        to(json!(["switch", "a", "c"])),
        to(json!(["b", "switch"])),
        Reply::Text("done"),
    ]);
    let scene = scene(script, plugin).await;
    scene.prompt("go").await;
    assert_eq!(
        declared(&scene.script),
        [
            vec!["switch", "a", "b", "c"],
            vec!["switch", "a", "c"],
            vec!["switch", "a", "c"],
            vec!["switch", "a", "c"],
            vec!["switch", "b"],
        ]
    );
    let results = result_texts(&scene.session);
    assert_eq!(results[0].0, "switch a c");
    assert!(
        results[1].1 && results[1].0.contains("The tools are: switch, a, c."),
        "{results:?}"
    );
    let said: Vec<_> = systems(&scene)
        .iter()
        .map(|system| {
            let removed = system
                .tools_removed
                .iter()
                .flatten()
                .map(|tool| format!("-{}", tool.name));
            let added = system
                .tools_added
                .iter()
                .flatten()
                .map(|tool| format!("+{}", tool.name));
            removed.chain(added).collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(said, ["+switch +a +b +c", "-b", "-a -c +b"]);
    assert_eq!(scene.session.active_tools(), ["switch", "b"]);
}

#[tokio::test]
async fn a_tool_is_declared_by_its_exposure_and_what_it_says_to_the_prompt_goes_with_it() {
    // T22, extensions §4.1, §4.2
    let tool = |name: &str, exposure| {
        let spec = ToolSpec::new(name, "").exposed(exposure);
        named(
            spec.snippet(format!("about {name}"))
                .guideline(format!("Use {name}.")),
        )
    };
    let plugin = Plugin::new()
        .tool(switch())
        .tool(tool("direct", Exposure::Direct))
        .tool(tool("model", Exposure::ModelOnly))
        .tool(tool("script", Exposure::Codemode))
        .tool(tool("later", Exposure::Deferred))
        .tool(tool("gone", Exposure::Hidden))
        .tool(named(ToolSpec::new("off", "").inactive()));
    let all = json!({"to": ["switch", "script", "later", "gone", "off"]});
    let scene = scene(one_call("switch", all), plugin).await;
    scene.prompt("go").await;
    assert_eq!(
        declared(&scene.script),
        [
            vec!["switch", "direct", "model"],
            vec!["switch", "script", "later", "off"]
        ]
    );
    let sections = pliant_sdk::history::replay(&systems(&scene))
        .unwrap()
        .sections
        .unwrap();
    let text = serde_json::to_string(&sections).unwrap();
    assert!(
        text.contains("about script") && text.contains("Use later."),
        "{text}"
    );
    assert!(
        !text.contains("about direct") && !text.contains("Use gone."),
        "{text}"
    );
    let all = scene.session.all_tools();
    let known: Vec<_> = all
        .iter()
        .map(|tool| (tool.spec.name.as_str(), tool.active))
        .collect();
    assert_eq!(
        known,
        [
            ("switch", true),
            ("direct", false),
            ("model", false),
            ("script", true),
            ("later", true),
            ("gone", false),
            ("off", true)
        ]
    );
    assert!(all.iter().all(|tool| tool.source == "extension"));
}

#[tokio::test]
async fn a_late_registration_is_there_at_the_next_turn_and_a_withdrawn_one_is_gone() {
    // T22, L24, L26, invariant 14, extensions §4.1
    let scene = scene(
        Script::new((0..6).map(|_| Reply::Text("ok"))),
        Plugin::new().tool(plain("a")),
    )
    .await;
    let late = |exposure| {
        let off = named(ToolSpec::new("off", "").inactive());
        Plugin::new()
            .tool(named(ToolSpec::new("late", "").exposed(exposure)))
            .tool(off)
    };
    scene.prompt("1").await;
    scene.publish("late", late(Exposure::Direct));
    scene.prompt("2").await;
    scene.publish("late", late(Exposure::Hidden));
    assert_eq!(scene.session.active_tools(), ["a"]);
    scene.prompt("3").await;
    scene.publish("late", late(Exposure::Direct));
    scene.prompt("4").await;
    // What the user turned off stays off when its source is loaded anew.
    scene.session.set_active_tools(&["a".into()]);
    scene.publish("late", late(Exposure::Direct));
    scene.prompt("5").await;
    scene.session.set_active_tools(&["a".into(), "late".into()]);
    scene.registry.withdraw("late");
    scene.prompt("6").await;
    assert_eq!(
        declared(&scene.script),
        [
            vec!["a"],
            vec!["a", "late"],
            vec!["a"],
            vec!["a", "late"],
            vec!["a"],
            vec!["a"]
        ]
    );
    // It comes back with its source, in its place; for scripts only, it is not active any more.
    scene.publish("late", late(Exposure::Direct));
    scene.publish("later", Plugin::new().tool(plain("b")));
    assert_eq!(scene.session.active_tools(), ["a", "late", "b"]);
    scene.publish("late", late(Exposure::Codemode));
    assert_eq!(scene.session.active_tools(), ["a", "b"]);
}

#[tokio::test]
async fn a_tool_that_is_for_scripts_can_be_called_as_soon_as_it_is_registered() {
    // T22
    let dir = tempfile::tempdir().unwrap();
    let options = KernelOptions::new(dir.path().into(), dir.path().join("agent"));
    let kernel = Kernel::boot(options).unwrap();
    let script = one_call("registers", json!({}));
    let fake = Plugin::new()
        .wire(ScriptedWire(script.clone()))
        .provider(ScriptedProvider);
    let registry = Arc::clone(kernel.registry());
    let registers = does("registers", move |_, ctx| {
        let late = named(ToolSpec::new("late", "").exposed(Exposure::Deferred));
        let source = pliant_kernel::boot::inline_source("late");
        let late = InProcess::new(source, Plugin::new().tool(late)).unwrap();
        registry.publish(Arc::new(late));
        async move { Ok(ctx.call_tool("late", json!({})).await?.result) }
    });
    let source = pliant_kernel::boot::inline_source("fake");
    let all = InProcess::new(source, fake.tool(registers)).unwrap();
    kernel.registry().publish(Arc::new(all));
    let session = open_session(&kernel).await;
    session
        .prompt(pliant_kernel::pipeline::Prompt::text("go"), |_| ())
        .await
        .unwrap();
    assert_eq!(result_texts(&session), [("late".into(), false)]);
}

/// The active and the known tools of a new session with these.
async fn selected(selection: ToolSelection, plugin: Plugin) -> (Vec<String>, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let mut options = KernelOptions::new(dir.path().into(), dir.path().join("agent"));
    options.tools = selection;
    let kernel = Kernel::boot(options).unwrap();
    let fake = Plugin::new()
        .wire(ScriptedWire(Script::default()))
        .provider(ScriptedProvider);
    for (name, plugin) in [("fake", fake), ("extension", plugin)] {
        let source = pliant_kernel::boot::inline_source(name);
        let generation = InProcess::new(source, plugin).unwrap();
        kernel.registry().publish(Arc::new(generation));
    }
    let session = open_session(&kernel).await;
    let late = InProcess::new(
        pliant_kernel::boot::inline_source("late"),
        Plugin::new().tool(plain("late")).tool(plain("mcp__late")),
    );
    kernel.registry().publish(Arc::new(late.unwrap()));
    let known = session.all_tools().into_iter().map(|tool| tool.spec.name);
    (session.active_tools(), known.collect())
}

#[tokio::test]
async fn what_a_user_does_not_want_is_not_there_for_anybody() {
    // extensions §4.1, interfaces §2
    let plugin = || {
        let script = ToolSpec::new("script", "").exposed(Exposure::Codemode);
        Plugin::new()
            .tool(plain("ls"))
            .tool(plain("read"))
            .tool(named(script))
            .tool(plain("lock"))
    };
    let list = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    let allow = |names: &[&str]| ToolSelection {
        allow: Some(list(names)),
        ..ToolSelection::default()
    };
    let (active, known) = selected(ToolSelection::default(), plugin()).await;
    assert_eq!(active, ["read", "ls", "lock", "late", "mcp__late"]);
    assert_eq!(known, ["ls", "read", "script", "lock", "late", "mcp__late"]);
    let (active, known) = selected(allow(&["read", "l*"]), plugin()).await;
    assert_eq!(active, ["read", "ls", "lock", "late"]);
    assert_eq!(known, ["ls", "read", "lock", "late", "mcp__late"]);
    let without = ToolSelection {
        exclude: list(&["l*", "mcp__*"]),
        ..ToolSelection::default()
    };
    let (active, known) = selected(without, plugin()).await;
    assert_eq!(
        (active, known),
        (list(&["read"]), list(&["read", "script"]))
    );
    let (active, _) = selected(allow(&["+script", "-ls", "-late"]), plugin()).await;
    assert_eq!(active, ["read", "script", "lock", "mcp__late"]);
    let (active, known) = selected(ToolSelection::none(), plugin()).await;
    assert_eq!((active, known), (list(&[]), list(&[])));
}

#[tokio::test]
async fn a_plugin_lists_the_tools_with_what_they_are() {
    // extensions §4.1, §5.3
    let spec = ToolSpec {
        output_schema: Some(json!({"type": "object"})),
        annotations: Some(json!({"readOnlyHint": true})),
        namespace: Some(json!({"name": "group"})),
        ..ToolSpec::new("rich", "")
    };
    let lists = does("lists", |_, ctx| async move {
        let tools = ctx.host().session().tools().await?;
        let rich = tools
            .into_iter()
            .find(|tool| tool.spec.name == "rich")
            .unwrap();
        let json = json!([
            rich.spec.output_schema,
            rich.spec.annotations,
            rich.spec.namespace,
            rich.active,
            rich.source
        ]);
        Ok(ToolResult::text(json.to_string()))
    });
    let plugin = Plugin::new().tool(named(spec)).tool(lists);
    let scene = scene(one_call("lists", json!({})), plugin).await;
    scene.prompt("go").await;
    assert_eq!(
        result_texts(&scene.session)[0].0,
        r#"[{"type":"object"},{"readOnlyHint":true},{"name":"group"},true,"extension"]"#
    );
}

//! What extensions register while they serve, MCP servers, and the folders of resources they name
//! (`extensions.md` §3.1, §4.1, §4.9).

use std::sync::{Arc, Mutex};

use pliant_kernel::registry::{InProcess, Rank, Source};
use pliant_kernel::session::Subscription;
use pliant_kernel::{Kernel, KernelOptions};
use pliant_sdk::command::{Command, CommandCtx, CommandSpec};
use pliant_sdk::late::Late;
use pliant_sdk::mcp::McpServerSpec;
use pliant_sdk::{Error, Event, Plugin};
use serde_json::{Value, json};

use crate::support::*;

/// Registers what `make` makes when `/NAME` is typed.
struct Registers {
    name: &'static str,
    late: Late,
    make: fn(&str) -> Plugin,
}

impl Command for Registers {
    fn spec(&self) -> CommandSpec {
        CommandSpec::new(self.name, "")
    }

    async fn run(&self, args: String, ctx: CommandCtx) -> Result<(), Error> {
        self.late.add(ctx.host(), (self.make)(&args)).await
    }
}

fn registers(name: &'static str, make: fn(&str) -> Plugin) -> Plugin {
    let late = Late::default();
    let command = Registers {
        name,
        late: late.clone(),
        make,
    };
    Plugin::new().command(command).later(&late)
}

fn echo_tool(args: &str) -> Plugin {
    match args {
        "second" => Plugin::new().tool(echo("second")),
        _ => Plugin::new().tool(echo("late")),
    }
}

#[tokio::test]
async fn a_tool_that_is_registered_late_is_told_the_model_with_the_next_request() {
    let script = Script::new([
        calls([("c1", "late", json!({"text": "from the late one"}))]),
        Reply::Text("done"),
    ]);
    let scene = scene(script, registers("add", echo_tool)).await;
    let before = scene.registry.snapshot().number();
    scene.prompt("/add").await;
    scene.prompt("/add second").await;
    // Twice the same is one.
    scene.prompt("/add").await;
    assert_eq!(scene.registry.snapshot().number(), before + 3);
    let active = scene.session.active_tools();
    assert_eq!(&active[active.len() - 2..], ["late", "second"]);
    scene.prompt("use it").await;
    let last = scene.script.requests().pop().unwrap();
    assert!(
        last.contains(&"result:from the late one".to_owned()),
        "{last:?}"
    );
    assert_eq!(scene.registry.snapshot().diagnostics(), [""; 0]);
}

#[tokio::test]
async fn what_was_registered_late_goes_with_its_version() {
    let scene = scene(Script::default(), Plugin::new()).await;
    scene.publish("x", registers("add", echo_tool));
    scene.prompt("/add").await;
    assert!(scene.registry.snapshot().tool("late").is_some());
    scene.publish("x", registers("add", echo_tool));
    assert!(scene.registry.snapshot().tool("late").is_none());
}

#[tokio::test]
async fn a_handler_that_was_left_out_stays_so_when_others_register() {
    // Failures are counted over changes of the registry.
    let plugin = Plugin::new().on_event("message_update", |_, _| async {
        Err::<Value, _>(Error::failed("it fails"))
    });
    let script = Script::new((0..2).map(|_| Reply::Text("one two three four five")));
    let mut scene = scene(script, plugin).await;
    scene.publish("x", registers("add", echo_tool));
    scene.prompt("hi").await;
    let failures = |scene: &mut Scene| scene.errors().join("\n").matches("it fails").count();
    assert_eq!(failures(&mut scene), 3);
    scene.prompt("/add").await;
    scene.prompt("again").await;
    assert_eq!(failures(&mut scene), 0);
}

fn server(name: &str) -> McpServerSpec {
    McpServerSpec::new(name, json!({"command": "serve"})).unwrap()
}

fn late_server(args: &str) -> Plugin {
    Plugin::new().mcp_server(server(args))
}

/// Notes the names it is told of.
fn connector(told: &Arc<Mutex<Vec<String>>>) -> Plugin {
    let told = Arc::clone(told);
    Plugin::new().on_event("mcp_servers_change", move |event, _| {
        let names = event["servers"].as_array().unwrap().iter();
        let names: Vec<&str> = names.map(|one| one["name"].as_str().unwrap()).collect();
        told.lock().unwrap().push(names.join(" "));
        async { Ok(Value::Null) }
    })
}

#[tokio::test]
async fn whoever_connects_servers_is_told_of_those_that_come_later() {
    let told = Arc::default();
    let plugin = connector(&told).mcp_server(server("first"));
    let scene = scene(Script::default(), plugin).await;
    scene.publish("x", registers("add", late_server));
    assert_eq!(told.lock().unwrap().len(), 0);
    scene.prompt("/add second").await;
    scene.prompt("/add second").await;
    scene.prompt("/add third").await;
    // Nobody waits for it.
    while told.lock().unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        *told.lock().unwrap(),
        ["first second", "first second third"]
    );
}

#[tokio::test]
async fn servers_that_nobody_connects_are_told_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = KernelOptions::new(dir.path().to_path_buf(), dir.path().join("agent"));
    let slot: Arc<Mutex<Option<Subscription>>> = Arc::default();
    let kept = Arc::clone(&slot);
    options.opened = Arc::new(move |session| *kept.lock().unwrap() = Some(session.subscribe()));
    let kernel = Kernel::boot(options).unwrap();
    let fake = Plugin::new()
        .wire(ScriptedWire(Script::default()))
        .provider(ScriptedProvider);
    let source = Source::inline("fake", Rank::User);
    let fake = InProcess::new(source, fake).unwrap();
    kernel.registry().publish(Arc::new(fake));
    let said = async |plugin: Plugin| {
        let source = Source::inline("servers", Rank::User);
        let generation = InProcess::new(source, plugin).unwrap();
        kernel.registry().publish(Arc::new(generation));
        let session = open_session(&kernel).await;
        let mut events = slot.lock().unwrap().take().unwrap();
        let mut said = Vec::new();
        while let Ok(event) = events.try_recv() {
            if let Event::ExtensionError { error, .. } = &*event {
                said.push(error.clone());
            }
        }
        session.close("quit").await;
        said
    };
    let alone = said(late_server("docs")).await;
    assert_eq!(alone.len(), 1, "{alone:?}");
    assert!(
        alone[0].contains("nothing connects the MCP server \"docs\""),
        "{alone:?}"
    );
    let connected = connector(&Arc::default()).mcp_server(server("docs"));
    assert_eq!(said(connected).await, [""; 0]);
}

#[tokio::test]
async fn a_server_of_another_extension_with_nearly_the_same_name_is_left_out() {
    let scene = scene(
        Script::default(),
        Plugin::new().mcp_server(server("my-docs")),
    )
    .await;
    scene.publish("x", Plugin::new().mcp_server(server("my_docs")));
    let snapshot = scene.registry.snapshot();
    let names: Vec<&str> = snapshot.mcp_servers().map(|one| &*one.spec.name).collect();
    assert_eq!(names, ["my-docs"]);
    let said = snapshot.diagnostics().join("\n");
    assert!(said.contains("\"my_docs\" of \"x\" is left out"), "{said}");
}

#[tokio::test]
async fn extensions_name_folders_of_skills_and_templates() {
    let dir = tempfile::tempdir().unwrap();
    let skill = dir.path().join("skills/far/SKILL.md");
    std::fs::create_dir_all(skill.parent().unwrap()).unwrap();
    std::fs::write(&skill, "---\ndescription: Far away.\n---\nGo far.").unwrap();
    let template = dir.path().join("greet.md");
    std::fs::write(&template, "Greet $1.").unwrap();
    let answer = json!({
        "skillPaths": [dir.path().join("skills")],
        "promptPaths": [template, "nowhere"],
    });
    let plugin = Plugin::new().on_event("resources_discover", move |event, _| {
        assert_eq!(event["reason"], "startup");
        let answer = answer.clone();
        async move { Ok(answer) }
    });
    let script = Script::new([Reply::Text("hi")]);
    // Skills are told to a model that can read them.
    let scene = scene(script, plugin.tool(echo("read"))).await;
    scene.prompt("/greet you").await;
    assert_eq!(
        scene.script.requests()[0].last().unwrap(),
        "user:Greet you."
    );
    assert!(scene.session.system_prompt().contains("Far away."));
}

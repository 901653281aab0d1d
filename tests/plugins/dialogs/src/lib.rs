//! Fixture: asks and shows everything that a command can, and says what was answered. The script
//! `tests/fixtures/extensions/dialogs.rhai` does the same.

use std::time::Duration;

use pliant_sdk::command::{Command, CommandCtx, CommandSpec};
use pliant_sdk::hook::{ToolCallAnswer, ToolCallEvent};
use pliant_sdk::host::BoxFuture;
use pliant_sdk::plugin::CallCtx;
use pliant_sdk::ui::NotifyType;
use pliant_sdk::{Error, Host, Init, Plugin, Tool, ToolCtx, ToolResult, ToolSpec};

/// What a command does with its arguments.
type Run = fn(String, CommandCtx) -> BoxFuture<'static, Result<(), Error>>;

struct Named(&'static str, Run);

impl Command for Named {
    fn spec(&self) -> CommandSpec {
        CommandSpec::new(self.0, "t")
    }

    async fn run(&self, args: String, ctx: CommandCtx) -> Result<(), Error> {
        (self.1)(args, ctx).await
    }
}

const COMMANDS: [Named; 9] = [
    Named("t-select", |_, ctx| {
        Box::pin(async move {
            let chosen = ctx.ui().select("Pick", &["red", "blue"]).await?;
            say(&ctx, "select", chosen).await
        })
    }),
    Named("t-confirm", |_, ctx| {
        Box::pin(async move {
            let yes = ctx.ui().confirm("Sure?", "Really do it").await?;
            say(&ctx, "confirm", Some(yes.to_string())).await
        })
    }),
    Named("t-input", |_, ctx| {
        Box::pin(async move {
            let typed = ctx.ui().input("Name", Some("type here")).await?;
            say(&ctx, "input", typed).await
        })
    }),
    Named("t-editor", |_, ctx| {
        Box::pin(async move {
            let typed = ctx.ui().editor("Edit", Some("prefilled")).await?;
            say(&ctx, "editor", typed).await
        })
    }),
    Named("t-timeout", |_, ctx| {
        Box::pin(async move {
            let quick = ctx.ui().within(Duration::from_millis(300));
            let chosen = quick.select("Quick", &["a"]).await?;
            say(&ctx, "timeout", chosen).await
        })
    }),
    Named("t-fire", |_, ctx| {
        Box::pin(async move {
            let ui = ctx.ui();
            ui.set_status("k", Some("v")).await?;
            ui.set_widget("w", Some(&["l1", "l2"])).await?;
            ui.set_title("T").await?;
            ui.set_editor_text("E").await
        })
    }),
    Named("t-args", |args, ctx| {
        Box::pin(async move {
            let said = format!("args={args}");
            ctx.ui().notify(&said, NotifyType::Warning).await
        })
    }),
    Named("t-throw", |_, _| {
        Box::pin(async { Err(Error::failed("deliberate")) })
    }),
    Named("t-stop", |_, ctx| {
        Box::pin(async move { ctx.ui().shutdown().await })
    }),
];

async fn say(ctx: &CommandCtx, what: &str, answer: Option<String>) -> Result<(), Error> {
    let said = format!("{what}={}", answer.as_deref().unwrap_or("none"));
    ctx.ui().notify(&said, NotifyType::Info).await
}

/// The arguments.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct TestInput {
    /// Something.
    v: String,
}

struct TestTool;

impl Tool for TestTool {
    type Input = TestInput;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("t_tool", "A test tool")
    }

    async fn execute(&self, input: TestInput, ctx: ToolCtx) -> Result<ToolResult, Error> {
        if input.v == "ask" {
            let answer = ctx.ui().input("What?", None).await?;
            return Ok(ToolResult::text(format!("answered:{answer:?}")));
        }
        Ok(ToolResult::text(format!("t_tool:{}", input.v)))
    }
}

/// Asks before a call whose argument says so.
async fn gate(call: ToolCallEvent, ctx: CallCtx) -> Result<ToolCallAnswer, Error> {
    let is_gated = call.input.get("v").is_some_and(|v| v == "gated");
    if !is_gated || ctx.host().ui().confirm("Run it?", "").await? {
        return Ok(ToolCallAnswer::default());
    }
    Ok(ToolCallAnswer::block("The user said no."))
}

fn create(_host: Host, _init: Init) -> Result<Plugin, Error> {
    let plugin = Plugin::new().tool(TestTool).on(gate);
    Ok(COMMANDS.into_iter().fold(plugin, Plugin::command))
}

pliant_sdk::export! {
    name: "dialogs",
    provides: {
        tool "t_tool",
        hook "tool_call",
        command "t-select",
        command "t-confirm",
        command "t-input",
        command "t-editor",
        command "t-timeout",
        command "t-fire",
        command "t-args",
        command "t-throw",
        command "t-stop",
    },
    create: create,
}

//! Fixture: a tool that calls every service of the host with garbage, in both ways there are, and says
//! what came of it.

use std::future::poll_fn;
use std::task::Poll;

use pliant_sdk::host::{BoxFuture, Host};
use pliant_sdk::{Error, Init, Plugin, Tool, ToolCtx, ToolResult, ToolSpec};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct CallInput {
    /// Services to leave alone: those that end something and ask for nothing.
    but: Vec<String>,
}

struct CallAll;

impl Tool for CallAll {
    type Input = CallInput;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("garbage", "Calls everything with garbage.")
    }

    async fn execute(&self, input: CallInput, ctx: ToolCtx) -> Result<ToolResult, Error> {
        let host = ctx.host();
        let answer = host
            .services()
            .call("host.services", b"null".to_vec())
            .await?;
        let mut names: Vec<String> = serde_json::from_slice(&answer)?;
        names.extend(["", "no.such", "host.services\u{0}"].map(str::to_owned));
        names.retain(|name| !input.but.contains(name));
        let mut said = Vec::new();
        for name in &names {
            for (what, payload) in payloads() {
                let called = outcome(host, host.services().call(name, payload.clone())).await;
                said.push(format!("call {name} {what}: {called}"));
                host.services().notify(name, &payload);
                let opened = outcome(host, host.services().open(name, payload)).await;
                said.push(format!("open {name} {what}: {opened}"));
            }
        }
        Ok(ToolResult::text(said.join("\n")))
    }
}

/// What a service is called with.
fn payloads() -> Vec<(&'static str, Vec<u8>)> {
    let huge = br#"{"ms":18446744073709551615,"path":1e308,"offset":-9223372036854775808,
        "key":99999999999999999999,"name":-1,"command":[],"timeoutMs":1e300}"#;
    let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
    let types =
        br#"{"path":{},"key":[],"name":false,"command":17,"url":null,"text":[null],"message":1}"#;
    vec![
        ("nothing", Vec::new()),
        ("no JSON", b"{\"path\": ".to_vec()),
        ("no text", vec![0xff, 0xfe, 0x00, 0xc0]),
        ("a list", b"[1,null,\"x\"]".to_vec()),
        ("other types", types.to_vec()),
        ("huge numbers", huge.to_vec()),
        ("deep", deep),
        ("1 MB", vec![b'x'; 1 << 20]),
    ]
}

/// The code of an error, `answered`, or `waits` for what has not answered after a while.
async fn outcome<T>(host: &Host, mut call: BoxFuture<'static, Result<T, Error>>) -> String {
    let mut patience = Box::pin(host.sleep_ms(100));
    let ended = poll_fn(|cx| match call.as_mut().poll(cx) {
        Poll::Ready(answer) => Poll::Ready(Some(answer)),
        Poll::Pending => patience.as_mut().poll(cx).map(|_| None),
    });
    match ended.await {
        None => "waits".to_owned(),
        Some(Ok(_)) => "answered".to_owned(),
        Some(Err(error)) if error.message.is_empty() => "an error without words".to_owned(),
        Some(Err(error)) => error.code,
    }
}

fn create(_host: Host, _init: Init) -> Result<Plugin, Error> {
    Ok(Plugin::new().tool(CallAll))
}

pliant_sdk::export! {
    name: "garbage",
    provides: { tool "garbage" },
    create: create,
}

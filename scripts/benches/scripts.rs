//! What a script costs: building the engine, compiling the guide, a hook call.

use std::sync::Arc;

use pliant_kernel::registry::{Generation, Rank};
use pliant_scripts::{Limits, Script, load_extension, shipped_extensions};
use pliant_sdk::Error;
use pliant_sdk::host::{BoxFuture, ByteStream, Host, Services};
use pliant_sdk::plugin::{CallCtx, Caller, Flow, Invocation};

struct None;

impl Services for None {
    fn call(&self, name: &str, _: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        Box::pin(std::future::ready(Err(Error::unsupported(name))))
    }

    fn open(&self, name: &str, _: Vec<u8>) -> BoxFuture<'static, Result<ByteStream, Error>> {
        Box::pin(std::future::ready(Err(Error::unsupported(name))))
    }

    fn notify(&self, _: &str, _: &[u8]) {}
}

impl Caller for None {
    fn cancelled(&self) -> bool {
        false
    }

    fn emit(&self, _: &[u8]) -> Flow {
        Flow::Continue
    }
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all();
    builder.build().expect("a runtime can be built")
}

async fn load(text: &str) -> Arc<dyn Generation> {
    let script = Script {
        name: "bench.rhai".to_owned(),
        path: Option::None,
        text: text.to_owned(),
        rank: Rank::BuiltIn,
    };
    load_extension(script, Arc::new(None), Limits::default())
        .await
        .expect("the script is right")
}

/// Compiling and running the top level of what ships.
#[divan::bench]
fn load_guide(bencher: divan::Bencher) {
    let runtime = runtime();
    let guide = &shipped_extensions()[0];
    bencher.bench(|| runtime.block_on(load(&guide.text)));
}

/// Calls one contribution again and again, with the way to a script thread and back.
fn call(bencher: divan::Bencher, script: &str, op: &str, payload: &[u8]) {
    let runtime = runtime();
    let generation = runtime.block_on(load(script));
    bencher.bench(|| {
        let call = Invocation {
            op: op.to_owned(),
            payload: payload.to_vec(),
            ctx: CallCtx::new(Arc::new(None), Host::from_services(None)),
        };
        runtime.block_on(generation.invoke(0, call))
    });
}

const EVENT: &[u8] = br#"{"toolCallId":"c","toolName":"bash","input":{"command":"ls -la"}}"#;

/// The thread hop and nothing else: the handler does not listen any more, so no closure runs. What
/// another figure has above this one is the call's own.
#[divan::bench]
fn hop(bencher: divan::Bencher) {
    let script = r#"let off = on("tool_call", || ()); off.call();"#;
    call(bencher, script, "tool_call", EVENT);
}

/// A handler without work: the budget is 2 us above the hop.
#[divan::bench]
fn call_empty_hook(bencher: divan::Bencher) {
    call(
        bencher,
        r#"on("tool_result", || ());"#,
        "tool_result",
        EVENT,
    );
}

/// A `tool_call` handler that looks at its event, whose input is read back.
#[divan::bench]
fn call_hook(bencher: divan::Bencher) {
    let script =
        r#"on("tool_call", |event| { if event.input.command == "x" { #{ block: true } } });"#;
    call(bencher, script, "tool_call", EVENT);
}

/// A tool without work: the budget is 5 us above the hop.
#[divan::bench]
fn call_tool(bencher: divan::Bencher) {
    let script = r#"register_tool(#{ name: "t", description: "d", execute: |args| args.text });"#;
    let payload = br#"{"toolCallId":"c","input":{"text":"x"},"cwd":"/"}"#;
    call(bencher, script, "execute", payload);
}

fn main() {
    divan::main();
}

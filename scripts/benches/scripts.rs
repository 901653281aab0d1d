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

/// A `tool_call` handler that looks at its event, with the way to a script thread and back.
#[divan::bench]
fn call_hook(bencher: divan::Bencher) {
    let runtime = runtime();
    let script =
        r#"on("tool_call", |event| { if event.input.command == "x" { #{ block: true } } });"#;
    let generation = runtime.block_on(load(script));
    let payload = br#"{"toolCallId":"c","toolName":"bash","input":{"command":"ls -la"}}"#;
    bencher.bench(|| {
        let call = Invocation {
            op: "tool_call".to_owned(),
            payload: payload.to_vec(),
            ctx: CallCtx::new(Arc::new(None), Host::from_services(None)),
        };
        runtime.block_on(generation.invoke(0, call))
    });
}

fn main() {
    divan::main();
}

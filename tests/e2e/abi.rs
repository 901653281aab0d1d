//! The frozen ABI: a plugin built with the first version of it loads in this build, one of another
//! major version does not, and the fixture plugins are what they say.

use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use pliant_abi::abi_stable::library::lib_header_from_path;
use pliant_abi::abi_stable::std_types::{RErr, ROk, RResult, RSlice, RStr, RVec};
use pliant_abi::abi_stable::type_level::downcasting::TD_Opaque;
use pliant_abi::async_ffi::FfiFuture;
use pliant_abi::{
    ABI_MAJOR, ByteStreamObject, Call, CallCtx, CallCtx_TO, EMIT_CONTINUE, Host, Host_TO,
    HostObject, InstanceObject, MANIFEST_CLOSE, MANIFEST_OPEN, PluginModuleRef, Reply,
};
use pliant_tests::{abi_fixture, fixture_plugin};
use serde_json::{Value, json};

/// A host that answers every call with null.
#[derive(Clone)]
struct Nowhere;

impl Host for Nowhere {
    fn call(&self, _: RStr<'_>, _: RVec<u8>) -> FfiFuture<Reply> {
        FfiFuture::new(async { ROk(RVec::from(&b"null"[..])) })
    }
    fn open(&self, _: RStr<'_>, _: RVec<u8>) -> FfiFuture<RResult<ByteStreamObject, RVec<u8>>> {
        FfiFuture::new(async { RErr(RVec::new()) })
    }
    fn notify(&self, _: RStr<'_>, _: RSlice<'_, u8>) {}
}

impl CallCtx for Nowhere {
    fn cancelled(&self) -> bool {
        false
    }
    fn emit(&self, _: RSlice<'_, u8>) -> u32 {
        EMIT_CONTINUE
    }
    fn host(&self) -> HostObject {
        host()
    }
    fn call_id(&self) -> u64 {
        0
    }
}

fn host() -> HostObject {
    Host_TO::from_value(Nowhere, TD_Opaque)
}

/// Loads a plugin after the layout check; the error is abi_stable's.
fn load(library: &Path) -> Result<PluginModuleRef, String> {
    let header = lib_header_from_path(library).map_err(|error| error.to_string())?;
    header
        .init_root_module::<PluginModuleRef>()
        .map_err(|error| error.to_string())
}

fn create(library: &Path) -> Result<InstanceObject, Value> {
    let module = load(library).expect("the layouts fit");
    let made = module.create()(host(), RSlice::from_slice(b"{}"));
    made.into_result().map_err(|error| parse(&error))
}

fn describe(instance: &InstanceObject) -> Vec<(String, String)> {
    let described = parse(&instance.describe());
    let entries = described
        .as_array()
        .expect("contributions are a list")
        .iter();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    entries
        .map(|entry| (word(&entry["kind"]), word(&entry["name"])))
        .collect()
}

/// Runs an operation that never really waits.
fn invoke(instance: &InstanceObject, id: u32, op: &str, payload: &Value) -> Result<Value, Value> {
    let call = Call {
        contribution: id,
        op: op.into(),
        payload: RVec::from(payload.to_string().into_bytes()),
        ctx: CallCtx_TO::from_value(Nowhere, TD_Opaque),
    };
    let mut running = pin!(instance.invoke(call));
    match running
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(reply) => match reply.into_result() {
            Ok(answer) => Ok(parse(&answer)),
            Err(error) => Err(parse(&error)),
        },
        Poll::Pending => panic!("the call waits for something"),
    }
}

fn execute(instance: &InstanceObject, id: u32, input: &Value) -> Result<Value, Value> {
    invoke(
        instance,
        id,
        "execute",
        &json!({"toolCallId": "t", "input": input}),
    )
}

fn parse(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON crosses the waist")
}

/// The manifest as the loader finds it, without mapping the file.
fn embedded_manifest(library: &Path) -> Value {
    let bytes = std::fs::read(library).expect("the library was built");
    // In a debug build the mark by itself is in the file too.
    let open = format!("{MANIFEST_OPEN}{{");
    let find = |bytes: &[u8], mark: &str| {
        bytes
            .windows(mark.len())
            .position(|window| window == mark.as_bytes())
    };
    let start = find(&bytes, &open).expect("a manifest is embedded") + open.len() - 1;
    let end = find(&bytes[start..], MANIFEST_CLOSE).expect("the manifest ends");
    parse(&bytes[start..start + end])
}

#[test]
fn a_plugin_of_the_first_abi_loads_in_this_build() {
    let library = abi_fixture("first");
    let manifest = embedded_manifest(&library);
    assert_eq!(manifest["abi"], ABI_MAJOR);
    let module = load(&library).expect("the first ABI is this one, or an older one of its line");
    assert_eq!(parse(&module.manifest()()), manifest);

    let instance = create(&library).expect("it starts");
    assert_eq!(
        describe(&instance),
        [("tool".to_owned(), "first".to_owned())]
    );
    let answer = execute(&instance, 0, &json!({})).expect("the tool answers");
    assert_eq!(answer["content"][0]["text"], "the first ABI still answers");
    let refused = invoke(&instance, 0, "prepare", &Value::Null).expect_err("it has one operation");
    assert_eq!(refused["code"], "unsupported");
}

#[test]
fn a_plugin_of_another_major_abi_is_refused_by_manifest_and_by_layout() {
    let library = abi_fixture("other");
    assert_eq!(embedded_manifest(&library)["abi"], ABI_MAJOR + 1);
    assert!(load(&library).is_err());
}

#[test]
fn the_plugin_of_the_sdks_docs_loads() {
    let library = fixture_plugin("hello");
    let provides = &embedded_manifest(&library)["provides"];
    assert_eq!(
        provides[0],
        json!({"kind": "tool", "name": "greet", "env": [null]})
    );
    let hello = create(&library).expect("it starts");
    let answer = execute(&hello, 0, &json!({"name": "you"})).expect("it greets");
    assert_eq!(answer["content"][0]["text"], "Hello, you!");
    let event = json!({"toolName": "greet", "input": {"name": "nobody"}});
    let blocked = invoke(&hello, 1, "handle", &event).expect("the handler answers");
    assert_eq!(blocked["block"], true);
}

#[test]
fn a_panic_anywhere_in_a_plugin_is_an_error_with_its_words() {
    let panics = create(&fixture_plugin("panics")).expect("it starts");
    let said = |answer: Result<Value, Value>, words: &str| {
        let error = answer.expect_err("it panics");
        assert_eq!(error["code"], "panic", "{error}");
        assert!(error["message"].to_string().contains(words), "{error}");
        assert!(error["location"].to_string().contains("lib.rs"), "{error}");
    };
    said(
        execute(&panics, 0, &json!({"place": "execute"})),
        "explode was called",
    );
    said(execute(&panics, 1, &json!({})), "a drop exploded");
    let event = json!({"toolName": "explode", "input": {"place": "hook"}});
    said(invoke(&panics, 2, "handle", &event), "a hook exploded");
    let answer = execute(&panics, 0, &json!({"place": "nowhere"})).expect("it still answers");
    assert_eq!(answer["content"][0]["text"], "nothing exploded");
}

#[test]
fn the_misfit_brings_another_tool_than_it_promised() {
    let library = fixture_plugin("misfit");
    assert_eq!(
        embedded_manifest(&library)["provides"][0]["name"],
        "promised"
    );
    let misfit = create(&library).expect("it starts");
    assert_eq!(
        describe(&misfit),
        [("tool".to_owned(), "brought".to_owned())]
    );
}

//! What the export macro stands on: the manifest in the file, and the glue between the frozen ABI
//! and a [`Plugin`]. Authors use [`crate::export!`] and nothing else of this module.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use pliant_abi::abi_stable::prefix_type::PrefixTypeTrait;
use pliant_abi::abi_stable::std_types::{RErr, ROk, ROption, RResult, RSlice, RStr, RVec};
use pliant_abi::abi_stable::type_level::downcasting::TD_Opaque;
use pliant_abi::async_ffi::{ContextExt, FfiFuture};
use pliant_abi::{
    ABI_JSON, ABI_MINOR, ByteStreamObject, Call, CallCtxObject, EMIT_CONTINUE, EMIT_SLOW,
    HostObject, Instance, Instance_TO, InstanceObject, MANIFEST_CLOSE, MANIFEST_OPEN, PluginModule,
    PluginModuleRef, Reply,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::Error;
use crate::guard;
use crate::host::{BoxFuture, ByteStream, Host, LogLevel, PollBytes, Services, Tasks};
use crate::plugin::{CallCtx, Caller, Flow, Invocation, Plugin};

/// Names that the macro's expansion needs.
#[doc(hidden)]
pub mod abi {
    pub use pliant_abi::abi_stable::library::{
        __call_root_module_loader as call_root_module_loader, CheckTypeLayout, LibHeader,
        RootModuleResult,
    };
    pub use pliant_abi::abi_stable::std_types::{RResult, RSlice, RVec};
    pub use pliant_abi::{HostObject, InstanceObject, PluginModuleRef};
}

/// Exports a plugin: embeds its manifest in the library and makes its entry point.
///
/// `provides` names what the plugin contributes, so that the kernel knows it without running any of
/// its code. A provider also names the environment variables that may hold its key. Handlers are
/// listed as `hook "event_name"`. With `isolation: "process"` at the end the plugin wishes to run in a
/// process of its own, where the user's setting `plugins.isolation` does not say otherwise.
///
/// Two more lines say what the plugin cannot do without, and a pliant that lacks it refuses the plugin in
/// a sentence before any of its code runs: `needs: ["session.append"]` names host services,
/// `kernel: "0.2"` the least version of pliant.
///
/// ```
/// # use pliant_sdk::{Error, Host, Init, Plugin};
/// # fn create(_: Host, _: Init) -> Result<Plugin, Error> { Ok(Plugin::new()) }
/// pliant_sdk::export! {
///     name: "notes",
///     provides: {},
///     create: create,
///     isolation: "process",
///     needs: ["state.get", "state.put"],
///     kernel: "0.1",
/// }
/// ```
#[macro_export]
macro_rules! export {
    (
        name: $name:literal,
        provides: { $( $kind:ident $item:literal $(env $env:literal)* ),* $(,)? },
        create: $create:path
        $(, isolation: $isolation:literal)?
        $(, needs: [ $( $service:literal ),* $(,)? ])?
        $(, kernel: $kernel:literal)? $(,)?
    ) => {
        // The only unsafe code of a plugin: two exported symbols and the promise that the header's
        // constructor answers the module type it names.
        #[allow(unsafe_code)]
        const _: () = {
            const MANIFEST: &str = concat!(
                "\"name\":\"", $name, "\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\",",
                $( "\"isolation\":\"", $isolation, "\",", )?
                $( "\"needs\":[", $( "\"", $service, "\",", )* "null],", )?
                $( "\"kernel\":\"", $kernel, "\",", )?
                "\"provides\":[",
                $( "{\"kind\":\"", stringify!($kind), "\",\"name\":\"", $item, "\",\"env\":[",
                   $( "\"", $env, "\",", )* "null]},", )* "null]"
            );

            // The file is searched for these bytes before it is mapped. An exported symbol is the
            // one thing no linker drops.
            #[unsafe(no_mangle)]
            pub static PLIANT_MANIFEST: [u8; $crate::export::embedded_len(MANIFEST)] =
                $crate::export::embed(MANIFEST);

            extern "C" fn exported_manifest() -> $crate::export::abi::RVec<u8> {
                $crate::export::manifest_of(&PLIANT_MANIFEST)
            }

            extern "C" fn exported_create(
                host: $crate::export::abi::HostObject,
                init: $crate::export::abi::RSlice<'_, u8>,
            ) -> $crate::export::abi::RResult<$crate::export::abi::InstanceObject, $crate::export::abi::RVec<u8>> {
                $crate::export::create(host, init.as_slice(), $create)
            }

            fn exported_module() -> $crate::export::abi::PluginModuleRef {
                $crate::export::module(exported_manifest, exported_create)
            }

            extern "C" fn exported_root_module() -> $crate::export::abi::RootModuleResult {
                $crate::export::abi::call_root_module_loader(exported_module)
            }

            #[unsafe(export_name = "_1as_0lib_1header_0root_bmodule_bloader")]
            pub static HEADER: $crate::export::abi::LibHeader =
                // SAFETY: `exported_root_module` answers the `PluginModuleRef`, the type named here.
                unsafe {
                    $crate::export::abi::LibHeader::from_constructor::<$crate::export::abi::PluginModuleRef>(
                        exported_root_module,
                        $crate::export::abi::CheckTypeLayout::Yes,
                    )
                };
        };
    };
}

const SDK_JSON: &str = concat!(
    ",\"sdk\":\"",
    env!("CARGO_PKG_VERSION"),
    "\",\"panic\":\"unwind\","
);

/// Length of the embedded manifest.
#[doc(hidden)]
#[must_use]
pub const fn embedded_len(manifest: &str) -> usize {
    MANIFEST_OPEN.len()
        + 1
        + ABI_JSON.len()
        + SDK_JSON.len()
        + manifest.len()
        + 1
        + MANIFEST_CLOSE.len()
}

/// The bytes that the macro places in the file: open mark, `{abi…, sdk…, manifest}`, close mark.
#[doc(hidden)]
#[must_use]
pub const fn embed<const N: usize>(manifest: &str) -> [u8; N] {
    let parts = [
        MANIFEST_OPEN,
        "{",
        ABI_JSON,
        SDK_JSON,
        manifest,
        "}",
        MANIFEST_CLOSE,
    ];
    let mut bytes = [0; N];
    let (mut at, mut part) = (0, 0);
    while part < parts.len() {
        let from = parts[part].as_bytes();
        let mut i = 0;
        while i < from.len() {
            bytes[at] = from[i];
            at += 1;
            i += 1;
        }
        part += 1;
    }
    bytes
}

/// The manifest without its marks.
#[doc(hidden)]
#[must_use]
pub fn manifest_of(embedded: &[u8]) -> RVec<u8> {
    let json =
        embedded.get(MANIFEST_OPEN.len()..embedded.len().saturating_sub(MANIFEST_CLOSE.len()));
    RVec::from(json.unwrap_or_default())
}

/// The root module.
#[doc(hidden)]
#[must_use]
pub fn module(
    manifest: extern "C" fn() -> RVec<u8>,
    create: extern "C" fn(HostObject, RSlice<'_, u8>) -> RResult<InstanceObject, RVec<u8>>,
) -> PluginModuleRef {
    PluginModule {
        abi_minor: ABI_MINOR,
        build_info,
        manifest,
        create,
    }
    .leak_into_prefix()
}

extern "C" fn build_info() -> RVec<u8> {
    let info = json!({
        "sdk": env!("CARGO_PKG_VERSION"),
        "debug": cfg!(debug_assertions),
        "panic": if cfg!(panic = "unwind") { "unwind" } else { "abort" },
    });
    RVec::from(info.to_string().into_bytes())
}

/// What a plugin is told when it is created. Paths are absolute.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Init {
    /// Working directory.
    pub cwd: String,
    /// The user's configuration directory.
    pub agent_dir: String,
    /// The plugin's own settings, from `pluginSettings.<name>`.
    pub settings: Value,
}

/// Makes the instance; panics of the author's constructor are errors.
#[doc(hidden)]
pub fn create(
    host: HostObject,
    init: &[u8],
    build: fn(Host, Init) -> Result<Plugin, Error>,
) -> RResult<InstanceObject, RVec<u8>> {
    guard::install_hook();
    let tasks = Arc::new(Tasks::default());
    let services: Arc<dyn Services> = Arc::new(AbiServices(host));
    guard::report_to(&services);
    let host = Host::new(Arc::clone(&services), Arc::clone(&tasks));
    let init = serde_json::from_slice(init).unwrap_or_default();
    match guard::catch(|| build(host, init)).and_then(|built| built) {
        Ok(plugin) => {
            let glue = Glue {
                plugin,
                tasks,
                services,
            };
            ROk(Instance_TO::from_value(glue, TD_Opaque))
        }
        Err(error) => RErr(RVec::from(error.to_bytes())),
    }
}

struct Glue {
    plugin: Plugin,
    tasks: Arc<Tasks>,
    services: Arc<dyn Services>,
}

impl Drop for Glue {
    /// The author's values end here, below abi_stable's destructor, which a panic must not reach.
    fn drop(&mut self) {
        let mut panics = self.plugin.end();
        let tasks = mem::take(&mut self.tasks);
        panics.extend(guard::catch(move || drop(tasks)).err());
        let host = Host::from_shared(Arc::clone(&self.services));
        for error in panics {
            host.log(LogLevel::Error, &format!("the end of the plugin {error}"));
        }
    }
}

impl Glue {
    fn run_control(&self, op: &str, payload: &[u8]) -> Result<Vec<u8>, Error> {
        match op {
            "task.run" => {
                let task: Value = serde_json::from_slice(payload)?;
                let id = task.get("id").and_then(Value::as_u64);
                self.tasks
                    .run(id.ok_or_else(|| Error::invalid("a task needs an id"))?)?;
                Ok(b"null".to_vec())
            }
            _ => self.plugin.run_control(op, payload),
        }
    }
}

impl Instance for Glue {
    fn describe(&self) -> RVec<u8> {
        let described =
            guard::catch(|| serde_json::to_vec(&self.plugin.describe()).unwrap_or_default());
        RVec::from(described.unwrap_or_default())
    }

    fn invoke(&self, call: Call) -> FfiFuture<Reply> {
        let Call {
            contribution,
            op,
            payload,
            ctx,
        } = call;
        let host = Host::new(Arc::new(AbiServices(ctx.host())), Arc::clone(&self.tasks));
        let call = Invocation {
            op: op.into_string(),
            payload: payload.into_vec(),
            ctx: CallCtx::new(Arc::new(AbiCaller(ctx)), host),
        };
        let running = self.plugin.invoke(contribution, call);
        FfiFuture::new(async move { reply(running.await) })
    }

    fn control(&self, op: RStr<'_>, payload: RSlice<'_, u8>) -> Reply {
        reply(
            guard::catch(|| self.run_control(op.as_str(), payload.as_slice()))
                .and_then(|answer| answer),
        )
    }
}

/// An answer as it crosses the border, in either direction.
#[doc(hidden)]
#[must_use]
pub fn reply(answer: Result<Vec<u8>, Error>) -> Reply {
    match answer {
        Ok(bytes) => ROk(RVec::from(bytes)),
        Err(error) => RErr(RVec::from(error.to_bytes())),
    }
}

/// An answer that crossed the border, copied into memory of this side.
///
/// # Errors
/// The one that the other side answered.
#[doc(hidden)]
pub fn unreply(reply: Reply) -> Result<Vec<u8>, Error> {
    match reply {
        ROk(bytes) => Ok(bytes.into_vec()),
        RErr(error) => Err(Error::from_bytes(&error)),
    }
}

struct AbiCaller(CallCtxObject);

impl Caller for AbiCaller {
    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }

    fn emit(&self, payload: &[u8]) -> Flow {
        match self.0.emit(RSlice::from_slice(payload)) {
            EMIT_CONTINUE => Flow::Continue,
            EMIT_SLOW => Flow::Slow,
            _ => Flow::Stop,
        }
    }
}

struct AbiServices(HostObject);

impl Services for AbiServices {
    fn call(&self, service: &str, payload: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        let future = self.0.call(RStr::from_str(service), RVec::from(payload));
        Box::pin(async move { unreply(future.await) })
    }

    fn open(
        &self,
        service: &str,
        payload: Vec<u8>,
    ) -> BoxFuture<'static, Result<ByteStream, Error>> {
        let future = self.0.open(RStr::from_str(service), RVec::from(payload));
        Box::pin(async move {
            match future.await {
                ROk(stream) => Ok(ByteStream::new(AbiStream(stream))),
                RErr(error) => Err(Error::from_bytes(&error)),
            }
        })
    }

    fn notify(&self, service: &str, payload: &[u8]) {
        self.0
            .notify(RStr::from_str(service), RSlice::from_slice(payload));
    }
}

struct AbiStream(ByteStreamObject);

impl PollBytes for AbiStream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
        let polled = cx.with_ffi_context(|cx| self.0.poll_next(cx));
        match polled.try_into_poll() {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(ROption::RNone)) => Poll::Ready(None),
            Ok(Poll::Ready(ROption::RSome(item))) => Poll::Ready(Some(unreply(item))),
            Err(_) => Poll::Ready(Some(Err(Error::failed("the host's stream panicked")))),
        }
    }
}

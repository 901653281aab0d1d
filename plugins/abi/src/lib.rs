//! The frozen waist between the kernel and a native plugin (`plugin-abi.md` §3).
//!
//! Everything that may evolve (events, tool schemas, provider options, services) is JSON in byte
//! vectors; the types here are only the dozen functions that carry those bytes. They are frozen:
//! a plugin built against the first version of this crate loads in every later kernel of the same
//! [`ABI_MAJOR`]. Nothing is appended here while a JSON field or a service name can do.
//!
//! Authors use `pliant-sdk`; only the SDK's export macro and the kernel's loader name these types.
#![allow(clippy::too_many_arguments, missing_debug_implementations)]

use abi_stable::library::RootModule;
use abi_stable::package_version_strings;
use abi_stable::sabi_trait;
use abi_stable::sabi_types::VersionStrings;
use abi_stable::std_types::{RBox, ROption, RResult, RSlice, RStr, RString, RVec};
use async_ffi::{FfiContext, FfiFuture, FfiPoll};

pub use abi_stable;
pub use async_ffi;

/// Breaking generation of the waist. A plugin with another value is refused before it is mapped.
pub const ABI_MAJOR: u32 = 0;

/// Counts compatible appends to the waist; informational, absent methods fall to their defaults.
pub const ABI_MINOR: u32 = 1;

/// [`ABI_MAJOR`] and [`ABI_MINOR`] as members of the embedded manifest.
pub const ABI_JSON: &str = "\"abi\":0,\"abiMinor\":1";

/// Bytes that open the manifest embedded in a plugin's read-only data. The loader searches the
/// *file* for them, so that name, version and ABI are known before any code of the plugin runs.
pub const MANIFEST_OPEN: &str = "\u{1}pliant-manifest\u{2}";

/// Bytes that close the embedded manifest.
pub const MANIFEST_CLOSE: &str = "\u{3}pliant-manifest\u{4}";

/// Result of every call across the waist. Both sides are JSON; the error is
/// `{"code": string, "message": string, "location"?: string}`.
pub type Reply = RResult<RVec<u8>, RVec<u8>>;

/// One item of a [`ByteStream`]: bytes, an error (same shape as in [`Reply`]), or the end.
pub type StreamItem = ROption<Reply>;

/// What a plugin library exports.
#[repr(C)]
#[derive(abi_stable::StableAbi)]
#[sabi(kind(Prefix(prefix_ref = PluginModuleRef)))]
#[sabi(missing_field(option))]
pub struct PluginModule {
    /// [`ABI_MINOR`] of the crate the plugin was built with.
    pub abi_minor: u32,
    /// JSON about the build: compiler, SDK version, panic strategy. For diagnostics only.
    pub build_info: extern "C" fn() -> RVec<u8>,
    /// The manifest, the same JSON that is embedded in the file.
    pub manifest: extern "C" fn() -> RVec<u8>,
    /// Makes the instance. `init` is JSON: `{cwd, agentDir, dataDir, settings}`.
    #[sabi(last_prefix_field)]
    pub create:
        extern "C" fn(host: HostObject, init: RSlice<'_, u8>) -> RResult<InstanceObject, RVec<u8>>,
}

impl RootModule for PluginModuleRef {
    abi_stable::declare_root_module_statics! {PluginModuleRef}
    const BASE_NAME: &'static str = "pliant_plugin";
    const NAME: &'static str = "pliant_plugin";
    const VERSION_STRINGS: VersionStrings = package_version_strings!();
}

/// A living plugin.
#[sabi_trait]
pub trait Instance: Send + Sync {
    /// JSON array of contributions: `{id, kind, name, …}`.
    fn describe(&self) -> RVec<u8>;
    /// Runs one operation of one contribution. Dropping the future cancels it.
    fn invoke(&self, call: Call) -> FfiFuture<Reply>;
    /// Lifecycle operations (`shutdown`, `quiesce`, `export_state`, `import_state`, `task.run`, …).
    /// Unknown operations answer the error code `unsupported`.
    #[sabi(last_prefix_field)]
    fn control(&self, op: RStr<'_>, payload: RSlice<'_, u8>) -> Reply;
}

/// The kernel's handle to a plugin instance.
pub type InstanceObject = Instance_TO<'static, RBox<()>>;

/// One invocation of a contribution.
#[repr(C)]
#[derive(abi_stable::StableAbi)]
pub struct Call {
    /// `id` of the contribution, as listed by [`Instance::describe`].
    pub contribution: u32,
    /// Operation of that kind of contribution, e.g. `execute` of a tool.
    pub op: RString,
    /// JSON argument of the operation.
    pub payload: RVec<u8>,
    /// The caller's side of this call.
    pub ctx: CallCtxObject,
}

/// The caller's side of one invocation.
#[sabi_trait]
pub trait CallCtx: Clone + Send + Sync {
    /// Whether the caller has given up. Cheap enough for inner loops.
    fn cancelled(&self) -> bool;
    /// Pushes JSON to the caller while the call runs. Answers one of the `EMIT_*` numbers.
    fn emit(&self, payload: RSlice<'_, u8>) -> u32;
    /// Services whose effects are attributed to this call and end with it.
    fn host(&self) -> HostObject;
    /// Number of the call, unique in the process.
    #[sabi(last_prefix_field)]
    fn call_id(&self) -> u64;
}

/// The plugin's handle to the caller's side.
pub type CallCtxObject = CallCtx_TO<'static, RBox<()>>;

/// Go on emitting.
pub const EMIT_CONTINUE: u32 = 0;
/// The caller is behind: await `host.call("emit.ready")` before emitting more.
pub const EMIT_SLOW: u32 = 1;
/// The caller no longer listens; stop the work.
pub const EMIT_STOP: u32 = 2;

/// The services the kernel lends to a plugin, addressed by name.
#[sabi_trait]
pub trait Host: Clone + Send + Sync {
    /// One request, one answer. Unknown services answer the error code `unsupported`.
    fn call(&self, service: RStr<'_>, payload: RVec<u8>) -> FfiFuture<Reply>;
    /// Opens a stream of bytes.
    fn open(
        &self,
        service: RStr<'_>,
        payload: RVec<u8>,
    ) -> FfiFuture<RResult<ByteStreamObject, RVec<u8>>>;
    /// Fire and forget, never blocks.
    #[sabi(last_prefix_field)]
    fn notify(&self, service: RStr<'_>, payload: RSlice<'_, u8>);
}

/// A plugin's handle to the host.
pub type HostObject = Host_TO<'static, RBox<()>>;

/// A stream of byte chunks that the reader polls.
#[sabi_trait]
pub trait ByteStream: Send {
    /// Next chunk, error or end. After an error or the end the stream is not polled again.
    #[sabi(last_prefix_field)]
    fn poll_next(&mut self, ctx: &mut FfiContext<'_>) -> FfiPoll<StreamItem>;
}

/// The owner's handle to a stream. Dropping it closes the stream.
pub type ByteStreamObject = ByteStream_TO<'static, RBox<()>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_abi_numbers_are_the_constants() {
        assert_eq!(
            ABI_JSON,
            format!("\"abi\":{ABI_MAJOR},\"abiMinor\":{ABI_MINOR}")
        );
    }

    #[test]
    fn the_symbol_that_the_sdk_exports_is_the_one_the_loader_looks_up() {
        assert_eq!(
            abi_stable::library::ROOT_MODULE_LOADER_NAME,
            "_1as_0lib_1header_0root_bmodule_bloader"
        );
    }
}

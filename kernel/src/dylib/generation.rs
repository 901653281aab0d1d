//! A library as a generation of the registry: loaded at once when its declarations are needed (tools,
//! commands, hooks), on first use when its manifest says enough (wires, providers; G14).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pliant_abi::Call;
use pliant_abi::abi_stable::std_types::{RSlice, RStr, RString, RVec};
use pliant_sdk::export::unreply;
use pliant_sdk::host::BoxFuture;
use pliant_sdk::plugin::Invocation;
use pliant_sdk::{Error, catch};
use serde_json::{Value, json};

use super::child::{ChildLimits, HostProgram, Isolated};
use super::glue::AbiCall;
use super::library::Library;
use super::load::Loaded;
use super::manifest::{FoundPlugin, LoadError, Manifest, Provided};
use super::pulse::Pulse;
use super::runtime::PluginRuntime;
use super::stage::Stage;
use crate::registry::{Contribution, Generation, Kind, MakeServices, Source, Vitals};

/// What every plugin of a process shares.
pub struct PluginHost {
    /// Runs plugin code.
    pub runtime: PluginRuntime,
    /// Keeps the private copies.
    pub stage: Stage,
    /// Makes the services of one source.
    pub services: MakeServices,
    /// Names of the services that there are, in a session or without one.
    pub offers: Vec<&'static str>,
    /// What a plugin of that name is created with ([`pliant_sdk::Init`]).
    pub init: Box<dyn Fn(&str) -> Value + Send + Sync>,
    /// Runs plugins in processes of their own, and tries them out in one.
    pub program: Option<HostProgram>,
    /// Whether a plugin is to run in a process of its own.
    pub isolates: Box<dyn Fn(&FoundPlugin) -> bool + Send + Sync>,
    /// What the process of a plugin of that name may use.
    pub limits: Box<dyn Fn(&str) -> ChildLimits + Send + Sync>,
}

impl fmt::Debug for PluginHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PluginHost")
    }
}

/// Opens a library that was found. One whose declarations are needed is loaded here, and the caller
/// waits for it as long as [`PluginRuntime`] lets a plugin start.
///
/// # Errors
/// When it is loaded now and cannot be.
pub fn open(found: FoundPlugin, host: &Arc<PluginHost>) -> Result<Arc<dyn Generation>, LoadError> {
    found.served_by(&host.offers)?;
    if (host.isolates)(&found) {
        return Ok(Arc::new(Isolated::open(found, host)?));
    }
    let lazy = says_enough(&found.manifest);
    let library = Arc::new(Library::new(found, Arc::clone(host)));
    let contributions = if lazy {
        let provides = library.found.manifest.provides.iter();
        provides.enumerate().map(promise).collect()
    } else {
        Arc::clone(&library.load_now()?.contributions)
    };
    Ok(Arc::new(Dylib {
        library,
        pulse: Arc::default(),
        lazy,
        contributions,
    }))
}

/// Opens a library that has changed: it is loaded in any case, so that a fault shows before it replaces
/// anything.
///
/// # Errors
/// Why it cannot be loaded.
pub async fn reopen(
    found: FoundPlugin,
    host: &Arc<PluginHost>,
) -> Result<Arc<dyn Generation>, LoadError> {
    found.served_by(&host.offers)?;
    if (host.isolates)(&found) {
        return isolated(found, host).await;
    }
    let library = Arc::new(Library::new(found, Arc::clone(host)));
    let loading = Arc::clone(&library);
    let loaded = host.runtime.run(async move { Ok(loading.load().await) });
    let loaded = match loaded.await {
        Ok(loaded) => loaded?,
        Err(error) => return Err(LoadError::create_failed(&library.found, error.to_string())),
    };
    Ok(Arc::new(Dylib {
        contributions: Arc::clone(&loaded.contributions),
        library,
        pulse: Arc::default(),
        lazy: false,
    }))
}

/// Starts a child on a thread that it may hold.
async fn isolated(
    found: FoundPlugin,
    host: &Arc<PluginHost>,
) -> Result<Arc<dyn Generation>, LoadError> {
    let (of_start, found_there) = (Arc::clone(host), found.clone());
    let (tell, told) = tokio::sync::oneshot::channel();
    let start = move || {
        // Who waits may have given up.
        let _ = tell.send(Isolated::open(found_there, &of_start));
    };
    let failed = |cause: String| LoadError::create_failed(&found, cause);
    let begun = host.runtime.blocking(start);
    begun.map_err(|error| failed(error.to_string()))?;
    let opened = told.await;
    let opened = opened.map_err(|_| failed("its start was given up".to_owned()))?;
    Ok(Arc::new(opened?))
}

/// Whether a manifest alone makes everything usable that it names. Of a provider without a variable
/// for its key it does not tell how it is paid, so the declaration is needed.
fn says_enough(manifest: &Manifest) -> bool {
    let enough = |item: &Provided| match item.kind {
        Kind::Wire => true,
        Kind::Provider => !item.env.is_empty(),
        _ => false,
    };
    !manifest.provides.is_empty() && manifest.provides.iter().all(enough)
}

/// A contribution as the manifest promises it; its place in the list is its id until it is loaded.
fn promise((index, provided): (usize, &Provided)) -> Contribution {
    let Provided { kind, name, env } = provided;
    let spec = json!({"name": name, "label": name, "env": env});
    Contribution {
        id: u32::try_from(index).unwrap_or(u32::MAX),
        kind: *kind,
        name: name.clone(),
        spec,
    }
}

struct Dylib {
    library: Arc<Library>,
    pulse: Arc<Pulse>,
    lazy: bool,
    /// As declared, or as promised if the library is lazy.
    contributions: Arc<[Contribution]>,
}

/// The id under which a loaded plugin knows what was promised at that place of its manifest.
fn promised_id(library: &Library, loaded: &Loaded, place: u32) -> Option<u32> {
    let place = usize::try_from(place).ok()?;
    let promised = library.found.manifest.provides.get(place)?;
    let same = |item: &&Contribution| item.kind == promised.kind && item.name == promised.name;
    loaded.contributions.iter().find(same).map(|item| item.id)
}

static NEXT_CALL: AtomicU64 = AtomicU64::new(1);

/// Calls a plugin that is loaded. It is held until the call's future is gone: the future's code is
/// the plugin's.
pub(super) async fn invoke(
    loaded: Arc<Loaded>,
    contribution: u32,
    call: Invocation,
) -> Result<Vec<u8>, Error> {
    let Invocation { op, payload, ctx } = call;
    let id = NEXT_CALL.fetch_add(1, Ordering::Relaxed);
    let services = Arc::clone(ctx.host().services());
    let call = Call {
        contribution,
        op: RString::from(op),
        payload: RVec::from(payload),
        ctx: AbiCall::object(ctx.caller(), services, Arc::clone(&loaded.slot), id),
    };
    let instance = loaded.instance()?;
    let running = catch(|| instance.invoke(call))?;
    unreply(running.await)
}

impl Generation for Dylib {
    fn source(&self) -> &Source {
        &self.library.source
    }

    fn contributions(&self) -> Arc<[Contribution]> {
        Arc::clone(&self.contributions)
    }

    fn invoke(
        &self,
        contribution: u32,
        call: Invocation,
    ) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        let (library, lazy) = (Arc::clone(&self.library), self.lazy);
        let name = self.library.source.name.clone();
        let runtime = self.library.runtime();
        let running = runtime.run_call(&self.pulse, async move {
            let loaded = library.load().await;
            let loaded = loaded.map_err(|error| Error::failed(error.to_string()))?;
            let id = if lazy {
                promised_id(&library, &loaded, contribution)
            } else {
                Some(contribution)
            };
            let id = id.ok_or_else(|| {
                let name = &library.source.name;
                Error::unsupported(&format!("contribution {contribution} of \"{name}\""))
            })?;
            drop(library);
            invoke(loaded, id, call).await
        });
        Box::pin(async move { running.await.map_err(|error| named(error, &name)) })
    }

    fn fault(&self) -> Option<Error> {
        self.pulse.fault(&self.library.source.name)
    }

    fn vitals(&self) -> Vitals {
        Vitals {
            isolation: Some("none".to_owned()),
            ..Vitals::default()
        }
    }

    fn control(&self, op: &str, payload: &[u8]) -> Result<Vec<u8>, Error> {
        let Some(loaded) = self.library.loaded() else {
            // Nothing was started, so there is nothing to tell.
            return Err(Error::unsupported(&format!("the operation \"{op}\"")));
        };
        let (op, payload) = (RStr::from_str(op), RSlice::from_slice(payload));
        let instance = loaded.instance()?;
        catch(|| unreply(instance.control(op, payload)))?
    }

    fn retire(&self) {
        self.library.retire();
    }
}

/// A panic is reported with its owner's name.
fn named(mut error: Error, plugin: &str) -> Error {
    if error.is(pliant_sdk::error::code::PANIC) {
        error.message = format!("the plugin \"{plugin}\" {}", error.message);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(provides: Value, waits_for_first_use: bool) {
        let manifest = json!({"name": "x", "version": "1.0.0", "abi": 0, "provides": provides});
        let manifest: Manifest = serde_json::from_value(manifest).unwrap();
        assert_eq!(says_enough(&manifest), waits_for_first_use, "{provides}");
    }

    /// G14, and `providers.md`: whether a provider is keyless is in its declaration only.
    #[test]
    fn only_wires_and_providers_with_a_key_variable_wait_for_their_first_use() {
        let wire = json!({"kind": "wire", "name": "w", "env": [null]});
        let keyed = json!({"kind": "provider", "name": "p", "env": ["P_KEY", null]});
        let keyless = json!({"kind": "provider", "name": "local", "env": [null]});
        let tool = json!({"kind": "tool", "name": "t", "env": [null]});
        check(json!([wire, keyed, null]), true);
        check(json!([wire, keyed, keyless, null]), false);
        check(json!([wire, tool, null]), false);
        check(json!([null]), false);
    }
}

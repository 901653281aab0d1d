//! A library as a generation of the registry: loaded at once when its declarations are needed (tools,
//! commands, hooks), on first use when its manifest says enough (wires, providers; G14).

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use pliant_abi::abi_stable::std_types::{RSlice, RStr, RString, RVec};
use pliant_abi::{Call, InstanceObject};
use pliant_sdk::host::BoxFuture;
use pliant_sdk::plugin::Invocation;
use pliant_sdk::{Error, catch};
use serde_json::{Value, json};

use super::glue::{AbiCall, AbiHost, InstanceSlot, parse, unreply};
use super::load::load;
use super::manifest::{FoundPlugin, LoadError, Manifest, Provided};
use super::runtime::PluginRuntime;
use super::stage::Stage;
use crate::registry::{Contribution, Generation, Kind, MakeServices, Source};

/// What every plugin of a process shares.
pub struct PluginHost {
    /// Runs plugin code.
    pub runtime: PluginRuntime,
    /// Keeps the private copies.
    pub stage: Stage,
    /// Makes the services of one source.
    pub services: MakeServices,
    /// What a plugin of that name is created with ([`pliant_sdk::Init`]).
    pub init: Box<dyn Fn(&str) -> Value + Send + Sync>,
}

impl fmt::Debug for PluginHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PluginHost")
    }
}

/// Opens a library that was found.
///
/// # Errors
/// When it is loaded now and cannot be.
pub fn open(found: FoundPlugin, host: &Arc<PluginHost>) -> Result<Arc<dyn Generation>, LoadError> {
    let lazy = found
        .manifest
        .provides
        .iter()
        .all(|item| matches!(item.kind, Kind::Wire | Kind::Provider));
    let source = Source {
        name: found.manifest.name.clone(),
        path: Some(found.path.clone()),
        rank: found.rank,
    };
    let generation = Dylib {
        source,
        found,
        host: Arc::clone(host),
        loaded: OnceLock::new(),
        promised: Vec::new(),
    };
    if lazy {
        let promised = generation
            .found
            .manifest
            .provides
            .iter()
            .enumerate()
            .map(promise)
            .collect();
        return Ok(Arc::new(Dylib {
            promised,
            ..generation
        }));
    }
    generation.loaded().map_err(Clone::clone)?;
    Ok(Arc::new(generation))
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
    source: Source,
    found: FoundPlugin,
    host: Arc<PluginHost>,
    loaded: OnceLock<Result<Loaded, LoadError>>,
    promised: Vec<Contribution>,
}

struct Loaded {
    instance: Arc<InstanceObject>,
    slot: InstanceSlot,
    contributions: Vec<Contribution>,
}

impl Dylib {
    fn loaded(&self) -> Result<&Loaded, &LoadError> {
        self.loaded.get_or_init(|| self.load()).as_ref()
    }

    fn load(&self) -> Result<Loaded, LoadError> {
        let slot = InstanceSlot::default();
        let services = (self.host.services)(&self.source);
        let init = serde_json::to_vec(&(self.host.init)(&self.source.name)).unwrap_or_default();
        let instance = load(
            &self.found,
            &self.host.stage,
            AbiHost::object(services, Arc::clone(&slot)),
            &init,
        )?;
        let instance = Arc::new(instance);
        // Set once, right here.
        let _ = slot.set(Arc::downgrade(&instance));
        let described = instance.describe().into_vec();
        let contributions =
            described_as_promised(&self.found.manifest, &described).map_err(|cause| {
                let Manifest { name, .. } = self.found.manifest.clone();
                LoadError::Misfit {
                    name,
                    path: shown(&self.found.path),
                    cause,
                }
            })?;
        tracing::debug!(target: "pliant::dylib", plugin = %self.source.name, "loaded");
        Ok(Loaded {
            instance,
            slot,
            contributions,
        })
    }

    /// The id under which the loaded plugin knows a contribution.
    fn real_id(&self, loaded: &Loaded, contribution: u32) -> Option<u32> {
        if self.promised.is_empty() {
            return Some(contribution);
        }
        let promised = self.promised.get(usize::try_from(contribution).ok()?)?;
        let same = |item: &&Contribution| item.kind == promised.kind && item.name == promised.name;
        loaded.contributions.iter().find(same).map(|item| item.id)
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// The contributions, if they are exactly the ones the manifest names.
fn described_as_promised(
    manifest: &Manifest,
    described: &[u8],
) -> Result<Vec<Contribution>, String> {
    let Ok(Value::Array(entries)) = parse(described) else {
        return Err("its description is not a list".to_owned());
    };
    let contributions = Contribution::parse_all(entries).map_err(|error| error.to_string())?;
    let mut real: Vec<_> = contributions
        .iter()
        .map(|item| (item.kind, item.name.as_str()))
        .collect();
    let mut promised: Vec<_> = manifest
        .provides
        .iter()
        .map(|item| (item.kind, item.name.as_str()))
        .collect();
    // Several handlers of one event are one line of the manifest.
    real.sort_by_key(|(kind, name)| (format!("{kind:?}"), *name));
    promised.sort_by_key(|(kind, name)| (format!("{kind:?}"), *name));
    real.dedup();
    promised.dedup();
    let only_in = |these: &[(Kind, &str)], those: &[(Kind, &str)], what: &str| {
        let names = these.iter().filter(|item| !those.contains(item));
        names
            .map(|(kind, name)| {
                format!(
                    "the {} \"{name}\" is {what}",
                    format!("{kind:?}").to_lowercase()
                )
            })
            .collect::<Vec<_>>()
    };
    let mut differences = only_in(&real, &promised, "not listed");
    differences.extend(only_in(&promised, &real, "listed but missing"));
    if !differences.is_empty() {
        return Err(differences.join(", "));
    }
    Ok(contributions)
}

static NEXT_CALL: AtomicU64 = AtomicU64::new(1);

impl Generation for Dylib {
    fn source(&self) -> &Source {
        &self.source
    }

    fn contributions(&self) -> &[Contribution] {
        if !self.promised.is_empty() {
            return &self.promised;
        }
        self.loaded()
            .map(|loaded| loaded.contributions.as_slice())
            .unwrap_or_default()
    }

    fn invoke(
        &self,
        contribution: u32,
        call: Invocation,
    ) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        let loaded = match self.loaded() {
            Ok(loaded) => loaded,
            Err(error) => return failed(Error::failed(error.to_string())),
        };
        let Some(contribution) = self.real_id(loaded, contribution) else {
            return failed(Error::unsupported(&format!(
                "contribution {contribution} of \"{}\"",
                self.source.name
            )));
        };
        let Invocation { op, payload, ctx } = call;
        let id = NEXT_CALL.fetch_add(1, Ordering::Relaxed);
        let services = Arc::clone(ctx.host().services());
        let abi_ctx = AbiCall::object(ctx.caller(), services, Arc::clone(&loaded.slot), id);
        let call = Call {
            contribution,
            op: RString::from(op),
            payload: RVec::from(payload),
            ctx: abi_ctx,
        };
        let instance = Arc::clone(&loaded.instance);
        let name = self.source.name.clone();
        let running = self.host.runtime.run(async move {
            // The instance is held until the future is gone: the future's code is the plugin's.
            let answer = match catch(|| instance.invoke(call)) {
                Ok(future) => unreply(future.await),
                Err(error) => Err(error),
            };
            drop(instance);
            answer
        });
        Box::pin(async move { running.await.map_err(|error| named(error, &name)) })
    }

    fn control(&self, op: &str, payload: &[u8]) -> Result<Vec<u8>, Error> {
        match self.loaded.get() {
            Some(Ok(loaded)) => catch(|| {
                unreply(
                    loaded
                        .instance
                        .control(RStr::from_str(op), RSlice::from_slice(payload)),
                )
            })?,
            // Nothing was started, so there is nothing to tell.
            _ => Err(Error::unsupported(&format!("the operation \"{op}\""))),
        }
    }
}

fn failed(error: Error) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
    Box::pin(std::future::ready(Err(error)))
}

/// A panic is reported with its owner's name.
fn named(mut error: Error, plugin: &str) -> Error {
    if error.is(pliant_sdk::error::code::PANIC) {
        error.message = format!("the plugin \"{plugin}\" {}", error.message);
    }
    error
}

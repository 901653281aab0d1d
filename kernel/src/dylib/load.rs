//! From a found file to a living instance: private copy, header, two-way layout check, creation,
//! description. The only unsafe code of the kernel.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use pliant_abi::abi_stable::StableAbi;
use pliant_abi::abi_stable::abi_stability::abi_checking::check_layout_compatibility;
use pliant_abi::abi_stable::library::{LibHeader, lib_header_from_path};
use pliant_abi::abi_stable::std_types::{RErr, ROk, RSlice, RStr};
use pliant_abi::{HostObject, InstanceObject, PluginModuleRef};
use pliant_sdk::host::Services;
use pliant_sdk::state::SHUTDOWN;
use pliant_sdk::{Error, catch};

use super::child::probe;
use super::endings::Endings;
use super::generation::PluginHost;
use super::glue::{AbiHost, InstanceSlot};
use super::manifest::{FoundPlugin, LoadError, read_manifest};
use super::stage::StagedCopy;
use crate::registry::{Contribution, Rank, Source, until};

/// A plugin that runs.
pub(super) struct Loaded {
    /// There until it ends.
    instance: Option<Arc<InstanceObject>>,
    pub(super) slot: InstanceSlot,
    pub(super) contributions: Arc<[Contribution]>,
    endings: Endings,
}

impl Drop for Loaded {
    /// Its last call has ended: it is told so and ends, on a thread that it may hold.
    fn drop(&mut self) {
        let Some(instance) = self.instance.take() else {
            return;
        };
        self.endings.begin(move || {
            // A plugin that does not know the operation has nothing to do.
            let _ =
                catch(|| instance.control(RStr::from_str(SHUTDOWN), RSlice::from_slice(b"null")));
            drop(instance);
        });
    }
}

impl Loaded {
    /// Its code.
    pub(super) fn instance(&self) -> Result<&InstanceObject, Error> {
        self.instance.as_deref().ok_or_else(Error::cancelled)
    }

    /// What it says it contributes, as it says it.
    pub(super) fn described(&self) -> Result<Vec<u8>, Error> {
        Ok(self.instance()?.describe().into_vec())
    }

    /// Loads a private copy of the library and creates its instance. Runs the plugin's code, so it
    /// may never return; what the process shares is let go of before.
    pub(super) fn start(
        source: &Source,
        found: &FoundPlugin,
        host: Arc<PluginHost>,
        retired: Arc<AtomicBool>,
    ) -> Result<Self, LoadError> {
        let begun = Instant::now();
        let copy = host.stage.copy(&found.path)?;
        let copy_us = micros(begun.elapsed());
        compare(found, &copy)?;
        // What ships was tried out before.
        if found.rank != Rank::BuiltIn && !copy.is_proven() {
            probe(found, &copy, &host)?;
            copy.prove();
        }
        let services = (host.services)(source);
        let endings = host.runtime.endings();
        let init = serde_json::to_vec(&(host.init)(&source.name)).unwrap_or_default();
        drop(host);
        let took_us = micros(begun.elapsed());
        tracing::debug!(target: "pliant::dylib", plugin = %source.name, copy_us, took_us, "copied and tried out");
        let mut loaded = Self::from_copy(found, copy, services, &init, retired)?;
        loaded.endings = endings;
        Ok(loaded)
    }

    /// The same from a copy that nobody writes to. What the plugin was created with ends when `retired`
    /// is set, or with it.
    pub(super) fn from_copy(
        found: &FoundPlugin,
        copy: StagedCopy,
        services: Arc<dyn Services>,
        init: &[u8],
        retired: Arc<AtomicBool>,
    ) -> Result<Self, LoadError> {
        let begun = Instant::now();
        let module = checked(found, copy)?;
        let mapped = Instant::now();
        let slot = InstanceSlot::default();
        let instance = Arc::clone(&slot);
        // What the plugin was created with is its own for as long as it is there.
        let services = until(services, move || {
            let is_gone = |it: &Weak<InstanceObject>| it.strong_count() == 0;
            retired.load(Ordering::Acquire) || instance.get().is_some_and(is_gone)
        });
        let host = AbiHost::object(services, Arc::clone(&slot));
        let created = create(module, host, init).map_err(|cause| {
            // Whatever its code has begun is nobody's.
            let _ = slot.set(Weak::new());
            LoadError::create_failed(found, cause)
        });
        let instance = Arc::new(created?);
        // Set once, right here.
        let _ = slot.set(Arc::downgrade(&instance));
        let contributions = found.contributions(&instance.describe())?.into();
        let end = Instant::now();
        tracing::debug!(
            target: "pliant::dylib",
            plugin = %found.manifest.name,
            took_us = micros(end - begun),
            check_us = micros(mapped - begun),
            create_us = micros(end - mapped),
            "loaded"
        );
        Ok(Self {
            instance: Some(instance),
            slot,
            contributions,
            endings: Endings::default(),
        })
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Whether a copy is what was found: until it was copied, a build may have written to the file.
pub(super) fn compare(found: &FoundPlugin, copy: &StagedCopy) -> Result<(), LoadError> {
    let changed = |cause: &str| Err(LoadError::changed(found, cause));
    match read_manifest(copy.path()) {
        Ok(manifest) if manifest == found.manifest => Ok(()),
        Ok(_) => changed("its manifest is another one now"),
        Err(LoadError::NotALibrary { cause, .. }) => changed(&cause),
        Err(_) => changed("it has no manifest that fits any more"),
    }
}

/// Maps a copy, if it fits.
fn checked(found: &FoundPlugin, copy: StagedCopy) -> Result<PluginModuleRef, LoadError> {
    let refused = |cause: String| LoadError::Refused {
        name: found.manifest.name.clone(),
        path: found.path.display().to_string(),
        cause,
    };
    // Per file, never `RootModule::load_*`: that keeps one module per type for the whole process.
    let header = lib_header_from_path(copy.path())
        .map_err(|error| refused(last_block(&error.to_string())))?;
    checked_module(header).map_err(refused)
}

/// abi_stable accepts a plugin that knows more than the host and refuses one that knows less; pliant
/// wants both, so either direction of the layout check is enough (`plugin-abi.md` §4). The version
/// check that goes missing with it was made on the manifest.
fn checked_module(header: &'static LibHeader) -> Result<PluginModuleRef, String> {
    let ours = <PluginModuleRef as StableAbi>::LAYOUT;
    let theirs = header.layout().ok_or("its header carries no layout")?;
    let newer = check_layout_compatibility(ours, theirs);
    if let Err(mismatch) = newer {
        check_layout_compatibility(theirs, ours).map_err(|_| last_block(&mismatch.to_string()))?;
    }
    // SAFETY: the layouts were found compatible in one direction above. Absent root fields read as
    // `None` and absent trait methods run their defaults, which is what the prefix types are for.
    let module = unsafe { header.unchecked_layout::<PluginModuleRef>() };
    module.map_err(|error| last_block(&error.to_string()))
}

/// Layout errors are up to 200 KB of text; the last block names the place.
fn last_block(text: &str) -> String {
    tracing::debug!(target: "pliant::dylib", "{text}");
    let block = text.trim().rsplit("\n\n").next().unwrap_or_default();
    let line = block.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(300).collect()
}

fn create(
    module: PluginModuleRef,
    host: HostObject,
    init: &[u8],
) -> Result<InstanceObject, String> {
    match module.create()(host, RSlice::from_slice(init)) {
        ROk(instance) => Ok(instance),
        RErr(error) => Err(Error::from_bytes(&error).to_string()),
    }
}

//! From a staged file to a living instance: header, two-way layout check, creation. The only unsafe
//! code of the kernel.
#![allow(unsafe_code)]

use pliant_abi::abi_stable::StableAbi;
use pliant_abi::abi_stable::abi_stability::abi_checking::check_layout_compatibility;
use pliant_abi::abi_stable::library::{LibHeader, lib_header_from_path};
use pliant_abi::abi_stable::std_types::{RErr, ROk, RSlice};
use pliant_abi::{HostObject, InstanceObject, PluginModuleRef};
use pliant_sdk::Error;

use super::manifest::{FoundPlugin, LoadError};
use super::stage::Stage;

/// Loads a private copy of the library and creates its instance.
pub(super) fn load(
    found: &FoundPlugin,
    stage: &Stage,
    host: HostObject,
    init: &[u8],
) -> Result<InstanceObject, LoadError> {
    let (name, path) = (
        found.manifest.name.clone(),
        found.path.display().to_string(),
    );
    let refused = |cause: String| LoadError::Refused {
        name: name.clone(),
        path: path.clone(),
        cause,
    };
    let copy = stage.copy(&found.path)?;
    // Per file, never `RootModule::load_*`: that keeps one module per type for the whole process.
    let header = lib_header_from_path(copy.path())
        .map_err(|error| refused(last_block(&error.to_string())))?;
    drop(copy);
    let module = checked_module(header).map_err(refused)?;
    match module.create()(host, RSlice::from_slice(init)) {
        ROk(instance) => Ok(instance),
        RErr(error) => {
            let cause = Error::from_bytes(&error).to_string();
            Err(LoadError::CreateFailed {
                name: found.manifest.name.clone(),
                path: found.path.display().to_string(),
                cause,
            })
        }
    }
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

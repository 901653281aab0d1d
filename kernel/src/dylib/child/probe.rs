//! Trying a library out before it is loaded here (`plugin-abi.md` §5.3): a throw-away child loads it,
//! creates its plugin and lets it describe itself. What would have ended this process is a sentence then.

use std::sync::Arc;

use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::{BoxFuture, ByteStream, Services};

use super::guest::Start;
use super::host::Child;
use super::isolated::start_failed;
use crate::dylib::generation::PluginHost;
use crate::dylib::manifest::{FoundPlugin, LoadError};
use crate::dylib::stage::StagedCopy;
use crate::registry::Contribution;

/// Loads a copy in a child, answers what it contributes, and ends the child. Holds the caller's thread.
/// Without a program to run as a child nothing is tried.
///
/// # Errors
/// Why the library must not be loaded.
pub(in crate::dylib) fn probe(
    found: &FoundPlugin,
    copy: &StagedCopy,
    host: &PluginHost,
) -> Result<Option<Vec<Contribution>>, LoadError> {
    let Some(program) = &host.program else {
        return Ok(None);
    };
    let name = &found.manifest.name;
    let start = Start {
        copy: copy.path().to_owned(),
        init: (host.init)(name),
        limits: (host.limits)(name),
        tries: true,
    };
    let runtime = host.runtime.threads();
    let runtime = runtime.map_err(|error| LoadError::create_failed(found, error.to_string()))?;
    let services: Arc<dyn Services> = Arc::new(TriedOut);
    let limit = host.runtime.start_limit();
    let started = Child::start(name, program, &start, services, &runtime, limit);
    let (_child, described) = started.map_err(|why| start_failed(found, host, why))?;
    found.contributions(&described).map(Some)
}

/// What a plugin gets that is only tried out: nothing that could be seen outside.
struct TriedOut;

fn refused(service: &str) -> Error {
    let message = format!(
        "{service} is not there while the plugin is tried out. What it needs at its start it has to do without."
    );
    Error::new(code::UNAVAILABLE, message)
}

impl Services for TriedOut {
    fn call(&self, service: &str, _: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        Box::pin(std::future::ready(Err(refused(service))))
    }

    fn open(&self, service: &str, _: Vec<u8>) -> BoxFuture<'static, Result<ByteStream, Error>> {
        Box::pin(std::future::ready(Err(refused(service))))
    }

    fn notify(&self, _: &str, _: &[u8]) {}
}

//! `read_file(path)` answers the text, `list_dir(path)` a list of `#{name, kind}` sorted by name.
//! Relative paths are the session's. Changing files is for tools, which take the file's lock.

use pliant_sdk::Error;
use pliant_sdk::host::{DirEntry, Host};
use rhai::{Dynamic, Engine};

use crate::call::{Call, ScriptResult};
use crate::convert;
use crate::engine::MAX_STRING;

pub(super) fn install(engine: &mut Engine) {
    engine.register_fn("read_file", read_file);
    engine.register_fn("list_dir", list_dir);
}

fn read_file(path: &str) -> ScriptResult<String> {
    let call = Call::current()?;
    let bytes = call.wait(read(call.host(), path))?;
    Ok(super::text_within_limit(&bytes))
}

async fn read(host: &Host, path: &str) -> Result<Vec<u8>, Error> {
    let named = |mut error: Error| {
        error.message = format!("{path}: {}", error.message);
        error
    };
    let mut stream = host.read(path, 0).await.map_err(named)?;
    stream.read_to_end(MAX_STRING).await.map_err(named)
}

fn list_dir(path: &str) -> ScriptResult<Dynamic> {
    let call = Call::current()?;
    let mut entries: Vec<DirEntry> = call.wait(call.host().list(path))?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    convert::to_dynamic(entries)
}

//! `exec(program, arguments, #{cwd, timeout, env, max_buffer})`: runs a program without a shell and answers
//! `#{stdout, stderr, code, killed, truncated}` (`extensions.md` §5.3).

use std::collections::BTreeMap;

use pliant_sdk::Error;
use pliant_sdk::host::{ExecRequest, Host, ProcessEvent};
use rhai::{Array, Engine, Map};
use serde::Deserialize;

use crate::call::{Call, ScriptResult};
use crate::convert;
use crate::engine::MAX_STRING;

/// Exit code of a program that could not be started, or whose output was cut.
const NOT_OK: i64 = 1;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Options {
    cwd: String,
    timeout: Option<u64>,
    env: BTreeMap<String, String>,
    max_buffer: Option<usize>,
}

/// The host joins both outputs in the order they come, so all of it is in `stdout`; `stderr` says
/// why a program could not be started.
#[derive(Default)]
struct Outcome {
    output: Vec<u8>,
    reason: String,
    code: i64,
    killed: bool,
    truncated: bool,
}

pub(super) fn install(engine: &mut Engine) {
    engine.register_fn("exec", |program: &str, arguments: Array| {
        exec(program, &arguments, Map::new())
    });
    engine.register_fn("exec", |program: &str, arguments: Array, options: Map| {
        exec(program, &arguments, options)
    });
}

fn exec(program: &str, arguments: &Array, options: Map) -> ScriptResult<Map> {
    let call = Call::current()?;
    let known = ["cwd", "timeout", "env", "max_buffer"];
    let Options {
        cwd,
        timeout,
        env,
        max_buffer,
    } = super::options("exec", options, &known)?;
    // A script cannot hold a longer string.
    let most = max_buffer.map_or(MAX_STRING, |most| most.min(MAX_STRING));
    let mut argv = vec![program.to_owned()];
    argv.extend(arguments.iter().map(convert::display));
    let request = ExecRequest {
        argv,
        cwd,
        env: env.into_iter().collect(),
        timeout_ms: timeout,
        ..ExecRequest::default()
    };
    let outcome = call.wait(async { Ok(run(call.host(), &request, most).await) })?;
    Ok(outcome.into_map(most))
}

/// A failure of the program or its start is an outcome.
async fn run(host: &Host, request: &ExecRequest, most: usize) -> Outcome {
    let mut outcome = Outcome::default();
    if let Err(error) = collect(host, request, most, &mut outcome).await {
        outcome.reason = error.message;
        outcome.code = NOT_OK;
    }
    outcome
}

/// Takes output until the end, or until there is more than `most` bytes of it.
async fn collect(
    host: &Host,
    request: &ExecRequest,
    most: usize,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let mut process = host.exec(request).await?;
    loop {
        match process.next().await? {
            ProcessEvent::Output(piece) => {
                outcome.output.extend_from_slice(&piece);
                if outcome.output.len() > most {
                    // Dropping the process kills it.
                    outcome.truncated = true;
                    outcome.killed = true;
                    outcome.code = NOT_OK;
                    return Ok(());
                }
            }
            ProcessEvent::Exit(exit) => {
                outcome.killed = exit.timed_out;
                outcome.code = match exit.code.map_or(NOT_OK, i64::from) {
                    // It was killed, and may have answered the signal by ending well.
                    0 if exit.timed_out => NOT_OK,
                    code => code,
                };
                return Ok(());
            }
        }
    }
}

impl Outcome {
    fn into_map(mut self, most: usize) -> Map {
        self.output.truncate(most);
        let stdout = super::text_within_limit(&self.output);
        Map::from([
            ("stdout".into(), stdout.into()),
            ("stderr".into(), self.reason.into()),
            ("code".into(), self.code.into()),
            ("killed".into(), self.killed.into()),
            ("truncated".into(), self.truncated.into()),
        ])
    }
}

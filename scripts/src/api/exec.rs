//! `exec(program, arguments, #{cwd, timeout, env})`: runs a program without a shell and answers
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
    let Options { cwd, timeout, env } =
        super::options("exec", options, &["cwd", "timeout", "env"])?;
    let mut argv = vec![program.to_owned()];
    argv.extend(arguments.iter().map(convert::display));
    let request = ExecRequest {
        argv,
        cwd,
        env: env.into_iter().collect(),
        timeout_ms: timeout,
        ..ExecRequest::default()
    };
    let outcome = call.wait(async { Ok(run(call.host(), &request).await) })?;
    Ok(outcome.into_map())
}

/// A failure of the program or its start is an outcome.
async fn run(host: &Host, request: &ExecRequest) -> Outcome {
    let mut outcome = Outcome::default();
    if let Err(error) = collect(host, request, &mut outcome).await {
        outcome.reason = error.message;
        outcome.code = NOT_OK;
    }
    outcome
}

async fn collect(host: &Host, request: &ExecRequest, outcome: &mut Outcome) -> Result<(), Error> {
    let mut process = host.exec(request).await?;
    loop {
        match process.next().await? {
            ProcessEvent::Output(piece) => {
                outcome.output.extend_from_slice(&piece);
                if outcome.output.len() > MAX_STRING {
                    // Dropping the process kills it.
                    outcome.truncated = true;
                    outcome.killed = true;
                    outcome.code = NOT_OK;
                    return Ok(());
                }
            }
            ProcessEvent::Exit(exit) => {
                outcome.killed = exit.timed_out;
                outcome.code = exit.code.map_or(NOT_OK, i64::from);
                return Ok(());
            }
        }
    }
}

impl Outcome {
    fn into_map(mut self) -> Map {
        self.output.truncate(MAX_STRING);
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

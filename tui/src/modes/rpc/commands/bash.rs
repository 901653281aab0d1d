//! Commands of the user. Their output is told as it comes, under the id of the command.

use pliant_kernel::session::BashOptions;
use serde_json::json;

use super::{Answer, Call, Entry, long, quick, said};
use crate::modes::rpc::request::Data;

pub(super) const COMMANDS: &[Entry] = &[
    long("bash", |call| Box::pin(bash(call))),
    quick("abort_bash", |call| {
        Box::pin(async move {
            call.session().abort_bash();
            Ok(Data::none())
        })
    }),
];

async fn bash(call: Call) -> Answer {
    let line: String = call.fields().required("command")?;
    let options = BashOptions {
        id: call.command.id(),
        exclude_from_context: call
            .fields()
            .optional("excludeFromContext")?
            .unwrap_or_default(),
    };
    let result = call.session().execute_bash(&line, options).await;
    let result = result.map_err(said)?;
    let mut data = json!({
        "output": result.output,
        "cancelled": result.cancelled,
        "truncated": result.truncated,
    });
    if let Some(code) = result.exit_code {
        data["exitCode"] = json!(code);
    }
    if let Some(path) = result.full_output_path {
        data["fullOutputPath"] = json!(path);
    }
    Data::of(&data)
}

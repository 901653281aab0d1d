//! Compaction, and whether it and the retry of failed requests happen by themselves.

use super::{Answer, Call, Entry, long, quick, said};
use crate::modes::rpc::request::Data;

pub(super) const COMMANDS: &[Entry] = &[
    long("compact", |call| Box::pin(compact(call))),
    quick("set_auto_compaction", |call| {
        Box::pin(async move {
            let on = call.fields().required("enabled")?;
            let session = call.session();
            session.set_auto_compaction(on).await.map_err(said)?;
            Ok(Data::none())
        })
    }),
    quick("set_auto_retry", |call| {
        Box::pin(async move {
            let on = call.fields().required("enabled")?;
            let session = call.session();
            session.set_auto_retry(on).await.map_err(said)?;
            Ok(Data::none())
        })
    }),
];

async fn compact(call: Call) -> Answer {
    let focus: Option<String> = call.fields().optional("customInstructions")?;
    let result = call.session().compact(focus.as_deref()).await;
    Data::of(&result.map_err(said)?)
}

//! What waits, and how it is delivered.

use pliant_kernel::session::Delivery;
use pliant_kernel::settings::QueueMode;
use serde_json::json;

use super::{Answer, Call, Entry, quick, said};
use crate::modes::rpc::request::Data;

pub(super) const COMMANDS: &[Entry] = &[
    quick("clear_queue", |call| {
        Box::pin(async move {
            let (steering, follow_up) = call.session().clear_queue().await;
            Data::of(&json!({"steering": steering, "followUp": follow_up}))
        })
    }),
    quick("set_steering_mode", |call| {
        Box::pin(set_mode(call, Delivery::Steer))
    }),
    quick("set_follow_up_mode", |call| {
        Box::pin(set_mode(call, Delivery::FollowUp))
    }),
];

async fn set_mode(call: Call, queue: Delivery) -> Answer {
    let word: String = call.fields().required("mode")?;
    let mode: QueueMode = serde_json::from_value(json!(word))
        .map_err(|_| format!("The mode \"{word}\" is neither \"all\" nor \"one-at-a-time\"."))?;
    call.session()
        .keep_queue_mode(queue, mode)
        .await
        .map_err(said)?;
    Ok(Data::none())
}

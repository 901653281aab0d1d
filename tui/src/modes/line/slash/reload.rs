//! Loading plugins and scripts anew.

use pliant_kernel::Runtime;

use super::{Outcome, Said, Slash};

pub(super) const RELOAD: Slash = Slash {
    name: "reload",
    takes: "",
    about: "Load plugins and scripts anew, as they are now.",
    run: |runtime, _| Box::pin(reload(runtime)),
};

/// What changed is in an event.
async fn reload(runtime: &Runtime) -> Outcome {
    let report = runtime.session().reload().await;
    let report = report.map_err(|error| error.to_string())?;
    Ok(match report.says_something() {
        true => Said::Nothing,
        false => Said::Text("Nothing is loaded that could be reloaded.\n".to_owned()),
    })
}

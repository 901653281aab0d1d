//! How full the context is (V15).

use pliant_sdk::session::ContextUsage;

use super::Session;
use crate::compaction;
use crate::run;

impl Session {
    /// Tokens of the next request, and what part of the window they fill. `None` without a model, and
    /// where its window is not known. After a compaction the tokens are unknown until a model has answered.
    pub async fn context_usage(&self) -> Option<ContextUsage> {
        self.model()?;
        let context_window = run::limits(&self.0).await.context_window;
        let tokens = compaction::known_tokens(&self.0.tree());
        (context_window > 0).then(|| ContextUsage {
            tokens,
            context_window,
            percent: tokens.map(|tokens| percent(tokens, context_window)),
        })
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "token counts are far below 2^53"
)]
fn percent(tokens: u64, window: u64) -> f64 {
    tokens as f64 / window as f64 * 100.0
}

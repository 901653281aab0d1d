//! The model and the settings of requests as a run sees them.

use std::sync::Arc;

use pliant_sdk::host::BoxFuture;
use pliant_sdk::provider::StreamOptions;
use pliant_sdk::{Error, Model};
use tokio_util::sync::CancellationToken;

use crate::compaction::CompactionSettings;
use crate::models::ModelClient;
use crate::run::{ModelHost, RetryPolicy, Selection};
use crate::session::{Shared, lock};

impl ModelHost for Arc<Shared> {
    fn client(&self) -> &ModelClient {
        &self.equipment.client
    }

    fn selection(&self) -> Selection {
        let state = lock(&self.state);
        Selection {
            model: state.model.clone().unwrap_or_default(),
            level: state.level,
        }
    }

    fn record_selection(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.refresh_model().await?;
            Shared::record_selection(self)
        })
    }

    fn find_model(&self, reference: String) -> BoxFuture<'_, Option<Model>> {
        let catalog = &self.equipment.catalog;
        Box::pin(async move { catalog.by_reference(&reference).await.ok()? })
    }

    fn usable(&self, provider: &str) -> bool {
        self.equipment.catalog.usable(provider)
    }

    /// `retry.provider.*` and the idle limit (`providers.md` §7.1, §7.5).
    fn stream_options(&self) -> StreamOptions {
        let settings = self.equipment.settings.now();
        let environment = self.equipment.host.environment();
        let retry = |key: &str| settings.count(&format!("retry.provider.{key}"));
        StreamOptions {
            timeout_ms: retry("timeoutMs").or(settings.http_idle_timeout_ms()),
            max_retries: retry("maxRetries").and_then(|count| u32::try_from(count).ok()),
            max_retry_delay_ms: retry("maxRetryDelayMs"),
            thinking_budgets: settings.thinking_budgets().cloned(),
            cache_retention: environment.cache_retention().map(str::to_owned),
            ..StreamOptions::default()
        }
    }

    fn images_blocked(&self) -> bool {
        let settings = self.equipment.settings.now();
        settings
            .get("images.blockImages")
            .as_bool()
            .unwrap_or(false)
    }

    fn retry_policy(&self) -> RetryPolicy {
        let settings = self.equipment.settings.now();
        let count = |key: &str| settings.count(&format!("retry.{key}"));
        let default = RetryPolicy::default();
        RetryPolicy {
            enabled: settings.is_on("retry.enabled").unwrap_or(true),
            max_retries: count("maxRetries")
                .and_then(|count| u32::try_from(count).ok())
                .unwrap_or(default.max_retries),
            base_delay_ms: count("baseDelayMs").unwrap_or(default.base_delay_ms),
            max_delay_ms: count("maxAgentDelayMs").unwrap_or(default.max_delay_ms),
        }
    }

    fn begin_retry_wait(&self) -> CancellationToken {
        Shared::begin_retry_wait(self)
    }

    fn compaction_settings(&self, model: &Model) -> Result<CompactionSettings, Error> {
        CompactionSettings::of(&self.equipment.settings.now(), model)
    }

    fn branch_summary_reserve(&self) -> Option<u64> {
        self.equipment
            .settings
            .now()
            .count("branchSummary.reserveTokens")
    }
}

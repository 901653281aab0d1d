//! What plugins and providers are served with: whose key goes to whom, where copies are kept, what a
//! plugin learns at its start.

use std::path::PathBuf;
use std::sync::Arc;

use pliant_sdk::host::{BoxFuture, Host, NoServices};
use pliant_sdk::plugin::CallCtx;
use pliant_sdk::{Error, Model};
use serde::Deserialize;
use serde_json::{Value, json};

use super::KernelOptions;
use crate::dylib::{ChildLimits, FoundPlugin, PluginHost, PluginRuntime, Stage};
use crate::host::{HostServices, KeyRequest, Snapshots};
use crate::models::{Credentials, ModelAsker};
use crate::registry::{FlagValues, Kind, MakeServices, Rank, Registry, Snapshot};
use crate::settings::LiveSettings;

/// The services of this process, with the keys that the plugins found and the user's files name.
pub(super) fn host_services(
    options: &KernelOptions,
    settings: &Arc<LiveSettings>,
    registry: &Arc<Registry>,
    credentials: &Arc<Credentials>,
    found: &[FoundPlugin],
    flags: &Arc<FlagValues>,
) -> Arc<HostServices> {
    let mut keys: Vec<String> = found
        .iter()
        .flat_map(|plugin| &plugin.manifest.provides)
        .flat_map(|item| item.env.clone())
        .collect();
    keys.extend(credentials.variables());
    // Weak: the registry holds the plugins, which hold the services that hold this.
    let (of_flags, flags) = (Arc::downgrade(registry), Arc::clone(flags));
    let flag = move |source: &str, name: &str| match of_flags.upgrade() {
        Some(registry) => flags.of_source(&registry.snapshot(), source, name),
        None => Value::Null,
    };
    let (registry, credentials) = (Arc::downgrade(registry), Arc::clone(credentials));
    let key = move |request: KeyRequest| -> BoxFuture<'static, Result<Option<String>, Error>> {
        let KeyRequest { source, provider } = request;
        let snapshot = registry.upgrade().map(|registry| registry.snapshot());
        let may = snapshot
            .as_ref()
            .is_some_and(|snapshot| may_use_key(snapshot, &source, &provider));
        let env =
            snapshot.and_then(|snapshot| Some(snapshot.provider(&provider)?.spec.env.clone()));
        let credentials = Arc::clone(&credentials);
        Box::pin(async move {
            if !may {
                return Err(Error::failed(format!(
                    "\"{source}\" asked for the key of \"{provider}\", which only wires and that provider's own source may use."
                )));
            }
            credentials.key(&provider, &env.unwrap_or_default()).await
        })
    };
    let services = HostServices::new(
        Arc::clone(settings),
        options.environment.clone(),
        options.cwd.clone(),
        keys,
        Box::new(key),
        Box::new(flag),
    );
    let home = options.resources.home.clone();
    let snapshots = Snapshots::new(options.agent_dir.join("checkpoints"), home);
    let services = services.keeping_state_in(options.agent_dir.join("state"));
    Arc::new(services.keeping_snapshots(snapshots))
}

/// A key goes into requests of wires, and of the source that registered the provider.
fn may_use_key(snapshot: &Snapshot, source: &str, provider: &str) -> bool {
    let mut all = snapshot
        .sources()
        .iter()
        .filter(|generation| generation.source().name == source);
    all.any(|generation| {
        generation.contributions().iter().any(|item| {
            item.kind == Kind::Wire || (item.kind == Kind::Provider && item.name == provider)
        })
    })
}

/// What it takes to try a plugin out, and no more: it gets no services.
pub(super) fn checking_host(options: &KernelOptions, settings: Arc<LiveSettings>) -> PluginHost {
    let lend: MakeServices = Arc::new(|_| Arc::new(NoServices));
    host_with(options, &settings, lend)
}

/// What every plugin of this process shares.
pub(super) fn plugin_host(
    options: &KernelOptions,
    settings: &Arc<LiveSettings>,
    host: &Arc<HostServices>,
) -> PluginHost {
    let host = Arc::clone(host);
    let lend: MakeServices = Arc::new(move |source| host.for_source(source, None));
    host_with(options, settings, lend)
}

fn host_with(
    options: &KernelOptions,
    settings: &Arc<LiveSettings>,
    services: MakeServices,
) -> PluginHost {
    let (of_isolation, of_limits) = (Arc::clone(settings), Arc::clone(settings));
    let settings = Arc::clone(settings);
    let shown = |path: &PathBuf| path.to_string_lossy().into_owned();
    let (cwd, agent_dir) = (shown(&options.cwd), shown(&options.agent_dir));
    PluginHost {
        runtime: PluginRuntime::default(),
        stage: Stage::new(
            options.agent_dir.join("cache").join("plugins"),
            std::env::temp_dir(),
        ),
        services,
        offers: crate::host::names()
            .chain(crate::session::service_names())
            .collect(),
        init: Box::new(move |name| {
            let own = settings.now().get("pluginSettings").get(name).cloned();
            json!({"cwd": cwd, "agentDir": agent_dir, "settings": own})
        }),
        program: options.plugin_host.clone(),
        isolates: isolates(options, &of_isolation),
        limits: Box::new(move |name| {
            let own = of_limits.now().get("plugins.limits").get(name).cloned();
            own.and_then(|own| ChildLimits::deserialize(own).ok())
                .unwrap_or_default()
        }),
    }
}

/// Which plugins run in processes of their own: as the settings say, else as the command line says of all
/// that do not ship, else as the plugin wishes.
pub(super) fn isolates(
    options: &KernelOptions,
    settings: &Arc<LiveSettings>,
) -> Box<dyn Fn(&FoundPlugin) -> bool + Send + Sync> {
    let (settings, all) = (Arc::clone(settings), options.isolate);
    Box::new(move |plugin| {
        let name = &plugin.manifest.name;
        let settings = settings.now();
        match settings
            .get("plugins.isolation")
            .get(name)
            .and_then(Value::as_str)
        {
            Some(said) => said == "process",
            None if all => plugin.rank != Rank::BuiltIn,
            None => plugin.manifest.isolation == "process",
        }
    })
}

/// Asks a provider for its models by its operation `models`.
pub(super) fn model_asker(host: Arc<HostServices>) -> ModelAsker {
    Box::new(move |provider| {
        let services = provider.lend(host.for_source(provider.source(), None));
        Box::pin(async move {
            let ctx = CallCtx::answer_only(Host::from_shared(services));
            provider
                .invoke::<Vec<Model>>("models", &json!(null), ctx)
                .await
        })
    })
}

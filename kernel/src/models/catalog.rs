//! Which models there are: what providers say, with `models.json` laid over it. Providers are asked
//! only when somebody wants to know, so a run that names its provider touches no other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use pliant_sdk::host::BoxFuture;
use pliant_sdk::provider::ProviderSpec;
use pliant_sdk::virtual_model::VirtualModelSpec;
use pliant_sdk::{Error, Model};

use super::credentials::Credentials;
use super::custom::CustomModels;
use crate::registry::{Rank, Registered, Registry};

/// Asks a registered provider for its models; the kernel knows how a call is made.
pub type ModelAsker = Box<
    dyn Fn(Arc<Registered<ProviderSpec>>) -> BoxFuture<'static, Result<Vec<Model>, Error>>
        + Send
        + Sync,
>;

/// The models of all providers.
pub struct Catalog {
    registry: Arc<Registry>,
    custom: ArcSwap<CustomModels>,
    credentials: Arc<Credentials>,
    ask: ModelAsker,
    found: Mutex<Found>,
}

/// Models that were looked up by name, as long as the registry is the one they were found in.
#[derive(Default)]
struct Found {
    registry: u64,
    models: HashMap<String, Model>,
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalog")
            .field("custom", &self.custom.load().providers.keys())
            .finish_non_exhaustive()
    }
}

impl Catalog {
    /// Over a registry.
    #[must_use]
    pub fn new(
        registry: Arc<Registry>,
        custom: CustomModels,
        credentials: Arc<Credentials>,
        ask: ModelAsker,
    ) -> Self {
        Self {
            registry,
            custom: ArcSwap::from_pointee(custom),
            credentials,
            ask,
            found: Mutex::default(),
        }
    }

    /// What is wrong with `models.json`, in a sentence.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        self.custom.load().error.clone()
    }

    /// Lays another `models.json` over what providers say, from the next request on.
    pub fn replace_custom(&self, custom: CustomModels) {
        self.custom.store(Arc::new(custom));
        // Whoever keeps a model looks again when the registry is another one.
        self.registry.look_again();
    }

    /// Provider ids: those of `models.json` first, then the registered ones.
    #[must_use]
    pub fn providers(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.custom.load().providers.keys().cloned().collect();
        let snapshot = self.registry.snapshot();
        let registered = snapshot.providers().map(|provider| &provider.spec.name);
        let listed = snapshot.virtual_models().map(|model| &model.spec.provider);
        for id in registered.chain(listed) {
            if !ids.contains(id) {
                ids.push(id.clone());
            }
        }
        ids
    }

    /// Whether requests with that selection, `provider/id`, are routed to other models.
    #[must_use]
    pub fn is_virtual(&self, reference: &str) -> bool {
        self.registry.snapshot().virtual_model(reference).is_some()
    }

    /// Whether requests to the provider can be paid for.
    #[must_use]
    pub fn usable(&self, provider: &str) -> bool {
        let snapshot = self.registry.snapshot();
        match snapshot.provider(provider) {
            Some(registered) => {
                registered.spec.keyless
                    || self.credentials.configured(provider, &registered.spec.env)
            }
            None => match self.custom.load().providers.get(provider) {
                // A server of the user's own may want no key at all.
                Some(custom) => {
                    custom.api_key.is_none() || self.credentials.configured(provider, &[])
                }
                // Whoever answers for a virtual model is paid by itself.
                None => {
                    let mut listed = snapshot.virtual_models();
                    listed.any(|model| model.spec.provider == provider)
                }
            },
        }
    }

    /// Whether the provider is registered as working without a key.
    #[must_use]
    pub fn keyless(&self, provider: &str) -> bool {
        self.registry
            .snapshot()
            .provider(provider)
            .is_some_and(|registered| registered.spec.keyless)
    }

    /// The key of the command line is that of this provider.
    pub fn give_key_to(&self, provider: &str) {
        self.credentials.give_to(provider);
    }

    /// Environment variables that may hold the provider's key.
    #[must_use]
    pub fn key_variables(&self, provider: &str) -> Vec<String> {
        self.registry
            .snapshot()
            .provider(provider)
            .map(|p| p.spec.env.clone())
            .unwrap_or_default()
    }

    /// The models of one provider; problems with single definitions beside them.
    ///
    /// # Errors
    /// When the provider cannot be asked.
    pub async fn models(&self, provider: &str) -> Result<(Vec<Model>, Vec<String>), Error> {
        let base = self.listed(provider).await?;
        let (mut models, problems) = match self.custom.load().providers.get(provider) {
            Some(custom) => custom.apply(provider, base),
            None => (base, Vec::new()),
        };
        let snapshot = self.registry.snapshot();
        let of_provider =
            |model: &&Arc<Registered<VirtualModelSpec>>| model.spec.provider == provider;
        // A virtual model hides a physical one of the same name.
        for hiding in snapshot.virtual_models().filter(of_provider) {
            models.retain(|model| model.id != hiding.spec.model_id);
            models.push(hiding.spec.model());
        }
        Ok((models, problems))
    }

    /// The model of that name, a virtual one included.
    ///
    /// # Errors
    /// When its provider cannot be asked.
    pub async fn find(&self, provider: &str, id: &str) -> Result<Option<Model>, Error> {
        let snapshot = self.registry.snapshot();
        let mut listed = snapshot.virtual_models();
        let is_changed = self.custom.load().providers.contains_key(provider)
            || listed.any(|model| model.spec.provider == provider);
        if is_changed {
            let models = self.models(provider).await?.0;
            return Ok(models.into_iter().find(|model| model.id == id));
        }
        // One after the other, the last first: a wire that has no part in it need not be loaded.
        let mut failed = None;
        let mut sources: Vec<_> = snapshot.provider_sources(provider).cloned().collect();
        while let Some(source) = sources.pop() {
            match self.listed_by(source).await {
                Ok(models) => {
                    if let Some(model) = models.into_iter().find(|model| model.id == id) {
                        return Ok(Some(model));
                    }
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(None), Err)
    }

    /// The models of a provider as its sources know them, by id if those are several.
    async fn listed(&self, provider: &str) -> Result<Vec<Model>, Error> {
        let snapshot = self.registry.snapshot();
        let sources: Vec<_> = snapshot.provider_sources(provider).cloned().collect();
        let several = sources.len() > 1;
        let mut models: Vec<Model> = Vec::new();
        for source in sources {
            models.extend(self.listed_by(source).await?);
        }
        if several {
            models.sort_by(|one, other| one.id.cmp(&other.id));
            models.dedup_by(|one, other| one.id == other.id);
        }
        Ok(models)
    }

    async fn listed_by(&self, source: Arc<Registered<ProviderSpec>>) -> Result<Vec<Model>, Error> {
        match source.spec.models.is_empty() {
            true => (self.ask)(source).await,
            false => Ok(named(&source.spec)),
        }
    }

    /// The model of that reference, `provider/id`. Both parts may hold slashes; the longest provider
    /// counts. A provider is asked once, because requests that are routed want to know each time.
    ///
    /// # Errors
    /// When a provider cannot be asked.
    pub async fn by_reference(&self, reference: &str) -> Result<Option<Model>, Error> {
        let registry = self.registry.snapshot().number();
        let known = {
            let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            if found.registry != registry {
                *found = Found {
                    registry,
                    models: HashMap::new(),
                };
            }
            found.models.get(reference).cloned()
        };
        if known.is_some() {
            return Ok(known);
        }
        let model = self.look_up(reference).await?;
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = &model
            && found.registry == registry
        {
            found.models.insert(reference.to_owned(), model.clone());
        }
        Ok(model)
    }

    async fn look_up(&self, reference: &str) -> Result<Option<Model>, Error> {
        let mut named = self.providers();
        named.retain(|provider| {
            let rest = reference.strip_prefix(provider.as_str());
            rest.is_some_and(|rest| rest.starts_with('/'))
        });
        named.sort_by_key(|provider| std::cmp::Reverse(provider.len()));
        for provider in named {
            let id = &reference[provider.len() + 1..];
            if let Some(model) = self.find(&provider, id).await? {
                return Ok(Some(model));
            }
        }
        Ok(None)
    }

    /// The models that can be paid for. What ships with pliant for those who have none is among them
    /// only where there are no others.
    ///
    /// # Errors
    /// When there are none, and a provider cannot be asked.
    pub async fn available(&self) -> Result<Vec<Model>, Error> {
        let mut usable = self.providers();
        usable.retain(|id| self.usable(id));
        let (stand_ins, others): (Vec<_>, Vec<_>) =
            usable.into_iter().partition(|id| self.stands_in(id));
        match self.models_of(&others).await {
            Ok(available) if available.is_empty() => self.models_of(&stand_ins).await,
            // Better one of those than nothing because of somebody else's code.
            Err(error) => match self.models_of(&stand_ins).await {
                Ok(available) if !available.is_empty() => Ok(available),
                _ => Err(error),
            },
            available => available,
        }
    }

    /// The models of several providers. One that cannot be asked keeps no others away.
    ///
    /// # Errors
    /// When there are none, and one of them cannot be asked.
    pub(super) async fn models_of(&self, providers: &[String]) -> Result<Vec<Model>, Error> {
        let (mut all, mut failure) = (Vec::new(), None);
        for provider in providers {
            match self.models(provider).await {
                Ok((models, _)) => all.extend(models),
                Err(error) => {
                    tracing::warn!(target: "pliant::models", %provider, %error, "cannot be asked for its models");
                    failure.get_or_insert(error);
                }
            }
        }
        match failure.filter(|_| all.is_empty()) {
            Some(error) => Err(error),
            None => Ok(all),
        }
    }

    /// Whether the provider is there for those who have no other.
    fn stands_in(&self, provider: &str) -> bool {
        let snapshot = self.registry.snapshot();
        let registered = snapshot.provider(provider);
        registered.is_some_and(|registered| {
            registered.spec.keyless && registered.source().rank == Rank::BuiltIn
        })
    }
}

/// Models given with a registration may leave out what the registration says.
fn named(spec: &ProviderSpec) -> Vec<Model> {
    let fill = |mut model: Model| {
        let defaults = [
            (&mut model.provider, &spec.name),
            (
                &mut model.api,
                if spec.api.is_empty() {
                    &spec.name
                } else {
                    &spec.api
                },
            ),
            (&mut model.base_url, &spec.base_url),
        ];
        for (field, default) in defaults {
            if field.is_empty() {
                field.clone_from(default);
            }
        }
        if model.name.is_empty() {
            model.name.clone_from(&model.id);
        }
        model
    };
    spec.models.iter().cloned().map(fill).collect()
}

//! One immutable view of everything registered, with the precedence rules applied.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use indexmap::IndexMap;
use pliant_sdk::Error;
use pliant_sdk::autocomplete::AutocompleteSpec;
use pliant_sdk::command::CommandSpec;
use pliant_sdk::flag::FlagSpec;
use pliant_sdk::host::{BoxFuture, Services};
use pliant_sdk::mcp::McpServerSpec;
use pliant_sdk::plugin::{CallCtx, Invocation};
use pliant_sdk::provider::ProviderSpec;
use pliant_sdk::shortcut::{self, ShortcutSpec};
use pliant_sdk::tool::ToolSpec;
use pliant_sdk::virtual_model::VirtualModelSpec;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::generation::{Contribution, Generation, Kind, Rank, Source};
use super::hook::{BUS_PREFIX, HandlerSpec, HookPoint};
use super::lifetime::{Tenure, with_generation, with_tenure};

/// A registered thing and the generation that runs it.
pub struct Registered<S> {
    /// Its declaration.
    pub spec: S,
    id: u32,
    generation: Arc<dyn Generation>,
    tenure: Arc<Tenure>,
    /// Failures in a row, where these are counted.
    pub(super) strikes: AtomicU32,
}

impl<S: fmt::Debug> fmt::Debug for Registered<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered")
            .field("source", &self.source().name)
            .field("spec", &self.spec)
            .finish()
    }
}

impl<S> Registered<S> {
    /// Who brought it.
    #[must_use]
    pub fn source(&self) -> &Source {
        self.generation.source()
    }

    /// Lends services to the code of this: they end when its generation is replaced or withdrawn.
    #[must_use]
    pub fn lend(&self, services: Arc<dyn Services>) -> Arc<dyn Services> {
        with_tenure(services, &self.tenure)
    }

    /// Lends services to a call that goes on to its end also when its generation is replaced meanwhile:
    /// they end when nothing runs any more.
    #[must_use]
    pub fn lend_to_call(&self, services: Arc<dyn Services>) -> Arc<dyn Services> {
        with_generation(services, &self.generation)
    }

    /// Whether both are the same thing of the same load of their source.
    fn is(&self, other: &Self) -> bool {
        self.id == other.id && Arc::ptr_eq(&self.tenure, &other.tenure)
    }

    /// Why its owner takes no calls at present. Whoever calls all the same is answered with that.
    #[must_use]
    pub fn fault(&self) -> Option<Error> {
        self.generation.fault()
    }

    /// Runs an operation; JSON in and out as bytes.
    pub fn invoke_bytes(
        &self,
        op: &str,
        payload: Vec<u8>,
        ctx: CallCtx,
    ) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        self.generation.invoke(
            self.id,
            Invocation {
                op: op.to_owned(),
                payload,
                ctx,
            },
        )
    }

    /// Runs an operation with typed JSON both ways.
    ///
    /// # Errors
    /// What the source reports, or `invalid` when its answer has another shape.
    pub async fn invoke<R: DeserializeOwned>(
        &self,
        op: &str,
        payload: &impl Serialize,
        ctx: CallCtx,
    ) -> Result<R, Error> {
        let answer = self
            .invoke_bytes(op, serde_json::to_vec(payload)?, ctx)
            .await?;
        serde_json::from_slice(&answer).map_err(|error| {
            let name = &self.source().name;
            Error::invalid(format!(
                "\"{name}\" answered \"{op}\" with something else than asked for: {error}"
            ))
        })
    }
}

/// A generation, for as long as it is registered.
#[derive(Clone)]
pub struct Served {
    generation: Arc<dyn Generation>,
    tenure: Arc<Tenure>,
}

impl Served {
    pub(super) fn new(generation: Arc<dyn Generation>) -> Self {
        Self {
            generation,
            tenure: Arc::default(),
        }
    }

    /// The generation, also beyond that.
    #[must_use]
    pub fn generation(&self) -> &Arc<dyn Generation> {
        &self.generation
    }

    /// It is registered no more.
    pub(super) fn end(&self) {
        self.tenure.end();
        self.generation.retire();
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.tenure, &other.tenure)
    }
}

impl std::ops::Deref for Served {
    type Target = dyn Generation;

    fn deref(&self) -> &Self::Target {
        &*self.generation
    }
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Served").field(self.source()).finish()
    }
}

/// Everything registered at one moment.
#[derive(Default)]
pub struct Snapshot {
    number: u64,
    sources: Vec<Served>,
    tools: IndexMap<String, Arc<Registered<ToolSpec>>>,
    wires: HashMap<String, Arc<Registered<()>>>,
    providers: IndexMap<String, Arc<Registered<ProviderSpec>>>,
    /// By provider: what ships with pliant and serves it over another wire than the first does.
    shared: HashMap<String, Vec<Arc<Registered<ProviderSpec>>>>,
    virtual_models: IndexMap<String, Arc<Registered<VirtualModelSpec>>>,
    commands: IndexMap<String, Arc<Registered<CommandSpec>>>,
    flags: IndexMap<String, Arc<Registered<FlagSpec>>>,
    hooks: HashMap<String, Vec<Arc<Registered<HandlerSpec>>>>,
    shortcuts: IndexMap<String, Arc<Registered<ShortcutSpec>>>,
    displays: Displays,
    autocompletes: Vec<Arc<Registered<AutocompleteSpec>>>,
    mcp_servers: IndexMap<String, Arc<Registered<McpServerSpec>>>,
    diagnostics: Vec<String>,
}

/// Who shows what in place of the front end.
#[derive(Default)]
struct Displays {
    /// By the type of the message.
    messages: HashMap<String, Arc<Registered<()>>>,
    /// By the type of the entry.
    entries: HashMap<String, Arc<Registered<()>>>,
    /// In the order in which they are asked.
    tools: Vec<Arc<Registered<()>>>,
    /// In the order in which they change the text.
    markdown: Vec<Arc<Registered<()>>>,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sources: Vec<_> = self.sources.iter().map(|s| &s.source().name).collect();
        f.debug_struct("Snapshot")
            .field("number", &self.number)
            .field("sources", &sources)
            .finish_non_exhaustive()
    }
}

impl Snapshot {
    /// Applies the precedence rules to sources in load order.
    #[must_use]
    pub fn build(number: u64, sources: Vec<Served>) -> Self {
        let mut snapshot = Self {
            number,
            ..Self::default()
        };
        let mut commands = Vec::new();
        for generation in &sources {
            snapshot.add_tools(generation);
            for item in generation.contributions().iter() {
                match item.kind {
                    Kind::Tool => {}
                    Kind::Wire => {
                        let first = snapshot.wires.get(&item.name);
                        if first.is_none_or(|first| yields(first.source(), generation.source())) {
                            let wire = registered(generation, item, ());
                            snapshot.wires.insert(item.name.clone(), wire);
                        }
                    }
                    Kind::Provider => {
                        if let Some(new) = snapshot.spec(generation, item) {
                            snapshot.add_provider(generation, item, new);
                        }
                    }
                    Kind::VirtualModel => {
                        if let Some(new) = snapshot.spec(generation, item) {
                            replace(&mut snapshot.virtual_models, generation, item, new);
                        }
                    }
                    Kind::Hook => {
                        snapshot.note_unknown_event(generation, item);
                        let handlers = snapshot.hooks.entry(item.name.clone()).or_default();
                        // What cannot be read is not said.
                        let spec = serde_json::from_value(item.spec.clone());
                        handlers.push(registered(generation, item, spec.unwrap_or_default()));
                    }
                    Kind::Command => {
                        if let Some(spec) = snapshot.spec::<CommandSpec>(generation, item) {
                            commands.push(registered(generation, item, spec));
                        }
                    }
                    Kind::Flag => snapshot.add_flag(generation, item),
                    Kind::Shortcut => snapshot.add_shortcut(generation, item),
                    Kind::MessageRenderer => {
                        let renderers = &mut snapshot.displays.messages;
                        first(
                            renderers,
                            &mut snapshot.diagnostics,
                            "message",
                            generation,
                            item,
                        );
                    }
                    Kind::EntryRenderer => {
                        let renderers = &mut snapshot.displays.entries;
                        first(
                            renderers,
                            &mut snapshot.diagnostics,
                            "entry",
                            generation,
                            item,
                        );
                    }
                    Kind::ToolRenderer => {
                        let renderer = registered(generation, item, ());
                        snapshot.displays.tools.push(renderer);
                    }
                    Kind::MarkdownTransformer => {
                        let transformers = &mut snapshot.displays.markdown;
                        // The last one of a source counts.
                        transformers.retain(|old| old.source() != generation.source());
                        transformers.push(registered(generation, item, ()));
                    }
                    Kind::Autocomplete => {
                        if let Some(spec) = snapshot.spec(generation, item) {
                            let completes = registered(generation, item, spec);
                            snapshot.autocompletes.push(completes);
                        }
                    }
                    Kind::McpServer => snapshot.add_mcp_server(generation, item),
                }
            }
        }
        snapshot.commands = name_commands(commands);
        snapshot.sources = sources;
        snapshot
    }

    /// Counts the changes of the registry.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// All sources in load order.
    #[must_use]
    pub fn sources(&self) -> &[Served] {
        &self.sources
    }

    /// The tools, in load order of the winners.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<Registered<ToolSpec>>> {
        self.tools.values()
    }

    /// The tool of that name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Arc<Registered<ToolSpec>>> {
        self.tools.get(name)
    }

    /// The wire of that api name.
    #[must_use]
    pub fn wire(&self, api: &str) -> Option<&Arc<Registered<()>>> {
        self.wires.get(api)
    }

    /// The providers.
    pub fn providers(&self) -> impl Iterator<Item = &Arc<Registered<ProviderSpec>>> {
        self.providers.values()
    }

    /// The provider of that id.
    #[must_use]
    pub fn provider(&self, id: &str) -> Option<&Arc<Registered<ProviderSpec>>> {
        self.providers.get(id)
    }

    /// All that know models of a provider: several only of what ships with pliant, where each wire
    /// brings the services that speak it.
    pub fn provider_sources(
        &self,
        id: &str,
    ) -> impl Iterator<Item = &Arc<Registered<ProviderSpec>>> {
        let others = self.shared.get(id).into_iter().flatten();
        self.providers.get(id).into_iter().chain(others)
    }

    /// The virtual models.
    pub fn virtual_models(&self) -> impl Iterator<Item = &Arc<Registered<VirtualModelSpec>>> {
        self.virtual_models.values()
    }

    /// The virtual model of that reference, `provider/id`.
    #[must_use]
    pub fn virtual_model(&self, reference: &str) -> Option<&Arc<Registered<VirtualModelSpec>>> {
        self.virtual_models.get(reference)
    }

    /// The commands by invocation name (P10).
    pub fn commands(&self) -> impl Iterator<Item = (&String, &Arc<Registered<CommandSpec>>)> {
        self.commands.iter()
    }

    /// The command of that invocation name.
    #[must_use]
    pub fn command(&self, name: &str) -> Option<&Arc<Registered<CommandSpec>>> {
        self.commands.get(name)
    }

    /// The flags, in load order.
    pub fn flags(&self) -> impl Iterator<Item = &Arc<Registered<FlagSpec>>> {
        self.flags.values()
    }

    /// The handlers of an event in dispatch order; the list is a snapshot of its own (G3).
    #[must_use]
    pub fn handlers(&self, event: &str) -> &[Arc<Registered<HandlerSpec>>] {
        self.hooks.get(event).map(Vec::as_slice).unwrap_or_default()
    }

    /// What keys do, by key. What the user's key bindings say comes before.
    pub fn shortcuts(&self) -> impl Iterator<Item = &Arc<Registered<ShortcutSpec>>> {
        self.shortcuts.values()
    }

    /// What a key does; as [`shortcut::normal`] writes it.
    #[must_use]
    pub fn shortcut(&self, key: &str) -> Option<&Arc<Registered<ShortcutSpec>>> {
        self.shortcuts.get(key)
    }

    /// Who shows custom messages of a type.
    #[must_use]
    pub fn message_renderer(&self, custom_type: &str) -> Option<&Arc<Registered<()>>> {
        self.displays.messages.get(custom_type)
    }

    /// Who shows custom entries of a type.
    #[must_use]
    pub fn entry_renderer(&self, custom_type: &str) -> Option<&Arc<Registered<()>>> {
        self.displays.entries.get(custom_type)
    }

    /// Who shows calls of tools, in the order in which they are asked.
    #[must_use]
    pub fn tool_renderers(&self) -> &[Arc<Registered<()>>] {
        &self.displays.tools
    }

    /// Who changes Markdown before it is shown, in order.
    #[must_use]
    pub fn markdown_transformers(&self) -> &[Arc<Registered<()>>] {
        &self.displays.markdown
    }

    /// Who completes what is typed; the newest is asked first.
    pub fn autocompletes(&self) -> impl Iterator<Item = &Arc<Registered<AutocompleteSpec>>> {
        self.autocompletes.iter().rev()
    }

    /// The servers of the Model Context Protocol that sources bring.
    pub fn mcp_servers(&self) -> impl Iterator<Item = &Arc<Registered<McpServerSpec>>> {
        self.mcp_servers.values()
    }

    /// Names that lost, and declarations that could not be read.
    #[must_use]
    pub fn diagnostics(&self) -> &[String] {
        &self.diagnostics
    }

    /// What counts failures in a row goes on counting: only what is new begins anew.
    pub(super) fn keep_strikes(&self, old: &Self) {
        for (event, handlers) in &self.hooks {
            keep_counts(handlers, old.handlers(event));
        }
        let (new, old, before) = (&self.displays, &old.displays, old);
        keep_counts(&new.tools, &old.tools);
        keep_counts(&new.markdown, &old.markdown);
        keep_counts(&self.autocompletes, &before.autocompletes);
        for (new, old) in [(&new.messages, &old.messages), (&new.entries, &old.entries)] {
            for (name, renderer) in new {
                keep_counts(
                    std::slice::from_ref(renderer),
                    old.get(name).map_or(&[], std::slice::from_ref),
                );
            }
        }
    }

    /// A handler that nobody will ever call is a mistake its author should hear of.
    fn note_unknown_event(&mut self, generation: &Served, item: &Contribution) {
        if !HookPoint::is_known(&item.name) && !item.name.starts_with(BUS_PREFIX) {
            let (event, source) = (&item.name, &generation.source().name);
            self.diagnostics.push(format!(
                "The handler of \"{event}\" in \"{source}\" is never called: this version has no such event."
            ));
        }
    }

    /// As [`replace`], but of what ships with pliant none hides another's models.
    fn add_provider(&mut self, generation: &Served, item: &Contribution, spec: ProviderSpec) {
        let is_built_in = |source: &Source| source.rank == Rank::BuiltIn;
        let known = self.providers.get(&item.name).map(|known| known.source());
        if is_built_in(generation.source())
            && known.is_some_and(|known| is_built_in(known) && known != generation.source())
        {
            let others = self.shared.entry(item.name.clone()).or_default();
            others.push(registered(generation, item, spec));
            return;
        }
        if !is_built_in(generation.source()) {
            self.shared.remove(&item.name);
        }
        replace(&mut self.providers, generation, item, spec);
    }

    /// Inside one source a later registration replaces; between sources the first wins, and any wins
    /// over what ships with pliant (G9).
    fn add_tools(&mut self, generation: &Served) {
        let mut own: IndexMap<String, Arc<Registered<ToolSpec>>> = IndexMap::new();
        for item in generation
            .contributions()
            .iter()
            .filter(|item| item.kind == Kind::Tool)
        {
            let Some(spec) = self.spec::<ToolSpec>(generation, item) else {
                continue;
            };
            if let Some(problem) = unusable(&item.name, &spec) {
                let source = &generation.source().name;
                self.diagnostics.push(format!(
                    "The tool \"{}\" of \"{source}\" is left out: {problem}.",
                    item.name
                ));
            } else {
                own.insert(item.name.clone(), registered(generation, item, spec));
            }
        }
        for (name, tool) in own {
            match self.tools.get(&name) {
                None => {
                    self.tools.insert(name, tool);
                }
                Some(first) if yields(first.source(), tool.source()) => {
                    self.tools.insert(name, tool);
                }
                Some(winner) if yields(tool.source(), winner.source()) => {}
                Some(winner) => self.diagnostics.push(format!(
                    "The tool \"{name}\" of \"{}\" is not used, because \"{}\" registered that name first; rename one of them.",
                    tool.source().name,
                    winner.source().name,
                )),
            }
        }
    }

    /// The first declaration of a name holds (`extensions.md` §4.12).
    fn add_flag(&mut self, generation: &Served, item: &Contribution) {
        let Some(spec) = self.spec::<FlagSpec>(generation, item) else {
            return;
        };
        let (name, source) = (&item.name, &generation.source().name);
        if let Err(problem) = spec.check() {
            self.diagnostics.push(format!(
                "The flag --{name} of \"{source}\" is left out: {problem}."
            ));
            return;
        }
        if let Some(first) = self.flags.get(name) {
            let first = &first.source().name;
            if first != source {
                self.diagnostics.push(format!(
                    "The flag --{name} of \"{source}\" is that of \"{first}\", which declared it first; rename one of them."
                ));
            }
            return;
        }
        self.flags
            .insert(name.clone(), registered(generation, item, spec));
    }

    /// The last one has the key (`extensions.md` §4.12).
    fn add_shortcut(&mut self, generation: &Served, item: &Contribution) {
        let Some(mut spec) = self.spec::<ShortcutSpec>(generation, item) else {
            return;
        };
        let source = &generation.source().name;
        match shortcut::normal(&item.name) {
            Ok(key) => spec.name = key,
            Err(error) => {
                self.diagnostics
                    .push(format!("A shortcut of \"{source}\" is left out: {error}."));
                return;
            }
        }
        let key = spec.name.clone();
        let new = registered(generation, item, spec);
        if let Some(old) = self.shortcuts.insert(key.clone(), new)
            && old.source() != generation.source()
        {
            let other = &old.source().name;
            self.diagnostics.push(format!(
                "The key {key} does what \"{source}\" registered for it, no longer what \"{other}\" did."
            ));
        }
    }

    /// A name belongs to the source that has it (`extensions.md` §4.9).
    fn add_mcp_server(&mut self, generation: &Served, item: &Contribution) {
        let Some(spec) = self.spec::<McpServerSpec>(generation, item) else {
            return;
        };
        let (name, source) = (&item.name, &generation.source().name);
        if let Err(error) = spec.check() {
            self.diagnostics.push(format!(
                "An MCP server of \"{source}\" is left out: {error}."
            ));
            return;
        }
        let same = |other: &&Arc<Registered<McpServerSpec>>| {
            let is_own = other.source() == generation.source() && other.spec.name == *name;
            !is_own && McpServerSpec::same_name(&other.spec.name, name)
        };
        if let Some(first) = self.mcp_servers.values().find(same) {
            let (first, owner) = (&first.spec.name, &first.source().name);
            self.diagnostics.push(format!(
                "The MCP server \"{name}\" of \"{source}\" is left out, because \"{owner}\" has \"{first}\"; rename one of them."
            ));
            return;
        }
        self.mcp_servers
            .insert(name.clone(), registered(generation, item, spec));
    }

    fn spec<S: DeserializeOwned>(&mut self, generation: &Served, item: &Contribution) -> Option<S> {
        match S::deserialize(&item.spec) {
            Ok(spec) => Some(spec),
            Err(error) => {
                let (source, name) = (&generation.source().name, &item.name);
                self.diagnostics.push(format!(
                    "\"{name}\" of \"{source}\" is left out, because its declaration cannot be read: {error}."
                ));
                None
            }
        }
    }
}

/// Whether what `one` brought makes room for what `other` brought, wherever they stand in load order.
fn yields(one: &Source, other: &Source) -> bool {
    one.rank == Rank::BuiltIn && other.rank != Rank::BuiltIn
}

/// Between sources the first one shows a type, inside one the last (`extensions.md` §4.10).
fn first(
    all: &mut HashMap<String, Arc<Registered<()>>>,
    diagnostics: &mut Vec<String>,
    what: &str,
    generation: &Served,
    item: &Contribution,
) {
    let (name, source) = (&item.name, generation.source());
    if let Some(first) = all.get(name).filter(|first| first.source() != source) {
        let (source, first) = (&source.name, &first.source().name);
        diagnostics.push(format!(
            "The {what} renderer of \"{name}\" in \"{source}\" is not used, because \"{first}\" registered one first."
        ));
        return;
    }
    all.insert(name.clone(), registered(generation, item, ()));
}

/// The last registration replaces, and anything replaces what is built in (`extensions.md` §4.12).
fn replace<S>(
    all: &mut IndexMap<String, Arc<Registered<S>>>,
    generation: &Served,
    item: &Contribution,
    spec: S,
) {
    let built_in = generation.source().rank == Rank::BuiltIn;
    if !built_in || !all.contains_key(&item.name) {
        all.insert(item.name.clone(), registered(generation, item, spec));
    }
}

/// What was there before goes on where it was.
fn keep_counts<S>(now: &[Arc<Registered<S>>], before: &[Arc<Registered<S>>]) {
    for (at, one) in now.iter().enumerate() {
        let same = |other: &&Arc<Registered<S>>| one.is(other);
        // Most stand where they stood.
        let there = before.get(at).filter(same);
        if let Some(known) = there.or_else(|| before.iter().find(same)) {
            let strikes = known.strikes.load(Ordering::Relaxed);
            one.strikes.store(strikes, Ordering::Relaxed);
        }
    }
}

fn registered<S>(generation: &Served, item: &Contribution, spec: S) -> Arc<Registered<S>> {
    Arc::new(Registered {
        spec,
        id: item.id,
        generation: Arc::clone(&generation.generation),
        tenure: Arc::clone(&generation.tenure),
        strikes: AtomicU32::new(0),
    })
}

/// Why services would not take a tool (`extensions.md` §4.1).
fn unusable(name: &str, spec: &ToolSpec) -> Option<&'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !(1..=64).contains(&name.len()) || !name.chars().all(fits) {
        return Some("its name is not 1 to 64 of the characters A-Z a-z 0-9 _ -");
    }
    if !spec.parameters.is_object() {
        return Some("its `parameters` are not a JSON Schema object");
    }
    None
}

/// Gives each command its invocation name: its own if nobody shares it, else `name:1`, `name:2`, …
/// in load order, passing by numbers whose name is taken (P10).
fn name_commands(
    all: Vec<Arc<Registered<CommandSpec>>>,
) -> IndexMap<String, Arc<Registered<CommandSpec>>> {
    let mut count: HashMap<String, usize> = HashMap::new();
    for command in &all {
        *count.entry(command.spec.name.clone()).or_default() += 1;
    }
    let mut named = IndexMap::new();
    let mut next: HashMap<String, usize> = HashMap::new();
    for command in all {
        let name = command.spec.name.clone();
        if count.get(&name) == Some(&1) {
            named.insert(name, command);
            continue;
        }
        let number = next.entry(name.clone()).or_default();
        let free = loop {
            *number += 1;
            let candidate = format!("{name}:{number}");
            if !count.contains_key(&candidate) && !named.contains_key(&candidate) {
                break candidate;
            }
        };
        named.insert(free, command);
    }
    named
}

#[cfg(test)]
mod tests {
    use pliant_sdk::command::{Command, CommandCtx};
    use pliant_sdk::tool::ToolCtx;
    use pliant_sdk::{Plugin, Tool, ToolResult};

    use super::*;
    use crate::registry::{InProcess, Registry};

    struct Named(&'static str, &'static str);

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}

    impl Tool for Named {
        type Input = Nothing;

        fn spec(&self) -> ToolSpec {
            ToolSpec::new(self.0, self.1)
        }

        async fn execute(&self, _: Nothing, _: ToolCtx) -> Result<ToolResult, Error> {
            Ok(ToolResult::text(self.1))
        }
    }

    impl Command for Named {
        fn spec(&self) -> CommandSpec {
            CommandSpec::new(self.0, self.1)
        }

        async fn run(&self, _: String, _: CommandCtx) -> Result<(), Error> {
            Ok(())
        }
    }

    fn source(name: &str, rank: Rank, plugin: Plugin) -> Arc<dyn Generation> {
        Arc::new(InProcess::new(Source::inline(name, rank), plugin).unwrap())
    }

    #[test]
    fn between_sources_the_first_tool_wins_and_the_loser_is_named() {
        // G9, extensions §4.12
        let registry = Registry::default();
        registry.publish(source(
            "files",
            Rank::BuiltIn,
            Plugin::new().tool(Named("read", "built-in")),
        ));
        registry.publish(source(
            "b",
            Rank::User,
            Plugin::new().tool(Named("read", "b")),
        ));
        registry.publish(source(
            "a",
            Rank::CommandLine,
            Plugin::new()
                .tool(Named("read", "a1"))
                .tool(Named("read", "a2")),
        ));
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.tool("read").unwrap().spec.description, "a2");
        assert_eq!(snapshot.diagnostics().len(), 1);
        assert!(snapshot.diagnostics()[0].contains("\"read\" of \"b\""));
    }

    #[test]
    fn what_an_embedding_program_registers_wins_over_what_ships_with_pliant() {
        // G9, extensions §4.1
        let registry = Registry::default();
        let tool = |says| Plugin::new().tool(Named("read", says));
        registry.publish(source("files", Rank::BuiltIn, tool("built-in")));
        registry.publish(source("program", Rank::Inline, tool("program")));
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.tool("read").unwrap().spec.description, "program");
        assert_eq!(snapshot.diagnostics(), [""; 0]);
        registry.publish(source("user", Rank::User, tool("user")));
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.tool("read").unwrap().spec.description, "user");
        assert_eq!(snapshot.diagnostics().len(), 1);
    }

    #[test]
    fn a_tool_that_no_service_would_take_is_left_out_and_told() {
        // extensions §4.1
        struct Odd(&'static str, serde_json::Value);
        impl Tool for Odd {
            type Input = Nothing;

            fn spec(&self) -> ToolSpec {
                ToolSpec {
                    parameters: self.1.clone(),
                    ..ToolSpec::new(self.0, "")
                }
            }

            async fn execute(&self, _: Nothing, _: ToolCtx) -> Result<ToolResult, Error> {
                Ok(ToolResult::default())
            }
        }
        let registry = Registry::default();
        let plugin = Plugin::new()
            .tool(Odd("white space", serde_json::json!({})))
            .tool(Odd("true", serde_json::json!(true)))
            .tool(Odd("fine", serde_json::json!({})));
        registry.publish(source("odd", Rank::User, plugin));
        let snapshot = registry.snapshot();
        let names: Vec<_> = snapshot.tools().map(|tool| &*tool.spec.name).collect();
        assert_eq!(names, ["fine"]);
        assert_eq!(
            snapshot.diagnostics(),
            [
                "The tool \"white space\" of \"odd\" is left out: its name is not 1 to 64 of the characters A-Z a-z 0-9 _ -.",
                "The tool \"true\" of \"odd\" is left out: its `parameters` are not a JSON Schema object.",
            ]
        );
    }

    #[test]
    fn commands_that_share_a_name_are_numbered_in_load_order() {
        // P10
        let registry = Registry::default();
        let two = Plugin::new()
            .command(Named("x", "1"))
            .command(Named("x:2", "literal"));
        registry.publish(source("a", Rank::User, two));
        registry.publish(source(
            "b",
            Rank::User,
            Plugin::new()
                .command(Named("x", "2"))
                .command(Named("y", "3")),
        ));
        let snapshot = registry.snapshot();
        let names: Vec<_> = snapshot.commands().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["x:1", "x:2", "x:3", "y"]);
    }

    /// extensions §4.12; one service may speak several wires.
    #[test]
    fn what_ships_with_pliant_shares_a_provider_and_anything_else_replaces_it() {
        struct Service(&'static str);
        impl pliant_sdk::provider::Provider for Service {
            fn spec(&self) -> ProviderSpec {
                ProviderSpec {
                    name: "s".to_owned(),
                    label: self.0.to_owned(),
                    ..ProviderSpec::default()
                }
            }
            fn models(&self) -> Vec<pliant_sdk::Model> {
                Vec::new()
            }
        }
        let of = |label, rank| source(label, rank, Plugin::new().provider(Service(label)));
        let labels = |sources: Vec<Arc<dyn Generation>>| {
            let sources = sources.into_iter().map(Served::new);
            let snapshot = Snapshot::build(1, sources.collect());
            let known = snapshot.provider_sources("s");
            known.map(|p| p.spec.label.clone()).collect::<Vec<_>>()
        };
        let (a, b) = (of("a", Rank::BuiltIn), of("b", Rank::BuiltIn));
        let own = || of("own", Rank::Inline);
        assert_eq!(labels(vec![Arc::clone(&a), Arc::clone(&b)]), ["a", "b"]);
        assert_eq!(labels(vec![Arc::clone(&a), Arc::clone(&b), own()]), ["own"]);
        assert_eq!(labels(vec![own(), a, b]), ["own"]);
    }

    #[test]
    fn a_new_generation_takes_the_place_of_the_old_and_old_snapshots_stay_whole() {
        // G10, invariant 38
        let registry = Registry::default();
        registry.publish(source(
            "a",
            Rank::User,
            Plugin::new().tool(Named("t", "old")),
        ));
        let before = registry.snapshot();
        registry.publish(source(
            "a",
            Rank::User,
            Plugin::new().tool(Named("t", "new")),
        ));
        assert_eq!(before.tool("t").unwrap().spec.description, "old");
        assert_eq!(
            registry.snapshot().tool("t").unwrap().spec.description,
            "new"
        );
        registry.withdraw("a");
        assert!(registry.snapshot().tool("t").is_none());
    }
}

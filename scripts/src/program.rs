//! A compiled script, and calling the closures it registered.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use pliant_sdk::Error;
use rhai::{
    AST, Dynamic, Engine, EvalAltResult, FnPtr, ImmutableString, Locked, NativeCallContext,
    Position, Scope,
};

use crate::call::{ScriptResult, fail};
use crate::contributed::Contributed;
use crate::engine::Profile;
use crate::error;
use crate::modules::{self, Imported, Imports, Modules, Parameters};
use crate::timers::Timers;

/// Values of top-level constants, as `global::NAME` reads them.
type Constants = BTreeMap<ImmutableString, Dynamic>;

/// A compiled script. Closures work only together with the tree they were compiled in.
pub(crate) struct Program {
    name: String,
    engine: &'static Engine,
    ast: AST,
    parameters: Parameters,
    constants: OnceLock<Constants>,
    modules: Modules,
    imports: OnceLock<Imports>,
    timers: Timers,
    contributed: Arc<Contributed>,
}

impl Program {
    /// Compiles a source text. `name` is what positions in errors begin with; from the folder of `path`
    /// it may import.
    pub(crate) fn compile(
        name: &str,
        path: Option<&Path>,
        source: &str,
        profile: Profile,
    ) -> Result<Self, Error> {
        let engine = profile.engine();
        let mut ast = engine
            .compile(source)
            .map_err(|parse_error| error::from_parse(name, source, &parse_error))?;
        ast.set_source(name);
        Ok(Self {
            name: name.to_owned(),
            engine,
            parameters: modules::parameters(&ast),
            ast,
            constants: OnceLock::new(),
            modules: Modules::new(name, path),
            imports: OnceLock::new(),
            timers: Timers::default(),
            contributed: Arc::default(),
        })
    }

    /// The next text of a dialogue: it sees the functions of those before, and `variables`. What it
    /// registers is added to what they have.
    pub(crate) fn with(&self, source: &str, variables: &Scope<'_>) -> Result<Self, Error> {
        let mut known = variables.clone();
        known.set_or_push("ctx", ());
        let compiled = self.engine.compile_with_scope(&known, source);
        let compiled = compiled.map_err(|error| error::from_parse(&self.name, source, &error))?;
        let mut ast = self.ast.clone_functions_only().merge(&compiled);
        ast.set_source(&self.name);
        Ok(Self {
            name: self.name.clone(),
            engine: self.engine,
            parameters: modules::parameters(&ast),
            ast,
            constants: OnceLock::new(),
            modules: Modules::new(&self.name, None),
            imports: OnceLock::new(),
            timers: Timers::default(),
            contributed: Arc::clone(&self.contributed),
        })
    }

    /// Runs it, and answers the value of its last statement.
    pub(crate) fn evaluate(&self, variables: &mut Scope<'_>) -> ScriptResult<Dynamic> {
        match self
            .engine
            .eval_ast_with_scope::<Dynamic>(variables, &self.ast)
        {
            Err(error) => match *error {
                EvalAltResult::Exit(value, _) => Ok(value),
                error => Err(error.into()),
            },
            value => value,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The files it imports.
    pub(crate) fn modules(&self) -> &Modules {
        &self.modules
    }

    /// What it does later.
    pub(crate) fn timers(&self) -> &Timers {
        &self.timers
    }

    /// What it has registered.
    pub(crate) fn contributed(&self) -> &Contributed {
        &self.contributed
    }

    pub(crate) fn ast(&self) -> &AST {
        &self.ast
    }

    /// Runs the top level once and keeps its constants, so that later calls of `fn` functions still
    /// find `global::NAME`.
    pub(crate) fn run_top_level(&self) -> ScriptResult<()> {
        let mut scope = Scope::new();
        match self.engine.run_ast_with_scope(&mut scope, &self.ast) {
            Err(error) if !matches!(*error, EvalAltResult::Exit(..)) => return Err(error),
            _ => {}
        }
        let constants = scope
            .iter()
            .filter(|(_, constant, _)| *constant)
            .map(|(name, _, value)| (name.into(), value));
        // A second run would find the cell full; there is none.
        let _ = self.constants.set(constants.collect());
        let _ = self.imports.set(self.modules.imports_of(&self.ast));
        Ok(())
    }

    /// A copy of the constants for one call. Rhai locks the map for every look; calls running side
    /// by side would wait 10 ms for each other at every collision, and panic after five.
    fn own_constants(&self) -> Option<rhai::Shared<Locked<Constants>>> {
        let constants = self.constants.get().filter(|all| !all.is_empty())?;
        Some(Arc::new(Locked::new(constants.clone())))
    }

    /// Wraps a function that will be called with `offered` arguments. It may take fewer of them.
    pub(crate) fn callback(&self, function: FnPtr, offered: &[&str]) -> ScriptResult<Callback> {
        let captured = function.curry().len();
        let takes = |count: &usize| {
            let own = count.checked_sub(captured)?;
            (own <= offered.len()).then_some(own)
        };
        let name = function.fn_name();
        let own = self.parameters.get(name);
        let home = match own {
            Some(_) => None,
            None => self.modules.home_of(name),
        };
        let of_home = || home.as_ref()?.parameters.get(name);
        let Some(counts) = own.or_else(of_home) else {
            return Ok(Callback {
                function,
                arity: offered.len(),
                home,
            });
        };
        match counts.iter().filter_map(takes).max() {
            Some(arity) => Ok(Callback {
                function,
                arity,
                home,
            }),
            None => Err(fail(format!(
                "the function takes {} parameters, but it is called with {} (|{}|)",
                counts.first().map_or(0, |count| count - captured),
                offered.len(),
                offered.join(", "),
            ))),
        }
    }
}

/// A function of a script that the host calls.
#[derive(Clone)]
pub(crate) struct Callback {
    function: FnPtr,
    arity: usize,
    /// The imported file it was written in; works only together with that.
    home: Option<Arc<Imported>>,
}

impl Callback {
    /// Calls it; arguments beyond those it takes are left out. `exit(v)` inside answers `v`.
    pub(crate) fn call<const N: usize>(
        &self,
        program: &Program,
        mut arguments: [Dynamic; N],
    ) -> ScriptResult<Dynamic> {
        let mut global = program.engine.new_global_runtime_state();
        let (functions, file, imports) = match &self.home {
            Some(home) => (&home.functions, &home.name, Some(&home.imports)),
            None => (
                program.ast.shared_lib(),
                &program.name,
                program.imports.get(),
            ),
        };
        global.lib.push(functions.clone());
        for (name, module) in imports.into_iter().flatten() {
            global.push_import(name.clone(), module.clone());
        }
        global.source = Some(file.as_str().into());
        global.constants = program.own_constants();
        let name = self.function.fn_name();
        let source = Some(file.as_str());
        let context =
            NativeCallContext::from((program.engine, name, source, &global, Position::NONE));
        let taken = self.arity.min(N);
        match self
            .function
            .call_raw(&context, None, &mut arguments[..taken])
        {
            Err(error) => match *error {
                EvalAltResult::Exit(value, _) => Ok(value),
                error => Err(error.into()),
            },
            answer => answer,
        }
    }
}

//! The interpreter: which functions exist, and how much a script may take.
//!
//! One engine serves all scripts of a permission profile; what differs from call to call (services,
//! time limit, who is asking) is the running [`Call`], which the functions find by their thread.
//! Every limit is set, because Rhai's own differ between debug and release builds.

use std::sync::OnceLock;

use rhai::packages::{Package, StandardPackage};
use rhai::{Engine, OptimizationLevel};

use crate::api;
use crate::call::Call;
use crate::modules::Resolver;

/// Longest string, in bytes. Also bounds what a host function hands to a script.
pub(crate) const MAX_STRING: usize = 16 << 20;
/// Most elements of arrays and of maps, nested ones included.
pub(crate) const MAX_ELEMENTS: usize = 1_000_000;
const MAX_CALL_DEPTH: usize = 64;
const MAX_EXPRESSION_DEPTH: usize = 64;
const MAX_VARIABLES: usize = 10_000;
const MAX_FUNCTIONS: usize = 1_000;
/// Most imports of one run.
const MAX_MODULES: usize = 100;

/// What scripts of one origin may do. Each profile has one engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Trusted like a plugin: everything in [`api`].
    Extension,
}

impl Profile {
    /// The engine, built on first use.
    pub(crate) fn engine(self) -> &'static Engine {
        static EXTENSION: OnceLock<Engine> = OnceLock::new();
        match self {
            Self::Extension => EXTENSION.get_or_init(|| {
                let mut engine = bare();
                api::install(&mut engine);
                engine
            }),
        }
    }
}

/// The language with its limits and without any way out.
fn bare() -> Engine {
    let mut engine = Engine::new_raw();
    engine.register_global_module(StandardPackage::new().as_shared_module());
    // Sharing equal strings saves little, and its lock makes scripts that are compiled side by side
    // wait 10 ms for each other at every collision.
    engine.set_max_strings_interned(0);
    // At higher levels Rhai 1.27 panics on `const o = #{a: 1}; o.a = 2`.
    engine.set_optimization_level(OptimizationLevel::None);
    // A misspelt variable is an error when the script is loaded, not when it is needed.
    engine.set_strict_variables(true);
    engine.set_module_resolver(Resolver);
    engine.disable_symbol("eval");
    set_limits(&mut engine);
    engine.on_progress(|_| Call::tick());
    engine
}

fn set_limits(engine: &mut Engine) {
    engine.set_max_call_levels(MAX_CALL_DEPTH);
    engine.set_max_expr_depths(MAX_EXPRESSION_DEPTH, MAX_EXPRESSION_DEPTH);
    engine.set_max_string_size(MAX_STRING);
    engine.set_max_array_size(MAX_ELEMENTS);
    engine.set_max_map_size(MAX_ELEMENTS);
    engine.set_max_variables(MAX_VARIABLES);
    engine.set_max_functions(MAX_FUNCTIONS);
    engine.set_max_modules(MAX_MODULES);
    // Time, not operations, is what a user waits for: the progress callback has the deadline.
    engine.set_max_operations(0);
}

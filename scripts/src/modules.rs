//! `import "file" as name;`: other files of an extension. A path counts from the extension's folder
//! and cannot leave it, by links neither; the ending `.rhai` may be left out.
//!
//! A file is compiled and run once in a generation, however often it is imported. The engine is
//! shared by all scripts, so its resolver asks the running [`Call`] whose folder counts.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pliant_kernel::textfile;
use rhai::{
    AST, Engine, EvalAltResult, Expr, ImmutableString, Module, ModuleResolver, Position, Scope,
    Shared, Stmt,
};

use crate::call::{Call, ScriptResult, fail};
use crate::error;

type SharedModule = Shared<Module>;

/// How deep files may import files.
const MAX_DEPTH: usize = 16;
/// How many files are looked through for imports, to know what to watch.
const MAX_FILES: usize = 100;
const ENDING: &str = "rhai";

/// How many parameters the functions of a file take, by name; captured variables come first.
pub(crate) type Parameters = HashMap<String, Vec<usize>>;

/// Names that a file gave to the files it imports at its top level.
pub(crate) type Imports = Vec<(ImmutableString, SharedModule)>;

/// A file that was imported.
pub(crate) struct Imported {
    /// What positions in it begin with.
    pub(crate) name: String,
    /// Its functions, closures included.
    pub(crate) functions: SharedModule,
    /// What they take.
    pub(crate) parameters: Parameters,
    /// What they see of other files.
    pub(crate) imports: Imports,
    module: SharedModule,
}

/// The files that one generation of a script imported.
pub(crate) struct Modules {
    script: String,
    folder: Option<PathBuf>,
    loaded: Mutex<HashMap<PathBuf, Arc<Imported>>>,
}

impl Modules {
    /// None yet. A script without a file has no folder to import from.
    pub(crate) fn new(script: &str, path: Option<&Path>) -> Self {
        Self {
            script: script.to_owned(),
            folder: path.and_then(Path::parent).map(Path::to_owned),
            loaded: Mutex::default(),
        }
    }

    /// The imported file that has a function of that name.
    pub(crate) fn home_of(&self, function: &str) -> Option<Arc<Imported>> {
        let loaded = self.loaded();
        let mut all = loaded.values();
        all.find(|file| file.parameters.contains_key(function))
            .cloned()
    }

    /// What a file that was run imported at its top level. A closure that runs later does not find it
    /// by itself.
    pub(crate) fn imports_of(&self, ast: &AST) -> Imports {
        let named = ast.statements().iter().filter_map(|statement| {
            let Stmt::Import(import, _) = statement else {
                return None;
            };
            let (Expr::StringConstant(path, _), name) = &**import else {
                return None;
            };
            // The top level may have ended before it came so far.
            let file = self.find(path).ok()?;
            let loaded = self.loaded().get(&file).cloned()?;
            Some((name.name.clone(), Arc::clone(&loaded.module)))
        });
        named.filter(|(name, _)| !name.is_empty()).collect()
    }

    fn import(&self, engine: &Engine, path: &str, at: Position) -> ScriptResult<SharedModule> {
        let placed = |mut error: Box<EvalAltResult>| {
            error.set_position(at);
            error
        };
        let file = self.find(path).map_err(placed)?;
        if let Some(loaded) = self.loaded().get(&file) {
            return Ok(Arc::clone(&loaded.module));
        }
        let under_way = UnderWay::begin(path, &file).map_err(placed)?;
        let name = self.shown(&file);
        let loaded = self.load(engine, &file, &name);
        drop(under_way);
        let loaded = loaded.map_err(|error| in_module(name, error, at))?;
        // Another thread may have been faster; then everybody has its copy.
        let mut all = self.loaded();
        let first = all.entry(file).or_insert_with(|| Arc::new(loaded));
        Ok(Arc::clone(&first.module))
    }

    fn load(&self, engine: &Engine, file: &Path, name: &str) -> ScriptResult<Imported> {
        let text = textfile::read(file)
            .map_err(|error| fail(format!("the file cannot be read: {error}")))?;
        let mut ast = engine
            .compile(&text)
            .map_err(|error| error::thrown_by_parser(&text, &error))?;
        ast.set_source(name);
        let module = Module::eval_ast_as_new(Scope::new(), &ast, engine)?;
        Ok(Imported {
            name: name.to_owned(),
            functions: ast.shared_lib().clone(),
            parameters: parameters(&ast),
            imports: self.imports_of(&ast),
            module: module.into(),
        })
    }

    /// The file that is meant, without links.
    fn find(&self, path: &str) -> ScriptResult<PathBuf> {
        let Some(folder) = &self.folder else {
            return Err(fail(
                "this script is no file, so there is no folder to import from",
            ));
        };
        let not_there = |error| {
            fail(format!(
                "there is no file \"{path}\" to import in the extension's folder: {error}"
            ))
        };
        let folder = folder.canonicalize().map_err(not_there)?;
        let file = file_in(&folder, path).canonicalize().map_err(not_there)?;
        match file.starts_with(&folder) {
            true => Ok(file),
            false => Err(fail(format!(
                "\"{path}\" lies outside of the extension's folder; only files inside it can be imported"
            ))),
        }
    }

    /// A file's name beside the name that the script is known by.
    fn shown(&self, file: &Path) -> String {
        let folder = self.folder.as_ref().and_then(|f| f.canonicalize().ok());
        let inside = folder.and_then(|folder| file.strip_prefix(folder).ok().map(Path::to_owned));
        let inside = inside.unwrap_or_else(|| file.to_owned());
        let beside = Path::new(&self.script).with_file_name(inside);
        beside.display().to_string()
    }

    fn loaded(&self) -> MutexGuard<'_, HashMap<PathBuf, Arc<Imported>>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks the running call.
pub(crate) struct Resolver;

impl ModuleResolver for Resolver {
    fn resolve(
        &self,
        engine: &Engine,
        _: Option<&str>,
        path: &str,
        at: Position,
    ) -> ScriptResult<SharedModule> {
        let call = Call::current()?;
        call.program().modules().import(engine, path, at)
    }
}

thread_local! {
    /// The files that the thread is importing, outermost first.
    static UNDER_WAY: RefCell<Vec<PathBuf>> = const { RefCell::new(Vec::new()) };
}

/// One file more is being imported while this lives.
struct UnderWay;

impl UnderWay {
    fn begin(path: &str, file: &Path) -> ScriptResult<Self> {
        UNDER_WAY.with_borrow_mut(|files| {
            if files.iter().any(|one| one == file) {
                return Err(fail(format!(
                    "the imports go round in a circle: \"{path}\" is imported by what it imports"
                )));
            }
            if files.len() >= MAX_DEPTH {
                return Err(fail(format!(
                    "files import files more than {MAX_DEPTH} deep"
                )));
            }
            files.push(file.to_owned());
            Ok(Self)
        })
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        UNDER_WAY.with_borrow_mut(Vec::pop);
    }
}

/// What the functions of a file take.
pub(crate) fn parameters(ast: &AST) -> Parameters {
    let mut all = Parameters::new();
    for function in ast.iter_functions() {
        let counts = all.entry(function.name.to_owned()).or_default();
        counts.push(function.params.len());
    }
    all
}

/// The files that a script imports, and those that these import, as far as their texts name them.
pub(crate) fn imported_files(script: &Path) -> Vec<PathBuf> {
    let Some(folder) = script.parent() else {
        return Vec::new();
    };
    let mut files = vec![script.to_owned()];
    let mut looked_at = 0;
    while looked_at < files.len().min(MAX_FILES) {
        let text = files
            .get(looked_at)
            .and_then(|file| textfile::read(file).ok());
        for path in named_in(&text.unwrap_or_default()) {
            let file = file_in(folder, path);
            if !files.contains(&file) {
                files.push(file);
            }
        }
        looked_at += 1;
    }
    files.split_off(1)
}

/// Every `import "…"` of a text; one in a comment does no harm.
fn named_in(text: &str) -> impl Iterator<Item = &str> {
    let after = text.split("import").skip(1);
    after.filter_map(|rest| {
        let (path, _) = rest.trim_start().strip_prefix('"')?.split_once('"')?;
        Some(path)
    })
}

fn file_in(folder: &Path, path: &str) -> PathBuf {
    let file = folder.join(path);
    match file.extension() {
        Some(_) => file,
        None => file.with_extension(ENDING),
    }
}

/// Says where the error was, unless it ends the script.
fn in_module(name: String, error: Box<EvalAltResult>, at: Position) -> Box<EvalAltResult> {
    match error.is_system_exception() {
        true => error,
        false => EvalAltResult::ErrorInModule(name, error, at).into(),
    }
}

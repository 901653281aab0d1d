//! `import`: files of the extension's folder (`extensions.md` §7.3).

use std::path::Path;
use std::sync::Arc;

use pliant_kernel::registry::Rank;
use pliant_kernel::reload::Loader;
use pliant_scripts::{Limits, Scripts};
use pliant_sdk::Error;
use pliant_sdk::host::NoServices;
use serde_json::json;
use tempfile::TempDir;

use crate::kit::{Bench, Fake, load_error, try_load_at};

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

async fn load_in(dir: &Path, text: &str) -> Result<Bench, Error> {
    let path = dir.join("t.rhai");
    try_load_at(Some(path), text, Fake::default(), Limits::default()).await
}

async fn error_in(dir: &Path, text: &str) -> String {
    match load_in(dir, text).await {
        Ok(_) => panic!("it was loaded: {text}"),
        Err(error) => error.message,
    }
}

fn tool(body: &str) -> String {
    format!("register_tool(#{{ name: \"t\", description: \"d\", execute: |args| {body} }});")
}

#[tokio::test]
async fn functions_of_a_file_are_there_while_loading_and_in_handlers() {
    let dir = folder(&[
        (
            "lib.rhai",
            "fn double(x) { x * 2 } fn twice(x) { double(double(x)) }",
        ),
        (
            "deep/more.rhai",
            "import \"lib\" as lib; fn eight(x) { lib::twice(x) * 2 }",
        ),
    ]);
    let script = format!(
        "import \"lib\" as lib; import \"deep/more.rhai\" as more; let four = lib::double(2); {}",
        tool("`${four} ${lib::twice(1)} ${more::eight(1)}`")
    );
    let bench = load_in(dir.path(), &script)
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(bench.tool_text("t", json!({})).await, "4 4 8");
    let inside = tool("{ import \"lib\" as own; own::double(4) }");
    let bench = load_in(dir.path(), &inside)
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(bench.tool_text("t", json!({})).await, "8");
}

#[tokio::test]
async fn a_file_may_register_and_its_closures_are_called_there() {
    let dir = folder(&[
        ("lib.rhai", "fn three() { 3 }"),
        (
            "tools.rhai",
            "import \"lib\" as lib;\nfn own(x) { x + 1 }\nfn add() { register_tool(#{ name: \"t\", description: \"d\",\n execute: |args, ctx| if args.fail { ctx.nothing() } else { own(lib::three()) } }); }",
        ),
    ]);
    let bench = load_in(dir.path(), "import \"tools\" as tools; tools::add();")
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    let text = bench.tool_text("t", json!({"fail": false})).await;
    assert_eq!(text, "4");
    let text = bench.tool_text("t", json!({"fail": true})).await;
    assert!(
        text.contains("tools.rhai:4:42: Function not found: nothing"),
        "{text}"
    );
}

#[tokio::test]
async fn errors_in_files_name_the_file_first_and_then_who_imported_or_called() {
    let dir = folder(&[
        ("syntax.rhai", "let a = 1;\nlet b = null;"),
        ("throws.rhai", "\nthrow \"no\";"),
        ("calls.rhai", "fn f(x) {\n x.foo() }"),
    ]);
    let message = error_in(dir.path(), "let a = 1;\nimport \"syntax\" as s;").await;
    assert!(
        message.starts_with("syntax.rhai:2:9: 'null' is a reserved keyword"),
        "{message}"
    );
    assert!(message.contains("nothing is written `()`"), "{message}");
    assert!(
        message.ends_with("\n  in syntax.rhai, imported at t.rhai:2:8"),
        "{message}"
    );
    assert_eq!(
        error_in(dir.path(), "import \"throws\" as t;").await,
        "throws.rhai:2:1: no\n  in throws.rhai, imported at t.rhai:1:8"
    );
    assert_eq!(
        error_in(dir.path(), "import \"calls\" as c;\nc::f(1);").await,
        "calls.rhai:2:4: Function not found: foo (i64)\n  in `f`, called at t.rhai:2:4"
    );
}

#[tokio::test]
async fn nothing_outside_of_the_folder_is_imported() {
    let outside = folder(&[("secret.rhai", "fn f() { 1 }")]);
    let secret = outside.path().join("secret.rhai");
    let dir = folder(&[
        ("ext/ok.rhai", "fn f() { 1 }"),
        ("beside.rhai", "fn f() { 1 }"),
    ]);
    let ext = dir.path().join("ext");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&secret, ext.join("link.rhai")).unwrap();
        std::os::unix::fs::symlink(outside.path(), ext.join("linked")).unwrap();
        std::os::unix::fs::symlink("loop.rhai", ext.join("loop.rhai")).unwrap();
    }
    let absolute = secret.display().to_string();
    for path in ["../beside", "link", "linked/secret", absolute.as_str()] {
        let message = error_in(&ext, &format!("import {path:?} as x;")).await;
        assert!(
            message.contains("lies outside of the extension's folder"),
            "{message}"
        );
    }
    for path in ["gone", "", "loop", "/dev/zero", "\0"] {
        let message = error_in(&ext, &format!("import \"{path}\" as x;")).await;
        assert!(message.starts_with("t.rhai:1:8: "), "{path:?}: {message}");
    }
    let without_file = load_error("import \"x\" as x;").await.message;
    assert!(
        without_file.contains("there is no folder to import from"),
        "{without_file}"
    );
}

#[tokio::test]
async fn circles_and_depths_of_imports_are_errors() {
    let chain: Vec<_> = (0..40)
        .map(|n| {
            (
                format!("f{n}.rhai"),
                format!("import \"f{}\" as next;", n + 1),
            )
        })
        .collect();
    let mut files: Vec<_> = chain
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    files.push(("a.rhai", "import \"b\" as b;"));
    files.push(("b.rhai", "import \"a\" as a;"));
    let dir = folder(&files);
    let message = error_in(dir.path(), "import \"a\" as a;").await;
    assert!(
        message.contains("the imports go round in a circle"),
        "{message}"
    );
    let message = error_in(dir.path(), "import \"f0\" as f;").await;
    assert!(message.contains("more than 16 deep"), "{message}");
    let message = error_in(dir.path(), "loop { import \"t\" as t; }").await;
    assert!(message.starts_with("t.rhai:1:"), "{message}");
}

#[tokio::test]
async fn a_file_that_does_not_end_is_ended_and_cannot_be_caught() {
    let dir = folder(&[("endless.rhai", "loop { try { loop { } } catch { } }")]);
    let limits = Limits {
        load: std::time::Duration::from_millis(50),
        ..Limits::default()
    };
    let path = dir.path().join("t.rhai");
    let text = "loop { try { import \"endless\" as e; } catch { } }";
    let loaded = try_load_at(Some(path), text, Fake::default(), limits).await;
    assert_eq!(loaded.err().unwrap().code, "timeout");
}

#[test]
fn a_changed_import_is_a_changed_script_and_is_watched() {
    let dir = folder(&[
        ("t.rhai", "import \"lib\" as lib;"),
        ("lib.rhai", "import \"deep/more\" as more;"),
        ("deep/more.rhai", "fn f() { 1 }"),
        ("other.rhai", "1"),
    ]);
    let file = dir.path().join("t.rhai");
    let found = file.clone();
    let scripts = Scripts {
        shipped: Box::new(|_| false),
        found: Box::new(move || (vec![(found.clone(), Rank::User)], Vec::new())),
        folders: Vec::new(),
        named: Vec::new(),
        services: Arc::new(|_| Arc::new(NoServices)),
        limits: Limits::default(),
    };
    let digest = || scripts.find().candidates.remove(0).digest;
    let first = digest();
    assert_eq!(digest(), first);
    std::fs::write(dir.path().join("other.rhai"), "2").unwrap();
    assert_eq!(digest(), first);
    std::fs::write(dir.path().join("deep/more.rhai"), "fn f() { 2 }").unwrap();
    let second = digest();
    assert_ne!(second, first);
    std::fs::remove_file(dir.path().join("lib.rhai")).unwrap();
    assert_ne!(digest(), second);
    std::fs::write(dir.path().join("lib.rhai"), "import \"deep/more\" as more;").unwrap();
    let places = scripts.places();
    for watched in ["t.rhai", "lib.rhai", "deep/more.rhai"] {
        let path = dir.path().join(watched);
        assert!(
            places.iter().any(|place| place.concerns(&path)),
            "{watched}"
        );
    }
}

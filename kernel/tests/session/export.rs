//! The session as a file (`interfaces.md` §8.2, §13).

use std::fs;
use std::path::Path;

use pliant_kernel::export::ExportError;
use pliant_kernel::{OpenOptions, SessionChoice};
use pliant_sdk::Plugin;
use serde_json::json;

use crate::support::*;

#[tokio::test]
async fn a_page_is_named_after_the_session_or_as_it_is_asked_for() {
    let scene = scene(Script::new([Reply::Text("*ok*")]), Plugin::new()).await;
    let nothing = scene.session.export_html(None).await.unwrap_err();
    assert!(matches!(nothing, ExportError::Nothing), "{nothing}");
    scene.prompt("a <question>").await;

    let name = scene.session.export_html(None).await.unwrap();
    let file = scene.session.file().unwrap();
    let stem = file.file_stem().unwrap().to_string_lossy();
    assert_eq!(name, Path::new(&format!("pliant-session-{stem}.html")));
    let page = fs::read_to_string(scene.dir.path().join(&name)).unwrap();
    assert!(page.contains("a &lt;question&gt;") && page.contains("<em>ok</em>"));

    let asked = scene.dir.path().join("own.html");
    fs::write(&asked, "old").unwrap();
    assert_eq!(
        scene.session.export_html(Some(&asked)).await.unwrap(),
        asked
    );
    assert_eq!(fs::read_to_string(&asked).unwrap(), page);
}

#[tokio::test]
async fn a_file_of_lines_has_the_active_branch() {
    // S30
    let scene = scene(Script::new([Reply::Text("ok")]), Plugin::new()).await;
    scene.prompt("x").await;
    let path = Path::new("branch.jsonl");
    assert_eq!(scene.session.export_html(Some(path)).await.unwrap(), path);
    let lines = fs::read_to_string(scene.dir.path().join(path)).unwrap();
    assert_eq!(
        lines,
        fs::read_to_string(scene.session.file().unwrap()).unwrap()
    );
}

#[tokio::test]
async fn what_cannot_be_exported_is_told_and_leaves_everything_as_it_was() {
    let scene = scene(Script::new([Reply::Text("ok")]), Plugin::new()).await;
    scene.prompt("x").await;
    let file = scene.session.file().unwrap();
    let before = fs::read(&file).unwrap();
    let itself = scene.session.export_html(Some(&file)).await.unwrap_err();
    assert!(matches!(itself, ExportError::Itself(_)), "{itself}");
    assert_eq!(fs::read(&file).unwrap(), before);
    let nowhere = scene
        .session
        .export_html(Some(Path::new("no/such/x.html")))
        .await;
    let nowhere = nowhere.unwrap_err().to_string();
    assert!(
        nowhere.contains("no/such/x.html cannot be written"),
        "{nowhere}"
    );

    let (kernel, _dir) = kernel_with(&Script::new([]), Plugin::new(), json!({}));
    let open = OpenOptions {
        session: SessionChoice::InMemory,
        may_lack_model: true,
        ..OpenOptions::default()
    };
    let session = kernel.open_session(open).await.unwrap();
    let memory = session.export_html(None).await.unwrap_err();
    assert!(memory.to_string().contains("in-memory session"), "{memory}");
}

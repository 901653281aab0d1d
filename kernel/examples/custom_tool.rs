//! A tool that lives in the program and works on what the program has, and a gate before it.
//!
//! `cargo run -p pliant-kernel --example custom_tool`

mod offline;

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use pliant_kernel::sdk::hook::{ToolCallAnswer, ToolCallEvent};
use pliant_kernel::sdk::{Error, Plugin, Tool, ToolCtx, ToolResult, ToolSpec};
use pliant_kernel::{Builder, Prompt, SessionChoice, ToolSelection};

/// The program's own data, which the model may add to.
type Shelf = Arc<Mutex<Vec<String>>>;

struct Shelve(Shelf);

/// The arguments. Doc comments become the descriptions that the model sees.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Book {
    /// Title of the book.
    title: String,
}

impl Tool for Shelve {
    type Input = Book;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("shelve", "Put a book on the shelf.").snippet("Put books on the shelf")
    }

    async fn execute(&self, book: Book, _ctx: ToolCtx) -> Result<ToolResult, Error> {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.push(book.title);
        Ok(ToolResult::text(format!("{} on the shelf", shelf.len())))
    }
}

/// Keeps a book off the shelf.
fn gate() -> Plugin {
    Plugin::new().on(|call: ToolCallEvent, _ctx| async move {
        let forbidden = call
            .input
            .get("title")
            .is_some_and(|title| title == "Dracula");
        Ok(match forbidden {
            true => ToolCallAnswer::block("Not that one."),
            false => ToolCallAnswer::default(),
        })
    })
}

/// What every step may fail with.
pub type Failure = Box<dyn std::error::Error>;

/// What the program does.
pub async fn run(out: &mut impl Write) -> Result<(), Failure> {
    let cwd = std::env::current_dir()?;
    let shelf = Shelf::default();
    let runtime = Builder::new(&cwd, cwd.join(".agent"))
        .session(SessionChoice::InMemory)
        // Only this tool: those of plugins are left out.
        .tools(ToolSelection {
            allow: Some(vec!["shelve".into()]),
            ..ToolSelection::default()
        })
        .custom_tool(Shelve(Arc::clone(&shelf)))
        .plugin("gate", gate())
        .plugin("offline", offline::plugin())
        .model("offline/parrot")
        .build()
        .await?;
    let session = runtime.session();
    for title in ["Emma", "Dracula"] {
        let text = format!(r#"use shelve {{"title": "{title}"}}"#);
        session.prompt(Prompt::text(text), |_| ()).await?;
        let answer = session.last_assistant_text().unwrap_or_default();
        writeln!(out, "{answer}")?;
    }
    runtime.close().await;
    let shelf = shelf.lock().unwrap_or_else(PoisonError::into_inner);
    writeln!(out, "The shelf: {shelf:?}")?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    run(&mut std::io::stdout()).await
}

//! A front end of one's own: it shows answers while they are written, names tool calls, and answers
//! what plugins ask.
//!
//! `cargo run -p pliant-kernel --example front_end`

mod offline;

use std::io::Write;
use std::time::Duration;

use pliant_kernel::sdk::command::{Command, CommandCtx, CommandSpec};
use pliant_kernel::sdk::host::BoxFuture;
use pliant_kernel::sdk::message::{MessageContent, joined_text};
use pliant_kernel::sdk::session::UserMessageOptions;
use pliant_kernel::sdk::ui::{Answer, Dialog, UiInfo, UiMode};
use pliant_kernel::sdk::{Draft, Error, Event, Message, Plugin};
use pliant_kernel::{Builder, HostUi, Prompt, Session, SessionChoice, ToolSelection};
use tokio::sync::{mpsc, oneshot};

/// A question on its way to the loop that has the screen, and the way back of its answer.
type Question = (Dialog, oneshot::Sender<Answer>);

/// The side of the front end that plugins reach.
struct Desk(mpsc::UnboundedSender<Question>);

impl HostUi for Desk {
    fn info(&self) -> UiInfo {
        UiInfo {
            mode: UiMode::Tui,
            has_ui: true,
        }
    }

    fn ask(&self, dialog: Dialog, time: Option<Duration>) -> BoxFuture<'_, Result<Answer, Error>> {
        let (answer, answered) = oneshot::channel();
        // With nobody at the other end, the answer is that of a closed dialog.
        let _ = self.0.send((dialog, answer));
        let limit = time.unwrap_or(Duration::MAX);
        Box::pin(async move {
            let answered = tokio::time::timeout(limit, answered).await;
            Ok(answered
                .ok()
                .and_then(Result::ok)
                .unwrap_or(Answer::Dismissed))
        })
    }
}

/// A command that asks the user something.
struct Tidy;

impl Command for Tidy {
    fn spec(&self) -> CommandSpec {
        CommandSpec::new("tidy", "Tidy up, if the user wants it.")
    }

    async fn run(&self, what: String, ctx: CommandCtx) -> Result<(), Error> {
        let yes = ctx
            .host()
            .ui()
            .confirm("Tidy up", &format!("Tidy {what}?"))
            .await?;
        let text = format!("{what} {}", if yes { "is tidy" } else { "stays" });
        let session = ctx.host().session();
        session
            .send_user_message(MessageContent::Text(text), UserMessageOptions::default())
            .await
    }
}

/// What every step may fail with.
pub type Failure = Box<dyn std::error::Error>;

/// Passes a prompt and shows everything that comes of it.
async fn say(
    session: &Session,
    text: &str,
    questions: &mut mpsc::UnboundedReceiver<Question>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    writeln!(out, "> {text}")?;
    let mut events = session.subscribe();
    let mut draft = Draft::default();
    let settled = async {
        session.prompt(Prompt::text(text), |_| ()).await?;
        session.wait_idle().await;
        Ok::<(), Failure>(())
    };
    tokio::pin!(settled);
    loop {
        tokio::select! {
            biased;
            Some(event) = events.recv() => show(&mut draft, &event, out)?,
            Some((dialog, answer)) = questions.recv() => {
                writeln!(out, "? {dialog:?}")?;
                let _ = answer.send(Answer::Confirmed(true));
            }
            end = &mut settled => break end?,
        }
    }
    // What was told at the end.
    while let Ok(event) = events.try_recv() {
        show(&mut draft, &event, out)?;
    }
    Ok(())
}

/// Draws the line of the answer again with each event that changes it.
fn show(draft: &mut Draft, event: &Event, out: &mut impl Write) -> Result<(), Failure> {
    if let Some(answer) = draft.take(event) {
        write!(out, "\r{}", joined_text(&answer.content, ""))?;
    }
    match event {
        Event::MessageEnd { message } if matches!(**message, Message::Assistant(_)) => {
            writeln!(out)?;
        }
        Event::ToolExecutionStart { tool_name, .. } => writeln!(out, "* {tool_name}")?,
        Event::ExtensionError { error, .. } => writeln!(out, "! {error}")?,
        _ => {}
    }
    Ok(())
}

/// What the program does.
pub async fn run(out: &mut impl Write) -> Result<(), Failure> {
    let (desk, mut questions) = mpsc::unbounded_channel();
    let cwd = std::env::current_dir()?;
    let runtime = Builder::new(&cwd, cwd.join(".agent"))
        .session(SessionChoice::InMemory)
        .tools(ToolSelection::none())
        .plugin("tidy", Plugin::new().command(Tidy))
        .plugin("offline", offline::plugin())
        .model("offline/parrot")
        .ui(Desk(desk))
        .build()
        .await?;
    for text in ["Good morning to you", "/tidy the desk"] {
        say(&runtime.session(), text, &mut questions, out).await?;
    }
    runtime.close().await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    run(&mut std::io::stdout()).await
}

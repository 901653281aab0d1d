//! `bash`: runs a command line in the configured shell (`extensions.md` §8.3).
//!
//! The host starts the process, orders its output, and kills it at the time limit; dropping this
//! call kills it too. Here the output is followed, shown while it comes, and turned into the answer.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::{BoxFuture, ExecExit, ExecRequest, Process, ProcessEvent};
use pliant_sdk::tool::{Tool, ToolCtx, ToolResult, ToolSpec};
use serde_json::{Value, json};

use crate::output::Output;
use pliant_sdk::truncation::{Limit, Truncation, size};

/// Time between two partial results.
const UPDATE_EVERY: Duration = Duration::from_millis(100);

/// The longest time limit, 2^31 - 1 milliseconds.
const MAX_SECONDS: f64 = 2_147_483.647;

/// The arguments.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct BashInput {
    /// The command line, as for `bash -c`.
    command: String,
    /// Kill the command after so many seconds. Without it there is no limit.
    timeout: Option<f64>,
}

pub(crate) struct Bash;

impl Tool for Bash {
    type Input = BashInput;

    fn spec(&self) -> ToolSpec {
        let description = "Run a command line in bash, in the working directory. Standard output and \
            standard error come back together. Of long output the last 2000 lines or 50KB are shown, \
            whichever is less, and a note names a file with all of it. Standard input is empty, so \
            the command must not ask questions.";
        ToolSpec {
            annotations: Some(json!({"destructiveHint": true, "openWorldHint": true})),
            output_schema: Some(output_schema()),
            ..ToolSpec::new("bash", description)
                .snippet("Run a command line in bash")
                .guideline(
                    "Give bash a timeout when a command may not end by itself, and start servers \
                     with & and their output in a file.",
                )
        }
    }

    async fn execute(&self, input: BashInput, ctx: ToolCtx) -> Result<ToolResult, Error> {
        let request = ExecRequest {
            shell_command: Some(input.command),
            cwd: ctx.cwd().to_owned(),
            session_env: true,
            timeout_ms: input.timeout.map(milliseconds).transpose()?,
            ..ExecRequest::default()
        };
        let started = Instant::now();
        let mut process = ctx.host().exec(&request).await?;
        let mut output = Output::default();
        let end = follow(&mut process, &mut output, &ctx).await;
        // What still runs after a failure is killed here.
        drop(process);
        output.finish();
        Ok(answer(&output, &end, input.timeout, started.elapsed()))
    }
}

fn milliseconds(seconds: f64) -> Result<u64, Error> {
    if seconds > 0.0 && seconds <= MAX_SECONDS {
        let time = Duration::from_secs_f64(seconds);
        return Ok(u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1));
    }
    Err(Error::invalid(format!(
        "A timeout of {seconds} seconds is not possible: it must be above 0 and at most \
         {MAX_SECONDS}. Leave it out for no limit."
    )))
}

/// How a command came to its end.
enum End {
    Exited(ExecExit),
    Aborted,
    Lost(Error),
}

/// Reads until the end, and shows the output on the way.
async fn follow(process: &mut Process, output: &mut Output, ctx: &ToolCtx) -> End {
    let mut updates = Updates::default();
    loop {
        if ctx.cancelled() {
            return End::Aborted;
        }
        match next(process, &mut updates.timer).await {
            Next::Event(Ok(ProcessEvent::Output(bytes))) => {
                output.push(&bytes);
                updates.changed(output, ctx);
            }
            Next::Event(Ok(ProcessEvent::Exit(exit))) => return End::Exited(exit),
            Next::Event(Err(error)) if error.is(code::CANCELLED) => return End::Aborted,
            Next::Event(Err(error)) => return End::Lost(error),
            Next::Tick => updates.show(output, ctx),
        }
    }
}

enum Next {
    Event(Result<ProcessEvent, Error>),
    Tick,
}

type Timer = Option<BoxFuture<'static, ()>>;

/// The next event, or the timer. A wait for an event that the timer ends loses nothing.
async fn next(process: &mut Process, timer: &mut Timer) -> Next {
    let mut event = pin!(process.next());
    std::future::poll_fn(|cx| {
        if let Poll::Ready(event) = event.as_mut().poll(cx) {
            return Poll::Ready(Next::Event(event));
        }
        match timer.as_mut().map(|timer| timer.as_mut().poll(cx)) {
            Some(Poll::Ready(())) => Poll::Ready(Next::Tick),
            Some(Poll::Pending) | None => Poll::Pending,
        }
    })
    .await
}

/// Partial results, not too many: the first at once, later ones [`UPDATE_EVERY`], and after the last
/// output one more, so that silence does not leave an old picture.
#[derive(Default)]
struct Updates {
    shown: Option<Instant>,
    timer: Timer,
}

impl Updates {
    fn changed(&mut self, output: &Output, ctx: &ToolCtx) {
        if self.timer.is_some() {
            return;
        }
        let since = self.shown.map_or(UPDATE_EVERY, |shown| shown.elapsed());
        match UPDATE_EVERY.checked_sub(since) {
            None | Some(Duration::ZERO) => self.show(output, ctx),
            Some(wait) => {
                let host = ctx.host().clone();
                let ms = u64::try_from(wait.as_millis()).unwrap_or_default().max(1);
                // Without a timer service the update comes at once.
                self.timer = Some(Box::pin(async move { drop(host.sleep_ms(ms).await) }));
            }
        }
    }

    fn show(&mut self, output: &Output, ctx: &ToolCtx) {
        self.timer = None;
        self.shown = Some(Instant::now());
        let shown = output.shown();
        let mut partial = ToolResult::text(shown.content.clone());
        partial.details = details(&shown, output);
        ctx.update(&partial);
    }
}

fn answer(output: &Output, end: &End, limit: Option<f64>, wall: Duration) -> ToolResult {
    let shown = output.shown();
    let mut paragraphs = Vec::new();
    if shown.content.is_empty() {
        paragraphs.push("(nothing printed)".to_owned());
    } else {
        paragraphs.push(shown.content.clone());
    }
    paragraphs.extend(cut_note(&shown, output).map(|note| format!("[{note}]")));
    paragraphs.extend(background_note(end));
    let status = status(end, limit);
    let is_error = status.is_some();
    paragraphs.extend(status);
    ToolResult {
        is_error,
        details: details(&shown, output),
        structured_content: Some(structured(output, end, wall)),
        ..ToolResult::text(joined(&paragraphs))
    }
}

/// Paragraphs with a blank line between them; a single one stays as it is.
fn joined(paragraphs: &[String]) -> String {
    match paragraphs {
        [only] => only.clone(),
        [first, rest @ ..] => {
            let first = first.strip_suffix('\n').unwrap_or(first);
            format!("{first}\n\n{}", rest.join("\n\n"))
        }
        [] => String::new(),
    }
}

fn details(shown: &Truncation, output: &Output) -> Option<Value> {
    shown.truncated.then(|| {
        let mut details = json!({"truncation": shown});
        if let Some(path) = output.whole().path() {
            details["fullOutputPath"] = path.into();
        }
        details
    })
}

fn cut_note(shown: &Truncation, output: &Output) -> Option<String> {
    let part = match shown.truncated_by {
        None => return None,
        Some(_) if shown.last_line_partial => format!(
            "the last {} of line {}, which has {}",
            size(shown.output_bytes),
            shown.total_lines,
            size(output.last_line_bytes())
        ),
        Some(limit) => {
            let first = shown.total_lines - shown.output_lines + 1;
            let bytes = match limit {
                Limit::Lines => String::new(),
                Limit::Bytes => format!(" (at most {})", size(shown.max_bytes)),
            };
            format!(
                "lines {first}-{} of {}{bytes}",
                shown.total_lines, shown.total_lines
            )
        }
    };
    Some(format!("Shown: {part}. {}", output.whole().place()))
}

fn background_note(end: &End) -> Option<String> {
    match end {
        End::Exited(exit) if exit.background && !exit.timed_out => Some(
            "[Processes that it left in the background still run. What they print from now on is \
             not shown.]"
                .to_owned(),
        ),
        _ => None,
    }
}

/// The line that says what went wrong; none for success.
fn status(end: &End, limit: Option<f64>) -> Option<String> {
    match end {
        End::Exited(exit) if exit.timed_out => {
            let mut line = format!(
                "Timed out after {} seconds: the command and all it had started were killed.",
                limit.unwrap_or_default()
            );
            if let Some(code) = exit.code {
                line.push_str(&format!(
                    " The shell itself had exited before with code {code}, but background processes \
                     kept the output open."
                ));
            }
            Some(line)
        }
        End::Exited(ExecExit { code: Some(0), .. }) => None,
        End::Exited(ExecExit {
            code: Some(code), ..
        }) => Some(match code - 128 {
            signal @ 1..=64 => format!("Exit code: {code} (128 + signal {signal})"),
            _ => format!("Exit code: {code}"),
        }),
        End::Exited(_) => Some("The command ended without an exit code.".to_owned()),
        End::Aborted => Some("Aborted: the command and all it had started were killed.".to_owned()),
        End::Lost(error) => Some(format!("The command was lost and killed: {error}")),
    }
}

fn structured(output: &Output, end: &End, wall: Duration) -> Value {
    let (text, truncated) = output.structured();
    let (code, seconds) = match end {
        End::Exited(exit) => (exit.code, Duration::from_millis(exit.wall_ms).as_secs_f64()),
        End::Aborted | End::Lost(_) => (None, wall.as_secs_f64()),
    };
    let mut value = json!({"output": text, "truncated": truncated});
    if let Some(path) = output.whole().path() {
        value["full_output_path"] = path.into();
    }
    value["exit_code"] = code.into();
    value["wall_time_seconds"] = seconds.into();
    value
}

fn output_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "output": {"type": "string", "description": "At most 1 MiB: the first and the last half of it."},
            "truncated": {"type": "boolean", "description": "The middle of the output is left out."},
            "full_output_path": {"type": "string", "description": "File with the whole output, when it is long."},
            "exit_code": {"type": ["integer", "null"], "description": "Null when killed or lost."},
            "wall_time_seconds": {"type": "number"}
        },
        "required": ["output", "truncated", "exit_code", "wall_time_seconds"]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Waker};

    use pliant_sdk::Host;
    use pliant_sdk::host::{ByteStream, PollBytes, Services};
    use pliant_sdk::plugin::{CallCtx, Caller, Flow};
    use pliant_sdk::tool::ToolScene;

    /// What the host's process does next.
    #[derive(Clone)]
    enum Step {
        Print(&'static str),
        /// Nothing, so many polls long.
        Pause(u32),
        Sleep(u64),
        Abort,
        Fail(Error),
        Exit(ExecExit),
    }

    use Step::{Abort, Exit, Fail, Pause, Print, Sleep};

    /// A host with one process, and the caller of the tool.
    #[derive(Clone, Default)]
    struct Stage {
        steps: Vec<Step>,
        cancelled: Arc<AtomicBool>,
        requests: Arc<Mutex<Vec<ExecRequest>>>,
        updates: Arc<Mutex<Vec<ToolResult>>>,
    }

    struct Steps(std::vec::IntoIter<Step>, Stage);

    impl PollBytes for Steps {
        fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
            cx.waker().wake_by_ref();
            Poll::Ready(match self.0.next() {
                Some(Print(text)) => Some(Ok([b"o", text.as_bytes()].concat())),
                Some(Pause(0)) => return self.poll_next(cx),
                Some(Pause(polls)) => {
                    let mut rest = vec![Pause(polls - 1)];
                    rest.extend(self.0.by_ref());
                    self.0 = rest.into_iter();
                    return Poll::Pending;
                }
                Some(Sleep(ms)) => {
                    std::thread::sleep(Duration::from_millis(ms));
                    return self.poll_next(cx);
                }
                Some(Abort) => {
                    self.1.cancelled.store(true, Ordering::Relaxed);
                    return self.poll_next(cx);
                }
                Some(Fail(error)) => Some(Err(error)),
                Some(Exit(exit)) => Some(Ok(
                    [b"x".to_vec(), serde_json::to_vec(&exit).unwrap()].concat()
                )),
                None => None,
            })
        }
    }

    impl Services for Stage {
        fn call(&self, name: &str, _: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
            assert_eq!(name, "time.sleep");
            let mut polls = 0;
            Box::pin(std::future::poll_fn(move |cx| {
                polls += 1;
                cx.waker().wake_by_ref();
                if polls > 3 {
                    Poll::Ready(Ok(b"null".to_vec()))
                } else {
                    Poll::Pending
                }
            }))
        }

        fn open(
            &self,
            name: &str,
            payload: Vec<u8>,
        ) -> BoxFuture<'static, Result<ByteStream, Error>> {
            assert_eq!(name, "exec.stream");
            self.requests
                .lock()
                .unwrap()
                .push(serde_json::from_slice(&payload).unwrap());
            let stream = ByteStream::new(Steps(self.steps.clone().into_iter(), self.clone()));
            Box::pin(std::future::ready(Ok(stream)))
        }

        fn notify(&self, _: &str, _: &[u8]) {}
    }

    impl Caller for Stage {
        fn cancelled(&self) -> bool {
            self.cancelled.load(Ordering::Relaxed)
        }

        fn emit(&self, payload: &[u8]) -> Flow {
            self.updates
                .lock()
                .unwrap()
                .push(serde_json::from_slice(payload).unwrap());
            Flow::Continue
        }
    }

    impl Stage {
        fn new(steps: &[Step]) -> Self {
            Self {
                steps: steps.to_vec(),
                ..Self::default()
            }
        }

        fn run(&self, timeout: Option<f64>) -> Result<ToolResult, Error> {
            let call = CallCtx::new(Arc::new(self.clone()), Host::from_services(self.clone()));
            let scene = ToolScene {
                cwd: "/work".to_owned(),
                ..ToolScene::default()
            };
            let ctx = ToolCtx::new(call, "id".to_owned(), scene);
            let input = BashInput {
                command: "true".to_owned(),
                timeout,
            };
            let mut future = pin!(Bash.execute(input, ctx));
            loop {
                let polled = future
                    .as_mut()
                    .poll(&mut Context::from_waker(Waker::noop()));
                if let Poll::Ready(result) = polled {
                    return result;
                }
            }
        }

        fn updates(&self) -> Vec<String> {
            self.updates.lock().unwrap().iter().map(text).collect()
        }
    }

    fn text(result: &ToolResult) -> String {
        result.content.iter().filter_map(|c| c.as_text()).collect()
    }

    fn exit(code: i32) -> Step {
        Exit(ExecExit {
            code: Some(code),
            wall_ms: 1500,
            ..ExecExit::default()
        })
    }

    fn check(steps: &[Step], is_error: bool, expected: &str) {
        let result = Stage::new(steps).run(Some(5.0)).unwrap();
        assert_eq!(
            (text(&result).as_str(), result.is_error),
            (expected, is_error)
        );
        assert_eq!(result.details, None);
    }

    #[test]
    fn success_is_the_output_as_it_is() {
        check(&[Print("a\n"), Print("b\n"), exit(0)], false, "a\nb\n");
        check(&[exit(0)], false, "(nothing printed)");
    }

    #[test]
    fn an_exit_code_is_an_error_after_the_output() {
        check(&[Print("no\n"), exit(2)], true, "no\n\nExit code: 2");
        check(
            &[exit(137)],
            true,
            "(nothing printed)\n\nExit code: 137 (128 + signal 9)",
        );
        check(&[exit(255)], true, "(nothing printed)\n\nExit code: 255");
    }

    #[test]
    fn t04_background_processes_are_mentioned() {
        let exit = ExecExit {
            code: Some(0),
            background: true,
            ..ExecExit::default()
        };
        check(
            &[Print("done\n"), Exit(exit)],
            false,
            "done\n\n[Processes that it left in the background still run. What they print from now \
             on is not shown.]",
        );
    }

    #[test]
    fn t05_a_time_out_says_that_everything_was_killed() {
        let exit = ExecExit {
            timed_out: true,
            ..ExecExit::default()
        };
        let line = "Timed out after 5 seconds: the command and all it had started were killed.";
        check(
            &[Print("x"), Exit(exit.clone())],
            true,
            &format!("x\n\n{line}"),
        );
        let exit = ExecExit {
            code: Some(7),
            background: true,
            ..exit
        };
        check(
            &[Print("x"), Exit(exit)],
            true,
            &format!(
                "x\n\n{line} The shell itself had exited before with code 7, but background \
                 processes kept the output open."
            ),
        );
    }

    #[test]
    fn an_abort_keeps_the_output_so_far() {
        let line = "so far\n\nAborted: the command and all it had started were killed.";
        check(&[Print("so far\n"), Fail(Error::cancelled())], true, line);
        check(&[Print("so far\n"), Abort, Print(""), exit(0)], true, line);
    }

    #[test]
    fn a_lost_process_keeps_the_output_so_far() {
        let steps = [Print("so far\n"), Fail(Error::failed("it vanished."))];
        check(
            &steps,
            true,
            "so far\n\nThe command was lost and killed: it vanished.",
        );
    }

    #[test]
    fn the_host_is_asked_for_a_command_of_this_session() {
        let stage = Stage::new(&[exit(0)]);
        stage.run(Some(1.5)).unwrap();
        let request = stage.requests.lock().unwrap().remove(0);
        assert_eq!(request.shell_command.as_deref(), Some("true"));
        assert_eq!(
            (request.cwd.as_str(), request.timeout_ms),
            ("/work", Some(1500))
        );
        assert!(request.session_env && request.argv.is_empty() && request.env.is_empty());
    }

    #[test]
    fn time_limits_that_are_none_are_refused() {
        for (seconds, ms) in [(MAX_SECONDS, 2_147_483_647), (0.0001, 1)] {
            assert_eq!(milliseconds(seconds).unwrap(), ms);
        }
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, 2_147_483.648] {
            assert!(
                milliseconds(seconds)
                    .unwrap_err()
                    .message
                    .contains("at most 2147483.647")
            );
        }
        assert!(Stage::new(&[]).run(Some(0.0)).is_err());
    }

    #[test]
    fn a_process_that_ends_without_a_status_is_lost() {
        let result = Stage::new(&[]).run(None).unwrap();
        assert!(result.is_error && text(&result).contains("without a status"));
    }

    #[test]
    fn updates_are_throttled_and_the_last_output_is_shown_without_more() {
        let stage = Stage::new(&[
            Print("a"),
            Print("b"),
            Print("c"),
            Pause(9),
            Sleep(110),
            Print("d"),
            exit(0),
        ]);
        stage.run(None).unwrap();
        assert_eq!(stage.updates(), ["a", "abc", "abcd"]);
    }

    #[test]
    fn long_output_is_cut_and_the_whole_is_in_a_file() {
        let lines: &str = "12345678\n".repeat(2500).leak();
        let stage = Stage::new(&[Print(lines), exit(0)]);
        let result = stage.run(None).unwrap();
        let details = result.details.clone().unwrap();
        let path = details["fullOutputPath"].as_str().unwrap();
        let note = format!("\n\n[Shown: lines 501-2500 of 2500. Whole output: {path}]");
        assert_eq!(text(&result), lines[..9 * 2000 - 1].to_owned() + &note);
        assert_eq!(details["truncation"]["truncatedBy"], "lines");
        assert_eq!(std::fs::read_to_string(path).unwrap(), lines);
        let structured = result.structured_content.unwrap();
        assert_eq!(
            (&structured["output"], &structured["truncated"]),
            (&json!(lines), &json!(false))
        );
        assert_eq!(structured["full_output_path"], path);
        let update = stage.updates.lock().unwrap().remove(0);
        assert_eq!(update.details, Some(details.clone()));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn notes_tell_which_part_is_shown() {
        for (output, note) in [
            ("x".repeat(99).leak().to_owned() + "\n", None),
            (
                format!("{}\n", "y".repeat(99)).repeat(1000),
                Some("[Shown: lines 489-1000 of 1000 (at most 50.0KB). "),
            ),
            (
                "é".repeat(1_000_000),
                Some("[Shown: the last 50.0KB of line 1, which has 1.9MB. "),
            ),
        ] {
            let result = Stage::new(&[Print(output.leak()), exit(0)])
                .run(None)
                .unwrap();
            assert_eq!(note.is_some(), result.details.is_some());
            assert!(text(&result).contains(note.unwrap_or("x")), "{note:?}");
            if let Some(details) = result.details {
                std::fs::remove_file(details["fullOutputPath"].as_str().unwrap()).unwrap();
            }
        }
    }

    #[test]
    fn programs_get_the_facts() {
        let result = Stage::new(&[Print("a"), exit(3)]).run(None).unwrap();
        assert_eq!(
            result.structured_content,
            Some(
                json!({"output": "a", "truncated": false, "exit_code": 3, "wall_time_seconds": 1.5})
            )
        );
    }

    #[test]
    fn the_declaration_names_its_arguments() {
        let schema = pliant_sdk::tool::schema_of::<BashInput>();
        assert_eq!(schema["required"], json!(["command"]));
        assert_eq!(schema["properties"]["timeout"]["type"], "number");
        assert!(
            Bash.spec()
                .prompt_guidelines
                .iter()
                .all(|rule| rule.contains("bash"))
        );
    }
}

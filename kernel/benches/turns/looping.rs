//! A model that calls a tool again and again, both in this process: the time from one request to the
//! next is the kernel's own, the writing of the session included.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pliant_kernel::pipeline::Prompt;
use pliant_kernel::registry::{Generation, InProcess, Rank, Source};
use pliant_sdk::message::{AssistantMessage, ToolCall};
use pliant_sdk::provider::{Provider, ProviderSpec, StreamOut, StreamRequest, Wire};
use pliant_sdk::stream::MessageWriter;
use pliant_sdk::tool::{ToolCtx, ToolResult, ToolSpec};
use pliant_sdk::{Error, Model, Plugin, Tool};
use pliant_tests::table::{Table, Unit, middle};
use serde_json::{Map, json};

use crate::child::{self, anonymous_kib, ms};
use crate::handlers;

pub const FLAG: &str = "--loop";

const TURNS: usize = 1_000;
const RUNS: usize = 3;

/// Handlers of every event, and what the median turn may take.
const CASES: [(usize, f64); 2] = [(0, 0.3), (50, 0.5)];

/// Adds the rows of every case.
pub fn measure(table: &mut Table) {
    for (handlers, budget) in CASES {
        eprintln!("measuring: {TURNS} turns with {handlers} handlers of every event");
        let (turns, count) = (TURNS.to_string(), handlers.to_string());
        let runs: Vec<_> = (0..RUNS)
            .map(|_| child::run(&[FLAG, &turns, &count]))
            .collect();
        let figure = |name: &str| -> Vec<f64> {
            let figures = runs.iter().filter_map(|run| run[name].as_f64());
            figures.collect()
        };
        let what = |what: &str| format!("{TURNS} turns, {handlers} handlers: {what}");
        table.row(what("each"), Unit::Ms, figure("eachMs"), budget);
        table.row(what("CPU of each"), Unit::Ms, figure("cpuMs"), budget);
        table.row(
            what("last tenth to first"),
            Unit::Times,
            figure("growth"),
            1.1,
        );
        table.row(
            what("memory, 2nd half to 1st"),
            Unit::Times,
            figure("memory"),
            1.2,
        );
        let kib = middle(&figure("kibPerTurn"));
        table.note(format!("{} {kib:.1} KiB", what("memory of a turn:")));
    }
}

/// In the copy: runs the loop and writes its figures.
pub fn run(turns: &str, handlers: &str) -> ExitCode {
    let number = |text: &str| text.parse().expect("a number was given");
    let (turns, handlers): (usize, usize) = (number(turns), number(handlers));
    let dir = tempfile::tempdir().expect("the temporary directory is writable");
    let kernel = child::kernel(dir.path(), &[]);
    let requests = Requests::default();
    let plugin = Plugin::new()
        .wire(Caller {
            turns,
            requests: requests.clone(),
        })
        .provider(Service)
        .tool(Look);
    let source = Source::inline("looping", Rank::User);
    let looping = InProcess::new(source, plugin).expect("every contribution has a name");
    let looping: Arc<dyn Generation> = Arc::new(looping);
    let idle = handlers::of_every_event(handlers);
    let sources = idle.chain([looping]);
    kernel.registry().publish_all(sources.collect());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("an event loop starts");
    let cpu = runtime.block_on(async {
        let session = child::session(&kernel, "local", "m").await;
        let reader = tokio::spawn(child::count_pieces(session.subscribe()));
        let before = child::cpu();
        let end = session.prompt(Prompt::text("Look around."), |_| ()).await;
        let cpu = child::cpu() - before;
        assert!(end.is_ok_and(|end| end.failure.is_none()));
        session.end_subscriptions();
        assert!(reader.await.is_ok_and(|pieces| pieces > turns));
        cpu
    });
    println!("{}", figures(&requests.lock(), cpu));
    ExitCode::SUCCESS
}

fn figures(requests: &[Request], cpu: Duration) -> serde_json::Value {
    let times: Vec<f64> = requests
        .windows(2)
        .map(|pair| ms(pair[1].at - pair[0].at))
        .collect();
    let turns = times.len();
    let (first, last) = (
        middle(&times[..turns / 10]),
        middle(&times[turns - turns / 10..]),
    );
    // The first tenth also makes what is made once.
    let [start, half, end] = [turns / 10, turns * 11 / 20, turns].map(|at| requests[at].kib);
    #[expect(clippy::cast_precision_loss, reason = "thousands")]
    let count = turns as f64;
    json!({
        "eachMs": middle(&times), "cpuMs": ms(cpu) / count, "growth": last / first,
        "memory": (end - half) / (half - start), "kibPerTurn": (end - start) / count / 0.9,
    })
}

/// A request that came to the model.
struct Request {
    at: Instant,
    /// Memory then; only looked at where it is asked for, for looking takes time.
    kib: f64,
}

#[derive(Clone, Default)]
struct Requests(Arc<Mutex<Vec<Request>>>);

impl Requests {
    fn lock(&self) -> MutexGuard<'_, Vec<Request>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A model that calls the tool so many times.
struct Caller {
    turns: usize,
    requests: Requests,
}

impl Wire for Caller {
    fn api(&self) -> &'static str {
        "in-process"
    }

    async fn stream(
        &self,
        request: StreamRequest,
        out: StreamOut,
    ) -> Result<AssistantMessage, Error> {
        let at = Instant::now();
        let number = {
            let mut requests = self.requests.lock();
            let number = requests.len();
            let looks = [self.turns / 10, self.turns * 11 / 20, self.turns];
            let kib = if looks.contains(&number) {
                anonymous_kib()
            } else {
                0.0
            };
            requests.push(Request { at, kib });
            number
        };
        let mut writer = MessageWriter::new(request.answer(), &out);
        // As services do; without it the kernel would have to estimate.
        writer.message_mut().usage.input = 100;
        if number < self.turns {
            writer.tool_call(ToolCall {
                id: format!("call_{number}"),
                name: "look".to_owned(),
                arguments: Map::from_iter([("path".to_owned(), json!("small.txt"))]),
                ..ToolCall::default()
            });
        } else {
            writer.text("That is all.");
        }
        Ok(writer.finish(None))
    }
}

struct Service;

impl Provider for Service {
    fn spec(&self) -> ProviderSpec {
        ProviderSpec {
            name: "local".to_owned(),
            keyless: true,
            ..ProviderSpec::default()
        }
    }

    fn models(&self) -> Vec<Model> {
        vec![Model {
            id: "m".to_owned(),
            provider: "local".to_owned(),
            api: "in-process".to_owned(),
            // Known, so that every turn is held against it, and never full.
            context_window: 200_000_000,
            max_tokens: 1_000,
            ..Model::default()
        }]
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Place {
    path: String,
}

/// A tool that has its answer at once.
struct Look;

impl Tool for Look {
    type Input = Place;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("look", "Looks at a file.")
    }

    async fn execute(&self, place: Place, _: ToolCtx) -> Result<ToolResult, Error> {
        Ok(ToolResult::text(format!("{}: small file\n", place.path)))
    }
}

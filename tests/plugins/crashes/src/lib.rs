//! Fixture: a plugin that takes its process down, in each way there is, at its start or in its tool.

use pliant_sdk::{Error, Host, Init, Plugin, Tool, ToolCtx, ToolResult, ToolSpec};

/// The arguments.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct CrashInput {
    /// `segfault`, `abort`, `exit`, `overflow`, `memory`, `spin`, `sleep` or anything else for none.
    how: String,
}

struct Crash;

impl Tool for Crash {
    type Input = CrashInput;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("crash", "End the process.")
    }

    async fn execute(&self, input: CrashInput, ctx: ToolCtx) -> Result<ToolResult, Error> {
        if input.how == "wait" {
            ctx.host().sleep_ms(60_000).await?;
        }
        crash(&input.how);
        Ok(ToolResult::text(format!("process {}", std::process::id())))
    }
}

fn crash(how: &str) {
    eprintln!("about to {how}");
    match how {
        "segfault" => segfault(),
        "abort" => std::process::abort(),
        "exit" => std::process::exit(3),
        "overflow" => println!("{}", overflow(1)),
        "memory" => {
            let mut kept = Vec::new();
            loop {
                kept.push(vec![1_u8; 16 << 20]);
            }
        }
        "spin" => loop {
            std::hint::spin_loop();
        },
        "sleep" => loop {
            std::thread::sleep(std::time::Duration::from_secs(1));
        },
        "panic" => panic!("as asked"),
        _ => {}
    }
}

/// Writes where nothing is.
#[allow(unsafe_code, reason = "the fault is the fixture's purpose")]
fn segfault() {
    let nowhere = std::hint::black_box(8) as *mut u8;
    // SAFETY: there is none.
    unsafe { nowhere.write_volatile(1) }
}

#[allow(unconditional_recursion)]
fn overflow(depth: u64) -> u64 {
    let pad = std::hint::black_box([depth; 1024]);
    overflow(depth + 1) + pad[7]
}

fn create(_host: Host, init: Init) -> Result<Plugin, Error> {
    if let Some(how) = init.settings.get("start").and_then(|how| how.as_str()) {
        crash(how);
    }
    Ok(Plugin::new().tool(Crash))
}

pliant_sdk::export! {
    name: "crashes",
    provides: { tool "crash" },
    create: create,
}

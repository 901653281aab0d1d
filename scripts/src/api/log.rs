//! `log(text)`, `log(level, text)`; `print` and `debug` go the same way, because standard output
//! belongs to the front end.

use pliant_sdk::host::LogLevel;
use rhai::{Dynamic, Engine};

use crate::call::{Call, ScriptResult, fail};
use crate::convert;

pub(super) fn install(engine: &mut Engine) {
    engine.register_fn("log", |text: Dynamic| {
        write(LogLevel::Info, &convert::display(&text))
    });
    engine.register_fn("log", |level: &str, text: Dynamic| {
        write(read_level(level)?, &convert::display(&text))
    });
    engine.on_print(|text| {
        // Outside of a call there is no log; nothing else is printed to.
        let _ = write(LogLevel::Info, text);
    });
    engine.on_debug(|text, _, position| {
        let _ = write(LogLevel::Debug, &format!("{position:?} {text}"));
    });
}

fn write(level: LogLevel, text: &str) -> ScriptResult<()> {
    let call = Call::current()?;
    call.host()
        .log(level, &format!("{}: {text}", call.program().name()));
    Ok(())
}

fn read_level(name: &str) -> ScriptResult<LogLevel> {
    Ok(match name {
        "error" => LogLevel::Error,
        "warn" | "warning" => LogLevel::Warn,
        "info" => LogLevel::Info,
        "debug" => LogLevel::Debug,
        "trace" => LogLevel::Trace,
        _ => {
            return Err(fail(format!(
                "log has no level \"{name}\"; it takes error, warn, info, debug, trace"
            )));
        }
    })
}

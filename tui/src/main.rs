//! pliant: parse the command line, boot the kernel, choose the mode, exit.

mod args;
mod launch;
mod modes;
mod say;

use std::process::ExitCode;

use args::Args;

fn main() -> ExitCode {
    let args = Args::of_process();
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            say::error(format_args!("No event loop can be started: {error}."));
            return ExitCode::FAILURE;
        }
    };
    let status = runtime.block_on(async {
        match launch::run(&args).await {
            Ok(status) => status,
            Err(error) => {
                say::error(format_args!("{error:#}"));
                1
            }
        }
    });
    // A script or plugin that never returns must not keep the process.
    runtime.shutdown_background();
    ExitCode::from(status)
}

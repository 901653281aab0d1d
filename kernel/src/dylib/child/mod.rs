//! A plugin in a process of its own (`plugin-abi.md` §7): the same library, loaded by a child of the same
//! program, which speaks frames over a socket. What it does to its process it does to nobody else; it
//! can be ended when it hangs, limited in what it uses, and really unloaded.

mod frame;
mod limits;
mod link;

mod guest;

mod host;
mod isolated;
mod probe;
mod process;

pub use limits::ChildLimits;
pub use process::HostProgram;

pub(super) use isolated::Isolated;
pub(super) use probe::probe;

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// Runs as a child: loads what the kernel says over the standard input, and serves it until the kernel is
/// gone. Answers the status that the process should end with. To be called before a program does
/// anything else, when it was started as [`HostProgram`] says.
#[must_use]
pub fn serve() -> u8 {
    let link = std::io::stdin().as_fd().try_clone_to_owned();
    let served = link.and_then(|link| {
        // The plugin must not read the link, nor those it starts inherit it.
        let nothing = std::fs::File::open("/dev/null")?;
        rustix::stdio::dup2_stdin(&nothing)?;
        guest::serve(UnixStream::from(link))
    });
    // Threads of the plugin may never end.
    match served {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("The link to pliant broke: {error}.");
            1
        }
    }
}

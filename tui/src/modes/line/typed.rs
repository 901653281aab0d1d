//! Lines of the terminal.

use std::io::BufRead;

use tokio::sync::mpsc;

/// Lines of the terminal, read on a thread of their own, one at a time, so that nothing is read
/// while an answer runs that the user did not mean for pliant.
pub(super) struct Lines {
    ask: std::sync::mpsc::Sender<()>,
    lines: mpsc::Receiver<Option<String>>,
}

impl Default for Lines {
    fn default() -> Self {
        let (ask, asked) = std::sync::mpsc::channel();
        let (tx, lines) = mpsc::channel(1);
        std::thread::spawn(move || {
            while asked.recv().is_ok() {
                if tx.blocking_send(read_line()).is_err() {
                    return;
                }
            }
        });
        Self { ask, lines }
    }
}

impl Lines {
    /// Wants one more line.
    pub(super) fn ask(&self) {
        // A thread that is gone shows as the end of the input.
        let _ = self.ask.send(());
    }

    /// The line that was asked for; `None` at the end of the input.
    pub(super) async fn next(&mut self) -> Option<String> {
        self.lines.recv().await.flatten()
    }
}

fn read_line() -> Option<String> {
    let mut line = Vec::new();
    match std::io::stdin().lock().read_until(b'\n', &mut line) {
        Ok(1..) => Some(
            String::from_utf8_lossy(&line)
                .trim_end_matches(['\r', '\n'])
                .to_owned(),
        ),
        _ => None,
    }
}

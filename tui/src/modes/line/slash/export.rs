//! `/export`: the session as a file that others can read.

use std::path::Path;

use super::{Said, Slash};

pub(super) const EXPORT: Slash = Slash {
    name: "export",
    takes: "[FILE]",
    about: "Write this session as a web page, or as JSONL if the file is named so.",
    run: |runtime, word| {
        Box::pin(async move {
            let file = Some(Path::new(word)).filter(|_| !word.is_empty());
            let written = runtime.session().export_html(file).await;
            let written = written.map_err(|error| error.to_string())?;
            Ok(Said::Text(format!("[exported to {}]\n", written.display())))
        })
    },
};

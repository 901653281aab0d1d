//! `--list-models`: the usable models as a table.

use std::fs::File;
use std::io::{BufWriter, Write};

use pliant_kernel::models::Catalog;
use pliant_sdk::Model;

use super::unwritable;
use crate::say;

/// Prints the models of every provider that can be used, those that hold the searched words only.
///
/// # Errors
/// When stdout cannot be written.
pub async fn run(catalog: &Catalog, search: &str, output: &File) -> anyhow::Result<u8> {
    if let Some(problem) = catalog.error() {
        say::warning(problem);
    }
    let words: Vec<String> = search.split_whitespace().map(str::to_lowercase).collect();
    let mut models = Vec::new();
    for provider in catalog
        .providers()
        .into_iter()
        .filter(|id| catalog.usable(id))
    {
        match catalog.models(&provider).await {
            Ok((found, problems)) => {
                problems.iter().for_each(say::warning);
                models.extend(found.into_iter().filter(|model| matches(model, &words)));
            }
            Err(error) => say::warning(format_args!(
                "The models of {provider} are not known: {error}"
            )),
        }
    }
    match print(&models, output) {
        Ok(()) => Ok(u8::from(catalog.error().is_some())),
        Err(error) => unwritable(&error),
    }
}

fn matches(model: &Model, words: &[String]) -> bool {
    let text = format!("{} {}", model.reference(), model.name).to_lowercase();
    words.iter().all(|word| text.contains(word))
}

fn print(models: &[Model], output: &File) -> std::io::Result<()> {
    let mut out = BufWriter::new(output);
    if models.is_empty() {
        writeln!(
            out,
            "No usable model matches. Set a provider's key variable, or add a provider to models.json."
        )?;
        return out.flush();
    }
    let width = |of: fn(&Model) -> &String| {
        models
            .iter()
            .map(|m| of(m).chars().count())
            .max()
            .unwrap_or(0)
    };
    let (provider, id) = (width(|m| &m.provider), width(|m| &m.id));
    writeln!(
        out,
        "{:provider$}  {:id$}  {:>9}  {:>9}  thinking  images",
        "provider", "model", "context", "output"
    )?;
    for model in models {
        let yes = |flag: bool| if flag { "yes" } else { "no" };
        writeln!(
            out,
            "{:provider$}  {:id$}  {:>9}  {:>9}  {:8}  {}",
            model.provider,
            model.id,
            model.context_window,
            model.max_tokens,
            yes(model.reasoning),
            yes(model.takes_images())
        )?;
    }
    out.flush()
}

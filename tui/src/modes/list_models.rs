//! `--list-models`: the usable models as a table.

use std::fs::File;

use pliant_kernel::models::Catalog;
use pliant_sdk::Model;

use super::tell;
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
    models.sort_by(|a, b| (&a.provider, &a.id).cmp(&(&b.provider, &b.id)));
    tell(output, &table(&models, search))
}

/// Each word stands in the name, or its letters do in their order.
fn matches(model: &Model, words: &[String]) -> bool {
    let text = format!("{} {}", model.reference(), model.name).to_lowercase();
    let fits = |word: &String| {
        let mut letters = text.chars();
        word.chars()
            .all(|wanted| letters.any(|letter| letter == wanted))
    };
    words.iter().all(fits)
}

fn table(models: &[Model], search: &str) -> String {
    if models.is_empty() {
        return match search {
            "" => "No model can be used. Set a provider's key variable, or add a provider to models.json.\n".to_owned(),
            _ => format!("No usable model matches \"{search}\".\n"),
        };
    }
    let yes = |flag: bool| if flag { "yes" } else { "no" }.to_owned();
    let head = [
        "provider", "model", "context", "max-out", "thinking", "images",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(models.iter().map(|model| {
        [
            model.provider.clone(),
            model.id.clone(),
            short(model.context_window),
            short(model.max_tokens),
            yes(model.reasoning),
            yes(model.takes_images()),
        ]
    }));
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    let line = |row: &[String; 6]| {
        let cells = row.iter().zip(widths);
        let cells = cells.map(|(cell, width)| format!("{cell:width$}  "));
        format!("{}\n", cells.collect::<String>().trim_end())
    };
    rows.iter().map(line).collect()
}

/// A number of tokens as people say it.
fn short(tokens: u64) -> String {
    let (unit, name) = match tokens {
        1_000_000.. => (1_000_000, "M"),
        1_000.. => (1_000, "K"),
        _ => return tokens.to_string(),
    };
    if tokens.is_multiple_of(unit) {
        return format!("{}{name}", tokens / unit);
    }
    let tenths = (tokens.saturating_mul(10) + unit / 2) / unit;
    format!("{}.{}{name}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(id: &str) -> Model {
        let fields = serde_json::json!({"id": id, "provider": "p", "api": "a", "name": "Big One"});
        serde_json::from_value(fields).unwrap()
    }

    #[test]
    fn a_search_finds_letters_in_their_order() {
        let found = |search: &str| {
            let words: Vec<_> = search.split_whitespace().map(str::to_owned).collect();
            matches(&model("sonnet-4"), &words)
        };
        assert!(found("") && found("son 4") && found("snt4") && found("big") && found("p/so"));
        assert!(!found("4sonnet") && !found("son x"));
    }

    #[test]
    fn columns_are_as_wide_as_what_stands_in_them() {
        let shown = table(&[model("m"), model("a-longer-name")], "");
        let lines: Vec<_> = shown.lines().collect();
        let at = lines[0].find("context").unwrap_or_default();
        assert!(
            lines.iter().all(|line| line.as_bytes()[at - 1] == b' '),
            "{shown}"
        );
        assert_eq!(
            (short(999), short(128_000), short(4_096), short(1_000_000)),
            ("999".into(), "128K".into(), "4.1K".into(), "1M".into())
        );
        assert_eq!(short(1_500_000), "1.5M");
    }
}

//! A tool for the model.

use pliant_sdk::{Error, Host, Init, Plugin, Tool, ToolCtx, ToolResult, ToolSpec};

/// The arguments. Doc comments become the descriptions that the model sees.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// The text to count in.
    text: String,
}

struct CountWords;

impl Tool for CountWords {
    type Input = Input;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("count_words", "Count the words of a text.")
    }

    async fn execute(&self, input: Input, _ctx: ToolCtx) -> Result<ToolResult, Error> {
        let words = input.text.split_whitespace().count();
        Ok(ToolResult::text(format!("{words} words")))
    }
}

fn create(_host: Host, _init: Init) -> Result<Plugin, Error> {
    Ok(Plugin::new().tool(CountWords))
}

pliant_sdk::export! {
    name: "my-plugin",
    provides: { tool "count_words" },
    create: create,
}

#[cfg(test)]
mod tests {
    use pliant_sdk::testing::Bench;
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_counted() {
        let plugin = create(Bench::host(), Init::default()).unwrap();
        let bench = Bench::new(plugin);
        let result = bench.tool("count_words", json!({"text": "one two three"})).unwrap();
        assert_eq!(Bench::text(&result), "3 words");
    }
}

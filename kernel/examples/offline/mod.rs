//! A model for the examples, so that they need no key and no network. `use TOOL {…}` makes it call a
//! tool; what a tool answers it passes on; anything else it says back, word by word.

use pliant_kernel::sdk::message::{AssistantMessage, ToolCall, joined_text};
use pliant_kernel::sdk::provider::{Provider, ProviderSpec, StreamOut, StreamRequest, Wire};
use pliant_kernel::sdk::stream::MessageWriter;
use pliant_kernel::sdk::{Error, Message, Model, Plugin};

/// A provider `offline` with a model `parrot`, and the wire that they speak.
pub fn plugin() -> Plugin {
    Plugin::new().wire(Parrot).provider(Offline)
}

struct Offline;

impl Provider for Offline {
    fn spec(&self) -> ProviderSpec {
        ProviderSpec {
            name: "offline".into(),
            keyless: true,
            ..ProviderSpec::default()
        }
    }

    fn models(&self) -> Vec<Model> {
        vec![Model {
            id: "parrot".into(),
            provider: "offline".into(),
            api: "parrot".into(),
            ..Model::default()
        }]
    }
}

struct Parrot;

impl Wire for Parrot {
    fn api(&self) -> &'static str {
        "parrot"
    }

    async fn stream(
        &self,
        request: StreamRequest,
        out: StreamOut,
    ) -> Result<AssistantMessage, Error> {
        let mut writer = MessageWriter::new(request.answer(), &out);
        let answer = match request.messages.last().map(|message| &**message) {
            Some(Message::User(user)) => {
                let text = user.content.joined_text("");
                if let Some((name, arguments)) = text.strip_prefix("use ").and_then(called) {
                    writer.tool_call(ToolCall {
                        id: format!("call-{}", request.messages.len()),
                        name: name.to_owned(),
                        arguments,
                        ..ToolCall::default()
                    });
                    return Ok(writer.finish(None));
                }
                format!("You said: {text}")
            }
            Some(Message::ToolResult(result)) => {
                let said = joined_text(&result.content, "");
                format!("{} answered: {said}", result.tool_name)
            }
            _ => return Err(Error::failed("nobody said anything")),
        };
        answer
            .split_inclusive(' ')
            .for_each(|word| writer.text(word));
        Ok(writer.finish(None))
    }
}

fn called(text: &str) -> Option<(&str, serde_json::Map<String, serde_json::Value>)> {
    let (name, arguments) = text.split_once(' ')?;
    Some((name, serde_json::from_str(arguments).ok()?))
}

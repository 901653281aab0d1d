//! Themes, for who draws with their colours or lets the user choose one (`extensions.md` §5.5). The list and
//! the colours are there in every mode; another theme can be shown only where there is an interface.

use pliant_sdk::Error;
use pliant_sdk::error::code;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Allowed, Service};
use crate::host::actions::Actions;
use crate::theme::{Appearance, Theme, Token};

pub(super) const SERVICES: &[Service] = &[
    Service {
        name: "theme.list",
        allowed: Allowed::Anywhere,
        run: |session, _| {
            Box::pin(async move {
                let resources = session.prompt.resources().current();
                Ok(resources.themes().all().map(|theme| about(theme)).collect())
            })
        },
    },
    Service {
        name: "theme.get",
        allowed: Allowed::Anywhere,
        run: |session, ask| {
            Box::pin(async move {
                let Named { name } = serde_json::from_value(ask.payload)?;
                let resources = session.prompt.resources().current();
                let theme = resources.themes().get(&name);
                Ok(theme.map_or(Value::Null, |theme| with_colours(theme)))
            })
        },
    },
    Service {
        name: "theme.set",
        allowed: Allowed::Anywhere,
        run: |session, ask| {
            Box::pin(async move {
                let Named { name } = serde_json::from_value(ask.payload)?;
                let resources = session.prompt.resources().current();
                if resources.themes().get(&name).is_none() {
                    let message = format!("There is no theme \"{name}\".");
                    return Err(Error::new(code::NOT_FOUND, message));
                }
                session.ui().set_theme(&name).map(|()| Value::Null)
            })
        },
    },
];

#[derive(Deserialize)]
struct Named {
    name: String,
}

fn about(theme: &Theme) -> Value {
    let mut about = json!({"name": theme.name()});
    if let Some(file) = theme.file() {
        about["path"] = json!(file);
    }
    if let Some(appearance) = theme.appearance() {
        about["appearance"] = match appearance {
            Appearance::Dark => "dark".into(),
            Appearance::Light => "light".into(),
        };
    }
    about
}

/// Colours are written as a file would write them, without variables.
fn with_colours(theme: &Theme) -> Value {
    let colour = |token: &Token| (token.name().to_owned(), theme.colour(*token).to_json());
    let mut about = about(theme);
    about["colors"] = Value::Object(Token::ALL.iter().map(colour).collect::<Map<_, _>>());
    about
}

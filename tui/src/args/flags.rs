//! Options that extensions declare. They are known only when the extensions are loaded, so what was
//! typed waits here until then (`interfaces.md` §1.1, `extensions.md` §4.6).

use clap::error::{ContextKind, ContextValue};
use pliant_sdk::flag::{FlagKind, FlagSpec};
use serde_json::Value;

use super::{Args, help};

/// A long option that is not built in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagWord {
    /// Without the dashes.
    pub name: String,
    /// What came with it, or after it.
    pub value: Option<String>,
    /// The value came with it: `--name=value`.
    pub joined: bool,
    /// How many messages stood before it.
    pub before: usize,
}

impl Args {
    /// What was given for the flags that are declared. A word that was taken for the value of a flag
    /// that has none is the message that it was meant to be.
    ///
    /// # Errors
    /// A sentence about an option that nobody declared, or one without its value.
    pub fn settle_flags(&mut self, declared: &[FlagSpec]) -> Result<Vec<(String, Value)>, String> {
        let mut given = Vec::new();
        let mut given_back = 0;
        for word in std::mem::take(&mut self.flags) {
            let FlagWord {
                name,
                value,
                joined,
                before,
            } = word;
            let Some(flag) = declared.iter().find(|flag| flag.name == name) else {
                return Err(unknown(&name));
            };
            let value = match (flag.kind, value) {
                (FlagKind::String, Some(text)) => Value::String(text),
                (FlagKind::String, None) => {
                    return Err(format!("The option --{name} needs a value: --{name}=TEXT."));
                }
                (FlagKind::Boolean, Some(text)) if joined => Value::Bool(text != "false"),
                (FlagKind::Boolean, text) => {
                    if let Some(text) = text {
                        self.messages.insert(before + given_back, text);
                        given_back += 1;
                    }
                    Value::Bool(true)
                }
            };
            given.push((name, value));
        }
        Ok(given)
    }
}

fn unknown(name: &str) -> String {
    let option = format!("--{name}");
    let tried = help::command()
        .no_binary_name(true)
        .try_get_matches_from([&option]);
    let near = tried
        .err()
        .and_then(|error| match error.get(ContextKind::SuggestedArg) {
            Some(ContextValue::String(near)) => Some(format!(" Do you mean {near}?")),
            _ => None,
        });
    let shown: String = option
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(40)
        .collect();
    format!(
        "There is no option {shown}, and no extension declares one.{}",
        near.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    type Settled = (Vec<(String, Value)>, Vec<String>);

    fn settled(words: &[&str]) -> Result<Settled, String> {
        let declared = [
            FlagSpec::boolean("plan", ""),
            FlagSpec::string("tone", "").or("plain"),
        ];
        let mut args = Args::read(words.iter().map(Into::into))?;
        let given = args.settle_flags(&declared)?;
        Ok((given, args.messages))
    }

    #[test]
    fn a_flag_takes_a_value_only_if_it_has_one() {
        // extensions §4.6
        let (given, messages) =
            settled(&["a", "--plan", "b", "c", "--tone", "dry", "--plan", "d"]).unwrap();
        let plan = || ("plan".to_owned(), json!(true));
        assert_eq!(given, [plan(), ("tone".to_owned(), json!("dry")), plan()]);
        assert_eq!(messages, ["a", "b", "c", "d"]);
        let (given, _) = settled(&["--tone=", "--plan=false"]).unwrap();
        assert_eq!((&given[0].1, &given[1].1), (&json!(""), &json!(false)));
    }

    #[test]
    fn an_option_that_nobody_declared_is_a_mistake_and_the_nearest_one_is_named() {
        let error = settled(&["--modle", "x"]).unwrap_err();
        assert!(
            error.contains("--modle") && error.contains("--model?"),
            "{error}"
        );
        let error = settled(&["--zzz"]).unwrap_err();
        assert!(
            error.contains("--zzz") && !error.contains("mean"),
            "{error}"
        );
        assert!(settled(&["--tone"]).unwrap_err().contains("--tone"));
        assert!(settled(&["--=x"]).is_err() && settled(&["---\nx"]).is_err());
    }
}

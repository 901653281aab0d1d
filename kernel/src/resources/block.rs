//! The block that a skill becomes in a prompt. Its shape is kept to the letter: pi and whoever shows
//! stored sessions recognise it (P21, P23).

use super::skills::Skill;

/// A prompt that begins with a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillBlock<'a> {
    /// The skill.
    pub name: &'a str,
    /// Its file.
    pub location: &'a str,
    /// What the model is told by it.
    pub content: &'a str,
    /// What the user said beside.
    pub user_text: Option<&'a str>,
}

const END: &str = "\n</skill>";

impl<'a> SkillBlock<'a> {
    /// The block of a skill, with its text, and what the user said.
    #[must_use]
    pub fn write(skill: &Skill, text: &str, user_text: &str) -> String {
        let Skill { name, file, .. } = skill;
        let mut block = format!(
            "<skill name=\"{name}\" location=\"{}\">\nReferences are relative to {}.\n\n{}{END}",
            file.display(),
            skill.base_dir().display(),
            text.trim()
        );
        let user_text = user_text.trim();
        if !user_text.is_empty() {
            block.push_str("\n\n");
            block.push_str(user_text);
        }
        block
    }

    /// Recognises a prompt that [`SkillBlock::write`] made.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let (name, rest) = text
            .strip_prefix("<skill name=\"")?
            .split_once("\" location=\"")?;
        let (location, rest) = rest.split_once("\">\n")?;
        // The last end that can be one: a skill's text may speak of skills, and is longer than what
        // a user types.
        let mut ends = rest.rmatch_indices(END);
        let (content, user_text) = ends.find_map(|(at, _)| {
            let after = &rest[at + END.len()..];
            let user_text = match after {
                "" => None,
                after => Some(after.strip_prefix("\n\n").filter(|text| !text.is_empty())?),
            };
            Some((&rest[..at], user_text))
        })?;
        Some(Self {
            name,
            location,
            content,
            user_text,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Map;

    use super::*;

    fn skill(name: &str, file: &str) -> Skill {
        Skill {
            name: name.to_owned(),
            description: "D.".to_owned(),
            file: file.into(),
            scope: crate::settings::Scope::User,
            hidden: false,
            fields: Map::new(),
        }
    }

    #[test]
    fn the_block_has_its_bytes() {
        // P21
        let skill = skill("tidy", "/s/tidy/SKILL.md");
        assert_eq!(
            SkillBlock::write(&skill, "\nDo it.\n", " now \n"),
            "<skill name=\"tidy\" location=\"/s/tidy/SKILL.md\">\nReferences are relative to /s/tidy.\n\nDo it.\n</skill>\n\nnow"
        );
        assert!(SkillBlock::write(&skill, "Do it.", " ").ends_with("Do it.\n</skill>"));
    }

    #[test]
    fn other_texts_are_no_blocks() {
        // P23
        for text in [
            "",
            "x <skill name=\"a\" location=\"b\">\nc\n</skill>",
            "<skill name=\"a\">\nc\n</skill>",
            "<skill name=\"a\" location=\"b\">\nc",
            "<skill name=\"a\" location=\"b\">\nc\n</skill> d",
            "<skill name=\"a\" location=\"b\">\nc\n</skill>\nd",
        ] {
            assert_eq!(SkillBlock::parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn invariant_32_a_block_parses_back(
            name in "[a-z0-9<>&' -]{1,12}",
            folder in "[a-z\"<> é]{1,9}",
            text in "([a-z<>/\n]|</skill>|\n</skill>\n\n|<skill name=\"a\" location=\"b\">\n){0,12}",
            user_text in "[a-z<>/\"\n é]{0,20}",
        ) {
            let skill = skill(&name, &format!("/s/{folder}/SKILL.md"));
            let written = SkillBlock::write(&skill, &text, &user_text);
            let block = SkillBlock::parse(&written).expect("it is a block");
            prop_assert_eq!(block.name, &name);
            prop_assert_eq!(block.location, format!("/s/{folder}/SKILL.md"));
            prop_assert!(block.content.ends_with(text.trim()));
            let user_text = user_text.trim();
            prop_assert_eq!(block.user_text, (!user_text.is_empty()).then_some(user_text));
        }
    }
}

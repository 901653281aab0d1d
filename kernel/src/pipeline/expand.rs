//! Skills (`/skill:name args`) and prompt templates (`/name args`). A text that names neither stays as
//! it is (P20, P26), and so does one whose file cannot be read, which is reported (P22).

use pliant_sdk::Error;

use super::{Prompt, Scene};
use crate::registry::{HandlerFailure, Rank, Source};
use crate::resources::{
    Document, Resources, Skill, SkillBlock, Template, split_arguments, substitute,
};

/// The prompt with its skill or template in place of the slash word.
pub(super) fn expand(scene: &Scene<'_>, prompt: Prompt) -> Prompt {
    if prompt.literal {
        return prompt;
    }
    match expanded(scene.resources, &prompt.text) {
        Ok(None) => prompt,
        Ok(Some(text)) => Prompt { text, ..prompt },
        Err(failure) => {
            scene.callers.report(*failure);
            prompt
        }
    }
}

/// What becomes of a text; `None` when it names nothing that is there.
fn expanded(resources: &Resources, text: &str) -> Result<Option<String>, Box<HandlerFailure>> {
    let Some(word) = text.strip_prefix('/') else {
        return Ok(None);
    };
    if let Some(call) = word.strip_prefix("skill:") {
        let (name, arguments) = call.split_once(' ').unwrap_or((call, ""));
        if let Some(skill) = resources.skill(name) {
            return of_skill(skill, arguments).map(Some);
        }
    }
    let (name, arguments) = word.split_at(word.find(char::is_whitespace).unwrap_or(word.len()));
    let template = resources.template(name);
    template
        .map(|template| of_template(template, arguments))
        .transpose()
}

fn of_skill(skill: &Skill, arguments: &str) -> Result<String, Box<HandlerFailure>> {
    let document = Document::read(&skill.file).map_err(|error| {
        let Skill { name, file, .. } = skill;
        let why = format!("The skill \"{name}\" is not used, because {error}.");
        failure(format!("skill:{name}"), file, "skill_expansion", why)
    })?;
    Ok(SkillBlock::write(skill, &document.body, arguments))
}

fn of_template(template: &Template, arguments: &str) -> Result<String, Box<HandlerFailure>> {
    let document = Document::read(&template.file).map_err(|error| {
        let Template { name, file, .. } = template;
        let why = format!("The prompt template \"{name}\" is not used, because {error}.");
        failure(name.clone(), file, "template_expansion", why)
    })?;
    Ok(substitute(&document.body, &split_arguments(arguments)).into_owned())
}

fn failure(
    name: String,
    file: &std::path::Path,
    event: &'static str,
    why: String,
) -> Box<HandlerFailure> {
    Box::new(HandlerFailure {
        source: Source {
            name,
            path: Some(file.to_owned()),
            rank: Rank::User,
        },
        event: event.into(),
        error: Error::failed(why),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use proptest::prelude::*;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::pipeline::{Passage, PromptError, WhenActive, pass};
    use crate::registry::testing::Reports;
    use crate::registry::{Callers, Grace, Patience, Snapshot};
    use crate::resources::ResourceOptions;

    /// Resources of a folder with the skill `tidy` and the template `review`.
    fn resources(dir: &Path) -> Resources {
        fs::create_dir_all(dir.join("skills/tidy")).unwrap();
        fs::create_dir_all(dir.join("prompts")).unwrap();
        let skill = "---\ndescription: Tidies.\n---\n\nTidy up.\n";
        fs::write(dir.join("skills/tidy/SKILL.md"), skill).unwrap();
        let template = "---\ndescription: R.\n---\nReview $1${2:-.}";
        fs::write(dir.join("prompts/review.md"), template).unwrap();
        fs::write(dir.join("prompts/plain.md"), " As it $@ is. \n").unwrap();
        Resources::load(&ResourceOptions::default(), dir, dir)
            .unwrap()
            .0
    }

    fn check(text: &str, becomes: Option<&str>) {
        let dir = tempfile::tempdir().unwrap();
        let resources = resources(dir.path());
        let becomes = becomes.map(|text| text.replace("DIR", &dir.path().display().to_string()));
        assert_eq!(expanded(&resources, text).unwrap(), becomes, "{text:?}");
    }

    #[test]
    fn a_skill_becomes_its_block_and_the_first_space_ends_its_name() {
        // P20, P21
        let block = "<skill name=\"tidy\" location=\"DIR/skills/tidy/SKILL.md\">\nReferences are relative to DIR/skills/tidy.\n\nTidy up.\n</skill>";
        check("/skill:tidy", Some(block));
        check("/skill:tidy  ", Some(block));
        let asked = format!("{block}\n\nthe attic\nfirst");
        check("/skill:tidy  the attic\nfirst ", Some(&asked));
        check("/skill:tidy\tthe attic", None);
    }

    #[test]
    fn a_template_takes_its_arguments_behind_any_white_space() {
        // P26
        check("/review", Some("Review ."));
        check("/review a.rs", Some("Review a.rs."));
        check("/review\n\"a b\" '!'", Some("Review a b!"));
        check("/plain x", Some(" As it x is. \n"));
    }

    #[test]
    fn unknown_names_and_other_texts_stay_as_they_are() {
        // P20, P25, P26
        for text in [
            "{{review}}",
            "/",
            "/skill:",
            "/skill:nobody x",
            "/nobody x",
            "/ review",
            "/Review",
            "//review",
            " /review",
            "review",
            "",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn a_file_is_read_when_it_is_used_and_what_cannot_be_read_is_reported() {
        // P22
        let dir = tempfile::tempdir().unwrap();
        let resources = resources(dir.path());
        let skill = dir.path().join("skills/tidy/SKILL.md");
        fs::write(&skill, "Changed.").unwrap();
        let text = expanded(&resources, "/skill:tidy").unwrap().unwrap();
        assert!(text.contains("\n\nChanged.\n</skill>"), "{text}");
        fs::write(&skill, "---\na: b: c\n---\n").unwrap();
        fs::remove_file(dir.path().join("prompts/review.md")).unwrap();
        for (text, event, says) in [
            (
                "/skill:tidy",
                "skill_expansion",
                "The skill \"tidy\" is not used, because its front matter is not valid YAML",
            ),
            (
                "/review",
                "template_expansion",
                "The prompt template \"review\" is not used, because it cannot be read",
            ),
        ] {
            let failure = expanded(&resources, text).unwrap_err();
            assert_eq!(failure.event, event);
            let said = failure.error.to_string();
            assert!(said.contains(says), "{said}");
        }
    }

    /// What the whole pipeline makes of a prompt while a run is active, and what it reports.
    async fn queued(
        resources: &Resources,
        prompt: Prompt,
    ) -> (Result<Passage, PromptError>, Vec<String>) {
        let reports = Reports::default();
        let patience = Patience::new(CancellationToken::new(), None, Grace::default());
        let scene = Scene {
            command_lender: &reports,
            snapshot: &Snapshot::default(),
            resources,
            callers: Callers::new(&reports, patience),
            run_active: &|| true,
            readiness: &|| unreachable!("no run begins"),
        };
        let passage = pass(&scene, prompt).await;
        let reported = reports.take().into_iter();
        (
            passage,
            reported.map(|failure| failure.event.into_owned()).collect(),
        )
    }

    fn steered(text: &str) -> Prompt {
        Prompt {
            when_active: Some(WhenActive::Steer),
            ..Prompt::text(text)
        }
    }

    #[tokio::test]
    async fn the_expanded_text_is_queued_except_that_of_literal_prompts() {
        // P19, P30
        let dir = tempfile::tempdir().unwrap();
        let resources = resources(dir.path());
        let expected = Passage::Queue(steered("Review a."), WhenActive::Steer);
        let passage = queued(&resources, steered("/review a")).await;
        assert_eq!(passage, (Ok(expected), Vec::new()));
        let literal = Prompt {
            literal: true,
            ..steered("/review a")
        };
        let expected = Passage::Queue(literal.clone(), WhenActive::Steer);
        assert_eq!(
            queued(&resources, literal).await,
            (Ok(expected), Vec::new())
        );
    }

    #[tokio::test]
    async fn a_failure_is_reported_once_and_the_text_goes_on() {
        // P22
        let dir = tempfile::tempdir().unwrap();
        let resources = resources(dir.path());
        fs::remove_dir_all(dir.path().join("skills")).unwrap();
        let prompt = steered("/skill:tidy now");
        let expected = Passage::Queue(prompt.clone(), WhenActive::Steer);
        let reports = vec!["skill_expansion".to_owned()];
        assert_eq!(queued(&resources, prompt).await, (Ok(expected), reports));
    }

    proptest! {
        #[test]
        fn invariant_31_a_text_without_a_slash_in_front_is_untouched(text in "[^/].{0,40}|") {
            let dir = tempfile::tempdir().unwrap();
            prop_assert_eq!(expanded(&resources(dir.path()), &text).unwrap(), None);
        }
    }
}

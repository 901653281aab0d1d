//! Themes as files: the JSON files directly in the folders of themes (`resources.md` §8). Unlike other
//! resources, a theme that was good once stays until there is another good one: nobody wants to mend a
//! colour in the dark.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::places::Place;
use super::walk::Walk;
use crate::textfile;
use crate::theme::{Theme, ThemeChoice, Themes};

/// Larger files are no themes.
const LIMIT_BYTES: u64 = 1 << 20;

/// The themes of all places, which are folders or files, in order; `before` are those that counted so
/// far. What is wrong with one is told in a sentence.
pub(super) fn find(
    places: &[Place],
    choice: &ThemeChoice,
    before: &Themes,
    warnings: &mut Vec<String>,
) -> Themes {
    let mut walk = Walk::default();
    let mut found = Vec::new();
    for place in places {
        for file in files(&place.path, &mut walk) {
            if place.takes(&file) && walk.meet(&file) {
                found.extend(read(file, before, warnings));
            }
        }
    }
    if walk.was_cut() {
        let sentence =
            "There are so many files in the folders of themes that not all were looked at.";
        warnings.push(sentence.to_owned());
    }
    let themes = found.iter().filter_map(|theme| {
        let file = theme.file()?;
        Some((theme.name().to_owned(), file.clone(), Arc::clone(theme)))
    });
    let kept = super::first_of_each(
        "theme",
        themes.collect(),
        warnings,
        |_| false,
        |(name, file, _)| (name, file),
    );
    let mut kept: Vec<Arc<Theme>> = kept.into_iter().map(|(_, _, theme)| theme).collect();
    for name in choice.names() {
        let is_there = |theme: &Arc<Theme>| theme.name() == name;
        let gone = before.get(name).filter(|theme| {
            let file = theme.file();
            file.is_some_and(|file| !file.exists()) && !kept.iter().any(is_there)
        });
        let Some(theme) = gone else { continue };
        let file = theme.file().map(|file| file.display().to_string());
        warnings.push(format!(
            "The file {} of the theme \"{name}\" is gone; the theme counts until another is chosen.",
            file.unwrap_or_default()
        ));
        kept.push(Arc::clone(theme));
    }
    Themes::new(kept)
}

fn read(file: PathBuf, before: &Themes, warnings: &mut Vec<String>) -> Option<Arc<Theme>> {
    let read = match textfile::read_at_most(&file, LIMIT_BYTES) {
        Ok(text) => Theme::parse(&text).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match read {
        Ok(theme) => Some(Arc::new(theme.of_file(file))),
        Err(why) => {
            let earlier = before.all().find(|theme| theme.file() == Some(&file));
            let outcome = match earlier {
                Some(_) => "counts as it was before",
                None => "is not loaded",
            };
            let path = file.display();
            warnings.push(format!("The theme {path} {outcome}, because {why}."));
            earlier.cloned()
        }
    }
}

/// The file that the place is, or the JSON files directly in it.
fn files(place: &Path, walk: &mut Walk) -> Vec<PathBuf> {
    if place.is_file() {
        return vec![place.to_owned()];
    }
    let Some(listing) = walk.enter(place) else {
        return Vec::new();
    };
    walk.leave();
    let mut files = listing.files;
    files.retain(|file| file.extension().is_some_and(|ending| ending == "json"));
    files
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::*;
    use crate::resources::{Discovered, LiveResources, Reread, ResourceOptions, Resources};
    use crate::settings::{ResourceList, Scope};
    use crate::theme::{Appearance, Colour, Token};

    struct Home {
        dir: tempfile::TempDir,
        options: ResourceOptions,
    }

    fn theme(name: &str, accent: u8) -> Value {
        let required = Token::ALL.iter().filter(|one| one.fallback().is_none());
        let mut colours: serde_json::Map<_, _> = required
            .map(|token| (token.name().to_owned(), json!(7)))
            .collect();
        colours.insert("accent".into(), json!(accent));
        json!({"name": name, "colors": colours})
    }

    impl Home {
        /// Themes called `t`, each with its place as the accent.
        fn with(files: &[&str]) -> Self {
            let home = Self {
                dir: tempfile::tempdir().unwrap(),
                options: ResourceOptions {
                    theme: ThemeChoice::parse("t"),
                    ..ResourceOptions::default()
                },
            };
            for (place, file) in files.iter().enumerate() {
                home.write(file, &theme("t", u8::try_from(place).unwrap()).to_string());
            }
            home
        }

        fn write(&self, file: &str, text: &str) {
            let file = self.dir.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }

        fn load(&self) -> (Resources, Vec<String>) {
            let root = self.dir.path();
            Resources::load(&self.options, &root.join("agent"), &root.join("p")).unwrap()
        }

        fn live(&self) -> LiveResources {
            let root = self.dir.path();
            let options = self.options.clone();
            let live = LiveResources::load(options, root.join("agent"), root.join("p")).unwrap();
            assert!(live.1.is_empty(), "{:?}", live.1);
            live.0
        }
    }

    fn accent(resources: &Resources) -> Option<Colour> {
        resources.themes().get("t")?.token("accent")
    }

    fn reread(live: &LiveResources) -> Reread {
        live.reread().unwrap()
    }

    #[test]
    fn the_first_theme_of_a_name_wins_and_the_others_are_told() {
        // resources §2, §8
        let mut home = Home::with(&[
            "named.json",
            "listed/a.json",
            "p/.pliant/themes/a.json",
            "agent/themes/a.json",
            "agent/themes/deeper/a.json",
            "agent/themes/a.txt",
            "said/a.json",
        ]);
        let (untrusted, warnings) = home.load();
        assert_eq!(accent(&untrusted), Some(Colour::Index(3)));
        assert!(warnings.is_empty(), "{warnings:?}");
        home.options.project = true;
        assert_eq!(accent(&home.load().0), Some(Colour::Index(2)));
        let agent = home.dir.path().join("agent");
        let listed = ["../listed".to_owned()];
        let list = ResourceList::new(Scope::Project, &agent, &listed, None);
        home.options.theme_lists = vec![list];
        assert_eq!(accent(&home.load().0), Some(Colour::Index(1)));
        home.options.discovered = Arc::new(Discovered {
            themes: vec![home.dir.path().join("said")],
            ..Discovered::default()
        });
        home.options.themes = vec![home.dir.path().join("named.json")];
        let (all, warnings) = home.load();
        assert_eq!(accent(&all), Some(Colour::Index(0)));
        assert_eq!(warnings.len(), 4, "{warnings:?}");
        let named = "named.json has the same name and comes first";
        assert!(
            warnings.iter().all(|one| one.contains(named)),
            "{warnings:?}"
        );
    }

    #[test]
    fn what_is_found_can_be_left_out_but_not_what_is_named_or_built_in() {
        // resources §2
        let mut home = Home::with(&["x/named.json", "agent/themes/a.json"]);
        home.options.no_themes = true;
        home.options.themes = vec![home.dir.path().join("x")];
        let (resources, warnings) = home.load();
        assert_eq!(accent(&resources), Some(Colour::Index(0)));
        assert!(warnings.is_empty() && resources.themes().get("dark").is_some());
        home.options.themes = vec!["gone.json".into()];
        let root = home.dir.path();
        let missing = Resources::load(&home.options, root, root).unwrap_err();
        assert!(
            missing
                .to_string()
                .contains("gone.json, which the command line names as a theme")
        );
    }

    #[test]
    fn a_theme_that_is_saved_counts_and_a_broken_or_missing_one_stays_as_it_was() {
        // resources §12.1, §13.14
        let home = Home::with(&["agent/themes/a.json"]);
        let live = home.live();
        let seen = |live: &LiveResources| live.theme(Appearance::Dark).token("accent");
        home.write("agent/themes/a.json", &theme("t", 9).to_string());
        assert!(reread(&live).warnings.is_empty());
        assert_eq!(seen(&live), Some(Colour::Index(9)));

        home.write("agent/themes/a.json", "{\n \"name\": ");
        let told = reread(&live).warnings;
        assert!(
            told.len() == 1 && told[0].contains("a.json counts as it was before"),
            "{told:?}"
        );
        assert!(told[0].contains("line 2"), "{told:?}");
        assert!(reread(&live).warnings.is_empty(), "told a second time");
        assert_eq!(seen(&live), Some(Colour::Index(9)));

        fs::remove_file(home.dir.path().join("agent/themes/a.json")).unwrap();
        let told = reread(&live).warnings;
        assert!(told.len() == 1 && told[0].contains("is gone"), "{told:?}");
        assert!(reread(&live).warnings.is_empty(), "told a second time");
        assert_eq!(seen(&live), Some(Colour::Index(9)));

        home.write("agent/themes/b.json", &theme("t", 4).to_string());
        assert!(reread(&live).warnings.is_empty());
        assert_eq!(seen(&live), Some(Colour::Index(4)));
    }

    #[test]
    fn a_theme_that_nobody_chose_goes_with_its_file() {
        let mut home = Home::with(&["agent/themes/a.json"]);
        home.options.theme = None;
        let live = home.live();
        fs::remove_file(home.dir.path().join("agent/themes/a.json")).unwrap();
        assert!(reread(&live).warnings.is_empty());
        assert!(live.current().themes().get("t").is_none());
        assert_eq!(live.theme(Appearance::Dark).name(), "system");
    }

    #[test]
    fn what_is_no_theme_is_told_and_the_others_are_there() {
        let home = Home::with(&["agent/themes/t.json"]);
        home.write("agent/themes/a.json", "{\"name\": \"a\", \"colours\": {}}");
        home.write("agent/themes/b.json", &" ".repeat(1 << 21));
        let (resources, warnings) = home.load();
        assert!(accent(&resources).is_some());
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].contains("a.json is not loaded, because it has a field \"colours\""));
        assert!(warnings[1].contains("larger than 1 MB"));
        let mut home = Home::with(&[]);
        home.options.theme = ThemeChoice::parse("drak");
        assert!(home.load().1[0].contains("There is no theme \"drak\"; \"dark\" is near"));
    }
}

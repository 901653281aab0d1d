//! Projection: what a request sees, and that keeping it up gives the same as working it out.

use serde_json::json;

use super::*;

fn settings_system(name: &str) -> EntryBody {
    system(json!({"sections": {"s": name}}))
}

#[test]
fn a_compaction_leads_with_the_prompt_then_the_summary_then_what_is_kept() {
    // 2.7 step 2, S33, invariant 12
    let mut tree = memory();
    add(&mut tree, settings_system("one"));
    add(&mut tree, user("old"));
    let kept = add(&mut tree, user("kept"));
    add(&mut tree, settings_system("two"));
    add(&mut tree, assistant("answer"));
    add(&mut tree, compaction("sum", Some(&kept)));
    add(&mut tree, user("new"));
    add(&mut tree, settings_system("three"));
    assert_eq!(
        shown(tree.context()),
        [
            "system: s=\"two\"",
            "compactionSummary: sum",
            "user: kept",
            "assistant: answer",
            "user: new",
            "system: s=\"three\"",
        ]
    );

    // An older compaction inside the kept range yields nothing.
    add(&mut tree, compaction("again", Some(&kept)));
    let now = shown(tree.context());
    assert_eq!(
        now[..3],
        [
            "system: s=\"three\"",
            "compactionSummary: again",
            "user: kept"
        ]
    );
    assert_eq!(
        now.iter()
            .filter(|m| m.starts_with("compactionSummary"))
            .count(),
        1
    );
    assert_eq!(now.len(), 5);
}

#[test]
fn a_compaction_that_keeps_nothing_names_itself() {
    // S34, S37
    let mut tree = memory();
    add(&mut tree, user("old"));
    let id = add(&mut tree, compaction("sum", None));
    let EntryBody::Compaction(stored) = tree.entry(&id).unwrap().body() else {
        panic!()
    };
    assert_eq!(
        (stored.first_kept_entry_id.as_ref(), &stored.system_message),
        (Some(&id), &None)
    );
    assert_eq!(shown(tree.context()), ["compactionSummary: sum"]);
    add(&mut tree, compaction("lost", Some(&"nowhere".into())));
    assert_eq!(shown(tree.context()), ["compactionSummary: lost"]);
}

#[test]
fn an_edit_changes_only_content_and_only_on_its_branch() {
    // 2.7 step 5, S26, invariant 13
    let mut tree = memory();
    let question = add(&mut tree, user("secret"));
    let answer = add(&mut tree, assistant("a"));
    let note = add(&mut tree, custom_message("note"));
    let text = |text: &str| Replacement::from_json(&json!({"content": text})).unwrap();
    tree.edit_context(&question, text("first edit")).unwrap();
    tree.edit_context(&question, text("public")).unwrap();
    tree.edit_context(&answer, text("b")).unwrap();
    tree.edit_context(&note, Replacement::Omit).unwrap();
    assert_eq!(shown(tree.context()), ["user: public", "assistant: b"]);
    let Message::Assistant(edited) = &*tree.context()[1] else {
        panic!()
    };
    assert_eq!((&*edited.model, edited.usage.total_tokens), ("plain", 11));
    let EntryBody::ContextEdit(stored) = tree.entries()[5].body() else {
        panic!()
    };
    assert_eq!(
        serde_json::to_value(&stored.replacement).unwrap(),
        json!({"content": [{"type": "text", "text": "b"}]})
    );

    tree.branch(&note).unwrap();
    assert_eq!(
        shown(tree.context()),
        ["user: secret", "assistant: a", "custom: note"]
    );
}

#[test]
fn an_edit_without_a_fit_target_or_replacement_is_refused() {
    // S26: the four errors
    let mut tree = memory();
    let prompt = add(&mut tree, settings_system("one"));
    let a = add(&mut tree, user("a"));
    let left = add(&mut tree, user("left"));
    tree.branch(&a).unwrap();
    let mut refusal = |id: &EntryId| {
        tree.edit_context(id, Replacement::Omit)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refusal(&"nope".into()),
        "There is no entry nope in this session. List the tree to see the ids it has."
    );
    assert!(refusal(&left).contains("not on the active branch"));
    assert!(refusal(&prompt).contains("because it is a system"));
    for bad in [
        json!(3),
        json!({}),
        json!({"content": null}),
        json!({"content": {}}),
        json!("x"),
    ] {
        assert!(
            matches!(Replacement::from_json(&bad), Err(TreeError::BadReplacement)),
            "{bad}"
        );
    }
    assert_eq!(tree.entries().len(), 3);
}

#[test]
fn unchanged_messages_are_the_same_in_later_requests() {
    let mut tree = memory();
    let first = Arc::new(Message::user("one", 1));
    tree.append_message(Arc::clone(&first)).unwrap();
    let note = add(&mut tree, custom_message("note"));
    let before = tree.context().to_vec();
    assert!(Arc::ptr_eq(&before[0], &first));
    add(&mut tree, assistant("two"));
    tree.set_name("x").unwrap();
    let same =
        |a: &[Arc<Message>], b: &[Arc<Message>]| a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b));
    assert!(same(&before, tree.context()));

    // Also when the whole path is projected again.
    tree.edit_context(
        &note,
        Replacement::from_json(&json!({"content": "edited"})).unwrap(),
    )
    .unwrap();
    let edited = tree.context().to_vec();
    add(&mut tree, user("three"));
    let leaf = tree.leaf().unwrap().clone();
    tree.edit_context(&leaf, Replacement::Omit).unwrap();
    assert!(same(&edited, tree.context()));
    assert!(Arc::ptr_eq(&before[0], &edited[0]) && !Arc::ptr_eq(&before[1], &edited[1]));
}

#[test]
fn every_selected_entry_is_a_source_even_without_messages() {
    // S32
    let mut tree = memory();
    add(&mut tree, user("one"));
    tree.set_name("x").unwrap();
    let gone = add(&mut tree, user("gone"));
    tree.edit_context(&gone, Replacement::Omit).unwrap();
    add(&mut tree, assistant("two"));
    let projection = tree.projection();
    let counts: Vec<(&str, usize)> = projection
        .sources()
        .iter()
        .map(|source| {
            (
                source.entry.kind().as_str(),
                projection.messages_of(source).len(),
            )
        })
        .collect();
    let want = [
        ("message", 1),
        ("session_info", 0),
        ("message", 0),
        ("context_edit", 0),
        ("message", 1),
    ];
    assert_eq!(counts, want);
}

#[test]
fn settings_are_the_last_on_the_branch() {
    // 2.7 step 1, V9
    let mut tree = memory();
    assert_eq!(tree.settings(), &Settings::default());
    let model = |id: &str| {
        EntryBody::ModelChange(ModelChange {
            provider: "p".into(),
            model_id: id.into(),
        })
    };
    let level = |l: &str| {
        EntryBody::ThinkingLevelChange(ThinkingLevelChange {
            thinking_level: l.into(),
        })
    };
    add(&mut tree, model("virtual"));
    let early = add(&mut tree, level("low"));
    add(&mut tree, level("galactic"));
    add(&mut tree, assistant("from plain"));
    let name = |model: &Option<ModelRef>| model.as_ref().map(|m| m.model_id.clone()).unwrap();
    let settings = tree.settings();
    assert_eq!(settings.thinking_level.unwrap().as_str(), "low");
    assert_eq!(
        (name(&settings.model), name(&settings.changed_to)),
        ("plain".into(), "virtual".into())
    );
    add(&mut tree, model("other"));
    assert_eq!(
        (
            name(&tree.settings().model),
            name(&tree.settings().answered_by)
        ),
        ("other".into(), "plain".into())
    );
    tree.branch(&early).unwrap();
    assert_eq!(name(&tree.settings().model), "virtual");
}

#[test]
fn an_unknown_leaf_falls_back_to_the_last_entry_and_none_is_empty() {
    // S36
    let mut tree = memory();
    let a = add(&mut tree, user("a"));
    add(&mut tree, user("b"));
    assert_eq!(shown(tree.projection_at(Some(&a)).messages()), ["user: a"]);
    assert_eq!(
        tree.projection_at(Some(&"nowhere".into())).messages().len(),
        2
    );
    assert_eq!(tree.projection_at(None).messages().len(), 0);
}

/// One random step; refusals are part of the game.
fn step(tree: &mut SessionTree, dice: &Dice, number: usize) {
    let some_id = |tree: &SessionTree| match tree.entries().len() {
        0 => EntryId::from("none"),
        length => tree.entries()[dice.below(length)].id().clone(),
    };
    let text = format!("text {number}");
    let target = some_id(tree);
    let _ = match dice.below(16) {
        0..=2 => tree.append(user(&text)).map(drop),
        3..=5 => tree.append(assistant(&text)).map(drop),
        6 => tree.append(settings_system(&text)).map(drop),
        7 => tree.append(custom_message(&text)).map(drop),
        8 => tree.append(compaction(&text, Some(&target))).map(drop),
        9 => tree.append(compaction(&text, None)).map(drop),
        10 => tree.edit_context(&target, Replacement::Omit).map(drop),
        11 => {
            let replacement = Replacement::from_json(&json!({"content": text})).unwrap();
            tree.edit_context(&target, replacement).map(drop)
        }
        12 => tree.set_label(&target, Some(&text)).map(drop),
        13 => {
            let summary = BranchSummary {
                summary: text,
                ..BranchSummary::default()
            };
            tree.branch_with_summary(Some(&target), summary).map(drop)
        }
        14 => {
            let change = ModelChange {
                provider: "p".into(),
                model_id: text,
            };
            tree.append(EntryBody::ModelChange(change)).map(drop)
        }
        _ if dice.below(8) == 0 => {
            tree.reset_leaf();
            Ok(())
        }
        _ => tree.branch(&target),
    };
}

#[test]
fn the_kept_context_equals_one_worked_out_from_the_file_after_any_operations() {
    // S35, invariants 1, 2, 5, 8, 12
    for seed in 0..10 {
        let folder = Folder::new();
        let dice = Dice::new(seed);
        let mut tree = SessionTree::create(&folder.0, cwd(), None, ids());
        let path = tree.path().unwrap().to_owned();
        for number in 0..120 {
            step(&mut tree, &dice, number);
            // Sometimes nobody looks, so that both ways of keeping up are tried.
            if dice.below(3) == 0 {
                continue;
            }
            let scratch = Projection::of(
                &tree
                    .leaf()
                    .map(|leaf| tree.get_branch(leaf))
                    .unwrap_or_default(),
            );
            assert_eq!(
                tree.context(),
                scratch.messages(),
                "seed {seed}, step {number}"
            );
            let ranges = |p: &Projection| -> Vec<_> {
                p.sources()
                    .iter()
                    .map(|s| (s.entry.id().clone(), s.range.clone()))
                    .collect()
            };
            assert_eq!(ranges(tree.projection()), ranges(&scratch));
            let summaries = |m: &&Arc<Message>| matches!(***m, Message::CompactionSummary(_));
            assert!(scratch.messages().iter().filter(summaries).count() <= 1);
            if !tree.is_on_disk() {
                assert!(!path.exists());
                continue;
            }
            let mut again = again(&path);
            match tree.leaf() {
                Some(leaf) => again.branch(leaf).unwrap(),
                None => again.reset_leaf(),
            }
            assert_eq!(
                snapshot(&again),
                snapshot(&tree),
                "seed {seed}, step {number}"
            );
        }
    }
}

//! What other programs do to a file that is open, and who may open it.

use super::*;

/// What another program, which knows of no leases, does to a file.
fn write_behind(path: &Path, text: &str) {
    use std::io::Write;
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn what_another_program_appends_is_kept_on_a_branch_of_its_own_and_told() {
    // S18
    let folder = Folder::new();
    let (mut tree, path) = stored(&folder);
    let first = tree.entries()[0].id().clone();
    let theirs = format!(
        r#"{{"type":"message","id":"7e1e0001","parentId":"{first}","timestamp":"t","message":{{"role":"user","content":"theirs"}}}}"#
    );
    write_behind(&path, &format!("{theirs}\n{{\"torn"));
    assert!(tree.take_notices().is_empty());
    add(&mut tree, user("ours"));
    let [notice] = &tree.take_notices()[..] else {
        panic!("it is told once")
    };
    assert!(
        notice.contains("wrote 1 entry to the session file"),
        "{notice}"
    );
    assert_eq!(tree.entry(&"7e1e0001".into()).unwrap().raw(), theirs);
    assert_eq!(
        shown(tree.context()),
        ["user: hi", "assistant: hello", "user: ours"]
    );
    // It might have been the beginning of a line that was still being written.
    add(&mut tree, user("more"));
    let [damage] = &tree.take_notices()[..] else {
        panic!("it is told once")
    };
    assert!(
        damage.contains("6 bytes are not a whole JSON record"),
        "{damage}"
    );
    let again = again(&path);
    assert_eq!(raw_lines(&again), raw_lines(&tree));
    assert_eq!(shown(again.context()), shown(tree.context()));
}

#[test]
fn what_another_program_wrote_in_the_middle_of_our_line_stays() {
    // S12, S18
    let theirs =
        r#"{"type":"custom","id":"7e1e0001","parentId":null,"timestamp":"t","customType":"x"}"#;
    let theirs: &'static str = Box::leak(format!("{theirs}\n").into_boxed_str());
    let plans: [&[(usize, &'static str)]; 4] = [
        &[(5, ""), (3, theirs)],
        &[(5, ""), (9999, theirs)],
        &[(5, theirs), (0, "")],
        &[(0, theirs)],
    ];
    for (number, plan) in plans.iter().enumerate() {
        let folder = Folder::new();
        let (mut tree, path) = stored(&folder);
        let Place::File(storage) = std::mem::replace(&mut tree.place, Place::Memory) else {
            panic!("not on disk")
        };
        let busy = storage.with_log(|log| log.busy(plan.to_vec()));
        tree.place = Place::File(Box::new(busy));
        assert!(tree.append(user("no")).is_err(), "{number}");
        add(&mut tree, user("again"));
        add(&mut tree, user("and on"));
        let again = again(&path);
        assert!(
            again.entry(&"7e1e0001".into()).is_some(),
            "{number}: theirs is lost"
        );
        assert_eq!(shown(again.context()), shown(tree.context()), "{number}");
        assert_eq!(again.context().len(), 4);
    }
}

#[test]
fn a_line_that_another_program_is_still_writing_is_for_the_next_look() {
    // S18
    let folder = Folder::new();
    let (mut tree, path) = stored(&folder);
    let theirs =
        r#"{"type":"custom","id":"7e1e0001","parentId":null,"timestamp":"t","customType":"x"}"#;
    write_behind(&path, &theirs[..40]);
    let Place::File(storage) = &mut tree.place else {
        panic!("not on disk")
    };
    assert_eq!(storage.look().unwrap(), super::log::Fate::Same);
    write_behind(&path, &format!("{}\n", &theirs[40..]));
    add(&mut tree, user("on"));
    assert!(tree.entry(&"7e1e0001".into()).is_some());
    assert!(tree.damage().is_empty());
}

#[test]
fn a_file_that_comes_back_keeps_its_permissions_and_its_place_behind_a_link() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new();
    let real = folder.file("real.jsonl", chain(2).join("\n") + "\n");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    let link = folder.path("link.jsonl");
    symlink(&real, &link).unwrap();
    let mut tree = open(&link);
    fs::remove_file(&real).unwrap();
    add(&mut tree, user("3"));
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(snapshot(&again(&link)), snapshot(&tree));
}

#[test]
fn a_file_that_was_removed_while_it_was_open_is_written_again() {
    let folder = Folder::new();
    let (mut tree, path) = stored(&folder);
    fs::remove_file(&path).unwrap();
    add(&mut tree, user("still here"));
    assert_eq!(snapshot(&again(&path)), snapshot(&tree));
    assert!(tree.take_notices()[0].contains("was removed"));
    add(&mut tree, user("and on"));
    assert_eq!(snapshot(&again(&path)), snapshot(&tree));
    assert!(tree.take_notices().is_empty());
}

#[test]
fn a_removed_file_comes_back_with_all_that_others_wrote_and_no_glued_line() {
    // S18, reports S03
    let folder = Folder::new();
    let path = folder.file("s.jsonl", chain(2).join("\n"));
    let mut tree = open(&path);
    fs::remove_file(&path).unwrap();
    add(&mut tree, user("3"));
    assert_eq!(snapshot(&again(&path)), snapshot(&tree));
    assert!(again(&path).damage().is_empty());

    write_behind(
        &path,
        r#"{"type":"custom","id":"7e1e0001","parentId":null,"timestamp":"t","customType":"x"}"#,
    );
    fs::remove_file(&path).unwrap();
    add(&mut tree, user("4"));
    assert!(tree.entry(&"7e1e0001".into()).is_some());
    assert_eq!(raw_lines(&again(&path)), raw_lines(&tree));
    assert_eq!(tree.take_notices().len(), 3);
}

#[test]
fn a_file_that_was_rewritten_in_place_takes_nothing() {
    let folder = Folder::new();
    for same_size in [true, false] {
        let (mut tree, path) = stored(&folder);
        let mut other = fs::read_to_string(&path)
            .unwrap()
            .replace("\"stop\"", "\"STOP\"");
        if !same_size {
            other.push_str("{\"more\":1}\n");
        }
        fs::write(&path, &other).unwrap();
        let error = tree.append(user("no")).unwrap_err();
        assert!(matches!(error, TreeError::Rewritten { .. }), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), other);
        drop(tree);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn an_entry_that_the_file_does_not_hold_any_more_is_not_taken_for_empty() {
    let folder = Folder::new();
    let path = folder.file("s.jsonl", chain(3).join("\n") + "\n");
    let mut tree = open(&path);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 60]).unwrap();
    assert!(tree.entry(&"3".into()).unwrap().is_unreadable());
    assert!(tree.export_jsonl().is_err());
    let leaf = tree.leaf().unwrap().clone();
    assert!(tree.fork(&leaf, Position::At).is_err());
    assert_eq!(session_files(&folder.0).len(), 1, "no half fork stays");

    // Another record in its place is none of its own.
    let mut other = chain(3);
    other[3] = other[3].replace("\"id\":\"3\"", "\"id\":\"9\"");
    fs::write(&path, other.join("\n") + "\n").unwrap();
    assert!(tree.entry(&"3".into()).unwrap().is_unreadable());

    fs::write(&path, whole).unwrap();
    assert!(
        !tree.entry(&"3".into()).unwrap().is_unreadable(),
        "it is back"
    );
    add(&mut tree, user("4"));
    assert_eq!(shown(tree.context()).len(), 4);
}

#[test]
fn an_entry_that_another_program_writes_again_counts_from_then_on() {
    // S20, invariant 5
    let folder = Folder::new();
    let (mut tree, path) = stored(&folder);
    let answer = tree.leaf().unwrap().clone();
    assert_eq!(tree.usage_totals().total_tokens, 11);
    let line = tree.entry(&answer).unwrap().raw().into_owned();
    write_behind(&path, &(line.replace("hello", "hello again") + "\n"));
    add(&mut tree, user("on"));
    assert_eq!(snapshot(&again(&path)), snapshot(&tree));
    assert_eq!(
        shown(tree.context()),
        ["user: hi", "assistant: hello again", "user: on"]
    );
}

#[test]
fn a_file_that_was_cut_while_it_was_open_takes_nothing() {
    let folder = Folder::new();
    let (mut tree, path) = stored(&folder);
    let before = (tree.leaf().cloned(), shown(tree.context()));
    let text = fs::read(&path).unwrap();
    fs::write(&path, &text[..20]).unwrap();
    let error = tree.append(user("no")).unwrap_err();
    assert!(matches!(error, TreeError::Cut { to: 20, .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), text[..20]);
    assert_eq!((tree.leaf().cloned(), shown(tree.context())), before);
}

#[test]
fn a_conversation_whose_name_another_file_took_goes_on_under_another_name() {
    let folder = Folder::new();
    let (mut tree, path) = stored(&folder);
    fs::write(folder.path("other"), "something else\n").unwrap();
    fs::rename(folder.path("other"), &path).unwrap();
    add(&mut tree, user("on"));
    assert_eq!(fs::read(&path).unwrap(), b"something else\n");
    let aside = tree.path().unwrap().to_owned();
    assert_eq!(
        aside.file_stem().unwrap().to_str().unwrap(),
        format!("{}-1", path.file_stem().unwrap().to_str().unwrap())
    );
    let notices = tree.take_notices();
    assert!(notices[0].contains(aside.to_str().unwrap()), "{notices:?}");
    add(&mut tree, user("and on"));
    assert_eq!(snapshot(&again(&aside)), snapshot(&tree));
    assert!(
        SessionTree::open(&aside, cwd(), ids()).is_err(),
        "it is held"
    );
}

#[test]
fn a_session_has_one_writer_until_it_is_closed() {
    // S18
    let folder = Folder::new();
    let (mut tree, path) = stored(&folder);
    let Err(error) = SessionTree::open(&path, cwd(), ids()) else {
        panic!("it is open already")
    };
    let holder = match &error {
        TreeError::Held { holder, .. } => holder.as_ref().map(|holder| holder.pid),
        _ => None,
    };
    assert_eq!(holder, Some(std::process::id()), "{error}");
    assert_eq!(again(&path).entries().len(), 2, "reading is free");
    tree.close();
    assert!(matches!(
        tree.append(user("no")),
        Err(TreeError::Closed { .. })
    ));
    let mut next = open(&path);
    add(&mut next, user("hi again"));
    assert_eq!(snapshot(&again(&path)), snapshot(&next));
}

#[cfg(unix)]
#[test]
fn where_no_lease_can_be_had_the_session_is_opened_and_that_is_told() {
    // S18. A folder in the place of the lease stands for all that can be in its way.
    let folder = Folder::new();
    let (tree, path) = stored(&folder);
    drop(tree);
    let mut lease = path.clone().into_os_string();
    lease.push(".lease");
    fs::create_dir(lease).unwrap();
    let mut tree = open(&path);
    add(&mut tree, user("on"));
    assert!(tree.take_notices()[0].contains("cannot be reserved"));
    assert_eq!(snapshot(&again(&path)), snapshot(&tree));
}

//! Each example runs and says what it should (`interfaces.md` §15).

#![allow(clippy::unwrap_used, reason = "test code")]
#![allow(dead_code, reason = "the examples' own `main`")]
#![allow(clippy::duplicate_mod, reason = "each example is whole by itself")]

#[path = "../examples/custom_tool.rs"]
mod custom_tool;
#[path = "../examples/embed.rs"]
mod embed;
#[path = "../examples/front_end.rs"]
mod front_end;

fn text(written: Vec<u8>) -> String {
    String::from_utf8(written).unwrap()
}

#[tokio::test]
async fn a_program_holds_a_conversation_of_its_own() {
    let mut out = Vec::new();
    embed::run(&mut out).await.unwrap();
    let expected = "\
You said: Good morning
- system
- user
- assistant
- user
- assistant
5 messages
";
    assert_eq!(text(out), expected);
}

#[tokio::test]
async fn a_tool_of_the_program_works_on_what_the_program_has() {
    let mut out = Vec::new();
    custom_tool::run(&mut out).await.unwrap();
    let expected = "\
shelve answered: 1 on the shelf
shelve answered: Not that one.
The shelf: [\"Emma\"]
";
    assert_eq!(text(out), expected);
}

#[tokio::test]
async fn a_front_end_shows_answers_as_they_grow_and_answers_dialogs() {
    let mut out = Vec::new();
    front_end::run(&mut out).await.unwrap();
    let shown = text(out);
    assert!(shown.matches("\r").count() > 4, "{shown:?}");
    // A line is what was drawn last.
    let lines = shown.lines().map(|line| line.rsplit('\r').next().unwrap());
    assert_eq!(
        lines.collect::<Vec<_>>(),
        [
            "> Good morning to you",
            "You said: Good morning to you",
            "> /tidy the desk",
            "? Confirm { title: \"Tidy up\", message: \"Tidy the desk?\" }",
            "You said: the desk is tidy",
        ]
    );
}

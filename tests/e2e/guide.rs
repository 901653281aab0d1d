//! A machine without any configuration: the guide answers, a script that says that it is one.

use pliant_tests::{ModelServer, TempHome};

fn ask(home: &TempHome, text: &str) -> String {
    home.pliant().args(["-p", text]).run().success().stdout
}

#[test]
fn an_empty_home_lists_a_directory_with_the_real_tool_and_keeps_the_session() {
    let home = TempHome::new();
    home.write("note.txt", "x");
    home.write("folder/inner.txt", "x");
    let answer = ask(&home, "list .");
    assert!(
        answer.contains("note.txt") && answer.contains("folder"),
        "{answer}"
    );

    let messages = home.stored_messages();
    let call = messages.iter().find_map(|message| {
        let blocks = message["content"].as_array()?;
        blocks.iter().find(|block| block["type"] == "toolCall")
    });
    let call = call.expect("the guide calls a tool");
    // `ls` is registered but not active by default, and an inactive tool cannot be called.
    assert_eq!(call["name"], "bash");
    let result = messages
        .iter()
        .find(|message| message["role"] == "toolResult");
    let result = result.expect("the tool answers");
    assert_eq!(
        (&result["toolCallId"], &result["isError"]),
        (&call["id"], &false.into())
    );
    assert!(
        result["content"].to_string().contains("note.txt"),
        "{result}"
    );
}

#[test]
fn plain_requests_use_the_tools() {
    let home = TempHome::new();
    home.write("note.txt", "needle in a note\n");
    for (request, words) in [
        ("read note.txt", "needle in a note"),
        ("find *.txt", "note.txt"),
        ("search needle", "note.txt"),
        ("run echo from the shell", "from the shell"),
    ] {
        let answer = ask(&home, request);
        assert!(answer.contains(words), "{request}: {answer}");
    }
    ask(&home, "write new.txt: written by the guide");
    assert_eq!(home.read("new.txt").trim_end(), "written by the guide");
}

#[test]
fn the_guide_says_what_it_is_and_how_to_connect_a_model() {
    let home = TempHome::new();
    for (question, words) in [
        ("Who are you?", ["pliant", "script", "not a language model"]),
        (
            "How do I connect a model?",
            ["models.json", "--provider", "--model"],
        ),
    ] {
        let answer = ask(&home, question);
        for word in words {
            assert!(answer.contains(word), "{word:?} is not in {answer}");
        }
    }
}

#[test]
fn a_model_server_on_a_usual_port_is_offered() {
    const OLLAMA: u16 = 11434;
    let Ok(server) = ModelServer::start_at(OLLAMA) else {
        return println!("skipped: port {OLLAMA} is taken");
    };
    let home = TempHome::new();
    let answer = ask(&home, "How do I connect a model?");
    assert!(
        answer.contains("11434") && answer.contains(pliant_tests::MODEL),
        "{answer}"
    );
    let probed = server.all_requests();
    assert!(
        probed.iter().all(|request| request.method == "GET"),
        "{probed:?}"
    );
    server.finish();
}

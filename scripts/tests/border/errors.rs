//! What authors read when something is wrong.

use serde_json::json;

use crate::kit::{load, load_error};

async fn check_load(text: &str, expected: &str) {
    assert_eq!(load_error(text).await.message, expected, "{text}");
}

async fn check_tool(text: &str, expected: &str) {
    let bench = load(text).await;
    let error = bench.tool("t", json!({})).await.unwrap_err();
    assert_eq!(error.message, expected, "{text}");
}

#[tokio::test]
async fn a_syntax_error_has_line_and_column() {
    check_load("let a = 1;\nlet b = ;\n", "t.rhai:2:9: Unexpected ';'").await;
    check_load(
        "on(\"input\", |e| {\n",
        "t.rhai:2:1: Expecting '}' to terminate this block",
    )
    .await;
}

#[tokio::test]
async fn reserved_words_are_explained() {
    for text in [
        "let x = #{ default: 1 };",
        "let o = #{}; o.default = 1;",
        "let new = 1;",
    ] {
        let message = load_error(text).await.message;
        assert!(message.contains("hint: `"), "{text}: {message}");
        assert!(
            message.contains("is a reserved word; as a property write `x[\""),
            "{message}"
        );
    }
}

#[tokio::test]
async fn a_misspelt_variable_is_found_when_the_script_is_loaded() {
    let message = load_error("let limit = 1; fn f() { limit }").await.message;
    assert_eq!(
        message,
        "t.rhai:1:25: Undefined variable: limit\n  hint: a `fn` sees only its parameters; make `limit` a \
         parameter, read a top-level `const` as `global::limit`, or use a closure"
    );
}

#[tokio::test]
async fn the_innermost_position_comes_first_and_the_chain_after_it() {
    check_tool(
        "fn inner(x) {\n  x.foo()\n}\nfn outer(x) {\n    inner(x) + 1\n}\nregister_tool(#{ name: \"t\", description: \"d\",\n  execute: |args| outer(5) });",
        "t.rhai:2:5: Function not found: foo (i64)\n  in `inner`, called at t.rhai:5:5\n  in `outer`, called at t.rhai:8:19",
    )
    .await;
}

#[tokio::test]
async fn errors_in_closures_of_native_functions_keep_their_place() {
    check_tool(
        "register_tool(#{ name: \"t\", description: \"d\", execute: || [1].map(|x| x.bar()) });",
        "t.rhai:1:73: Function not found: bar (i64)\n  in `map`, called at t.rhai:1:63",
    )
    .await;
}

#[tokio::test]
async fn calling_a_variable_that_holds_a_function_is_explained() {
    check_tool(
        "let double = |x| x * 2;\nregister_tool(#{ name: \"t\", description: \"d\", execute: || { let f = double; f(2) } });",
        "t.rhai:2:77: Function not found: f (i64)\n  hint: `f` is a variable; call the function in it with `f.call(…)`",
    )
    .await;
}

#[tokio::test]
async fn misuse_of_a_host_function_is_an_error_with_its_place_and_not_a_result() {
    check_tool(
        "register_tool(#{ name: \"t\", description: \"d\", execute: || http(#{ adress: \"x\" }) });",
        "t.rhai:1:59: http has no option `adress`; it takes url, method, headers, body, timeout_ms",
    )
    .await;
    check_tool(
        "register_tool(#{ name: \"t\", description: \"d\", execute: || json_stringify(#{ f: || 1 }) });",
        "t.rhai:1:59: json_stringify: a function has no JSON form",
    )
    .await;
}

#[tokio::test]
async fn assigning_to_a_constant_map_is_an_error_and_no_panic() {
    // Rhai 1.27 panics on it at its default optimisation level (extensions §7.3).
    check_load(
        "const o = #{a: 1};\no.a = 2;",
        "t.rhai:2:1: Cannot modify constant o",
    )
    .await;
}

#[tokio::test]
async fn habits_of_javascript_are_answered_with_what_takes_their_place() {
    let mut missed = Vec::new();
    for (text, hint) in [
        (
            "function f(a) { a }",
            "a function is written `fn name(a) { … }`",
        ),
        ("let f = (a) => a;", "a closure `|a| …`"),
        ("on(\"input\", (event) => { });", "a closure `|a| …`"),
        ("let x = null;", "nothing is written `()`"),
        ("let x = undefined;", "nothing is written `()`"),
        ("let a = 1; if a === 1 { }", "compare with `==` and `!=`"),
        ("let a = 1; if a !== 1 { }", "compare with `==` and `!=`"),
        ("let o = #{}; let {a} = o;", "`let` takes one name"),
        ("let o = []; let [a] = o;", "`let` takes one name"),
        ("console.log(\"x\");", "write to the log with `log(text)`"),
        ("let f = async |a| a;", "leave `async` and `await` out"),
        (
            "let x = await exec(\"a\", []);",
            "leave `async` and `await` out",
        ),
        (
            "let a = 1; let x = 'a ${a}';",
            "with `${…}` in it in backticks",
        ),
        ("let a = 1; a++;", "write `x += 1`"),
        (
            "for (let i = 0; i < 3; i++) { }",
            "a loop is `for x in list { … }`",
        ),
        ("let x = new Map();", "a map is `#{ a: 1 }`"),
        ("var x = 1;", "variables are declared with `let`"),
        ("let x = [1]; x.length", "it is called `len` here"),
        ("let x = \"a\"; x.length", "it is called `len` here"),
        (
            "let x = \"a\"; x.toUpperCase()",
            "it is called `to_upper` here",
        ),
        ("[1].forEach(|x| x);", "loop with `for x in list { … }`"),
        ("setTimeout(|| 1, 5);", "use `after(ms, || …)`"),
    ] {
        let message = load_error(text).await.message;
        let (said, hinted) = message.split_once("\n  hint: ").unwrap_or((&message, ""));
        if !said.starts_with("t.rhai:1:") || !hinted.contains(hint) {
            missed.push(format!("{text}: {message}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[tokio::test]
async fn what_is_right_in_rhai_gets_no_hint_of_another_language() {
    let message = load_error("switch 1 { 1 => 2, _ => 3 }; let x = ;")
        .await
        .message;
    assert!(!message.contains("null"), "{message}");
    let message = load_error("let nullable = 1; nullable.shrink()")
        .await
        .message;
    assert!(!message.contains("hint"), "{message}");
}

#[tokio::test]
async fn eval_does_not_exist() {
    let error = load_error("eval(\"1\");").await;
    assert!(error.message.starts_with("t.rhai:1:"), "{error}");
}

#[tokio::test]
async fn a_closure_that_uses_the_variable_its_method_was_called_on_is_explained() {
    let bench = load(
        r#"let all = #{ a: 1 };
        on("turn_end", |event, ctx| all.keys().map(|name| all[name]));
        on("agent_end", |event, ctx| { let names = all.keys(); names.map(|name| all[name]); });"#,
    )
    .await;
    let error = bench.hook("turn_end", json!({})).await.unwrap_err();
    assert!(
        error.message.contains("hint: a closure uses the variable"),
        "{error}"
    );
    bench.hook("agent_end", json!({})).await.unwrap();
}

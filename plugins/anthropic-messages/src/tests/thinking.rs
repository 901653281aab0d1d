//! Levels, budgets and limits, beyond the rows of the catalogue.

use serde_json::{Value, json};

use super::body;

fn asked(patch: Value, option: Value) -> (Value, Value) {
    let mut body = body(patch, option, json!([{"role": "user", "content": "x"}]));
    (body["thinking"].take(), body["max_tokens"].take())
}

fn enabled(tokens: u64) -> Value {
    json!({"type": "enabled", "budget_tokens": tokens, "display": "summarized"})
}

#[test]
fn a_budget_comes_on_top_of_what_the_caller_wants_to_read() {
    let low = json!({"reasoning": "low", "maxTokens": 4000});
    assert_eq!(asked(json!({}), low), (enabled(2048), json!(6048)));
    let high = json!({"reasoning": "high", "maxTokens": 30_000});
    assert_eq!(asked(json!({}), high), (enabled(16_384), json!(32_000)));
    let own = json!({"reasoning": "low", "thinkingBudgets": {"low": 5000}});
    assert_eq!(asked(json!({}), own), (enabled(5000), json!(32_000)));
}

#[test]
fn without_room_for_thought_and_answer_there_is_no_thought() {
    let disabled = json!({"type": "disabled"});
    let small = json!({"maxTokens": 2000});
    let low = json!({"reasoning": "low"});
    assert_eq!(asked(small.clone(), low.clone()), (disabled, json!(2000)));
    let mut always = small;
    always["thinkingLevelMap"] = json!({"off": null});
    assert_eq!(asked(always, low), (Value::Null, json!(2000)));
    let tiny = json!({"reasoning": "low", "thinkingBudgets": {"low": 10}});
    assert_eq!(asked(json!({}), tiny), (enabled(1024), json!(32_000)));
}

#[test]
fn a_temperature_is_sent_without_thinking_only() {
    let sent = |patch: Value, option: Value| {
        body(patch, option, json!([{"role": "user", "content": "x"}]))
            .get("temperature")
            .cloned()
    };
    let warm = json!({"temperature": 0.5});
    assert_eq!(sent(json!({}), warm.clone()), Some(json!(0.5)));
    assert_eq!(
        sent(
            json!({"compat": {"supportsTemperature": false}}),
            warm.clone()
        ),
        None
    );
    assert_eq!(
        sent(json!({"compat": {"supportsMidConvoEffort": true}}), warm),
        None
    );
    assert_eq!(
        sent(json!({}), json!({"temperature": 0.5, "reasoning": "low"})),
        None
    );
}

#[test]
fn a_limit_is_always_said() {
    let (_, limit) = asked(json!({"maxTokens": 0}), json!({}));
    assert_eq!(limit, 8192);
}

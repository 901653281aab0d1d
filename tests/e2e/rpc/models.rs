//! Models and thinking levels.

use pliant_tests::{MODEL, ModelServer, PROVIDER, Rpc, TempHome, reply};
use serde_json::{Value, json};

/// A home with a plain model, one that thinks, and one that thinks more.
fn home(server: &ModelServer) -> TempHome {
    let home = TempHome::with_model(server);
    home.models(json!({PROVIDER: {
        "baseUrl": server.url(), "api": "openai-completions", "apiKey": "test-key",
        "headers": {"x-secret": "hidden"},
        "models": [
            {"id": MODEL},
            {"id": "thinker", "name": "Thinker", "reasoning": true, "contextWindow": 8000, "maxTokens": 1000,
             "cost": {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 1}},
        ],
    }}));
    home
}

fn levels(rpc: &Rpc) -> Vec<Value> {
    let changes = rpc
        .records()
        .iter()
        .filter(|record| record["type"] == "thinking_level_changed");
    changes.map(|change| change["level"].clone()).collect()
}

#[test]
fn a_model_is_told_with_all_its_fields_and_no_secret() {
    let server = ModelServer::start([]);
    let home = home(&server);
    let mut rpc = home.rpc();
    let models = rpc.ok(json!({"type": "get_available_models"}));
    let common = json!({
        "api": "openai-completions", "provider": PROVIDER, "baseUrl": server.url(), "input": ["text"],
    });
    let with = |own: Value| {
        let mut model = common.clone();
        for (name, value) in own.as_object().expect("fields") {
            model[name] = value.clone();
        }
        model
    };
    let plain = with(json!({
        "id": MODEL, "name": MODEL, "reasoning": false, "contextWindow": 128_000, "maxTokens": 16384,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    }));
    let thinker = with(json!({
        "id": "thinker", "name": "Thinker", "reasoning": true, "contextWindow": 8000, "maxTokens": 1000,
        "cost": {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 1},
    }));
    assert_numbers(&models["models"], &json!([plain, thinker]));
    let set = rpc.ok(json!({"type": "set_model", "provider": PROVIDER, "modelId": "thinker"}));
    assert_numbers(&set, &thinker);
    assert_numbers(&rpc.state()["model"], &thinker);
    rpc.end();
}

/// Whole numbers may be written either way.
fn assert_numbers(one: &Value, other: &Value) {
    fn plain(value: &Value) -> Value {
        match value {
            Value::Number(number) => json!(number.as_f64()),
            Value::Array(all) => all.iter().map(plain).collect(),
            Value::Object(fields) => {
                let fields = fields
                    .iter()
                    .map(|(name, value)| (name.clone(), plain(value)));
                Value::Object(fields.collect())
            }
            other => other.clone(),
        }
    }
    assert_eq!(plain(one), plain(other));
}

#[test]
fn a_model_is_chosen_for_this_session_only_and_recorded() {
    let server = ModelServer::start([reply::text("Hm.")]);
    let home = home(&server);
    home.settings(
        json!({"retry": {"enabled": false}, "defaultProvider": PROVIDER, "defaultModel": MODEL}),
    );
    let settings = home.agent_dir().join("settings.json");
    let before = std::fs::read(&settings).expect("it is there");
    let mut rpc = home.rpc();
    let error = rpc.error(json!({"type": "set_model", "provider": PROVIDER, "modelId": "none"}));
    assert_eq!(error, format!("Model not found: {PROVIDER}/none"));
    rpc.ok(json!({"type": "set_model", "provider": PROVIDER, "modelId": "thinker"}));
    rpc.turn("Think.");
    rpc.end();
    assert_eq!(server.finish()[0].body["model"], "thinker");
    let entries = home.session();
    let changes = entries
        .iter()
        .filter(|entry| entry["type"] == "model_change");
    let changes: Vec<_> = changes.map(|change| &change["modelId"]).collect();
    assert_eq!(changes, [MODEL, "thinker"]);
    assert_eq!(std::fs::read(&settings).expect("it is there"), before);
}

#[test]
fn models_and_levels_can_be_walked_through() {
    let server = ModelServer::start([]);
    let home = home(&server);
    let mut rpc = home.rpc();
    assert_eq!(rpc.ok(json!({"type": "cycle_thinking_level"})), Value::Null);
    assert_eq!(
        rpc.ok(json!({"type": "get_available_thinking_levels"})),
        json!({"levels": ["off"]})
    );
    let cycled = rpc.ok(json!({"type": "cycle_model"}));
    assert_eq!(
        (&cycled["model"]["id"], &cycled["isScoped"]),
        (&json!("thinker"), &json!(false))
    );
    rpc.ok(json!({"type": "set_thinking_level", "level": "off"}));
    let all = ["off", "minimal", "low", "medium", "high"];
    assert_eq!(
        rpc.ok(json!({"type": "get_available_thinking_levels"})),
        json!({ "levels": all })
    );
    let walked: Vec<_> = (0..5)
        .map(|_| rpc.ok(json!({"type": "cycle_thinking_level"}))["level"].clone())
        .collect();
    assert_eq!(walked, ["minimal", "low", "medium", "high", "off"]);
    let cycled = rpc.ok(json!({"type": "cycle_model"}));
    assert_eq!(cycled["model"]["id"], MODEL);
    rpc.end();
    // With one model there is nowhere to go.
    let only = TempHome::with_model(&server);
    let mut rpc = only.rpc();
    assert_eq!(rpc.ok(json!({"type": "cycle_model"})), Value::Null);
    rpc.end();
}

#[test]
fn a_level_is_clamped_told_and_recorded_when_it_changes() {
    let server = ModelServer::start([reply::text("Hm.")]);
    let home = home(&server);
    let pliant = home
        .pliant()
        .args(["--provider", PROVIDER, "--model", "thinker"]);
    let mut rpc = pliant.args(["--mode", "rpc", "--thinking", "low"]).rpc();
    for level in ["high", "high", "max", "off"] {
        assert_eq!(
            rpc.ok(json!({"type": "set_thinking_level", "level": level})),
            Value::Null
        );
    }
    assert_eq!(levels(&rpc), ["high", "off"]);
    rpc.ok(json!({"type": "set_thinking_level", "level": "medium"}));
    assert_eq!(rpc.state()["thinkingLevel"], "medium");
    rpc.turn("Think.");
    rpc.end();
    assert_eq!(server.finish()[0].body["reasoning_effort"], "medium");
    let entries = home.session();
    let changes = entries
        .iter()
        .filter(|entry| entry["type"] == "thinking_level_change");
    let changes: Vec<_> = changes.map(|change| &change["thinkingLevel"]).collect();
    assert_eq!(changes, ["low", "high", "off", "medium"]);
}

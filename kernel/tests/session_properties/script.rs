//! What may happen to a session, as values that can be drawn and made smaller: what its model says,
//! what its extension does, and what its users do when.

use pliant_kernel::registry::HookPoint;
use pliant_sdk::message::ThinkingLevel;
use pliant_sdk::session::{MessageOptions, SendAs};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

/// A session and what happens to it.
#[derive(Debug, Clone)]
pub struct Script {
    pub setting: Setting,
    /// What the model says, request by request; afterwards it says little.
    pub replies: Vec<Reply>,
    /// What the extension does, load by load; afterwards it does nothing.
    pub generations: Vec<Vec<Handler>>,
    pub acts: Vec<Act>,
}

/// What does not change.
#[derive(Debug, Clone)]
pub struct Setting {
    pub on_disk: bool,
    /// Runs on several threads; what happens when is then not up to the script.
    pub threads: bool,
    pub all_steering: bool,
    pub all_follow_ups: bool,
    pub max_retries: u32,
    pub compacts: bool,
}

/// One answer of the model.
#[derive(Debug, Clone)]
pub struct Reply {
    pub what: Say,
    /// Waits to be let: before it begins, and before it ends.
    pub gates: (bool, bool),
    /// Tokens of the request as the service counts them.
    pub input: u64,
}

#[derive(Debug, Clone)]
pub enum Say {
    Text(usize),
    /// An answer that was cut at its length.
    Half,
    Calls(Vec<Call>),
    /// Calls in an answer that was cut at its length.
    CutCalls(Vec<Call>),
    /// Some words and then this failure.
    Fail(usize, &'static str),
    Panic,
    /// An answer that is none.
    Nonsense(Value),
    /// Never ends.
    Hang,
}

/// One call of a tool.
#[derive(Debug, Clone)]
pub struct Call {
    pub tool: &'static str,
    pub deed: Deed,
    /// Has the id of the call before it.
    pub same_id: bool,
}

/// What a tool does when it is called.
#[derive(Debug, Clone, Copy)]
pub enum Deed {
    Say,
    /// More than a context holds.
    SayMuch,
    Fail,
    Panic,
    /// Waits to be let.
    Gate,
    Hang,
    Update,
    Terminate,
    /// Calls a tool that waits to be let, and one that is not there.
    Nest,
    /// The arguments are not what the tool takes.
    BadArguments,
}

/// A handler of the extension.
#[derive(Debug, Clone)]
pub struct Handler {
    pub point: HookPoint,
    pub manner: Manner,
}

#[derive(Debug, Clone)]
pub enum Manner {
    Nothing,
    Fail,
    Panic,
    Answer(Value),
    /// Waits to be let.
    Gate,
    Hang,
    /// Asks its session to stop.
    Abort,
    /// Asks its session whether it is idle, and for what it may not have.
    Ask,
    /// Loads the extension anew.
    Reload,
}

/// What somebody does, after a while.
#[derive(Debug, Clone)]
pub struct Act {
    pub after: After,
    pub what: What,
}

/// How long the session has had.
#[derive(Debug, Clone, Copy)]
pub enum After {
    /// So many turns of everybody else.
    Steps(usize),
    /// Until nothing moves.
    Quiet,
    /// Until what waits for a moment has waited.
    Pause,
}

#[derive(Debug, Clone)]
pub enum What {
    Prompt(Option<Way>),
    /// Two prompts at once.
    Prompts(Option<Way>, Option<Way>),
    Abort,
    /// Stops it without waiting.
    Cancel,
    /// Lets so many waiting things go on.
    Open(usize),
    /// Loads the extension anew.
    Reload,
    Compact,
    ClearQueue,
    /// The extension says something.
    Message(MessageOptions),
    /// Goes to an entry, counted from the last one, with a summary of what is left or without.
    Navigate(usize, bool),
    /// A command of the user has ended.
    Bash,
    /// Another model, maybe a virtual one.
    Model(&'static str),
    Level(ThinkingLevel),
}

impl What {
    /// Whether it may start a run without a prompt.
    pub fn triggers(&self) -> bool {
        matches!(self, Self::Message(options) if options.trigger_turn == Some(true))
    }
}

/// How a prompt joins an active run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Steer,
    FollowUp,
}

/// Any script.
pub fn script() -> impl Strategy<Value = Script> {
    let handlers = vec(handler(), 0..4);
    (
        setting(),
        vec(reply(), 0..9),
        vec(handlers, 0..3),
        vec(act(), 1..16),
    )
        .prop_map(|(setting, replies, generations, acts)| Script {
            setting,
            replies,
            generations,
            acts,
        })
}

fn setting() -> impl Strategy<Value = Setting> {
    let on = any::<bool>;
    let rarely = || proptest::bool::weighted(0.1);
    (on(), rarely(), on(), on(), 0..3_u32, on()).prop_map(
        |(on_disk, threads, all_steering, all_follow_ups, max_retries, compacts)| Setting {
            on_disk,
            threads,
            all_steering,
            all_follow_ups,
            max_retries,
            compacts,
        },
    )
}

fn reply() -> impl Strategy<Value = Reply> {
    let failures = [
        "503 overloaded",
        "read ECONNRESET",
        "400: wrong",
        "429: insufficient_quota",
        "400: prompt is too long: 210000 tokens > 200000 maximum",
    ];
    let nonsense = [
        json!({"stopReason": "pending"}),
        json!({"stopReason": "whatever"}),
        json!({"content": null}),
        json!({"role": "user", "content": "no answer"}),
        json!({"stopReason": "error"}),
        json!({"stopReason": "deferred"}),
    ];
    let what = prop_oneof![
        4 => (0..5_usize).prop_map(Say::Text),
        1 => Just(Say::Half),
        6 => vec(call(), 1..4).prop_map(Say::Calls),
        1 => vec(call(), 1..3).prop_map(Say::CutCalls),
        4 => (0..3_usize, select(failures.to_vec())).prop_map(|(words, text)| Say::Fail(words, text)),
        1 => Just(Say::Panic),
        1 => select(nonsense.to_vec()).prop_map(Say::Nonsense),
        1 => Just(Say::Hang),
    ];
    let input = prop_oneof![4 => Just(0), 3 => Just(100), 2 => Just(9_000), 2 => Just(20_000)];
    (what, any::<bool>(), any::<bool>(), input).prop_map(|(what, before, within, input)| Reply {
        what,
        gates: (before, within),
        input,
    })
}

fn call() -> impl Strategy<Value = Call> {
    let deed = prop_oneof![
        5 => Just(Deed::Say),
        1 => Just(Deed::SayMuch),
        1 => Just(Deed::Fail),
        1 => Just(Deed::Panic),
        3 => Just(Deed::Gate),
        1 => Just(Deed::Hang),
        2 => Just(Deed::Update),
        2 => Just(Deed::Terminate),
        2 => Just(Deed::Nest),
        1 => Just(Deed::BadArguments),
    ];
    let tool = select(vec!["echo", "echo", "echo", "slow", "late", "unknown"]);
    (tool, deed, proptest::bool::weighted(0.1)).prop_map(|(tool, deed, same_id)| Call {
        tool,
        deed,
        same_id,
    })
}

fn handler() -> impl Strategy<Value = Handler> {
    let answers = [
        json!(7),
        json!("text"),
        json!([]),
        json!({"block": "yes"}),
        json!({"block": true}),
        json!({"block": true, "terminate": true}),
        json!({"message": 5}),
        json!({"message": {"role": "user"}}),
        json!({"action": 7}),
        json!({"action": "handled"}),
        json!({"action": "transform", "text": 5}),
        json!({"messages": "none"}),
        json!({"entries": 3, "continue": "yes"}),
        json!({"cancel": "perhaps"}),
        json!({"content": {}, "isError": "no"}),
        json!({"event": []}),
        json!({"continue": true}),
        json!({"entries": [{"type": "custom_message", "customType": "c", "content": "of the boundary", "display": true}]}),
        json!({"entries": [{"type": "custom", "customType": "c", "data": 1}], "continue": true}),
    ];
    let manner = prop_oneof![
        2 => Just(Manner::Nothing),
        3 => Just(Manner::Fail),
        2 => Just(Manner::Panic),
        5 => select(answers.to_vec()).prop_map(Manner::Answer),
        2 => Just(Manner::Gate),
        1 => Just(Manner::Hang),
        1 => Just(Manner::Abort),
        2 => Just(Manner::Ask),
        2 => Just(Manner::Reload),
    ];
    (select(HookPoint::ALL), manner).prop_map(|(point, manner)| Handler { point, manner })
}

fn message() -> impl Strategy<Value = MessageOptions> {
    let ways = vec![
        None,
        Some(SendAs::Steer),
        Some(SendAs::FollowUp),
        Some(SendAs::NextTurn),
    ];
    let turns = vec![None, Some(false), Some(true)];
    (select(ways), select(turns)).prop_map(|(deliver_as, trigger_turn)| MessageOptions {
        deliver_as,
        trigger_turn,
    })
}

fn act() -> impl Strategy<Value = Act> {
    let way = || {
        prop_oneof![
            1 => Just(None),
            2 => Just(Some(Way::Steer)),
            2 => Just(Some(Way::FollowUp)),
        ]
    };
    let what = prop_oneof![
        8 => way().prop_map(What::Prompt),
        1 => (way(), way()).prop_map(|(one, other)| What::Prompts(one, other)),
        2 => Just(What::Abort),
        1 => Just(What::Cancel),
        8 => (1..4_usize).prop_map(What::Open),
        2 => Just(What::Reload),
        2 => Just(What::Compact),
        1 => Just(What::ClearQueue),
        3 => message().prop_map(What::Message),
        2 => Just(What::Bash),
        2 => select(vec!["fake/m", "fake/thinker", "router/auto"]).prop_map(What::Model),
        1 => select(vec![ThinkingLevel::Off, ThinkingLevel::Low, ThinkingLevel::Max])
            .prop_map(What::Level),
        2 => (0..20_usize, any::<bool>()).prop_map(|(to, summary)| What::Navigate(to, summary)),
    ];
    let after = prop_oneof![
        4 => (0..24_usize).prop_map(After::Steps),
        5 => Just(After::Quiet),
        1 => Just(After::Pause),
    ];
    (after, what).prop_map(|(after, what)| Act { after, what })
}

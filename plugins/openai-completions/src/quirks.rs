//! What a service does differently: the `compat` switches of a model (`providers.md` §4), with
//! the defaults that follow from who the service is.
//!
//! The rest of the crate asks this struct and never looks at provider ids or addresses itself.

use pliant_sdk::Model;
use pliant_sdk::wire::Compat;
use serde_json::{Map, Value};

/// The switches as they are in force for one model. Names are those of `compat`, shortened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quirks {
    pub(crate) store: bool,
    pub(crate) developer_role: bool,
    pub(crate) reasoning_effort: bool,
    pub(crate) usage_in_streaming: bool,
    /// False: a stream may end without a finish reason.
    pub(crate) finish_reason: bool,
    /// Name of the body field of the output limit.
    pub(crate) max_tokens_field: String,
    pub(crate) tool_result_name: bool,
    pub(crate) assistant_after_tool_result: bool,
    pub(crate) non_null_assistant_content: bool,
    pub(crate) tools_with_tool_history: bool,
    pub(crate) thinking_as_text: bool,
    pub(crate) reasoning_content_on_assistant: bool,
    pub(crate) thinking_format: ThinkingFormat,
    pub(crate) chat_template_kwargs: Map<String, Value>,
    pub(crate) chat_template_args: Map<String, Value>,
    pub(crate) open_router_routing: Option<Value>,
    pub(crate) vercel_gateway_routing: Option<Value>,
    pub(crate) zai_tool_stream: bool,
    /// Name of the body field of the thinking budget.
    pub(crate) thinking_budget_field: Option<String>,
    pub(crate) strict_tools: bool,
    pub(crate) grammar_tools: bool,
    pub(crate) system_in_place: bool,
    /// Only with `system_in_place`.
    pub(crate) tools_in_place: bool,
    /// Mark what is to be cached, as Anthropic's own API wants it.
    pub(crate) cache_markers: bool,
    pub(crate) affinity: Option<Affinity>,
    pub(crate) cache_key: CacheKey,
    pub(crate) long_retention: bool,
    pub(crate) priority: Option<Value>,
    /// The service reports what it charged.
    pub(crate) reports_cost: bool,
    /// The service calls reasoning one thing and wants it back as another.
    pub(crate) renames_reasoning: bool,
    /// The service refuses call ids longer than this.
    pub(crate) max_id_chars: usize,
}

/// How thinking is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThinkingFormat {
    OpenAi,
    OpenRouter,
    DeepSeek,
    Zai,
    Qwen,
    QwenChatTemplate,
    ChatTemplate,
    Baseten,
    Together,
    StringThinking,
    AntLing,
}

/// Headers that keep a conversation on one machine of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Affinity {
    /// The three of OpenAI.
    Full,
    /// Those without `session_id`, which some gateways refuse.
    NoSession,
    /// The one of OpenRouter.
    Single,
}

impl Affinity {
    pub(crate) fn headers(self) -> &'static [&'static str] {
        match self {
            Self::Full => &["session_id", "x-client-request-id", "x-session-affinity"],
            Self::NoSession => &["x-client-request-id", "x-session-affinity"],
            Self::Single => &["x-session-id"],
        }
    }
}

/// When the body names the conversation for the service's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheKey {
    /// Long retention only.
    OnLongRetention,
    /// Whenever caching is on.
    Always,
    Never,
}

/// Services whose habits are known, by provider id or a part of the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Service {
    AntLing,
    Cerebras,
    Chutes,
    CloudflareGateway,
    CloudflareWorkers,
    DeepSeek,
    Moonshot,
    Nvidia,
    OpenAi,
    OpenCode,
    OpenRouter,
    Together,
    Xai,
    Zai,
}

/// Service, provider ids, parts of the address.
const SERVICES: &[(Service, &[&str], &[&str])] = &[
    (Service::AntLing, &["ant-ling"], &["api.ant-ling.com"]),
    (Service::Cerebras, &["cerebras"], &["cerebras.ai"]),
    (Service::Chutes, &[], &["chutes.ai"]),
    (
        Service::CloudflareGateway,
        &["cloudflare-ai-gateway"],
        &["gateway.ai.cloudflare.com"],
    ),
    (
        Service::CloudflareWorkers,
        &["cloudflare-workers-ai"],
        &["api.cloudflare.com"],
    ),
    (Service::DeepSeek, &["deepseek"], &["deepseek.com"]),
    (
        Service::Moonshot,
        &["moonshotai", "moonshotai-cn"],
        &["api.moonshot."],
    ),
    (Service::Nvidia, &["nvidia"], &["integrate.api.nvidia.com"]),
    (Service::OpenAi, &["openai"], &["api.openai.com"]),
    (Service::OpenCode, &["opencode"], &["opencode.ai"]),
    (Service::OpenRouter, &["openrouter"], &["openrouter.ai"]),
    (
        Service::Together,
        &["together"],
        &["api.together.ai", "api.together.xyz"],
    ),
    (Service::Xai, &["xai"], &["api.x.ai"]),
    (
        Service::Zai,
        &["zai", "zai-coding-cn"],
        &["api.z.ai", "open.bigmodel.cn"],
    ),
];

impl Quirks {
    /// An explicit switch of the model wins over what its service is known for.
    pub(crate) fn of(model: &Model) -> Self {
        use Service as S;
        let known: Vec<Service> = services_of(model).collect();
        let is = |any: &[Service]| known.iter().any(|service| any.contains(service));
        let compat = Compat::of(model);
        let open_router = is(&[S::OpenRouter]);
        let system_in_place = compat.flag("supportsMidConvoSystemMessages", false);
        Self {
            store: compat.flag(
                "supportsStore",
                !is(&[
                    S::Nvidia,
                    S::Cerebras,
                    S::Xai,
                    S::Together,
                    S::Chutes,
                    S::DeepSeek,
                    S::Zai,
                    S::Moonshot,
                    S::OpenCode,
                    S::CloudflareWorkers,
                    S::CloudflareGateway,
                    S::AntLing,
                ]),
            ),
            developer_role: compat.flag("supportsDeveloperRole", is(&[S::OpenAi])),
            reasoning_effort: compat.flag(
                "supportsReasoningEffort",
                !is(&[
                    S::Xai,
                    S::Zai,
                    S::Moonshot,
                    S::Together,
                    S::CloudflareGateway,
                    S::Nvidia,
                    S::AntLing,
                ]),
            ),
            usage_in_streaming: compat.flag("supportsUsageInStreaming", true),
            finish_reason: compat.flag("supportsFinishReason", true),
            max_tokens_field: compat.text("maxTokensField").unwrap_or_else(|| {
                let old = is(&[
                    S::Chutes,
                    S::DeepSeek,
                    S::Moonshot,
                    S::CloudflareGateway,
                    S::Together,
                    S::Nvidia,
                    S::AntLing,
                    S::Zai,
                ]);
                let name = if old {
                    "max_tokens"
                } else {
                    "max_completion_tokens"
                };
                name.to_owned()
            }),
            tool_result_name: compat.flag("requiresToolResultName", false),
            assistant_after_tool_result: compat.flag("requiresAssistantAfterToolResult", false),
            non_null_assistant_content: compat.flag("requiresNonNullAssistantContent", false),
            tools_with_tool_history: compat.flag("requiresToolsWithToolHistory", false),
            thinking_as_text: compat.flag("requiresThinkingAsText", false),
            reasoning_content_on_assistant: compat.flag(
                "requiresReasoningContentOnAssistantMessages",
                is(&[S::DeepSeek]),
            ),
            thinking_format: compat
                .text("thinkingFormat")
                .and_then(|name| ThinkingFormat::parse(&name))
                .unwrap_or_else(|| ThinkingFormat::detected(&known)),
            chat_template_kwargs: compat.map("chatTemplateKwargs"),
            chat_template_args: compat.map("chatTemplateArgs"),
            open_router_routing: compat.value("openRouterRouting"),
            vercel_gateway_routing: compat.value("vercelGatewayRouting"),
            zai_tool_stream: compat.flag("zaiToolStream", false),
            thinking_budget_field: compat.text("thinkingTokenBudgetField").or_else(|| {
                let supported = compat.flag("supportsThinkingTokenBudget", false);
                supported.then(|| "thinking_token_budget".to_owned())
            }),
            strict_tools: compat.flag("supportsStrictMode", false),
            grammar_tools: compat.flag("supportsOpenAIGrammarTools", false),
            system_in_place,
            tools_in_place: system_in_place && compat.flag("supportsMidConvoToolAdditions", false),
            cache_markers: match compat.text("cacheControlFormat") {
                Some(format) => format == "anthropic",
                None => model.provider == "openrouter" && model.id.starts_with("anthropic/"),
            },
            affinity: compat
                .flag("sendSessionAffinityHeaders", open_router)
                .then(|| affinity(&compat, open_router)),
            cache_key: match compat.text("promptCacheKeyMode").as_deref() {
                Some("enabled") => CacheKey::Always,
                Some("disabled") => CacheKey::Never,
                _ if model.base_url.contains("api.openai.com") => CacheKey::Always,
                _ => CacheKey::OnLongRetention,
            },
            long_retention: compat.flag(
                "supportsLongCacheRetention",
                !is(&[
                    S::Together,
                    S::CloudflareWorkers,
                    S::CloudflareGateway,
                    S::Nvidia,
                    S::AntLing,
                ]),
            ),
            priority: compat.value("vllmPriority"),
            reports_cost: open_router,
            renames_reasoning: model.provider == "opencode-go",
            max_id_chars: if model.provider == "openai" { 40 } else { 64 },
        }
    }
}

impl ThinkingFormat {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "openai" => Self::OpenAi,
            "openrouter" => Self::OpenRouter,
            "deepseek" => Self::DeepSeek,
            "zai" => Self::Zai,
            "qwen" => Self::Qwen,
            "qwen-chat-template" => Self::QwenChatTemplate,
            "chat-template" => Self::ChatTemplate,
            "baseten" => Self::Baseten,
            "together" => Self::Together,
            "string-thinking" => Self::StringThinking,
            "ant-ling" => Self::AntLing,
            _ => return None,
        })
    }

    fn detected(known: &[Service]) -> Self {
        let formats = [
            (Service::DeepSeek, Self::DeepSeek),
            (Service::Zai, Self::Zai),
            (Service::Together, Self::Together),
            (Service::AntLing, Self::AntLing),
            (Service::OpenRouter, Self::OpenRouter),
        ];
        let found = formats
            .into_iter()
            .find(|(service, _)| known.contains(service));
        found.map_or(Self::OpenAi, |(_, format)| format)
    }
}

fn services_of(model: &Model) -> impl Iterator<Item = Service> {
    SERVICES
        .iter()
        .filter(|(_, ids, hosts)| {
            ids.contains(&model.provider.as_str())
                || hosts.iter().any(|host| model.base_url.contains(host))
        })
        .map(|(service, ..)| *service)
}

fn affinity(compat: &Compat<'_>, open_router: bool) -> Affinity {
    match compat.text("sessionAffinityFormat").as_deref() {
        Some("openai") => Affinity::Full,
        Some("openai-nosession") => Affinity::NoSession,
        Some("openrouter") => Affinity::Single,
        _ if open_router => Affinity::Single,
        _ => Affinity::Full,
    }
}

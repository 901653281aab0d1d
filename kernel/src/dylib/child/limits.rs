//! What a child may use, if the user says so (`plugins.limits`).

use serde::{Deserialize, Serialize};

/// Limits of one child.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChildLimits {
    /// Address space, megabytes. What is reserved counts, not what is used.
    pub memory_mb: Option<u64>,
    /// Processor time of its whole life, seconds.
    pub cpu_seconds: Option<u64>,
}

/// Data of a plugin that is only tried out, bytes: one that takes memory without end at its start must not
/// take that of the machine. What is only reserved does not count.
const TRIED_OUT: u64 = 2 << 30;

/// Sets the limits of this process.
pub(super) fn set(limits: ChildLimits, tries: bool) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let lower = |resource: Resource, most: u64| {
        let Rlimit { maximum, .. } = getrlimit(resource);
        let most = Some(maximum.map_or(most, |maximum| maximum.min(most)));
        let limit = Rlimit {
            current: most,
            maximum: most,
        };
        // Lowering one's own limit is never refused.
        let _ = setrlimit(resource, limit);
    };
    if let Some(mb) = limits.memory_mb {
        lower(Resource::As, mb.saturating_mul(1 << 20));
    }
    if let Some(seconds) = limits.cpu_seconds {
        lower(Resource::Cpu, seconds);
    }
    if tries {
        lower(Resource::Data, TRIED_OUT);
    }
    // A crash is told in a sentence; an image of the memory is nobody's wish.
    lower(Resource::Core, 0);
}

//! The names of hooks, and which of them each preset records.

/// Every event that Cursor documents (<https://cursor.com/docs/hooks>). An unknown name in hooks.json can void the whole
/// file on Cursor's command line, so `doctor` compares with this list.
pub(crate) const KNOWN: [&str; 21] = [
    "workspaceOpen",
    "sessionStart",
    "sessionEnd",
    "beforeSubmitPrompt",
    "preToolUse",
    "postToolUse",
    "postToolUseFailure",
    "beforeShellExecution",
    "afterShellExecution",
    "beforeMCPExecution",
    "afterMCPExecution",
    "beforeReadFile",
    "afterFileEdit",
    "afterAgentResponse",
    "afterAgentThought",
    "stop",
    "subagentStart",
    "subagentStop",
    "preCompact",
    "beforeTabFileRead",
    "afterTabFileEdit",
];

/// Hooks that run after the event, so that nothing waits for their answer.
const MINIMAL: [&str; 10] = [
    "postToolUse",
    "postToolUseFailure",
    "afterShellExecution",
    "afterMCPExecution",
    "afterFileEdit",
    "afterAgentResponse",
    "afterAgentThought",
    "stop",
    "subagentStop",
    "sessionEnd",
];

/// Hooks at the beginning of something. Without them, starts are inferred.
const BEGINNINGS: [&str; 5] =
    ["sessionStart", "beforeSubmitPrompt", "preToolUse", "subagentStart", "preCompact"];

/// Events that repeat generic ones in more detail, and the Tab events, which are very frequent.
const SPECIFIC: [&str; 5] = [
    "beforeShellExecution",
    "beforeMCPExecution",
    "beforeReadFile",
    "beforeTabFileRead",
    "afterTabFileEdit",
];

/// A preset of `--events`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Events {
    /// Only hooks that run after an event, so that Cursor never waits for an answer
    Minimal,
    /// Also the beginnings of sessions, prompts, calls and subagents, for exact start times
    Standard,
    /// Also the specific before* hooks, and Tab completions, which are very frequent
    All,
}

/// Whether Cursor has an event with this name. Its first letter may be a capital.
#[must_use]
pub(crate) fn is_known(name: &str) -> bool {
    KNOWN.iter().any(|known| known.eq_ignore_ascii_case(name))
}

impl Events {
    /// The names, in the order in which they are written.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        let parts: &[&[&'static str]] = match self {
            Self::Minimal => &[&MINIMAL],
            Self::Standard => &[&BEGINNINGS, &MINIMAL],
            Self::All => &[&BEGINNINGS, &SPECIFIC, &MINIMAL],
        };
        let chosen = parts.concat();
        KNOWN.into_iter().filter(|name| chosen.contains(name)).collect()
    }

    /// The preset that records exactly these names, in any order.
    #[must_use]
    pub fn of(names: &[&str]) -> Option<Self> {
        [Self::Minimal, Self::Standard, Self::All].into_iter().find(|preset| {
            let wanted = preset.names();
            wanted.len() == names.len() && wanted.iter().all(|name| names.contains(name))
        })
    }

    /// The word on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Standard => "standard",
            Self::All => "all",
        }
    }
}

/// The expected answer to an event. `hookspan doctor` compares the hook program's answer with it.
#[must_use]
pub(crate) fn neutral_reply(event: &str) -> &'static str {
    match event {
        "preToolUse"
        | "beforeShellExecution"
        | "beforeMCPExecution"
        | "subagentStart"
        | "beforeReadFile"
        | "beforeTabFileRead" => r#"{"permission":"allow"}"#,
        "beforeSubmitPrompt" => r#"{"continue":true}"#,
        _ => "{}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_grow_and_only_know_known_names() {
        let [minimal, standard, all] =
            [Events::Minimal, Events::Standard, Events::All].map(Events::names);
        assert_eq!((minimal.len(), standard.len(), all.len()), (10, 15, 20));
        assert!(minimal.iter().all(|name| standard.contains(name)));
        assert!(standard.iter().all(|name| all.contains(name)));
        assert!(!all.contains(&"workspaceOpen"));
        assert!(!standard.iter().any(|name| name.contains("Tab")));
    }

    #[test]
    fn nothing_minimal_could_block() {
        for name in Events::Minimal.names() {
            assert_eq!(neutral_reply(name), "{}", "{name}");
            assert!(!name.starts_with("before") && !name.starts_with("pre"), "{name}");
        }
    }

    #[test]
    fn a_preset_is_recognised_by_its_names() {
        let mut names = Events::Standard.names();
        names.reverse();
        assert_eq!(Events::of(&names), Some(Events::Standard));
        assert_eq!(Events::of(&names[1..]), None);
    }
}

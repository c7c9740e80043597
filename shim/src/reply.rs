//! The answer on standard output. It never changes what the host does.

use crate::event::Event;
use crate::scan::{Name, Scan};

/// Who started the hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Host {
    /// Cursor, in any of its dialects.
    Cursor = 1,
    /// Another agent that reads the same kind of hook configuration.
    Other = 2,
}

/// The host and the hook, found from the body, the command line and the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The host that reads the answer.
    pub host: Host,
    /// The hook; `None` if its name is unknown.
    pub event: Option<Event>,
}

impl Verdict {
    /// The hook's name comes from the body, else from the command line. The host is Cursor if the body or the
    /// environment says so. It is also Cursor if there is no name: then only our entry in Cursor's configuration can
    /// have started the program.
    #[must_use]
    pub fn of(scan: Scan, argument: &[u8], cursor_in_environment: bool) -> Self {
        let event = match scan.name {
            Some(Name::Known(event)) => Some(event),
            Some(Name::Unknown) => None,
            None => Event::named(argument),
        };
        let cursor = scan.cursor || cursor_in_environment || scan.name.is_none();
        Self { host: if cursor { Host::Cursor } else { Host::Other }, event }
    }

    /// The answer with its newline. Empty if nothing must be written, because another host may reject Cursor's form of
    /// answer.
    #[must_use]
    pub fn reply(self) -> &'static [u8] {
        match (self.host, self.event) {
            (Host::Other, _) => b"",
            (
                Host::Cursor,
                Some(
                    Event::PreToolUse
                    | Event::BeforeShellExecution
                    | Event::BeforeMcpExecution
                    | Event::SubagentStart
                    | Event::BeforeReadFile
                    | Event::BeforeTabFileRead,
                ),
            ) => b"{\"permission\":\"allow\"}\n",
            (Host::Cursor, Some(Event::BeforeSubmitPrompt | Event::UserPromptSubmit)) => {
                b"{\"continue\":true}\n"
            }
            (Host::Cursor, _) => b"{}\n",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, argument: &str, cursor_in_environment: bool, expected: &str) {
        let scan = Scan::of(body.as_bytes());
        let verdict = Verdict::of(scan, argument.as_bytes(), cursor_in_environment);
        assert_eq!(String::from_utf8_lossy(verdict.reply()), expected, "{body} {argument}");
    }

    const ALLOW: &str = "{\"permission\":\"allow\"}\n";
    const CONTINUE: &str = "{\"continue\":true}\n";
    const NEUTRAL: &str = "{}\n";

    #[test]
    fn every_event_of_cursor_gets_its_answer() {
        for (name, expected) in [
            ("preToolUse", ALLOW),
            ("beforeShellExecution", ALLOW),
            ("beforeMCPExecution", ALLOW),
            ("subagentStart", ALLOW),
            ("beforeReadFile", ALLOW),
            ("beforeTabFileRead", ALLOW),
            ("beforeSubmitPrompt", CONTINUE),
            ("UserPromptSubmit", CONTINUE),
            ("sessionStart", NEUTRAL),
            ("sessionEnd", NEUTRAL),
            ("postToolUse", NEUTRAL),
            ("postToolUseFailure", NEUTRAL),
            ("afterShellExecution", NEUTRAL),
            ("afterMCPExecution", NEUTRAL),
            ("afterFileEdit", NEUTRAL),
            ("afterAgentResponse", NEUTRAL),
            ("afterAgentThought", NEUTRAL),
            ("stop", NEUTRAL),
            ("subagentStop", NEUTRAL),
            ("preCompact", NEUTRAL),
            ("afterTabFileEdit", NEUTRAL),
            ("workspaceOpen", NEUTRAL),
            ("somethingNew", NEUTRAL),
        ] {
            let body = format!(r#"{{"conversation_id":"c","hook_event_name":"{name}"}}"#);
            check(&body, "stop", false, expected);
            check("", name, false, expected);
            let mut capital = name.to_owned();
            capital[..1].make_ascii_uppercase();
            check("", &capital, false, expected);
        }
    }

    #[test]
    fn the_body_wins_over_the_argument() {
        check(r#"{"cursor_version":"1","hook_event_name":"preToolUse"}"#, "stop", false, ALLOW);
        check(r#"{"cursor_version":"1","hook_event_name":"new"}"#, "preToolUse", false, NEUTRAL);
    }

    #[test]
    fn another_host_gets_nothing_at_all() {
        check(r#"{"session_id":"s","hook_event_name":"PreToolUse"}"#, "preToolUse", false, "");
        check(r#"{"session_id":"s","hook_event_name":"PreToolUse"}"#, "preToolUse", true, ALLOW);
    }

    #[test]
    fn a_body_without_a_name_is_answered_for_the_argument() {
        for body in ["", "garbage", "{\"file\":\"x\"}", "\u{feff}", "[1,2]", "{\"a\":"] {
            check(body, "beforeShellExecution", false, ALLOW);
            check(body, "unheard", false, NEUTRAL);
            check(body, "", false, NEUTRAL);
        }
    }
}

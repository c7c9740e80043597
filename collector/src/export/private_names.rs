//! Names at `content = "off"`: what ships with the editors keeps its name, everything of one's own becomes a short hash.
//!
//! The hash has no key, so that one name is the same on every machine of a team and in every run. Whoever guesses a name can
//! therefore check the guess; a name that must not be guessed does not belong into a tool's name.

use std::borrow::Cow;

use hookspan_core::SpanKind;
use sha2::{Digest as _, Sha256};

/// Tools of Cursor, Claude Code, Codex, Copilot, Gemini and Windsurf.
const TOOLS: [&str; 93] = [
    "Agent",
    "ApplyPatch",
    "AskQuestion",
    "AskUserQuestion",
    "Await",
    "Bash",
    "BashOutput",
    "CreatePlan",
    "Delete",
    "Edit",
    "EditNotebook",
    "EnterPlanMode",
    "ExitPlanMode",
    "FetchRules",
    "GenerateImage",
    "Glob",
    "Grep",
    "KillShell",
    "LS",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "PowerShell",
    "Read",
    "ReadFile",
    "ReadLints",
    "Search",
    "SemanticSearch",
    "Shell",
    "Skill",
    "SlashCommand",
    "StrReplace",
    "Subagent",
    "SwitchMode",
    "TabRead",
    "TabWrite",
    "Task",
    "TaskOutput",
    "TaskStop",
    "TodoRead",
    "TodoWrite",
    "ToolSearch",
    "UpdatePlan",
    "WebFetch",
    "WebSearch",
    "Write",
    "apply_diff",
    "apply_patch",
    "bash",
    "codebase_search",
    "create",
    "create_file",
    "delete_file",
    "edit",
    "edit_file",
    "exec_command",
    "fetch_webpage",
    "file_search",
    "get_errors",
    "glob",
    "google_web_search",
    "grep",
    "grep_search",
    "list_dir",
    "list_directory",
    "list_files",
    "local_shell",
    "manage_todo_list",
    "mcp",
    "powershell",
    "read_file",
    "read_many_files",
    "replace",
    "replace_string_in_file",
    "rg",
    "run_command",
    "run_in_terminal",
    "run_shell_command",
    "run_terminal_cmd",
    "save_memory",
    "search_file_content",
    "search_replace",
    "semantic_search",
    "shell",
    "shell_command",
    "task",
    "unknown",
    "update_plan",
    "view",
    "web_fetch",
    "web_search",
    "write_file",
    "write_todos",
];

/// Types of subagents that ship with the editors, and the editors, which are agents too.
const AGENTS: [&str; 22] = [
    "Explore",
    "Plan",
    "bash",
    "browser",
    "browser-use",
    "claude-code",
    "codex",
    "computer-use",
    "copilot",
    "cursor",
    "debug",
    "default",
    "explore",
    "gemini",
    "general-purpose",
    "generalPurpose",
    "plan",
    "shell",
    "subagent",
    "unknown",
    "vscode-copilot",
    "windsurf",
];

/// Endings of files in common languages and formats.
const EXTENSIONS: [&str; 80] = [
    "astro", "bash", "bat", "c", "cc", "cfg", "cjs", "clj", "cpp", "cs", "css", "csv", "dart",
    "diff", "env", "ex", "exs", "gif", "go", "gradle", "graphql", "h", "hpp", "hs", "htm", "html",
    "ico", "ini", "ipynb", "java", "jpeg", "jpg", "js", "json", "jsonl", "jsx", "kt", "kts",
    "less", "lock", "log", "lua", "m", "md", "mdc", "mdx", "mjs", "ml", "patch", "pdf", "php",
    "pl", "png", "prisma", "proto", "ps1", "py", "pyi", "r", "rb", "rs", "rst", "sass", "scala",
    "scss", "sh", "sql", "svelte", "svg", "swift", "tf", "toml", "ts", "tsv", "tsx", "txt", "vue",
    "xml", "yaml", "yml",
];

/// A tool's name.
pub(super) fn tool(name: &str) -> Cow<'_, str> {
    known_or_hash(&TOOLS, name)
}

/// A type of subagent.
pub(super) fn agent(name: &str) -> Cow<'_, str> {
    known_or_hash(&AGENTS, name)
}

/// The text of the attribute `key`, where it is a name.
pub(super) fn attribute<'a>(key: &str, text: &'a str) -> Option<Cow<'a, str>> {
    match key {
        "gen_ai.tool.name" => Some(tool(text)),
        "gen_ai.agent.name" | "cursor.subagent.type" => Some(agent(text)),
        "file.extension" => Some(known_or_hash(&EXTENSIONS, text)),
        _ => None,
    }
}

/// The name of a span, from its plain name and the type of subagent that it starts.
pub(super) fn span(kind: SpanKind, plain: &str, started: Option<&str>) -> String {
    match (kind, plain.split_once(' ')) {
        (SpanKind::Tool, Some((what, name))) => {
            let ending = started.map(|agent| format!(" {agent}")).unwrap_or_default();
            match name.strip_suffix(&*ending).filter(|_| !ending.is_empty()) {
                Some(name) => format!("{what} {} {}", tool(name), agent(ending.trim_start())),
                None => format!("{what} {}", tool(name)),
            }
        }
        (SpanKind::Generation | SpanKind::Subagent, Some((what, name))) => {
            format!("{what} {}", agent(name))
        }
        _ => plain.to_owned(),
    }
}

fn known_or_hash<'a>(known: &[&str], name: &'a str) -> Cow<'a, str> {
    // The lists are sorted; a test holds that.
    if known.binary_search(&name).is_ok() {
        return Cow::Borrowed(name);
    }
    let digest = Sha256::digest(name.as_bytes());
    let hex: String = digest.iter().take(3).map(|b| format!("{b:02x}")).collect();
    Cow::Owned(format!("custom-{hex}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_or_a_hash() {
        assert!(TOOLS.is_sorted() && AGENTS.is_sorted() && EXTENSIONS.is_sorted());
        assert_eq!(tool("Shell"), "Shell");
        assert_eq!(agent("explore"), "explore");
        assert_eq!(attribute("file.extension", "rs").as_deref(), Some("rs"));
        let custom = tool("pay_acme_invoice");
        assert!(custom.len() == 13 && custom.starts_with("custom-"), "{custom}");
        assert_eq!(custom, tool("pay_acme_invoice"));
        assert_ne!(custom, tool("pay_other_invoice"));
        assert_eq!(attribute("hookspan.kind", "tool"), None);
    }

    #[test]
    fn the_name_of_a_span_has_no_custom_part() {
        let cases = [
            (SpanKind::Tool, "execute_tool Shell", None, "execute_tool Shell"),
            (SpanKind::Tool, "execute_tool mcp", None, "execute_tool mcp"),
            (
                SpanKind::Tool,
                "execute_tool Task explore",
                Some("explore"),
                "execute_tool Task explore",
            ),
            (SpanKind::Generation, "invoke_agent cursor", None, "invoke_agent cursor"),
            (SpanKind::Session, "cursor.session", None, "cursor.session"),
        ];
        for (kind, plain, agent, expected) in cases {
            assert_eq!(span(kind, plain, agent), expected);
        }
        for (kind, plain, agent) in [
            (SpanKind::Tool, "execute_tool acme deploy", None),
            (SpanKind::Tool, "execute_tool Task acme reviewer", Some("acme reviewer")),
            (SpanKind::Subagent, "invoke_agent acme reviewer", None),
        ] {
            let name = span(kind, plain, agent);
            assert!(!name.contains("acme") && name.contains("custom-"), "{name}");
        }
    }
}

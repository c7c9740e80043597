//! Evidence for and against two hooks describing the same thing. The same rules apply to calls, subagents and thoughts.
//! A missing value is no evidence. A different value excludes a match. An equal duration and a fitting order support
//! it.

use crate::correlate::fact::Fact;
use crate::model::tolerance::{DISORDER, REPEAT};
use crate::model::tool::{Edits, ToolClass, ToolFacts};

/// What joined two hooks, strongest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    /// The same id, or the same input.
    #[default]
    Exact,
    /// The same duration, to the last digit, at a fitting time.
    Duration,
    /// Name and order alone.
    Order,
}

impl Strength {
    /// The value of `hookspan.tool.match`; `None` if ids or inputs are equal.
    pub(crate) const fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Exact => None,
            Self::Duration => Some("duration"),
            Self::Order => Some("order"),
        }
    }
}

/// Whether one of two hooks is a repeated delivery of the other.
pub(crate) fn is_repeat(first: &Fact, second: &Fact) -> bool {
    (-DISORDER..=REPEAT).contains(&second.at.since(first.at)) && first.kind == second.kind
}

/// The class of generic calls that a specific hook can belong to.
pub(crate) fn family(class: ToolClass) -> ToolClass {
    match class {
        ToolClass::Attachment | ToolClass::Delete => ToolClass::Edit,
        other => other,
    }
}

/// Whether this is a tool's name. A hook without the name has `unknown`.
pub(crate) fn is_name(tool: &str) -> bool {
    !matches!(tool, "" | "unknown")
}

/// Whether two values agree; `None` if one is missing.
fn agree<T: PartialEq>(one: Option<T>, other: Option<T>) -> Option<bool> {
    Some(one? == other?)
}

/// Evidence from the inputs of two hooks: command, path, or input of an MCP tool.
pub(crate) fn same_content(one: &ToolFacts, other: &ToolFacts) -> Option<bool> {
    let said = |tool: &ToolFacts| Some(tool.content).filter(|content| *content != 0);
    agree(said(one), said(other))
}

/// Evidence from the texts of an edit in two hooks. A Write tells only the file's new content.
pub(crate) fn same_edit(one: Edits, other: Edits) -> Option<bool> {
    let said = |digest: u64| Some(digest).filter(|digest| *digest != 0);
    let whole = agree(said(one.text), said(other.text));
    whole.or_else(|| agree(said(one.new), said(other.new)))
}

/// Evidence from the durations in two hooks.
pub(crate) fn same_duration(one: Option<f64>, other: Option<f64>) -> Option<bool> {
    agree(one.map(f64::to_bits), other.map(f64::to_bits))
}

/// Evidence from the tool names in two hooks. MCP tools are named with and without their server.
pub(crate) fn same_name(one: &ToolFacts, other: &ToolFacts) -> Option<bool> {
    let named = |tool: &'_ ToolFacts| is_name(&tool.tool);
    if !named(one) || !named(other) {
        let known = |tool: &ToolFacts| Some(family(tool.class)).filter(|c| *c != ToolClass::Other);
        return agree(known(one), known(other)).filter(|same| !same);
    }
    if one.tool == other.tool {
        return Some(true);
    }
    let is_mcp = |tool: &ToolFacts| tool.class == ToolClass::Mcp;
    let may_be_mcp = |tool: &ToolFacts| is_mcp(tool) || tool.class == ToolClass::Other;
    Some(
        (is_mcp(one) || is_mcp(other))
            && may_be_mcp(one)
            && may_be_mcp(other)
            && is_one_word(&one.tool, &other.tool),
    )
}

/// Whether two hooks may describe one tool: the same name, or other names of one class with the same input.
pub(crate) fn may_be_one_tool(one: &ToolFacts, other: &ToolFacts) -> bool {
    same_name(one, other) != Some(false)
        || (family(one.class) == family(other.class)
            && one.class != ToolClass::Other
            && same_content(one, other) == Some(true))
}

/// Whether one name ends with the other as a whole word: `srv-lookup` and `srv:lookup` end with `lookup`.
fn is_one_word(one: &str, other: &str) -> bool {
    let plain = |name: &str| name.replace(['-', ':', '.', '/'], "_");
    let (one, other) = (plain(one), plain(other));
    let (long, word) = if one.len() < other.len() { (other, one) } else { (one, other) };
    let server = long.strip_suffix(&*word).filter(|_| !word.is_empty());
    server.is_some_and(|server| server.is_empty() || server.ends_with('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, class: ToolClass, content: u64) -> ToolFacts {
        ToolFacts { tool: name.into(), class, content, ..ToolFacts::default() }
    }

    #[test]
    fn a_missing_name_says_nothing_and_another_class_speaks_against() {
        let (read, none) = (tool("Read", ToolClass::Read, 0), tool("unknown", ToolClass::Other, 0));
        assert_eq!(same_name(&read, &none), None);
        assert_eq!(same_name(&read, &tool("", ToolClass::Mcp, 0)), Some(false));
        assert_eq!(same_name(&read, &tool("Write", ToolClass::Edit, 0)), Some(false));
    }

    #[test]
    fn an_mcp_tool_is_named_with_and_without_its_server() {
        let bare = tool("lookup", ToolClass::Mcp, 0);
        for name in ["srv-lookup", "srv:lookup", "srv__lookup", "lookup"] {
            assert_eq!(same_name(&bare, &tool(name, ToolClass::Mcp, 0)), Some(true), "{name}");
            assert_eq!(same_name(&tool(name, ToolClass::Other, 0), &bare), Some(true), "{name}");
        }
        assert_eq!(same_name(&bare, &tool("relookup", ToolClass::Mcp, 0)), Some(false));
        let colon = tool("srv:lookup", ToolClass::Mcp, 0);
        assert_eq!(same_name(&colon, &tool("srv-lookup", ToolClass::Mcp, 0)), Some(true));
        assert_eq!(same_name(&colon, &tool("two-lookup", ToolClass::Mcp, 0)), Some(false));
        let plain = tool("re-Read", ToolClass::Other, 0);
        assert_eq!(same_name(&plain, &tool("Read", ToolClass::Read, 0)), Some(false));
    }

    #[test]
    fn a_write_is_compared_by_what_the_file_holds_after_it() {
        let edit = |text, new| Edits { text, new, ..Edits::default() };
        assert_eq!(same_edit(edit(7, 1), edit(7, 1)), Some(true));
        assert_eq!(same_edit(edit(7, 1), edit(8, 1)), Some(false));
        assert_eq!(same_edit(edit(0, 1), edit(7, 1)), Some(true));
        assert_eq!(same_edit(edit(0, 1), edit(7, 2)), Some(false));
        assert_eq!(same_edit(edit(0, 0), edit(7, 2)), None);
    }

    #[test]
    fn what_is_missing_is_neither_equal_nor_different() {
        let (one, other) = (tool("Shell", ToolClass::Shell, 7), tool("Shell", ToolClass::Shell, 0));
        assert_eq!(same_content(&one, &other), None);
        assert_eq!(same_duration(Some(2.5), None), None);
        assert_eq!(same_duration(Some(900.25), Some(900.25)), Some(true));
        assert_eq!(same_duration(Some(900.25), Some(900.5)), Some(false));
    }
}

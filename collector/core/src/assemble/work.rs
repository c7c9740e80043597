//! What a call did: an edit, a test run, a pull request.

use crate::assemble::draft::{Node, What};
use crate::assemble::span_builder::verdict;
use crate::correlate::tool_call::Call;
use crate::model::outcome::{TestRun, Work};
use crate::model::tool::ToolClass;

/// Counts what the call of `node` did. Nothing is known about a call that has not ended, or was interrupted or denied,
/// so it counts as nothing.
pub(crate) fn count(work: &mut Work, node: &Node<'_>) {
    let What::Call(call) = &node.what else { return };
    let ended = matches!(verdict(call, node, None).0, "ok" | "error");
    match call.class() {
        ToolClass::Edit | ToolClass::Delete => {
            let ok = verdict(call, node, None).0 == "ok";
            work.edits += u64::from(ok);
            // A failed edit may have changed part of the file.
            work.unclear += u64::from(!ok);
        }
        ToolClass::Shell => {
            work.unclear += 1;
            if ended && let Some(run) = test_run(call, node) {
                work.test(run);
            }
            if let Some(opened) = call.find(|tool| tool.more()?.pull_request.clone()) {
                work.pull_request = Some(opened);
            }
        }
        ToolClass::Mcp | ToolClass::Other => work.unclear += 1,
        ToolClass::Read
        | ToolClass::Search
        | ToolClass::Task
        | ToolClass::Question
        | ToolClass::Attachment => {}
    }
}

/// The result of a test command that ran in the foreground and whose exit code tells the result.
fn test_run(call: &Call<'_>, node: &Node<'_>) -> Option<TestRun> {
    let codes = call.find(|tool| tool.more()?.tests)?;
    if call.is_background() {
        return None;
    }
    let passed = codes.passed(call.find(|tool| tool.more()?.exit_code)?)?;
    let at = node.end.map_or(node.start, |end| end.at);
    Some(TestRun { at, passed })
}

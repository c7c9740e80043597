//! What a call did: an edit, a test run, a pull request.

use crate::assemble::draft::{Node, What};
use crate::assemble::span_builder::verdict;
use crate::correlate::tool_call::Call;
use crate::model::outcome::{TestRun, Work};
use crate::model::tool::ToolClass;

/// Adds what the call of `node` did. A call that has not ended, or that was interrupted or denied, did nothing that is known.
pub(crate) fn count(work: &mut Work, node: &Node<'_>) {
    let What::Call(call) = &node.what else { return };
    let ended = matches!(verdict(call, node, None).0, "ok" | "error");
    match call.class() {
        ToolClass::Edit | ToolClass::Delete => {
            let ok = verdict(call, node, None).0 == "ok";
            work.edits += u64::from(ok);
            // A failed edit may have changed a part of the file.
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

/// A test command in the foreground whose exit code says how it went.
fn test_run(call: &Call<'_>, node: &Node<'_>) -> Option<TestRun> {
    let codes = call.find(|tool| tool.more()?.tests)?;
    if call.is_background() {
        return None;
    }
    let passed = codes.passed(call.find(|tool| tool.more()?.exit_code)?)?;
    let at = node.end.map_or(node.start, |end| end.at);
    Some(TestRun { at, passed })
}

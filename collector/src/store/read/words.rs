//! The filter words that are about a session: its project, branch, outcome, tags and star. `docs/figures.md` defines them.

use hookspan_view::source::LineFilter;
use rusqlite::ToSql;

/// The condition of `:model` on a session `{v}`: one of its turns has that model, or, for `none`, no turn names any.
pub(super) const OF_A_TURN: &str = "(:model IS NULL OR iif(:model = 'none' COLLATE NOCASE, {v}.model IS NULL, EXISTS
                (SELECT 1 FROM turn t WHERE t.root = {v}.root AND t.model = :model COLLATE NOCASE)))";

/// The conditions of the words on a session, which the statement calls `v`. [`Words::values`] has their values.
pub(super) fn of_session(v: &str) -> String {
    CONDITIONS.replace("{outcome}", OUTCOME).replace("{v}", v)
}

/// `none` finds sessions without a project, branch or tag. No tag may have this name. A project is also found by its
/// path.
const CONDITIONS: &str = "(:project IS NULL OR iif(:project = 'none' COLLATE NOCASE,
                coalesce({v}.project, '') = '',
                {v}.project = :project COLLATE NOCASE OR {v}.workspace = :project
                OR (:project LIKE '%/' AND instr(lower({v}.workspace) || '/', lower(:project)) = 1)))
           AND (:branch IS NULL OR coalesce({v}.branch, 'none') = :branch COLLATE NOCASE)
           AND (:tag IS NULL OR iif(:tag = 'none' COLLATE NOCASE, {v}.root NOT IN (SELECT root FROM tag),
                {v}.root IN (SELECT root FROM tag WHERE tag = :tag)))
           AND (NOT :starred OR {v}.root IN (SELECT root FROM mark WHERE starred))
           AND (:outcome IS NULL OR {outcome})";

/// The same words that `SessionSummary::outcome` has.
const OUTCOME: &str = "CASE :outcome
             WHEN 'tests_passed' THEN {v}.tested_ns IS NOT NULL AND coalesce({v}.tested_well, 0)
             WHEN 'tests_failed' THEN {v}.tested_ns IS NOT NULL AND NOT coalesce({v}.tested_well, 0)
             WHEN 'pull_request' THEN {v}.pull_request IS NOT NULL
             WHEN 'committed' THEN coalesce({v}.commits, '') <> ''
             ELSE {v}.pull_request IS NULL AND coalesce({v}.commits, '') = '' AND CASE :outcome
               WHEN 'left_open' THEN {v}.edits > 0 AND {v}.revision IS NOT NULL
                AND {v}.generations > 0 AND {v}.state NOT IN ('running', 'tool_open')
               WHEN 'unchanged' THEN {v}.edits = 0 AND {v}.unclear = 0
                AND {v}.generations > 0 AND {v}.state NOT IN ('running', 'tool_open')
               ELSE {v}.tested_ns IS NULL AND NOT ({v}.generations > 0
                AND {v}.state NOT IN ('running', 'tool_open')
                AND iif({v}.edits > 0, {v}.revision IS NOT NULL, {v}.unclear = 0)) END END";

/// The values of the words.
pub(super) struct Words<'a> {
    filter: &'a LineFilter,
    outcome: Option<&'static str>,
}

impl<'a> Words<'a> {
    pub(super) fn of(filter: &'a LineFilter) -> Self {
        Self { filter, outcome: filter.outcome.map(|outcome| outcome.as_str()) }
    }

    /// For a statement with the conditions of [`of_session`] and one on `:model`.
    pub(super) fn values(&self) -> [(&'static str, &dyn ToSql); 6] {
        let LineFilter { project, model, branch, tag, starred, .. } = self.filter;
        [
            (":project", project),
            (":model", model),
            (":branch", branch),
            (":tag", tag),
            (":starred", starred),
            (":outcome", &self.outcome),
        ]
    }
}

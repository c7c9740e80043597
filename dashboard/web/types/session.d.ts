// The state of a session's page.
import type { FocusedSpan, PathStep, Session, Turn } from "./answers";
import type { Failure } from "./app";
import type { Trace } from "./trace";

export interface SessionState {
  session: Session | null;
  turns: Turn[];
  error: Failure | null;
  /** What is shown: the whole session, or one subagent of it. */
  trace: Trace | null;
  /** Revision of the session that is shown. */
  rev: number;
  /** Row key of the chosen span. */
  chosen: string | null;
  /** Matches of the filter, null without a filter. */
  found: number | null;
  /** The subagent that is shown alone, with the path to it. */
  focus: { span: FocusedSpan; path: PathStep[] } | null;
  /** The critical path: the turn's own time, and the number of steps. */
  critical: { own: number; steps: number } | null;
}

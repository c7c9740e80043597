// The state of a session's page.
import type { FocusedSpan, PathStep, Session, SpanDetail, Turn } from "./answers";
import type { Failure, KeyMap } from "./app";
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
  /** The waterfall stays at the row that runs. */
  following: boolean;
}

export interface DetailProps {
  /** Row key of the span. */
  span: string | null;
  rev: number;
  onGo: (row: number) => void;
  onLoaded: (span: SpanDetail) => void;
  onFocus: (id: string) => void;
  /** How many equal calls the row stands for. */
  group: number;
  /** Adds a term to the filter of the rows. */
  filter: (term: string) => void;
}

export interface Hearer {
  /** The session was loaded, for the first time or again. */
  onWhole: (session: Session, turns: Turn[], trace: Trace) => unknown;
  /** Rows changed or were added. */
  onChange: (turns: Turn[], trace: Trace, before: Trace) => unknown;
  onError: (error: Failure) => void;
}

export interface PageActions {
  focusFilter: () => void;
  /** Gives the session a star, or takes it. */
  star: () => void;
  /** Clears the filter. */
  clear: () => void;
  /** Goes back to the first view. */
  leave: () => void;
  /** Keys of the views. */
  views: KeyMap;
  /** The view that is shown. */
  view: string;
}

// Types of the conversation.
import type { Answer, Session, Turn } from "./answers";
import type { KeyMap } from "./app";
import type { Trace } from "./trace";

/** A node of Markdown: a tag from a short list, with its content. Strings are text. */
export interface Block {
  tag: string;
  name?: string;
  href?: string;
  start?: number;
  kids: (Block | string)[];
}

export type StepItem = Answer<"sessions/x/steps">["items"][number];
export type StepText = StepItem["texts"][number];
export type StepEdit = NonNullable<StepItem["edit"]>;

/** How a row of the conversation is drawn. */
export type Form = "prompt" | "idle" | "thought" | "answer" | "call" | "edit" | "agent" | "note";

/** One mounted row. */
export interface Step {
  at: number;
  version: number;
  /** Where it stands, pixels. */
  y?: number;
  row: HTMLElement;
  text: HTMLElement;
  icon: SVGPathElement;
  head: HTMLElement;
  label: HTMLElement;
  subject: HTMLElement;
  end: HTMLElement;
  twist: HTMLElement;
  body: HTMLElement;
  track: HTMLElement;
  wait: HTMLElement;
  bar: HTMLElement;
  note: HTMLElement;
  /** The part of a prompt's row that describes its turn. */
  sum: HTMLElement;
  /** Identifies what its body shows, so that the body is not built twice. */
  shown: string;
}

export interface ConversationProps {
  id: string;
  trace: Trace | null;
  rev: number;
  turns: Turn[];
  session: Session | null;
  /** Row key. */
  chosen: string | null;
  /** Whether the address names a row. */
  named: boolean;
  /** Matches of the filter. */
  hit: Uint8Array | null;
  /** Chooses a row. */
  go: (row: number) => void;
  /** Shows a row in the waterfall. */
  show: (row: number) => void;
  /** Adds keys of this view. */
  bind: (keys: KeyMap) => () => void;
}

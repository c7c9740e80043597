// The conversation's own shapes.
import type { Answer } from "./answers";

/** A node of Markdown: a tag of a short list, and what is in it. Strings are text. */
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

/** What a row of the conversation is drawn as. */
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
  /** What a prompt's row says of its turn. */
  sum: HTMLElement;
  /** What its body shows, so that it is not built twice. */
  shown: string;
}

// Types of the conversation.
import type { Answer } from "./answers";

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

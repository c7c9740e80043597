// What pages are handed.
import type { ComponentChildren, VNode } from "preact";

/** Goes to an address of the dashboard. */
export type Go = (url: string, options?: { replace?: boolean }) => void;

/** An error on the way to an answer. */
export interface Failure {
  message: string;
  status?: number;
  detail?: string;
  hint?: string;
}

/** Parameters of the address, and a function that sets one. */
export interface QueryParams {
  params: URLSearchParams;
  /** Sets a parameter of the address, or several; an empty value takes one away. */
  set(name: string | Record<string, string>, value?: string): void;
}

export interface PageProps {
  query: string;
  go: Go;
}

export type View = VNode | VNode[];
export type Children = ComponentChildren;
export type KeyMap = Record<string, (event: KeyboardEvent) => unknown>;

/** An entry of the palette. */
export interface Entry {
  group: string;
  name: string;
  hint?: string;
  blur?: boolean;
  run(): unknown;
}

export interface RailProps {
  /** Of the page that is shown. */
  path: string;
  /** Sessions that need the person. */
  waiting: number;
  /** Destinations that fail. */
  failing: string[];
  connection: string;
  actions: { blurred: boolean, blur: () => void, theme: string, nextTheme: () => void, goTo: () => void, help: () => void };
}

export interface Range {
  /** Begin of the first day, microseconds. */
  from: number;
  /** End of the last day. */
  to: number;
  /** 0: everything. */
  days: number;
  /** As parameters of the API; none for everything. */
  asked: Record<string, string>;
  control: View;
  without: (params: URLSearchParams) => URLSearchParams;
}

/** One colour of a column. */
export interface Part {
  /** Of its row in the legend. */
  name: string;
  /** Class of its colour. */
  tone: string;
  value: number;
}

export interface Chart {
  metric: string;
  currency: string;
  /** `sum` is null where it is not known. */
  columns: { from: number, to: number, turns: number, errors: number, sum: number | null, parts: Part[] }[];
  /** What each colour comes to. */
  legend: Part[];
  /** The highest sum. */
  most: number;
  /** Whether anything of this is known. */
  known: boolean;
  /** Why it cannot be shown in this way. */
  refused: string | null;
}

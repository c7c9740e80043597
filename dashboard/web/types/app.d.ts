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

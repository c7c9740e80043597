// The waterfall's own shapes.

/** A part of the axis with one scale. */
export interface AxisPart {
  t0: number;
  t1: number;
  x0: number;
  /** Pixels per microsecond. */
  scale: number;
  cut: boolean;
  /** Duration of the gap, if this part is a cut. */
  us?: number;
}

export interface Axis {
  from: number;
  to: number;
  width: number;
  scale: number;
  parts: AxisPart[];
}

/**
 * An element with the values that were last written to its style, because writing the same value again still costs a
 * style pass.
 */
export type Placed = HTMLElement & { x?: number; w?: number };

/** One pooled row of the page. */
export interface Slot {
  /** Place among the shown rows, -1 while unused. */
  at: number;
  version: number;
  /** Kind of the span that it last showed. */
  kind: number | undefined;
  row: HTMLElement;
  name: HTMLElement;
  twist: HTMLElement;
  text: HTMLElement;
  track: HTMLElement;
  wait: Placed;
  bar: Placed;
  note: Placed;
  mix: HTMLElement;
  /** Background of `mix`. */
  mixed: string | undefined;
  dur: HTMLElement;
}

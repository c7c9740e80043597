// The part of marked that we use: blocks and inline text as tokens.
export interface Token {
  type: string;
  raw: string;
  text?: string;
  href?: string;
  depth?: number;
  lang?: string;
  ordered?: boolean;
  start?: number | "";
  task?: boolean;
  checked?: boolean;
  block?: boolean;
  loose?: boolean;
  tokens?: Token[];
  items?: Token[];
  header?: Cell[];
  rows?: Cell[][];
}
export interface Cell {
  tokens: Token[];
  align: "center" | "left" | "right" | null;
}
export class Lexer {
  constructor(options?: { gfm?: boolean; breaks?: boolean });
  tokens: Token[];
  inlineQueue: { src: string; tokens: Token[] }[];
  blockTokens(src: string, tokens: Token[]): Token[];
  inlineTokens(src: string, tokens: Token[]): Token[];
}

// Types of the API's answers by path: `Answer<"sessions/x/turns">`. Based on `api.d.ts`, which is generated.
import type { paths } from "./api";

type Split<Text extends string> = Text extends `${infer Head}/${infer Tail}` ? [Head, ...Split<Tail>] : [Text];
type PathOf<Asked extends string> = Asked extends `${infer Path}?${string}` ? Path : Asked;

// Compares a path with a route, segment by segment. A parameter such as `{session}` matches any text.
type Fits<Asked extends string[], Route extends string[]> = Asked extends [infer A, ...infer As extends string[]]
  ? Route extends [infer R, ...infer Rs extends string[]]
    ? R extends `{${string}}` ? Fits<As, Rs> : A extends R ? Fits<As, Rs> : false
    : false
  : Route extends [] ? true : false;

type RouteOf<Asked extends string> = {
  [Route in keyof paths]: Fits<["", "api", "v1", ...Split<PathOf<Asked>>], Split<Route>> extends true ? Route : never
}[keyof paths];

type Json<Operation> = Operation extends { responses: { 200: { content: { "application/json": infer Body } } } } ? Body : never;

/** The answer of `GET /api/v1/{Asked}`. An unknown path is `never`. */
export type Answer<Asked extends string> = Json<paths[RouteOf<Asked>]["get"]>;
/** The answer of `POST /api/v1/{Asked}`. */
export type PostAnswer<Asked extends string> = Json<paths[RouteOf<Asked>]["post"]>;

export type Session = Answer<"sessions/x">;
export type Marks = Session["marks"];
export type SessionRow = Answer<"sessions">["items"][number];
export type Turn = Answer<"sessions/x/turns">["items"][number];
export type TimeParts = Turn["parts"];
export type Cost = NonNullable<Session["cost"]>;
export type Columns = Extract<Answer<"sessions/x/spans">, { strs: string[] }>;
export type FocusedSpan = NonNullable<Columns["focus"]>;
export type SpanDetail = Answer<"spans/x">;
export type SpanRow = Answer<"spans">["items"][number];
export type PathStep = SpanDetail["path"][number];
export type PayloadItem = SpanDetail["payloads"][number];
export type Overview = Answer<"overview">;
export type Need = Overview["needs"][number];
export type Agent = Answer<"now">["agents"][number];
export type Strip = Agent["strip"];
export type Finding = Answer<"sessions/x/lints">["items"][number];
export type ErrorGroup = Answer<"errors">["items"][number];
export type Heatmap = Answer<"latency/heatmap">;
export type LatencyRow = Answer<"latency">["items"][number];
export type TimeAnswer = Answer<"time">;
export type TimeColumn = TimeAnswer["days"][number];
export type TimeSums = TimeAnswer["total"];
export type FileRow = Answer<"files">["items"][number];
export type FileAnswer = Answer<"file">;
export type FileTouch = FileAnswer["touches"][number];
export type Comparison = Answer<"compare">;
export type EditedFile = Answer<"sessions/x/edits">["items"][number];
export type Hunk = Answer<"spans/x/diff">["hunks"][number];
export type Health = Answer<"health">;
export type Exporter = Health["exporters"][number];
export type SearchHit = Answer<"search">["items"][number];

/** Events of the stream. `state` tells whether the stream is connected. */
export type StreamEvent = "hello" | "session" | "spans" | "health" | "install" | "resync" | "state";

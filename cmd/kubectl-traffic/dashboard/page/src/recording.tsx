// SPDX-License-Identifier: Apache-2.0

import { axes, Chart, type Make, powers } from "./chart";
import { times } from "./time";
import { WhatIf } from "./whatif";

// Point is a window of the release, with all of the release up to it.
export interface Point {
  at: number; // Unix seconds
  weight: number;
  step: number;
  canaryRequests: number;
  canaryFailures: number;
  stableRequests: number;
  stableFailures: number;
  // The difference of the failure rates since the release began, in percentage points, with its interval.
  difference?: number;
  low?: number;
  high?: number;
  // From this difference on, had it been the same all the time, the release would have been rolled back by now.
  boundary?: number;
  // By how many milliseconds the canary is slower since the release began.
  slower?: { p50?: number; p95?: number; p99?: number };
  evidence?: number;
  canaryP99?: number;
  stableP99?: number;
  verdict?: string;
  action?: string;
  gap?: string;
  live?: boolean; // not stored yet: requests and failures are those of all windows so far
}

export interface Recording {
  revision: string;
  points: Point[];
  tolerance: number; // percentage points
  threshold: number;
  settings: Settings;
  versions: Answered[];
}

// Settings are those of the step that was judged last.
export interface Settings {
  tolerance: string;
  maxFalseRollback: string;
  minRequests: string;
  startup: string;
  onInconclusive: string;
  hold: string;
}

// Answered is what a version answered in the whole release. Latencies are in seconds.
interface Answered {
  role: string;
  requests: number;
  failures: number;
  p50?: number;
  p95?: number;
  p99?: number;
}

// mostLive bounds the windows that the page keeps itself: a day of those of ten seconds.
const mostLive = 8640;

// withWindow adds a window to those that the page has seen, unless it has it. There is none once the release has ended or begins anew.
export function withWindow(seen: Point[], now?: Point): Point[] {
  if (!now) return [];
  if ((seen.at(-1)?.at ?? 0) >= now.at) return seen;
  return [...seen.slice(1 - mostLive), now];
}

// withLive is a recording with the windows that were judged since it was stored.
function withLive(r: Recording, seen: Point[]): Recording {
  const stored = r.points.at(-1)?.at ?? 0;
  return { ...r, points: [...r.points, ...seen.filter((p) => p.at > stored)] };
}

export function RecordingCard({ recording, live, path }: { recording: Recording | null; live: Point[]; path: string }) {
  if (!recording) return null;
  const r = withLive(recording, live);
  if (r.points.length === 0) return null;
  const last = r.points[r.points.length - 1]!;
  const timed = r.points.findLast((p) => p.slower)?.slower;
  return (
    <section class="card wide" aria-labelledby="recording"><h2 id="recording">Recording of revision {r.revision}</h2>
      <p class="quiet">Serin stores the recording when the release moves on. Later windows are added while this page is open; they lack the latency and the boundary.</p>
      <Latencies versions={r.versions} />
      <figure aria-labelledby="difference"><figcaption id="difference">How much more often the canary fails than stable, in percentage points, with the 95 % interval. The dashed line is the tolerance of {r.tolerance} points. Above the thick line, a canary that fails evenly would have been rolled back by then.</figcaption>
        <Chart make={difference} of={r} label={sayDifference(last, r.points.findLast((p) => p.boundary !== undefined)?.boundary)} /></figure>
      {timed && <figure aria-labelledby="slower"><figcaption id="slower">How much slower the canary is than stable, in milliseconds, over all windows so far: p50 solid, p95 dashed, p99 dotted. Below zero, it is faster.</figcaption>
        <Chart make={slower} of={r} label={`At the end the canary is slower than stable by ${saySlower(timed)}`} /></figure>}
      <figure aria-labelledby="rollback"><figcaption id="rollback">Evidence to roll back, on a logarithmic scale. Serin rolls back at the dashed line, {r.threshold}.</figcaption>
        <Chart make={evidence} of={r} label={`Evidence ${last.evidence ?? "unknown"} at the end`} /></figure>
      <details><summary>As a table</summary><Table points={r.points} /></details>
      <details><summary>What if</summary><WhatIf path={path} settings={r.settings} /></details>
    </section>
  );
}

function Latencies({ versions }: { versions: Answered[] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="What both versions answered"><table>
      <thead><tr><th scope="col">Version</th><th scope="col" class="num">Requests</th><th scope="col" class="num">Failed</th><th scope="col" class="num">p50</th><th scope="col" class="num">p95</th><th scope="col" class="num">p99</th></tr></thead>
      <tbody>{versions.map((v) => <tr key={v.role}><th scope="row">{v.role}</th><td class="num">{v.requests}</td><td class="num">{v.failures}</td><td class="num">{seconds(v.p50)}</td><td class="num">{seconds(v.p95)}</td><td class="num">{seconds(v.p99)}</td></tr>)}</tbody>
    </table></div>
  );
}

function sayDifference(p: Point, boundary?: number): string {
  if (p.difference === undefined) return "There is nothing to compare yet";
  const bound = boundary === undefined ? "" : `. An even difference of ${boundary.toPrecision(2)} would have been rolled back`;
  return `At the end the canary fails ${p.difference.toFixed(2)} percentage points more often than stable, between ${p.low?.toFixed(2)} and ${p.high?.toFixed(2)}${bound}`;
}

const quantiles = ["p50", "p95", "p99"] as const;

const saySlower = (s: NonNullable<Point["slower"]>) => quantiles.map((q) => `${s[q] === undefined ? "unknown" : `${s[q].toFixed(1)} ms`} (${q})`).join(", ");

function Table({ points }: { points: Point[] }) {
  return (
    <div class="scroll tall long" tabIndex={0} role="region" aria-label="The recording as a table"><table>
      <thead><tr><th scope="col">Time</th><th scope="col" class="num">Weight</th><th scope="col" class="num">Canary failed</th><th scope="col" class="num">Stable failed</th><th scope="col" class="num">Difference</th><th scope="col" class="num">Rolls back at</th><th scope="col" class="num">Slower: p50, p95, p99</th><th scope="col" class="num">p99 canary</th><th scope="col" class="num">p99 stable</th><th scope="col" class="num">Evidence</th><th scope="col">Verdict</th></tr></thead>
      <tbody>{points.map((p, i) => (
        <tr key={i}><th scope="row">{times.format(1000 * p.at)}{p.gap && ` (${p.gap})`}</th><td class="num">{p.weight} %</td><td class="num">{p.canaryFailures} of {p.canaryRequests}{p.live && " so far"}</td><td class="num">{p.stableFailures} of {p.stableRequests}{p.live && " so far"}</td>
          <td class="num">{p.difference === undefined ? "–" : `${p.difference.toFixed(2)} (${p.low?.toFixed(2)} to ${p.high?.toFixed(2)})`}</td><td class="num">{p.boundary?.toPrecision(2) ?? "–"}</td><td class="num">{p.slower ? `${quantiles.map((q) => p.slower?.[q]?.toFixed(0) ?? "–").join(", ")} ms` : "–"}</td><td class="num">{seconds(p.canaryP99)}</td><td class="num">{seconds(p.stableP99)}</td><td class="num">{p.evidence?.toPrecision(3) ?? "–"}</td><td>{[p.verdict, p.action].filter(Boolean).join(", ")}</td></tr>
      ))}</tbody>
    </table></div>
  );
}

const seconds = (s?: number) => (s === undefined ? "–" : `${(1000 * s).toFixed(0)} ms`);

const column = (r: Recording, of: (p: Point) => number | undefined | null) => r.points.map((p) => of(p) ?? null);

// near is what the scale of the difference covers: not the wide intervals of the first windows.
function near(r: Recording): [number, number] {
  const later = r.points.slice(Math.floor(r.points.length / 8));
  const all = later.flatMap((p) => (p.low === undefined || p.high === undefined ? [] : [p.low, p.high]));
  const bounds = r.points.flatMap((p) => p.boundary ?? []);
  const most = Math.max(2 * r.tolerance, 0.1, 1.3 * Math.min(...(bounds.length ? bounds : [0])), ...all.map(Math.abs));
  return [-most, most];
}

const difference: Make<Recording> = (r, l) => ({
  data: [column(r, (p) => p.at) as number[], column(r, (p) => p.high), column(r, (p) => p.low), column(r, (p) => p.difference), column(r, () => r.tolerance), column(r, (p) => p.boundary)],
  series: [{}, { label: "upper bound", stroke: "transparent" }, { label: "lower bound", stroke: "transparent" }, { label: "difference", stroke: l.line, width: 2 }, { label: "tolerance", stroke: l.limit, dash: [6, 4] }, { label: "rolls back", stroke: l.limit, width: 3 }],
  bands: [{ series: [1, 2], fill: l.band }],
  scales: { y: { range: near(r) } },
  axes: axes(l, { values: (_, ticks) => ticks.map((t) => `${t} pp`) }),
});

const slower: Make<Recording> = (r, l) => ({
  data: [column(r, (p) => p.at) as number[], ...quantiles.map((q) => column(r, (p) => p.slower?.[q])), column(r, () => 0)],
  series: [{}, { label: "p50", stroke: l.line, width: 2 }, { label: "p95", stroke: l.line, width: 2, dash: [8, 4] }, { label: "p99", stroke: l.line, width: 2, dash: [2, 4] }, { label: "as fast", stroke: l.ink }],
  axes: axes(l, { values: (_, ticks) => ticks.map((t) => `${t} ms`) }),
});

const evidence: Make<Recording> = (r, l) => ({
  data: [column(r, (p) => p.at) as number[], column(r, (p) => (p.evidence && p.evidence > 0 ? p.evidence : null)), column(r, () => r.threshold)],
  series: [{}, { label: "evidence", stroke: l.line, width: 2 }, { label: "rolls back", stroke: l.limit, dash: [6, 4] }],
  scales: { y: { distr: 3 } },
  axes: axes(l, { splits: (_, __, from, to) => powers(from, to) }),
});

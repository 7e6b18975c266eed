// SPDX-License-Identifier: Apache-2.0

import uPlot from "uplot";
import { useEffect, useRef } from "preact/hooks";

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
  evidence?: number;
  canaryP99?: number;
  stableP99?: number;
  verdict?: string;
  action?: string;
  gap?: string;
}

export interface Recording {
  revision: string;
  points: Point[];
  tolerance: number; // percentage points
  threshold: number;
}

export function RecordingCard({ recording: r }: { recording: Recording | null }) {
  if (!r || r.points.length === 0) return null;
  const last = r.points[r.points.length - 1]!;
  return (
    <section class="card wide" aria-labelledby="recording"><h2 id="recording">Recording of revision {r.revision}</h2>
      <p class="quiet">As far as Serin has stored it: it does so when the release goes on.</p>
      <figure aria-labelledby="difference"><figcaption id="difference">Canary fails more often than stable, in percentage points, with its 95 % interval; the dashed line is the tolerance of {r.tolerance} points</figcaption>
        <Chart make={difference} recording={r} label={sayDifference(last)} /></figure>
      <figure aria-labelledby="rollback"><figcaption id="rollback">Evidence to roll back, on a logarithmic scale; the dashed line at {r.threshold} rolls back</figcaption>
        <Chart make={evidence} recording={r} label={`Evidence ${last.evidence ?? "unknown"} at the end`} /></figure>
      <details><summary>As a table</summary><Table points={r.points} /></details>
    </section>
  );
}

function sayDifference(p: Point): string {
  if (p.difference === undefined) return "Nothing can be compared yet";
  return `At the end the canary fails ${p.difference.toFixed(2)} percentage points more often than stable, between ${p.low?.toFixed(2)} and ${p.high?.toFixed(2)}`;
}

const times = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" });

function Table({ points }: { points: Point[] }) {
  return (
    <div class="scroll tall long" tabIndex={0} role="region" aria-label="The recording as a table"><table>
      <thead><tr><th scope="col">Time</th><th scope="col" class="num">Weight</th><th scope="col" class="num">Canary failed</th><th scope="col" class="num">Stable failed</th><th scope="col" class="num">Difference</th><th scope="col" class="num">p99 canary</th><th scope="col" class="num">p99 stable</th><th scope="col" class="num">Evidence</th><th scope="col">Judged</th></tr></thead>
      <tbody>{points.map((p, i) => (
        <tr key={i}><th scope="row">{times.format(1000 * p.at)}{p.gap && ` (${p.gap})`}</th><td class="num">{p.weight} %</td><td class="num">{p.canaryFailures} of {p.canaryRequests}</td><td class="num">{p.stableFailures} of {p.stableRequests}</td>
          <td class="num">{p.difference === undefined ? "–" : `${p.difference.toFixed(2)} (${p.low?.toFixed(2)} to ${p.high?.toFixed(2)})`}</td><td class="num">{seconds(p.canaryP99)}</td><td class="num">{seconds(p.stableP99)}</td><td class="num">{p.evidence?.toPrecision(3) ?? "–"}</td><td>{[p.verdict, p.action].filter(Boolean).join(", ")}</td></tr>
      ))}</tbody>
    </table></div>
  );
}

const seconds = (s?: number) => (s === undefined ? "–" : `${(1000 * s).toFixed(0)} ms`);

interface Look {
  ink: string;
  grid: string;
  line: string;
  band: string;
  limit: string;
}

function look(): Look {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(name).trim();
  // light-dark() is resolved on an element only.
  const probe = document.createElement("span");
  document.body.append(probe);
  const resolve = (name: string) => {
    probe.style.color = of(name);
    return getComputedStyle(probe).color;
  };
  const found = { ink: resolve("--quiet"), grid: resolve("--line"), line: resolve("--accent"), band: resolve("--band"), limit: resolve("--bad") };
  probe.remove();
  return found;
}

type Make = (r: Recording, l: Look) => Pick<uPlot.Options, "series" | "scales" | "bands" | "axes"> & { data: uPlot.AlignedData };

const column = (r: Recording, of: (p: Point) => number | undefined | null) => r.points.map((p) => of(p) ?? null);
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

function axes(l: Look, more: uPlot.Axis): uPlot.Axis[] {
  const plain = { stroke: l.ink, grid: { stroke: l.grid, width: 1 }, ticks: { stroke: l.grid, width: 1 } };
  return [{ ...plain, space: 90, values: (_, ticks) => ticks.map((t) => clock.format(1000 * t)) }, { ...plain, size: 64, ...more }];
}

// near is what the scale of the difference covers: not the wide intervals of the first windows.
function near(r: Recording): [number, number] {
  const later = r.points.slice(Math.floor(r.points.length / 8));
  const all = later.flatMap((p) => (p.low === undefined || p.high === undefined ? [] : [p.low, p.high]));
  const most = Math.max(2 * r.tolerance, 0.1, ...all.map(Math.abs));
  return [-most, most];
}

// powers are those of ten between two numbers.
function powers(from: number, to: number): number[] {
  const found = [];
  for (let n = Math.ceil(Math.log10(from)); n <= Math.floor(Math.log10(to)); n++) found.push(10 ** n);
  return found;
}

const difference: Make = (r, l) => ({
  data: [column(r, (p) => p.at) as number[], column(r, (p) => p.high), column(r, (p) => p.low), column(r, (p) => p.difference), column(r, () => r.tolerance)],
  series: [{}, { label: "upper bound", stroke: "transparent" }, { label: "lower bound", stroke: "transparent" }, { label: "difference", stroke: l.line, width: 2 }, { label: "tolerance", stroke: l.limit, dash: [6, 4] }],
  bands: [{ series: [1, 2], fill: l.band }],
  scales: { y: { range: near(r) } },
  axes: axes(l, { values: (_, ticks) => ticks.map((t) => `${t} pp`) }),
});

const evidence: Make = (r, l) => ({
  data: [column(r, (p) => p.at) as number[], column(r, (p) => (p.evidence && p.evidence > 0 ? p.evidence : null)), column(r, () => r.threshold)],
  series: [{}, { label: "evidence", stroke: l.line, width: 2 }, { label: "rolls back", stroke: l.limit, dash: [6, 4] }],
  scales: { y: { distr: 3 } },
  axes: axes(l, { splits: (_, __, from, to) => powers(from, to) }),
});

function Chart({ make, recording, label }: { make: Make; recording: Recording; label: string }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    let plot: uPlot | undefined;
    const draw = () => {
      plot?.destroy();
      const { data, ...options } = make(recording, look());
      for (const series of options.series) series.points = { show: false };
      plot = new uPlot({ width: element.clientWidth, height: 200, legend: { show: false }, cursor: { show: false }, ...options }, data, element);
    };
    draw();
    const watcher = new ResizeObserver(() => plot && element.clientWidth !== plot.width && plot.setSize({ width: element.clientWidth, height: 200 }));
    watcher.observe(element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    addEventListener("serin-theme", draw);
    return () => {
      watcher.disconnect();
      dark.removeEventListener("change", draw);
      removeEventListener("serin-theme", draw);
      plot?.destroy();
    };
  }, [make, recording]);
  return <div class="chart" ref={box} role="img" aria-label={label} />;
}

// SPDX-License-Identifier: Apache-2.0

import { useState } from "preact/hooks";
import { Badge } from "./parts";
import { canaryLink, releaseLink } from "./route";
import { keyOf, useRows } from "./rows";
import { SearchPage, useWish } from "./search";
import { Ago } from "./time";
import type { Share, Split } from "./types";

export function TrafficPage({ query }: { query: URLSearchParams }) {
  const wish = useWish("traffic", query);
  const [missing, setMissing] = useState("");
  const all = useRows<Split>("api/traffic", wish.namespace, { measured: (now: { missing?: string }) => setMissing(now.missing ?? "") });
  return <SearchPage title="Traffic" noun="TrafficSplits" all={all} wish={wish} notice={missing} placeholder="Name, namespace, Service or state"
    text={(s) => `${s.state} ${s.service} ${s.shares.map((b) => b.service).join(" ")}`}
    empty="A TrafficSplit shares the traffic of a Service. Serin creates one while it releases a version. You can also create your own."
    card={(s) => <SplitCard key={keyOf(s)} split={s} />} />;
}

function SplitCard({ split: s }: { split: Split }) {
  const checks = s.shares.filter((b) => b.check);
  const ports = s.shares.filter((b) => b.ports);
  return (
    <section class="card" aria-label={`TrafficSplit ${keyOf(s)}`}>
      <h2 class="state"><span>{s.name} <span class="quiet">{s.namespace}</span></span> <Badge group={s.group} text={s.state} /></h2>
      <p>{s.message}</p>
      <p class="quiet">Service {s.service}{s.router && ` · ${s.router}`}
        {s.rollout && <> · <a href={releaseLink(s.namespace, s.rollout)}>Rollout {s.rollout}</a></>}
        {s.canary && <> · <a href={canaryLink(s.namespace, s.canary)}>CanaryRelease {s.canary}</a></>}
        {s.measured && <> · measured <Ago at={s.measured} />, over {s.window} s</>}</p>
      <div class="scroll long" tabIndex={0} role="region" aria-label={`Shares of ${keyOf(s)}`}><table class="shares">
        <thead><tr><th scope="col">Backend</th><th scope="col">Declared</th><th scope="col">Programmed</th><th scope="col">Measured</th><th scope="col" class="num">Ready</th><th scope="col" class="num">Success</th><th scope="col" class="num">Requests/s</th><th scope="col" class="num">p99</th></tr></thead>
        <tbody>{s.shares.map((b) => <Backend key={b.service} share={b} />)}</tbody>
      </table></div>
      {s.mirror && <p>{s.mirror}</p>}
      {ports.length > 0 && <p>Live weights of ports: {ports.map((b) => `${b.service} ${b.ports!.map((p) => `${p.port} = ${p.weight}`).join(", ")}`).join("; ")}</p>}
      {s.unchecked && s.measured && <p class="quiet">The shares are not compared. {s.unchecked}</p>}
      {!s.unchecked && checks.length > 0 && <ul class="plain checks">{checks.map((b) => <li key={b.service}><Verdict share={b} /></li>)}</ul>}
    </section>
  );
}

const percent = (value?: number) => (value === undefined ? "–" : `${value.toFixed(value % 1 === 0 ? 0 : 1)} %`);

export function latency(seconds?: number): string {
  if (seconds === undefined) return "–";
  return seconds >= 10 ? `${seconds.toFixed(1)} s` : `${Math.round(1000 * seconds)} ms`;
}

// success is a share of requests in per cent, which is rounded down: 100 % is without a failure.
export const success = (rate?: number) => (rate === undefined ? "–" : `${(Math.floor(10_000 * rate + 1e-6) / 100).toFixed(2)} %`);

function Backend({ share: b }: { share: Share }) {
  return (
    <tr>
      <th scope="row">{b.service}</th>
      <td><Portion value={b.declared} /></td>
      <td><Portion value={b.programmed} /></td>
      <td><Portion value={b.measured} differs={b.check?.verdict === "Differs"} /></td>
      <td class="num">{b.ready ?? "–"}</td>
      <td class="num">{success(b.success === undefined ? undefined : b.success / 100)}</td>
      <td class="num">{b.rps?.toFixed(1) ?? "–"}</td>
      <td class="num">{latency(b.p99)}</td>
    </tr>
  );
}

// Portion shows a share as a bar and as a number.
function Portion({ value, differs }: { value?: number; differs?: boolean }) {
  if (value === undefined) return <span class="quiet">–</span>;
  return <span class="weight"><span class={differs ? "bar evidence" : "bar"} aria-hidden="true"><span class="fill" style={{ width: `${value}%` }} /></span><span>{percent(value)}</span></span>;
}

const groups = { Waiting: "Unknown", Fits: "Stable", Differs: "NeedsUser" } as const;
const words = { Waiting: "waits", Fits: "fits", Differs: "differs" };

// Verdict says whether a backend gets the share that its weight promises.
function Verdict({ share: b }: { share: Share }) {
  const c = b.check!;
  return <><Badge group={groups[c.verdict]} text={`${b.service} ${words[c.verdict]}`} /> {c.message}{c.requests > 0 && <span class="quiet"> Counted since <Ago at={c.since} />.</span>}</>;
}

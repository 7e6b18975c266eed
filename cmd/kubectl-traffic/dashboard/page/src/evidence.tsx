// SPDX-License-Identifier: Apache-2.0

import { share } from "./parts";
import { Instant } from "./time";
import type { Analysis } from "./types";

const number = new Intl.NumberFormat("en");

export function EvidenceCard({ analysis: a }: { analysis?: Analysis }) {
  if (!a) return <section class="card" aria-labelledby="evidence"><h2 id="evidence">Evidence</h2><p class="quiet">Serin compares nothing at the moment.</p></section>;
  return (
    <section class="card" aria-labelledby="evidence"><h2 id="evidence">Evidence: {a.verdict}</h2>
      {a.message && <p>{a.message}</p>}
      <Scale label="Evidence to roll back" value={a.evidence} threshold={a.threshold} end="rolls back" />
      <Scale label="Evidence to promote" value={a.promotionEvidence} threshold={a.promotionThreshold} end="promotes" />
      <div class="scroll"><table>
        <thead><tr><th scope="col">Version</th><th scope="col" class="num">Requests</th><th scope="col" class="num">Failures</th><th scope="col" class="num">Failure rate</th></tr></thead>
        <tbody><Counts name="canary" requests={a.canaryRequests} failures={a.canaryFailures} /><Counts name="stable" requests={a.stableRequests} failures={a.stableFailures} /></tbody>
      </table></div>
      <dl>
        {a.decidingMetric && <><dt>Deciding metric</dt><dd>{a.decidingMetric}</dd></>}
        {a.minDetectableEffect && <><dt>Smallest difference that would show by now</dt><dd>{a.minDetectableEffect} more failures</dd></>}
        {a.lastWindowEnd && <><dt>Judged up to</dt><dd><Instant at={a.lastWindowEnd} /></dd></>}
      </dl>
    </section>
  );
}

function Counts({ name, requests = 0, failures = 0 }: { name: string; requests?: number; failures?: number }) {
  return <tr><th scope="row">{name}</th><td class="num">{number.format(requests)}</td><td class="num">{number.format(failures)}</td><td class="num">{requests ? `${(100 * failures / requests).toFixed(2)} %` : "–"}</td></tr>;
}

// Scale draws evidence on a logarithmic scale from 1, which is none, to the threshold.
function Scale({ label, value, threshold, end }: { label: string; value?: string; threshold?: string; end: string }) {
  if (!value || !threshold) return null;
  const most = Number(threshold);
  const ticks: number[] = [];
  for (let t = 1; t < most * 0.999; t *= 10) ticks.push(t);
  const text = `${label}: ${value}; ${end} at ${threshold}`;
  return (
    <div class="scale" role="img" aria-label={text}>
      <div class="quiet">{label}: <strong>{value}</strong></div>
      <div class="bar evidence"><span class="fill" style={{ width: `${100 * share(Number(value), most)}%` }} /></div>
      <div class="ticks">{ticks.map((t) => <span key={t} style={{ left: `${100 * share(t, most)}%` }}>{number.format(t)}</span>)}<span class="end">{end} at {threshold}</span></div>
    </div>
  );
}

// SPDX-License-Identifier: Apache-2.0

import { useEffect, useState } from "preact/hooks";
import { Actions } from "./actions";
import { canaryPath, useStream } from "./api";
import { Revisions } from "./canaries";
import { Conditions, Events } from "./facts";
import { Badge, Blocked, Empty, Health, Notice, WeightBar } from "./parts";
import { releaseLink } from "./route";
import { Instant } from "./time";
import type { Canary, CanaryService, CanaryUpdate, Counts } from "./types";

export function CanaryPage({ namespace, name }: { namespace: string; name: string }) {
  const [update, setUpdate] = useState<CanaryUpdate>();
  const link = useStream(canaryPath(namespace, name), {
    // What was seen stays while the cluster does not answer.
    canary: (now: CanaryUpdate) => setUpdate((before) => (now.trouble?.kind === "unreachable" && before?.canary ? { ...before, trouble: now.trouble } : now)),
  });
  useEffect(() => {
    document.title = `${name} · Serin`;
  }, [name]);
  const c = update?.canary;
  return (
    <main class="release">
      <nav class="crumbs" aria-label="Breadcrumb"><a href="#/canaries">Canaries</a> <span aria-hidden="true">/</span> <a href={`#/canaries?namespace=${encodeURIComponent(namespace)}`}>{namespace}</a></nav>
      <h1 tabIndex={-1}>{name}</h1>
      <Health link={link} trouble={update?.trouble} />
      {Blocked({ link, trouble: update?.trouble, has: c !== undefined }) ?? (c ? <Shown canary={c} /> : <Nothing gone={update?.gone} name={name} namespace={namespace} />)}
    </main>
  );
}

function Nothing({ gone, name, namespace }: { gone?: boolean; name: string; namespace: string }) {
  if (!gone) return <div class="empty" role="status"><p class="loading">Loading the CanaryRelease…</p></div>;
  return <Empty title="There is no such CanaryRelease"><p>The CanaryRelease {name} does not exist in the namespace {namespace}, or it was deleted.</p><a href="#/canaries">All CanaryReleases</a></Empty>;
}

function Shown({ canary: c }: { canary: Canary }) {
  return (
    <>
      <section class="lead" aria-label="State">
        <p class="state"><Badge group={c.group} text={c.state} /></p>
        <p class="message" role="status">{c.message}</p>
        <p>Next: {c.next.what}.</p>
        <p class="quiet"><Revisions canary={c} />{c.path && ` · sub-chart ${c.path}`}{c.rollout && <> · <a href={releaseLink(c.namespace, c.rollout)}>Rollout {c.rollout}</a> decides</>}</p>
      </section>
      <Actions path={canaryPath(c.namespace, c.name)} actions={c.actions} />
      {c.missing && <Notice kind="info" title="Some details are missing."><ul>{c.missing.map((m) => <li key={m}>{m}</li>)}</ul></Notice>}
      <div class="cards">
        <Values canary={c} />
        <Decision canary={c} />
        <Services services={c.services} />
        <Workloads canary={c} />
        <Conditions conditions={c.conditions} />
        <Events events={c.events} />
      </div>
    </>
  );
}

function Values({ canary: c }: { canary: Canary }) {
  return (
    <section class="card" aria-labelledby="values"><h2 id="values">Values of the canary</h2>
      {c.secret ? <p>They come from {c.secret}, and are not shown here.</p> : <pre tabIndex={0} role="region" aria-label="The values, as YAML">{c.values}</pre>}
      {c.later && <><h3>Changed only by an adoption</h3><ul class="plain">{c.later.map((o) => <li key={o}>{o}</li>)}</ul></>}
    </section>
  );
}

function Decision({ canary: c }: { canary: Canary }) {
  const d = c.decision;
  return (
    <section class="card" aria-labelledby="decision"><h2 id="decision">Decision</h2>
      {!d && <p class="quiet">{c.rollout ? `The Rollout ${c.rollout} decides. You can decide earlier.` : "No decision yet: the canary stays until you adopt or deprecate it."}</p>}
      {d && <><p><strong>{d.transition}</strong> ({d.reason}), <Instant at={d.time} /></p><p>{d.message}</p>
        <p class="quiet">{d.endedAt ? <>Carried out <Instant at={d.endedAt} /></> : "Serin is carrying it out."}</p></>}
      {c.delegation && <p class="quiet">The Rollout requests {c.delegation.weight ?? 0} % of the traffic.</p>}
    </section>
  );
}

function Services({ services }: { services: CanaryService[] }) {
  return (
    <section class="card wide" aria-labelledby="services"><h2 id="services">Traffic of the canary</h2>
      {services.length === 0 && <p class="quiet">No Service splits its traffic.</p>}
      {services.map((s) => (
        <div key={s.service} class="version">
          <h3>{s.service} <span class={`badge ${s.programmed ? "Stable" : "InProgress"}`}>{s.programmed ? "live" : "not confirmed yet"}</span></h3>
          {s.ports.map((p) => <p key={p.port} class="port"><code>{p.port}</code> <WeightBar live={s.programmed ? p.weight : undefined} requested={p.weight} /></p>)}
          {s.traffic ? <div class="scroll"><table>
            <caption class="quiet">Requests of the {s.traffic.seconds} s until <Instant at={s.traffic.endedAt} /></caption>
            <thead><tr><th scope="col">Version</th><th scope="col" class="num">Share</th><th scope="col" class="num">Requests</th><th scope="col" class="num">Failures</th></tr></thead>
            <tbody><Answered name="canary" of={s.traffic.canary} other={s.traffic.stable} /><Answered name="stable" of={s.traffic.stable} other={s.traffic.canary} /></tbody>
          </table></div> : <p class="quiet">The requests of both versions are not known.</p>}
        </div>
      ))}
    </section>
  );
}

const number = new Intl.NumberFormat("en");

function Answered({ name, of, other }: { name: string; of: Counts; other: Counts }) {
  const all = of.requests + other.requests;
  return <tr><th scope="row">{name}</th><td class="num">{all ? `${(100 * of.requests / all).toFixed(1)} %` : "–"}</td><td class="num">{number.format(of.requests)}</td><td class="num">{number.format(of.failures)}</td></tr>;
}

function Workloads({ canary: c }: { canary: Canary }) {
  return (
    <section class="card wide" aria-labelledby="workloads"><h2 id="workloads">Pods of the canary</h2>
      {c.workloads.length === 0 ? <p class="quiet">The canary has no pods.</p> : <div class="scroll"><table>
        <thead><tr><th scope="col">Deployment</th><th scope="col" class="num">Ready</th><th scope="col">At the adoption</th></tr></thead>
        <tbody>{c.workloads.map((w) => <tr key={w.name}><th scope="row">{w.name}</th><td class="num">{w.readyReplicas} of {w.replicas}</td><td>{w.rolled ? `started pods of its own: ${w.rolled}` : w.handedOver ? "adopted the canary's pods" : "–"}</td></tr>)}</tbody>
      </table></div>}
    </section>
  );
}

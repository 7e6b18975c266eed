// SPDX-License-Identifier: Apache-2.0

import { useEffect, useState } from "preact/hooks";
import { Actions } from "./actions";
import { rolloutPath, useStream } from "./api";
import { EvidenceCard } from "./evidence";
import { Conditions, Events, History } from "./facts";
import { Badge, Blocked, Empty, Health, Notice, WeightBar } from "./parts";
import { RecordingCard, withWindow, type Point, type Recording } from "./recording";
import { Ago } from "./time";
import { Timeline } from "./timeline";
import type { Release, ReleaseUpdate } from "./types";
import { Versions } from "./versions";

// Live are the windows of a release that the page has seen.
interface Live {
  revision?: string;
  points: Point[];
}

export function ReleasePage({ namespace, name }: { namespace: string; name: string }) {
  const [update, setUpdate] = useState<ReleaseUpdate>();
  const [recording, setRecording] = useState<Recording | null>(null);
  const [live, setLive] = useState<Live>({ points: [] });
  const link = useStream(rolloutPath(namespace, name), {
    // What was seen stays while the cluster does not answer.
    release: (now: ReleaseUpdate) => {
      setUpdate((before) => (now.trouble?.kind === "unreachable" && before?.release ? { ...before, trouble: now.trouble } : now));
      const { canaryRevision, measured } = now.release ?? {};
      if (now.release) setLive((l) => ({ revision: canaryRevision, points: withWindow(l.revision === canaryRevision ? l.points : [], measured) }));
    },
    recording: (now: Recording | null) => setRecording(now),
  });
  useEffect(() => {
    document.title = `${name} · Serin`;
  }, [name]);
  const r = update?.release;
  return (
    <main class="release">
      <nav class="crumbs" aria-label="Breadcrumb"><a href="#/">Rollouts</a> <span aria-hidden="true">/</span> <a href={`#/?namespace=${encodeURIComponent(namespace)}`}>{namespace}</a></nav>
      <h1 tabIndex={-1}>{name}</h1>
      <Health link={link} trouble={update?.trouble} />
      {Blocked({ link, trouble: update?.trouble, has: r !== undefined }) ?? (r ? <Shown release={r} recording={recording} live={live.revision === recording?.revision ? live.points : []} /> : <Nothing gone={update?.gone} name={name} namespace={namespace} />)}
    </main>
  );
}

function Nothing({ gone, name, namespace }: { gone?: boolean; name: string; namespace: string }) {
  if (!gone) return <div class="empty" role="status"><p class="loading">Loading the release…</p></div>;
  return <Empty title="There is no such Rollout"><p>The Rollout {name} does not exist in the namespace {namespace}, or it was deleted.</p><a href="#/">All Rollouts</a></Empty>;
}

function Shown({ release: r, recording, live }: { release: Release; recording: Recording | null; live: Point[] }) {
  return (
    <>
      <section class="lead" aria-label="State">
        <p class="state"><Badge group={r.group} text={r.state} />{r.step && <span>Step {r.step}</span>}{r.paused && <span class="badge NeedsUser">paused</span>}</p>
        <p class="message" role="status">{r.message}</p>
        <p>Next: {r.next.what}{r.next.at && <>, <Ago at={r.next.at} /></>}.</p>
        {r.explanation.length > 0 && <details><summary>Why it is in this state</summary><ul>{r.explanation.map((e) => <li key={e}>{e}</li>)}</ul></details>}
        <p class="quiet">{r.workload} · Service {r.service} · {r.strategy}{r.router ? ` · ${r.router}` : ""}</p>
      </section>
      <Actions path={rolloutPath(r.namespace, r.name)} actions={r.actions} />
      {r.missing && <Notice kind="info" title="Some details are missing."><ul>{r.missing.map((m) => <li key={m}>{m}</li>)}</ul></Notice>}
      <div class="cards">
        <section class="card" aria-labelledby="traffic"><h2 id="traffic">Traffic of the canary</h2>
          {r.requested === undefined ? <p class="quiet">There is no TrafficSplit: traffic goes the same way as without Serin.</p> : <>
            <WeightBar live={r.live} requested={r.requested} />
            <dl><dt>Requested</dt><dd>{r.requested} %</dd><dt>Live</dt><dd>{r.live === undefined ? "not confirmed yet" : `${r.live} %`}</dd></dl></>}
        </section>
        <EvidenceCard analysis={r.analysis} />
        <RecordingCard recording={recording} live={live} path={rolloutPath(r.namespace, r.name)} />
        <Timeline steps={r.steps} releasing={r.step !== undefined} timeZone={r.timeZone} />
        <Versions versions={r.versions} />
        <History history={r.history} interventions={r.interventions} />
        <Conditions conditions={r.conditions} />
        <Events events={r.events} />
      </div>
    </>
  );
}

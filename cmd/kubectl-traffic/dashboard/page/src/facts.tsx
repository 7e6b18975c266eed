// SPDX-License-Identifier: Apache-2.0

import { Instant } from "./time";
import type { Condition, HistoryEntry, Intervention, RolloutEvent } from "./types";

export function Conditions({ conditions }: { conditions: Condition[] }) {
  return (
    <section class="card wide" aria-labelledby="conditions"><h2 id="conditions">Conditions</h2>
      {conditions.length === 0 ? <p class="quiet">Serin has not processed it yet.</p> : <div class="scroll long" tabIndex={0} role="region" aria-label="All conditions"><table>
        <thead><tr><th scope="col">Condition</th><th scope="col">Status</th><th scope="col">Reason</th><th scope="col">Message</th><th scope="col">Since</th></tr></thead>
        <tbody>{conditions.map((c) => <tr key={c.type}><th scope="row">{c.type}</th><td>{c.status}</td><td>{c.reason}</td><td>{c.message}</td><td><Instant at={c.lastTransitionTime} /></td></tr>)}</tbody>
      </table></div>}
    </section>
  );
}

export function Events({ events }: { events: RolloutEvent[] }) {
  return (
    <section class="card wide" aria-labelledby="events"><h2 id="events">Events</h2>
      {events.length === 0 ? <p class="quiet">There are no events. The cluster deletes them after some time, an hour by default.</p> : <div class="scroll long" tabIndex={0} role="region" aria-label="All events"><table>
        <thead><tr><th scope="col">Time</th><th scope="col">Type</th><th scope="col">Reason</th><th scope="col">Message</th></tr></thead>
        <tbody>{events.map((e, i) => <tr key={i}><td><Instant at={e.time} /></td><td>{e.type}</td><td>{e.reason}</td><td>{e.message}{(e.count ?? 0) > 1 && ` (${e.count} times)`}</td></tr>)}</tbody>
      </table></div>}
    </section>
  );
}

export function History({ history, interventions }: { history: HistoryEntry[]; interventions?: Intervention[] }) {
  return (
    <section class="card wide" aria-labelledby="history"><h2 id="history">History</h2>
      {interventions && <><h3>Decisions in this release</h3><Decided list={interventions} /></>}
      {history.length === 0 ? <p class="quiet">No release has finished yet.</p> : <ol class="history">
        {history.map((h) => (
          <li key={`${h.revision} ${h.endedAt}`}>
            <p><span class={`badge ${h.outcome === "RolledBack" ? "Failed" : h.outcome === "Superseded" ? "Unknown" : "Stable"}`}>{h.outcome}</span> <code>{h.revision}</code> <Instant at={h.endedAt} /></p>
            {h.message && <p>{h.message}</p>}
            {h.interventions && <Decided list={h.interventions} />}
          </li>
        ))}
      </ol>}
    </section>
  );
}

function Decided({ list }: { list: Intervention[] }) {
  return <ul>{list.map((i) => <li key={i.time}><strong>{i.action}</strong>{i.stepIndex !== undefined && ` in step ${i.stepIndex + 1}`} by {i.by || "a user"}, <Instant at={i.time} />{i.reason && `: ${i.reason}`}</li>)}</ul>;
}

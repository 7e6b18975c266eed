// SPDX-License-Identifier: Apache-2.0

import { useEffect, useState } from "preact/hooks";
import { get } from "./api";
import { Badge, Empty, Notice } from "./parts";
import { releaseLink } from "./route";
import type { Row, Scope } from "./types";

interface Span {
  state: "open" | "closed" | "frozen";
  from: string;
  until: string;
  reason?: string;
}

interface Lane {
  timeZone: string;
  freezes?: string[];
  rollouts: Row[];
  spans: Span[];
  wrong?: string;
}

interface Calendar extends Scope {
  from: string;
  until: string;
  lanes: Lane[];
  leftOut?: number;
  missing?: string[];
}

const refresh = 60_000;
const mostNamed = 100; // Rollouts of a schedule that are named
const words = { open: "open", closed: "closed", frozen: "stopped by a Freeze" };
const signs = { open: "✓", closed: "–", frozen: "❄" };

export function CalendarPage({ query }: { query: URLSearchParams }) {
  const namespace = query.get("namespace") ?? "";
  const [calendar, setCalendar] = useState<Calendar>();
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    document.title = "Calendar · Serin";
    let over = false;
    const read = () => {
      if (document.hidden) return;
      get<Calendar>(`api/calendar${namespace ? `?namespace=${encodeURIComponent(namespace)}` : ""}`).then(
        (c) => over || (setCalendar(c), setWrong("")), (err: Error) => over || setWrong(err.message));
    };
    read();
    const timer = setInterval(read, refresh);
    document.addEventListener("visibilitychange", read);
    return () => {
      over = true;
      clearInterval(timer);
      document.removeEventListener("visibilitychange", read);
    };
  }, [namespace]);
  return (
    <main>
      <div class="title"><h1 tabIndex={-1}>Calendar</h1><p class="quiet">When releases may continue in the next seven days</p></div>
      {wrong && (calendar ? <Notice kind="warn" title="Out of date.">{wrong}</Notice> : <Empty title="The calendar can't be loaded"><p role="alert">{wrong}</p></Empty>)}
      {!calendar && !wrong && <div class="empty" role="status"><p class="loading">Loading the schedules…</p></div>}
      {calendar && <Lanes calendar={calendar} />}
    </main>
  );
}

function Lanes({ calendar: c }: { calendar: Calendar }) {
  return (
    <>
      {c.narrowed && <Notice kind="info">{c.narrowed}</Notice>}
      {c.missing && <Notice kind="info" title="Some details are missing."><ul>{c.missing.map((m) => <li key={m}>{m}</li>)}</ul></Notice>}
      {c.lanes.length === 0 && <Empty title="No Rollouts yet"><p>The calendar shows the schedules of Rollouts, and the Freezes that stop them.</p></Empty>}
      {c.lanes.map((lane, i) => <LaneCard key={i} lane={lane} from={Date.parse(c.from)} until={Date.parse(c.until)} />)}
      {c.leftOut && <p class="quiet">{c.leftOut} more schedules are not shown. For those of one namespace, add ?namespace=NAME to the address of this page.</p>}
    </>
  );
}

const day = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric" });

// midnights are the beginnings of the days in the time zone of the viewer.
function midnights(from: number, until: number): number[] {
  const found: number[] = [];
  const at = new Date(from);
  at.setHours(24, 0, 0, 0);
  for (; at.getTime() < until; at.setDate(at.getDate() + 1)) found.push(at.getTime());
  return found;
}

function LaneCard({ lane, from, until }: { lane: Lane; from: number; until: number }) {
  const place = (at: number) => (100 * (at - from)) / (until - from);
  const waiting = lane.rollouts.filter((r) => r.state === "WaitingForSchedule");
  const name = lane.rollouts.length === 1 ? `${lane.rollouts[0]!.namespace}/${lane.rollouts[0]!.name}` : `${lane.rollouts.length} Rollouts`;
  return (
    <section class="card" aria-label={`Schedule of ${name}`}>
      <h2>{name}{waiting.length > 0 && <span class="quiet"> · {waiting.length} waiting</span>}</h2>
      {lane.freezes && <p class="quiet">Freezes: {lane.freezes.join(", ")}</p>}
      {lane.wrong ? <Notice kind="error">{lane.wrong}</Notice> : <>
        <div class="week" aria-hidden="true">
          {lane.spans.map((s) => <span key={s.from} class={`span ${s.state}`} title={s.reason ?? words[s.state]} style={{ left: `${place(Date.parse(s.from))}%`, width: `${place(Date.parse(s.until)) - place(Date.parse(s.from))}%` }} />)}
          {midnights(from, until).map((at) => <span key={at} class="midnight" style={{ left: `${place(at)}%` }}><span>{day.format(at)}</span></span>)}
        </div>
        <p class="legend quiet" aria-hidden="true"><span class="key open" /> open <span class="key closed" /> closed <span class="key frozen" /> stopped by a Freeze</p>
        <details><summary>Times</summary><Times lane={lane} /></details>
      </>}
      <details open={waiting.length > 0}><summary>Rollouts ({lane.rollouts.length})</summary>
        <ul class="plain">{(waiting.length ? waiting : lane.rollouts.slice(0, mostNamed)).map((r) => <li key={`${r.namespace}/${r.name}`}><a href={releaseLink(r.namespace, r.name)}>{r.namespace}/{r.name}</a> <Badge group={r.group} text={r.state} /></li>)}</ul>
        {!waiting.length && lane.rollouts.length > mostNamed && <p class="quiet">{lane.rollouts.length - mostNamed} more are not named.</p>}
      </details>
    </section>
  );
}

function Times({ lane }: { lane: Lane }) {
  const mine = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZoneName: "short" });
  const theirs = new Intl.DateTimeFormat("en-GB", { weekday: "short", hour: "2-digit", minute: "2-digit", timeZone: lane.timeZone });
  return (
    <div class="scroll long tall" tabIndex={0} role="region" aria-label="Times of the schedule"><table>
      <thead><tr><th scope="col">State</th><th scope="col">From</th><th scope="col">Until</th><th scope="col">In {lane.timeZone}</th><th scope="col">Reason</th></tr></thead>
      <tbody>{lane.spans.map((s) => <tr key={s.from}><th scope="row"><span aria-hidden="true">{signs[s.state]} </span>{words[s.state]}</th><td>{mine.format(Date.parse(s.from))}</td><td>{mine.format(Date.parse(s.until))}</td><td>{theirs.format(Date.parse(s.from))} to {theirs.format(Date.parse(s.until))}</td><td>{s.reason}</td></tr>)}</tbody>
    </table></div>
  );
}

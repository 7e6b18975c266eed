// SPDX-License-Identifier: Apache-2.0

import { useState } from "preact/hooks";
import { ask } from "./api";
import { axes, Chart, type Make, powers } from "./chart";
import { Notice } from "./parts";
import type { Settings } from "./recording";
import { times } from "./time";

interface Judgement {
  evidence: number;
  verdict: string;
  action: string;
}

interface Comparison {
  at: number; // Unix seconds
  recorded: Judgement;
  tried: Judgement;
}

interface Tried {
  summary: string;
  recordedThreshold: number;
  triedThreshold: number;
  points: Comparison[];
  note?: string;
}

// fields are the settings that can be tried, with what the server calls them.
const fields: { name: keyof Settings; path: string[]; label: string }[] = [
  { name: "tolerance", path: ["analysis", "tolerance"], label: "Tolerance" },
  { name: "maxFalseRollback", path: ["analysis", "maxFalseRollback"], label: "Max. false rollbacks" },
  { name: "minRequests", path: ["analysis", "minRequests"], label: "Min. requests" },
  { name: "startup", path: ["analysis", "startup", "for"], label: "Startup" },
  { name: "hold", path: ["hold"], label: "Hold" },
];

const policies = ["Hold", "Promote", "RollBack"];

type Change = { [name: string]: string | number | Change };

// changeOf has the settings that were filled in, as the server reads them.
function changeOf(values: Partial<Settings>): Change {
  const change: Change = {};
  const put = (path: string[], value: string | number) => {
    let at = change;
    for (const name of path.slice(0, -1)) at = (at[name] ??= {}) as Change;
    at[path[path.length - 1]!] = value;
  };
  for (const { name, path } of fields) {
    const value = values[name]?.trim();
    if (value) put(path, name === "minRequests" && /^\d+$/.test(value) ? Number(value) : value);
  }
  if (values.onInconclusive) put(["analysis", "onInconclusive"], values.onInconclusive);
  return change;
}

// WhatIf judges the recording again with other settings.
export function WhatIf({ path, settings }: { path: string; settings: Settings }) {
  const [values, setValues] = useState<Partial<Settings>>({});
  const [tried, setTried] = useState<Tried>();
  const [wrong, setWrong] = useState("");
  const send = async (e: Event) => {
    e.preventDefault();
    try {
      setTried(await ask<Tried>(`${path}/what-if`, changeOf(values)));
      setWrong("");
    } catch (err) {
      setTried(undefined);
      setWrong((err as Error).message);
    }
  };
  const fill = (name: keyof Settings) => (e: Event) => setValues({ ...values, [name]: (e.currentTarget as HTMLInputElement | HTMLSelectElement).value });
  return (
    <form class="whatif" onSubmit={send}>
      <p class="quiet">Serin judges the recording again, with the settings that you enter. Nothing in the cluster changes. The weights, and when they changed, stay as they were.</p>
      <div class="tools">
        {fields.map((f) => (
          <label key={f.name} class="field"><span>{f.label}</span><input value={values[f.name] ?? ""} placeholder={settings[f.name]} onInput={fill(f.name)} /></label>
        ))}
        <label class="field"><span>Without enough evidence</span>
          <select value={values.onInconclusive ?? ""} onChange={fill("onInconclusive")}><option value="">{settings.onInconclusive} (as recorded)</option>{policies.map((p) => <option key={p}>{p}</option>)}</select></label>
        <button type="submit" class="main">Try</button>
      </div>
      {wrong && <Notice kind="error">{wrong}</Notice>}
      <div role="status">{tried && <p class="message">{tried.summary}</p>}</div>
      {tried && <Result tried={tried} />}
    </form>
  );
}

function Result({ tried: t }: { tried: Tried }) {
  return (
    <>
      {t.note && <p class="quiet">{t.note}</p>}
      <figure aria-labelledby="tried"><figcaption id="tried">Evidence to roll back, on a logarithmic scale: as recorded (thin; rolls back at {number(t.recordedThreshold)}) and with your settings (thick; rolls back at the dashed line, {number(t.triedThreshold)})</figcaption>
        <Chart make={both} of={t} label={t.summary} /></figure>
      <details><summary>Both as a table</summary><div class="scroll tall" tabIndex={0} role="region" aria-label="Both verdicts as a table"><table>
        <thead><tr><th scope="col">Time</th><th scope="col" class="num">Recorded evidence</th><th scope="col">Recorded verdict</th><th scope="col" class="num">Evidence with your settings</th><th scope="col">Verdict with your settings</th></tr></thead>
        <tbody>{t.points.map((p, i) => (
          <tr key={i}><th scope="row">{times.format(1000 * p.at)}</th><td class="num">{number(p.recorded.evidence)}</td><td>{said(p.recorded)}</td><td class="num">{number(p.tried.evidence)}</td><td>{said(p.tried)}</td></tr>
        ))}</tbody>
      </table></div></details>
    </>
  );
}

const number = (x: number) => String(Number(x.toPrecision(3)));
const said = (j: Judgement) => `${j.verdict}, ${j.action}`;
const positive = (x: number) => (x > 0 ? x : null);

const both: Make<Tried> = (t, l) => ({
  data: [t.points.map((p) => p.at), t.points.map((p) => positive(p.recorded.evidence)), t.points.map((p) => positive(p.tried.evidence)), t.points.map(() => t.triedThreshold)],
  series: [{}, { label: "recorded", stroke: l.ink, width: 1 }, { label: "tried", stroke: l.line, width: 3 }, { label: "rolls back", stroke: l.limit, dash: [6, 4] }],
  scales: { y: { distr: 3 } },
  axes: axes(l, { splits: (_, __, from, to) => powers(from, to) }),
});

// SPDX-License-Identifier: Apache-2.0

import { Graph, layout } from "@dagrejs/dagre";
import { useEffect, useMemo, useState } from "preact/hooks";
import { useStream } from "./api";
import { Blocked, Empty, Health, Notice } from "./parts";
import { keep } from "./route";
import { latency, success } from "./traffic";
import type { Call, Calls, Party } from "./types";

const kinds = [["deployments", "Deployments"], ["services", "Services"]];

// CallsPage shows who calls whom in a namespace, as a picture and as a table.
export function CallsPage({ query }: { query: URLSearchParams }) {
  const [namespace, setNamespace] = useState(query.get("namespace") ?? "");
  const [kind, setKind] = useState(query.get("kind") ?? "deployments");
  const [calls, setCalls] = useState<Calls>();
  const link = useStream(`api/calls?${new URLSearchParams({ namespace, kind })}`, { calls: setCalls });
  useEffect(() => {
    document.title = "Calls · Serin";
    keep({ namespace, kind: kind === "deployments" ? "" : kind }, "calls");
    setCalls(undefined);
  }, [namespace, kind]);
  const blocked = Blocked({ link, has: calls !== undefined });
  return (
    <main>
      <div class="title"><h1 tabIndex={-1}>Calls</h1><p class="quiet" role="status">{calls && !calls.missing && !blocked && `${calls.edges.length} in the namespace ${calls.namespace} in the last window`}</p></div>
      <Health link={link} />
      {calls?.missing && <Notice kind="info">{calls.missing}</Notice>}
      {!!calls?.leftOut && <Notice kind="info">The page shows the {kind} with the most requests. It leaves out {calls.leftOut} more.</Notice>}
      <div class="tools">
        <label class="field"><span>Between</span>
          <select value={kind} onChange={(e) => setKind(e.currentTarget.value)}>{kinds.map(([value, label]) => <option key={value} value={value}>{label}</option>)}</select></label>
        <label class="field"><span>Namespace</span>
          <input value={namespace} placeholder={calls?.namespace} onChange={(e) => setNamespace(e.currentTarget.value.trim())} /></label>
      </div>
      {blocked ?? (!calls ? <div class="empty" role="status"><p class="loading">Loading who calls whom…</p></div>
        : calls.missing ? null
        : calls.edges.length === 0 ? <Empty title="No calls yet"><p>No mesh, gateway or proxy of Serin saw a request between {kind} in the last window. Send one, or choose another namespace.</p></Empty>
        : <Drawn calls={calls} />)}
    </main>
  );
}

const id = (p: Party) => [p.kind, p.namespace, p.name].join("/");

const box = { width: 40, height: 34, perLetter: 8 };
const label = { width: 118, height: 36 };

// place computes where the boxes and lines are, from clients on the left to servers on the right.
function place(calls: Calls) {
  const graph = new Graph({ multigraph: false });
  graph.setGraph({ rankdir: "LR", nodesep: 28, ranksep: 60, marginx: 8, marginy: 8 });
  for (const n of calls.nodes) graph.setNode(id(n), { width: box.width + box.perLetter * nameIn(calls, n).length, height: box.height });
  for (const e of calls.edges) graph.setEdge(id(e.from), id(e.to), { ...label, labelpos: "c" });
  layout(graph);
  return graph;
}

// nameIn is the name of a box: with its namespace where that is another one.
const nameIn = (calls: Calls, n: Party) => (n.namespace && n.namespace !== calls.namespace ? `${n.namespace}/${n.name}` : n.name);

function Drawn({ calls }: { calls: Calls }) {
  const graph = useMemo(() => place(calls), [calls]);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return (
    <>
      <div class="scroll card" tabIndex={0} role="region" aria-label="The calls as a graph">
        <svg class="calls" role="img" aria-label="Who calls whom; the table below says the same" width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
          <defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path d="M0 0 8 4 0 8z" /></marker></defs>
          {calls.edges.map((e) => <Line key={id(e.from) + id(e.to)} call={e} at={graph.edge(id(e.from), id(e.to)) as At} />)}
          {calls.nodes.map((n) => <Box key={id(n)} name={nameIn(calls, n)} at={graph.node(id(n)) as At} />)}
        </svg>
      </div>
      <div class="scroll long card" tabIndex={0} role="region" aria-label="The calls as a table"><table>
        <thead><tr><th scope="col">From</th><th scope="col">To</th><th scope="col" class="num">Success</th><th scope="col" class="num">Requests/s</th><th scope="col" class="num">p99</th></tr></thead>
        <tbody>{calls.edges.map((e) => (
          <tr key={id(e.from) + id(e.to)}>
            <th scope="row">{nameIn(calls, e.from)}</th><td>{nameIn(calls, e.to)}</td>
            <td class="num">{success(e.successRate)}</td><td class="num">{rate(e)}</td><td class="num">{latency(e.p99Seconds)}</td>
          </tr>
        ))}</tbody>
      </table></div>
    </>
  );
}

interface At {
  x: number;
  y: number;
  width: number;
  height: number;
  points?: { x: number; y: number }[];
}

const rate = (e: Call) => e.requestsPerSecond?.toFixed(1) ?? "–";

function Line({ call: e, at }: { call: Call; at: At }) {
  const path = at.points!.map((p, i) => `${i === 0 ? "M" : "L"}${p.x} ${p.y}`).join(" ");
  return (
    <g>
      <path class="line" d={path} marker-end="url(#head)" />
      <rect class="under" x={at.x - label.width / 2} y={at.y - label.height / 2} width={label.width} height={label.height} />
      <text x={at.x} y={at.y - 4}>{success(e.successRate)} · {rate(e)}/s</text>
      <text x={at.x} y={at.y + 13}>p99 {latency(e.p99Seconds)}</text>
    </g>
  );
}

function Box({ name, at }: { name: string; at: At }) {
  return (
    <g>
      <rect class="box" x={at.x - at.width / 2} y={at.y - at.height / 2} width={at.width} height={at.height} rx="8" />
      <text class="name" x={at.x} y={at.y + 5}>{name}</text>
    </g>
  );
}

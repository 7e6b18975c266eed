// SPDX-License-Identifier: Apache-2.0

import { useEffect, useState } from "preact/hooks";
import { sorts, useChosen, type Wish } from "./fleetdata";
import { List } from "./list";
import { Blocked, Empty, Health, Notice, groups } from "./parts";
import { keep } from "./route";
import { counted, useRows } from "./rows";
import { useSlash } from "./search";
import type { Group, Row } from "./types";

const number = new Intl.NumberFormat("en");

function readWish(query: URLSearchParams): Wish {
  const chosen = (query.get("state") ?? "").split(",").filter((g) => groups.some((known) => known.group === g));
  return { search: query.get("q") ?? "", groups: new Set(chosen as Group[]), sort: query.get("sort") ?? "state", down: query.get("down") !== null };
}

export function FleetPage({ query }: { query: URLSearchParams }) {
  const [wish, setWish] = useState(() => readWish(query));
  const [namespace, setNamespace] = useState(query.get("namespace") ?? "");
  const fleet = useRows<Row>("api/fleet", namespace);
  const chosen = useChosen(fleet, wish);
  useEffect(() => {
    document.title = "Rollouts · Serin";
    keep({ q: wish.search, state: [...wish.groups].join(","), sort: wish.sort === "state" ? "" : wish.sort, down: wish.down ? "1" : "", namespace });
  }, [wish, namespace]);
  const change = (part: Partial<Wish>) => setWish({ ...wish, ...part });
  const blocked = Blocked({ link: fleet.link, trouble: fleet.trouble, has: fleet.complete });
  return (
    <main class="fleet">
      <div class="title"><h1>Rollouts</h1><p class="quiet" role="status">{fleet.complete && !blocked && counted(chosen.found.length, fleet.rows.size, fleet.scope?.namespace)}</p></div>
      <Health link={fleet.link} trouble={fleet.trouble} />
      {fleet.scope?.narrowed && !blocked && <Notice kind="info">{fleet.scope.narrowed}</Notice>}
      <Tools wish={wish} change={change} counts={chosen.counts} namespace={namespace} setNamespace={setNamespace} />
      {blocked ?? <Shown complete={fleet.complete} total={fleet.rows.size} clear={() => change({ search: "", groups: new Set() })}>
        {chosen.found.length > 0 && <List chosen={chosen} sort={wish.sort} down={wish.down} onSort={(name) => change({ sort: name, down: wish.sort === name && !wish.down })} />}
      </Shown>}
    </main>
  );
}

// Shown is the list, or why there is none.
function Shown({ complete, total, clear, children }: { complete: boolean; total: number; clear: () => void; children: preact.ComponentChildren }) {
  if (!complete) return <div class="empty" role="status"><p class="loading">Loading the Rollouts…</p></div>;
  if (total === 0) return <Empty title="No Rollouts yet"><p>Create a Rollout for a Deployment, and Serin releases each change of its pod template step by step. <code>kubectl traffic rollout init deployment/NAME</code> writes one.</p></Empty>;
  return children || <Empty title="No matching Rollouts"><p>No Rollout matches your search and filters.</p><button onClick={clear}>Clear the search and the filters</button></Empty>;
}

interface ToolsProps {
  wish: Wish;
  change: (part: Partial<Wish>) => void;
  counts: ReadonlyMap<Group, number>;
  namespace: string;
  setNamespace: (name: string) => void;
}

function Tools({ wish, change, counts, namespace, setNamespace }: ToolsProps) {
  const search = useSlash();
  const toggle = (group: Group) => {
    const chosen = new Set(wish.groups);
    if (!chosen.delete(group)) chosen.add(group);
    change({ groups: chosen });
  };
  return (
    <div class="tools">
      <label class="field grow"><span>Search <kbd aria-hidden="true">/</kbd></span>
        <input ref={search} type="search" value={wish.search} placeholder="Name, namespace, state or revision" onInput={(e) => change({ search: e.currentTarget.value })} /></label>
      <label class="field"><span>Namespace</span>
        <input value={namespace} placeholder="all" onChange={(e) => setNamespace(e.currentTarget.value.trim())} /></label>
      <label class="field"><span>Sort by</span>
        <select value={wish.sort} onChange={(e) => change({ sort: e.currentTarget.value })}>
          {Object.entries(sorts).map(([name, { label }]) => <option key={name} value={name}>{label}</option>)}
        </select></label>
      <fieldset class="chips"><legend class="hidden">Filter by state</legend>
        {groups.map(({ group, label, sign }) => (
          <button key={group} class={`chip ${group}`} aria-pressed={wish.groups.has(group)} onClick={() => toggle(group)}>
            <span class="sign" aria-hidden="true">{sign}</span>{label} <span class="count">{number.format(counts.get(group) ?? 0)}</span>
          </button>
        ))}
      </fieldset>
    </div>
  );
}

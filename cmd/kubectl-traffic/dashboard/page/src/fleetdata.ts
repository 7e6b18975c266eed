// SPDX-License-Identifier: Apache-2.0

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Link, useStream } from "./api";
import { groups } from "./parts";
import type { Group, Row, RowUpdate, Scope, Trouble } from "./types";

export const keyOf = (row: Row) => `${row.namespace}/${row.name}`;

// Fleet is what is known of all Rollouts.
export interface Fleet {
  link: Link;
  scope?: Scope;
  rows: Map<string, Row>;
  complete: boolean;
  trouble?: Trouble;
  // version changes with the rows, which are changed in place.
  version: number;
}

// useFleet listens to the fleet. What comes in one frame is drawn once.
export function useFleet(namespace: string): Fleet {
  const state = useRef({ rows: new Map<string, Row>(), fresh: undefined as Map<string, Row> | undefined, complete: false, version: 0, frame: 0 });
  const [scope, setScope] = useState<Scope>();
  const [trouble, setTrouble] = useState<Trouble>();
  const [version, setVersion] = useState(0);
  const s = state.current;
  const url = namespace ? `api/fleet?namespace=${encodeURIComponent(namespace)}` : "api/fleet";
  useEffect(() => {
    s.rows = new Map();
    s.complete = false;
    return () => cancelAnimationFrame(s.frame);
  }, [url]);
  const link = useStream(url, {
    // A stream begins anew with all rows: those that have gone meanwhile are not among them.
    scope: (now: Scope) => {
      s.fresh = new Map();
      setScope(now);
    },
    rows: (update: RowUpdate) => {
      const rows = s.fresh ?? s.rows;
      for (const row of update.rows) rows.set(keyOf(row), row);
      for (const key of update.gone) rows.delete(key);
      if (update.complete && s.fresh) [s.rows, s.fresh, s.complete] = [s.fresh, undefined, true];
      setTrouble(update.trouble);
      cancelAnimationFrame(s.frame);
      s.frame = requestAnimationFrame(() => setVersion(++s.version));
    },
  });
  return { link, scope, trouble, rows: s.rows, complete: s.complete, version };
}

export interface Wish {
  search: string;
  groups: Set<Group>;
  sort: string;
  down: boolean;
}

const rank = new Map(groups.map((g, i) => [g.group, i]));
const bySpot = (row: Row) => (row.stepCount ? (row.stepIndex ?? 0) / row.stepCount : -1);

// sorts are by what rows can be sorted: a number, or a text.
export const sorts: Record<string, { label: string; by: (row: Row) => number | string }> = {
  state: { label: "State", by: (row) => rank.get(row.group) ?? 9 },
  name: { label: "Name", by: (row) => row.name },
  namespace: { label: "Namespace", by: (row) => row.namespace },
  step: { label: "Step", by: bySpot },
  weight: { label: "Weight", by: (row) => row.live ?? row.requested ?? -1 },
  evidence: { label: "Evidence", by: (row) => Number(row.evidence ?? 0) / Number(row.threshold ?? 1) },
  next: { label: "Next", by: (row) => (row.next.at ? Date.parse(row.next.at) : Infinity) },
};

// choose are the rows that fit the wish, in its order.
export function choose(rows: Iterable<Row>, wish: Wish): Row[] {
  const words = wish.search.toLowerCase().split(/\s+/).filter(Boolean);
  const by = sorts[wish.sort]?.by ?? sorts.state!.by;
  const found: [number | string, string, Row][] = [];
  for (const row of rows) {
    if (wish.groups.size && !wish.groups.has(row.group)) continue;
    const key = keyOf(row);
    const text = words.length ? `${key} ${row.state} ${row.stableRevision ?? ""} ${row.canaryRevision ?? ""}`.toLowerCase() : "";
    if (words.every((word) => text.includes(word))) found.push([by(row), key, row]);
  }
  const way = wish.down ? -1 : 1;
  found.sort(([a, keyA], [b, keyB]) => (a < b ? -way : a > b ? way : keyA < keyB ? -1 : 1));
  return found.map(([, , row]) => row);
}

export function useChosen(fleet: Fleet, wish: Wish): { rows: Row[]; counts: Map<Group, number> } {
  const rows = useMemo(() => choose(fleet.rows.values(), wish), [fleet.rows, fleet.version, wish.search, [...wish.groups].join(), wish.sort, wish.down]);
  const counts = useMemo(() => {
    const counts = new Map<Group, number>();
    for (const row of fleet.rows.values()) counts.set(row.group, (counts.get(row.group) ?? 0) + 1);
    return counts;
  }, [fleet.rows, fleet.version]);
  return { rows, counts };
}

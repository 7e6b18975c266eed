// SPDX-License-Identifier: Apache-2.0

import { useMemo } from "preact/hooks";
import { groups } from "./parts";
import { keyOf, type Rows } from "./rows";
import type { Group, Row } from "./types";

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

export function useChosen(fleet: Rows<Row>, wish: Wish): { rows: Row[]; counts: Map<Group, number> } {
  const rows = useMemo(() => choose(fleet.rows.values(), wish), [fleet.rows, fleet.version, wish.search, [...wish.groups].join(), wish.sort, wish.down]);
  const counts = useMemo(() => {
    const counts = new Map<Group, number>();
    for (const row of fleet.rows.values()) counts.set(row.group, (counts.get(row.group) ?? 0) + 1);
    return counts;
  }, [fleet.rows, fleet.version]);
  return { rows, counts };
}

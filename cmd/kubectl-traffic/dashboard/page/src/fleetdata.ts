// SPDX-License-Identifier: Apache-2.0

import { useMemo, useRef } from "preact/hooks";
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

// Entry is a row that fits the wish, by what it is sorted.
interface Entry {
  by: number | string;
  key: string;
  row: Row;
}

// Chooser finds the rows that fit a wish, in its order.
class Chooser {
  private readonly words: string[];
  private readonly by: (row: Row) => number | string;
  private readonly way: number;

  constructor(private readonly wish: Wish) {
    this.words = wish.search.toLowerCase().split(/\s+/).filter(Boolean);
    this.by = (sorts[wish.sort] ?? sorts.state!).by;
    this.way = wish.down ? -1 : 1;
  }

  private entry(row: Row): Entry | undefined {
    if (this.wish.groups.size && !this.wish.groups.has(row.group)) return undefined;
    const key = keyOf(row);
    if (this.words.length) {
      const text = `${key} ${row.state} ${row.stableRevision ?? ""} ${row.canaryRevision ?? ""}`.toLowerCase();
      if (!this.words.every((word) => text.includes(word))) return undefined;
    }
    return { by: this.by(row), key, row };
  }

  private readonly compare = (a: Entry, b: Entry) => (a.by < b.by ? -this.way : a.by > b.by ? this.way : a.key < b.key ? -1 : 1);

  choose(rows: Iterable<Row>): Entry[] {
    const found: Entry[] = [];
    for (const row of rows) {
      const entry = this.entry(row);
      if (entry) found.push(entry);
    }
    return found.sort(this.compare);
  }

  // again chooses again after some rows have changed. The others stay in their order.
  again(before: Entry[], rows: Map<string, Row>, changed: ReadonlySet<string>): Entry[] {
    const fresh = this.choose([...changed].flatMap((key) => rows.get(key) ?? []));
    const found: Entry[] = [];
    let next = 0;
    for (const entry of before) {
      if (changed.has(entry.key)) continue;
      while (next < fresh.length && this.compare(fresh[next]!, entry) < 0) found.push(fresh[next++]!);
      found.push(entry);
    }
    return found.concat(fresh.slice(next));
  }
}

export function useChosen(fleet: Rows<Row>, wish: Wish): { rows: Row[]; counts: Map<Group, number> } {
  const chooser = useMemo(() => new Chooser(wish), [wish.search, [...wish.groups].join(), wish.sort, wish.down]);
  const last = useRef<{ chooser: Chooser; of: Map<string, Row>; version: number; found: Entry[] } | undefined>(undefined);
  const rows = useMemo(() => {
    const before = last.current;
    const follows = before && before.chooser === chooser && before.of === fleet.rows && before.version === fleet.version - 1;
    const found = follows ? chooser.again(before.found, fleet.rows, fleet.changed) : chooser.choose(fleet.rows.values());
    last.current = { chooser, of: fleet.rows, version: fleet.version, found };
    return found.map((entry) => entry.row);
  }, [fleet.rows, fleet.version, chooser]);
  const counts = useMemo(() => {
    const counts = new Map<Group, number>();
    for (const row of fleet.rows.values()) counts.set(row.group, (counts.get(row.group) ?? 0) + 1);
    return counts;
  }, [fleet.rows, fleet.version]);
  return { rows, counts };
}

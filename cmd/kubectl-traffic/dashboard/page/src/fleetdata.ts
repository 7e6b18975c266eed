// SPDX-License-Identifier: Apache-2.0

import { useMemo } from "preact/hooks";
import { groups } from "./parts";
import type { Rows } from "./rows";
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
  evidence: { label: "Evidence", by: (row) => Number(row.evidence ?? 0) / Number(row.threshold ?? 1) || 0 },
  next: { label: "Next", by: (row) => (row.next.at ? Date.parse(row.next.at) : Infinity) },
};

// Entry is a row, by what it is sorted.
export interface Entry {
  readonly by: number | string;
  readonly key: string;
  readonly row: Row;
  readonly fits: boolean;
}

// Chosen are the rows that fit a wish, in its order. When rows change, they move to their places: the others are not looked at.
export class Chosen {
  // found are those that fit.
  readonly found: Entry[];
  // counts are those of all rows by their group.
  readonly counts = new Map<Group, number>();
  private readonly entries = new Map<string, Entry>(); // of all rows
  private readonly words: string[];
  private readonly by: (row: Row) => number | string;
  private readonly way: number;
  private version: number;

  constructor(private readonly wish: Wish, { rows, version }: Rows<Row>) {
    this.words = wish.search.toLowerCase().split(/\s+/).filter(Boolean);
    this.by = (sorts[wish.sort] ?? sorts.state!).by;
    this.way = wish.down ? -1 : 1;
    this.version = version;
    for (const [key, row] of rows) this.enter(key, row);
    this.found = [...this.entries.values()].filter((entry) => entry.fits).sort(this.compare);
  }

  // follow takes over what has changed in the rows since it was called last.
  follow({ rows, version, changed }: Rows<Row>) {
    if (version === this.version) return;
    this.version = version;
    for (const key of changed) {
      const before = this.leave(key);
      if (before?.fits) this.found.splice(this.spot(before), 1);
      const row = rows.get(key);
      const now = row && this.enter(key, row);
      if (now?.fits) this.found.splice(this.spot(now), 0, now);
    }
  }

  // indexOf is where the row of a key is among those that fit, or -1.
  indexOf(key: string): number {
    const entry = this.entries.get(key);
    return entry?.fits ? this.spot(entry) : -1;
  }

  private enter(key: string, row: Row): Entry {
    const entry = { by: this.by(row), key, row, fits: this.fits(key, row) };
    this.entries.set(key, entry);
    this.counts.set(row.group, (this.counts.get(row.group) ?? 0) + 1);
    return entry;
  }

  private leave(key: string): Entry | undefined {
    const entry = this.entries.get(key);
    if (!entry) return undefined;
    this.entries.delete(key);
    this.counts.set(entry.row.group, this.counts.get(entry.row.group)! - 1);
    return entry;
  }

  private fits(key: string, row: Row): boolean {
    if (this.wish.groups.size && !this.wish.groups.has(row.group)) return false;
    if (!this.words.length) return true;
    const text = `${key} ${row.state} ${row.stableRevision ?? ""} ${row.canaryRevision ?? ""}`.toLowerCase();
    return this.words.every((word) => text.includes(word));
  }

  // spot is where an entry is among those that fit, or has to be put.
  private spot(entry: Entry): number {
    let [low, high] = [0, this.found.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.compare(this.found[middle]!, entry) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private readonly compare = (a: Entry, b: Entry) => (a.by < b.by ? -this.way : a.by > b.by ? this.way : a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
}

export function useChosen(fleet: Rows<Row>, wish: Wish): Chosen {
  const chosen = useMemo(() => new Chosen(wish, fleet), [fleet.rows, wish]);
  chosen.follow(fleet);
  return chosen;
}

// SPDX-License-Identifier: Apache-2.0

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Link, useStream } from "./api";
import { groups } from "./parts";
import type { Group, Named, RowUpdate, Scope, Trouble } from "./types";

export const keyOf = (row: Named) => `${row.namespace}/${row.name}`;

// Rows are what is known of all objects of a kind.
export interface Rows<R> {
  link: Link;
  scope?: Scope;
  rows: Map<string, R>;
  // complete is whether all rows have come and been taken over.
  complete: boolean;
  trouble?: Trouble;
  // version changes with the rows, which are changed in place: those of the keys in changed since the version before.
  version: number;
  changed: ReadonlySet<string>;
}

const most = 1000; // rows that are taken over in one frame: a list of thousands must not hold up the page

// useRows listens to rows. What comes in one frame is drawn once.
export function useRows<R extends Named>(path: string, namespace: string, more: Record<string, (data: never) => void> = {}): Rows<R> {
  const state = useRef({ rows: new Map<string, R>(), seen: undefined as Set<string> | undefined, listed: false, complete: false, version: 0, frame: 0, changed: new Set<string>() });
  const [scope, setScope] = useState<Scope>();
  const [trouble, setTrouble] = useState<Trouble>();
  const [drawn, setDrawn] = useState({ version: 0, changed: new Set<string>() as ReadonlySet<string> });
  const s = state.current;
  const url = namespace ? `${path}?namespace=${encodeURIComponent(namespace)}` : path;
  useEffect(() => {
    s.rows = new Map();
    [s.listed, s.complete] = [false, false];
    return () => {
      cancelAnimationFrame(s.frame);
      s.frame = 0;
    };
  }, [url]);
  const put = (key: string, row: R) => {
    s.rows.set(key, row);
    s.seen?.add(key);
    s.changed.add(key);
  };
  const drop = (key: string) => {
    s.rows.delete(key);
    s.changed.add(key);
  };
  const draw = () => {
    const changed = new Set<string>();
    for (const key of s.changed) {
      if (changed.size === most) break;
      changed.add(key);
      s.changed.delete(key);
    }
    s.complete ||= s.listed && s.changed.size === 0;
    s.frame = s.changed.size > 0 ? requestAnimationFrame(draw) : 0;
    setDrawn({ version: ++s.version, changed });
  };
  const link = useStream(url, {
    ...more,
    // A stream begins anew with all rows: those that have gone meanwhile are not among them.
    scope: (now: Scope) => {
      s.seen = new Set();
      setScope(now);
    },
    rows: (update: RowUpdate<R>) => {
      for (const row of update.rows) put(keyOf(row), row);
      update.gone.forEach(drop);
      if (update.complete && s.seen) {
        const seen = s.seen;
        [...s.rows.keys()].filter((key) => !seen.has(key)).forEach(drop);
        [s.seen, s.listed] = [undefined, true];
      }
      setTrouble(update.trouble);
      s.frame ||= requestAnimationFrame(draw);
    },
  });
  return { link, scope, trouble, rows: s.rows, complete: s.complete, ...drawn };
}

const rank = new Map(groups.map((g, i) => [g.group, i]));

// useFound are the rows that have all words of a search in their text, most urgent first.
export function useFound<R extends Named & { group: Group }>(all: Rows<R>, search: string, text: (row: R) => string): R[] {
  return useMemo(() => {
    if (!all.complete) return [];
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (row: R) => {
      const its = `${keyOf(row)} ${text(row)}`.toLowerCase();
      return words.every((word) => its.includes(word));
    };
    const by = (row: R) => rank.get(row.group) ?? 9;
    return [...all.rows.values()].filter(fits).sort((a, b) => by(a) - by(b) || (keyOf(a) < keyOf(b) ? -1 : 1));
  }, [all.rows, all.version, all.complete, search]);
}

const number = new Intl.NumberFormat("en");

export function counted(shown: number, all: number, namespace?: string): string {
  const where = namespace ? ` in the namespace ${namespace}` : " in all namespaces";
  return (shown === all ? number.format(all) : `${number.format(shown)} of ${number.format(all)}`) + where;
}

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
  complete: boolean;
  trouble?: Trouble;
  // version changes with the rows, which are changed in place: those of the keys in changed since the version before.
  version: number;
  changed: ReadonlySet<string>;
}

// useRows listens to rows. What comes in one frame is drawn once.
export function useRows<R extends Named>(path: string, namespace: string, more: Record<string, (data: never) => void> = {}): Rows<R> {
  const state = useRef({ rows: new Map<string, R>(), fresh: undefined as Map<string, R> | undefined, complete: false, version: 0, frame: 0, changed: new Set<string>() });
  const [scope, setScope] = useState<Scope>();
  const [trouble, setTrouble] = useState<Trouble>();
  const [drawn, setDrawn] = useState({ version: 0, changed: new Set<string>() as ReadonlySet<string> });
  const s = state.current;
  const url = namespace ? `${path}?namespace=${encodeURIComponent(namespace)}` : path;
  useEffect(() => {
    s.rows = new Map();
    s.complete = false;
    return () => {
      cancelAnimationFrame(s.frame);
      s.frame = 0;
    };
  }, [url]);
  const link = useStream(url, {
    ...more,
    // A stream begins anew with all rows: those that have gone meanwhile are not among them.
    scope: (now: Scope) => {
      s.fresh = new Map();
      setScope(now);
    },
    rows: (update: RowUpdate<R>) => {
      const rows = s.fresh ?? s.rows;
      for (const row of update.rows) {
        const key = keyOf(row);
        rows.set(key, row);
        s.changed.add(key);
      }
      for (const key of update.gone) {
        rows.delete(key);
        s.changed.add(key);
      }
      if (update.complete && s.fresh) [s.rows, s.fresh, s.complete] = [s.fresh, undefined, true];
      setTrouble(update.trouble);
      s.frame ||= requestAnimationFrame(() => {
        setDrawn({ version: ++s.version, changed: s.changed });
        [s.frame, s.changed] = [0, new Set()];
      });
    },
  });
  return { link, scope, trouble, rows: s.rows, complete: s.complete, ...drawn };
}

const rank = new Map(groups.map((g, i) => [g.group, i]));

// useFound are the rows that have all words of a search in their text, most urgent first.
export function useFound<R extends Named & { group: Group }>(all: Rows<R>, search: string, text: (row: R) => string): R[] {
  return useMemo(() => {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (row: R) => {
      const its = `${keyOf(row)} ${text(row)}`.toLowerCase();
      return words.every((word) => its.includes(word));
    };
    const by = (row: R) => rank.get(row.group) ?? 9;
    return [...all.rows.values()].filter(fits).sort((a, b) => by(a) - by(b) || (keyOf(a) < keyOf(b) ? -1 : 1));
  }, [all.rows, all.version, search]);
}

const number = new Intl.NumberFormat("en");

export function counted(shown: number, all: number, namespace?: string): string {
  const where = namespace ? ` in the namespace ${namespace}` : " in all namespaces";
  return (shown === all ? number.format(all) : `${number.format(shown)} of ${number.format(all)}`) + where;
}

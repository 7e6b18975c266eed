// SPDX-License-Identifier: Apache-2.0

import { Component } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Chosen } from "./fleetdata";
import { Badge, EvidenceBar, WeightBar } from "./parts";
import { releaseLink } from "./route";
import { Ago } from "./time";
import type { Row } from "./types";

const narrow = matchMedia("(max-width: 760px)");

// useRowHeight is how high a row is: a phone shows a row as a card.
function useRowHeight(): number {
  const [height, setHeight] = useState(narrow.matches ? 132 : 56);
  useEffect(() => {
    const changed = () => setHeight(narrow.matches ? 132 : 56);
    narrow.addEventListener("change", changed);
    return () => narrow.removeEventListener("change", changed);
  }, []);
  return height;
}

const around = 6; // rows above and below those that are seen

export interface Column {
  name: string;
  label: string;
}

export const columns: Column[] = [
  { name: "name", label: "Rollout" },
  { name: "state", label: "State" },
  { name: "step", label: "Step" },
  { name: "weight", label: "Canary's traffic" },
  { name: "evidence", label: "Evidence to roll back" },
  { name: "next", label: "Next" },
];

interface Props {
  chosen: Chosen;
  sort: string;
  down: boolean;
  onSort: (name: string) => void;
}

// List draws the rows that are seen, and no others: it is as fast with thousands of rows.
export function List({ chosen, sort, down, onSort }: Props) {
  const rows = chosen.found;
  const box = useRef<HTMLDivElement>(null);
  const height = useRowHeight();
  const [top, setTop] = useState(0);
  const [seen, setSeen] = useState(800);
  const [active, setActive] = useState(""); // the key of the row that the keyboard is at
  const focus = useRef(false); // whether that row takes the focus when it is drawn
  useLayoutEffect(() => {
    const watcher = new ResizeObserver(() => box.current && setSeen(box.current.clientHeight));
    if (box.current) watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(top / height) - around);
  const last = Math.min(rows.length, Math.ceil((top + seen) / height) + around);
  const at = chosen.indexOf(active);
  const tabbed = at >= 0 ? at : Math.min(Math.ceil(top / height), rows.length - 1);
  const drawn = rows.slice(first, last).map((entry, i) => ({ entry, index: first + i }));
  // The row with the focus is drawn wherever it has gone, or else the focus would be lost.
  if (tabbed < first) drawn.unshift({ entry: rows[tabbed]!, index: tabbed });
  if (tabbed >= last) drawn.push({ entry: rows[tabbed]!, index: tabbed });
  focus.current ||= box.current?.contains(document.activeElement) ?? false;
  useLayoutEffect(() => {
    if (!focus.current) return;
    focus.current = false;
    const link = box.current?.querySelector<HTMLElement>(`.row a[tabindex="0"]`);
    if (link !== document.activeElement) link?.focus({ preventScroll: true });
  });
  const go = (to: number) => {
    const index = Math.max(0, Math.min(rows.length - 1, to));
    const b = box.current;
    if (!b) return;
    if (index * height < b.scrollTop) b.scrollTop = index * height;
    if ((index + 1) * height > b.scrollTop + b.clientHeight) b.scrollTop = (index + 1) * height - b.clientHeight;
    focus.current = true;
    setTop(b.scrollTop);
    setActive(rows[index]!.key);
  };
  const page = Math.max(1, Math.floor(seen / height) - 1);
  const moves: Record<string, () => number> = {
    ArrowDown: () => tabbed + 1, ArrowUp: () => tabbed - 1, PageDown: () => tabbed + page, PageUp: () => tabbed - page, Home: () => 0, End: () => rows.length - 1,
  };
  const onKeyDown = (e: KeyboardEvent) => {
    const move = moves[e.key];
    if (!move || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    go(move());
  };
  return (
    <div class="table" role="table" aria-label="Rollouts" aria-rowcount={rows.length + 1}>
      <div role="rowgroup" class="heads">
        <div role="row" class="row" aria-rowindex={1}>
          {columns.map((c) => (
            <span role="columnheader" key={c.name} class={c.name} aria-sort={sort === c.name ? (down ? "descending" : "ascending") : "none"}>
              <button class="head" onClick={() => onSort(c.name)}>{c.label}<span aria-hidden="true">{sort === c.name ? (down ? " ↓" : " ↑") : ""}</span></button>
            </span>
          ))}
        </div>
      </div>
      <div role="rowgroup" class="body" ref={box} onScroll={() => box.current && setTop(box.current.scrollTop)} onKeyDown={onKeyDown}>
        <div role="presentation" style={{ height: `${rows.length * height}px`, position: "relative" }}>
          {drawn.map(({ entry: { key, row }, index }) => (
            <div key={key} role="row" class="row" aria-rowindex={index + 2} style={{ transform: `translateY(${index * height}px)`, height: `${height}px` }} onFocusIn={() => setActive(key)}>
              <Cells row={row} tab={index === tabbed} />
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

interface CellsProps {
  row: Row;
  tab: boolean;
}

// Cells are what a row shows, which is drawn again only when it has changed: most rows stay as they are, or only move, when others change.
class Cells extends Component<CellsProps> {
  override shouldComponentUpdate(next: CellsProps): boolean {
    return this.props.row !== next.row || this.props.tab !== next.tab;
  }

  override render({ row, tab }: CellsProps) {
    return (
      <>
        <span role="cell" class="name"><a href={releaseLink(row.namespace, row.name)} tabIndex={tab ? 0 : -1}>{row.name}</a><span class="quiet cut">{row.namespace}</span></span>
        <span role="cell" class="state"><Badge group={row.group} text={row.state} /></span>
        <span role="cell" class="step">{row.step ? <>{row.step}</> : <span class="quiet nothing">–</span>}</span>
        <span role="cell" class="weight"><WeightBar live={row.live} requested={row.requested} /></span>
        <span role="cell" class="evidence"><EvidenceBar evidence={row.evidence} threshold={row.threshold} /></span>
        <span role="cell" class="next" title={row.message}><span class="cut">{row.next.what}</span>{row.next.at && <span class="quiet"><Ago at={row.next.at} /></span>}</span>
      </>
    );
  }
}

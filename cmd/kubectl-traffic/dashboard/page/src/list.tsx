// SPDX-License-Identifier: Apache-2.0

import { Component } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Badge, EvidenceBar, WeightBar } from "./parts";
import { releaseLink } from "./route";
import { keyOf } from "./rows";
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
  rows: Row[];
  sort: string;
  down: boolean;
  onSort: (name: string) => void;
}

// List draws the rows that are seen, and no others: it is as fast with thousands of rows.
export function List({ rows, sort, down, onSort }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const height = useRowHeight();
  const [top, setTop] = useState(0);
  const [seen, setSeen] = useState(800);
  const [active, setActive] = useState(0);
  const focus = useRef(false); // whether the active row takes the focus when it is drawn
  useLayoutEffect(() => {
    const watcher = new ResizeObserver(() => box.current && setSeen(box.current.clientHeight));
    if (box.current) watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(top / height) - around);
  const last = Math.min(rows.length, Math.ceil((top + seen) / height) + around);
  const tabbed = active >= first && active < last ? active : Math.min(Math.ceil(top / height), rows.length - 1);
  useLayoutEffect(() => {
    if (!focus.current) return;
    focus.current = false;
    box.current?.querySelector<HTMLElement>(`[data-index="${active}"] a`)?.focus({ preventScroll: true });
  });
  const go = (to: number) => {
    const index = Math.max(0, Math.min(rows.length - 1, to));
    const b = box.current;
    if (!b) return;
    if (index * height < b.scrollTop) b.scrollTop = index * height;
    if ((index + 1) * height > b.scrollTop + b.clientHeight) b.scrollTop = (index + 1) * height - b.clientHeight;
    focus.current = true;
    setTop(b.scrollTop);
    setActive(index);
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
          {rows.slice(first, last).map((row, i) => <Line key={keyOf(row)} row={row} index={first + i} height={height} tab={first + i === tabbed} onFocus={setActive} />)}
        </div>
      </div>
    </div>
  );
}

interface LineProps {
  row: Row;
  index: number;
  height: number;
  tab: boolean;
  onFocus: (index: number) => void;
}

// Line is a row, which is drawn again only when it has changed or moved: most rows stay as they are when others change.
class Line extends Component<LineProps> {
  override shouldComponentUpdate(next: LineProps): boolean {
    const now = this.props;
    return now.row !== next.row || now.index !== next.index || now.height !== next.height || now.tab !== next.tab;
  }

  override render({ row, index, height, tab, onFocus }: LineProps) {
    return (
      <div role="row" class="row" data-index={index} aria-rowindex={index + 2} style={{ transform: `translateY(${index * height}px)`, height: `${height}px` }}>
        <span role="cell" class="name"><a href={releaseLink(row.namespace, row.name)} tabIndex={tab ? 0 : -1} onFocus={() => onFocus(index)}>{row.name}</a><span class="quiet cut">{row.namespace}</span></span>
        <span role="cell" class="state"><Badge group={row.group} text={row.state} /></span>
        <span role="cell" class="step">{row.step ? <>{row.step}</> : <span class="quiet nothing">–</span>}</span>
        <span role="cell" class="weight"><WeightBar live={row.live} requested={row.requested} /></span>
        <span role="cell" class="evidence"><EvidenceBar evidence={row.evidence} threshold={row.threshold} /></span>
        <span role="cell" class="next" title={row.message}><span class="cut">{row.next.what}</span>{row.next.at && <span class="quiet"><Ago at={row.next.at} /></span>}</span>
      </div>
    );
  }
}

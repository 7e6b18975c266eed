// SPDX-License-Identifier: Apache-2.0

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Blocked, Empty, Health, Notice } from "./parts";
import { keep } from "./route";
import { counted, type Rows, useFound } from "./rows";
import type { Group, Named } from "./types";

// useWish is what is searched for, and where. The address keeps it.
export function useWish(page: string, query: URLSearchParams) {
  const [search, setSearch] = useState(query.get("q") ?? "");
  const [namespace, setNamespace] = useState(query.get("namespace") ?? "");
  useEffect(() => keep({ q: search, namespace }, page), [search, namespace]);
  return { search, setSearch, namespace, setNamespace };
}

// useSlash has the key / go to an input.
export function useSlash() {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const slash = (e: KeyboardEvent) => {
      if (e.key !== "/" || e.target instanceof HTMLInputElement || e.target instanceof HTMLTextAreaElement) return;
      e.preventDefault();
      input.current?.focus();
    };
    addEventListener("keydown", slash);
    return () => removeEventListener("keydown", slash);
  }, []);
  return input;
}

const most = 100; // cards that are drawn at once

interface Props<R> {
  title: string;
  // noun names the rows, as in "No TrafficSplits".
  noun: string;
  all: Rows<R>;
  wish: ReturnType<typeof useWish>;
  text: (row: R) => string;
  empty: string;
  notice?: string;
  placeholder: string;
  card: (row: R) => ComponentChildren;
}

// SearchPage shows a card for each row that fits what is searched for.
export function SearchPage<R extends Named & { group: Group }>({ title, noun, all, wish, text, empty, notice, placeholder, card }: Props<R>) {
  const input = useSlash();
  const found = useFound(all, wish.search, text);
  useEffect(() => {
    document.title = `${title} · Serin`;
  }, [title]);
  const blocked = Blocked({ link: all.link, trouble: all.trouble, has: all.complete });
  return (
    <main>
      <div class="title"><h1 tabIndex={-1}>{title}</h1><p class="quiet" role="status">{all.complete && !blocked && counted(found.length, all.rows.size, all.scope?.namespace)}</p></div>
      <Health link={all.link} trouble={all.trouble} />
      {all.scope?.narrowed && !blocked && <Notice kind="info">{all.scope.narrowed}</Notice>}
      {notice && !blocked && <Notice kind="info">{notice}</Notice>}
      <div class="tools">
        <label class="field grow"><span>Search <kbd aria-hidden="true">/</kbd></span>
          <input ref={input} type="search" value={wish.search} placeholder={placeholder} onInput={(e) => wish.setSearch(e.currentTarget.value)} /></label>
        <label class="field"><span>Namespace</span>
          <input value={wish.namespace} placeholder="all" onChange={(e) => wish.setNamespace(e.currentTarget.value.trim())} /></label>
      </div>
      {blocked ?? (!all.complete ? <div class="empty" role="status"><p class="loading">Loading the {noun}…</p></div>
        : all.rows.size === 0 ? <Empty title={`No ${noun} yet`}><p>{empty}</p></Empty>
        : found.length === 0 ? <Empty title={`No matching ${noun}`}><p>No {noun} match your search.</p><button onClick={() => wish.setSearch("")}>Clear the search</button></Empty>
        : <>{found.slice(0, most).map(card)}{found.length > most && <p class="quiet">{found.length - most} more are not shown. Search to find them.</p>}</>)}
    </main>
  );
}

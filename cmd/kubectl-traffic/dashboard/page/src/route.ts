// SPDX-License-Identifier: Apache-2.0

import { useEffect, useState } from "preact/hooks";

// Route is what the address names behind the #: a path and its query.
export interface Route {
  parts: string[];
  query: URLSearchParams;
}

function read(): Route {
  const [path = "", query = ""] = location.hash.slice(1).split("?", 2);
  return { parts: path.split("/").filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(query) };
}

export function useRoute(): Route {
  const [route, setRoute] = useState(read);
  useEffect(() => {
    const changed = () => setRoute(read());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}

// keep notes in the address what a page shows, so that a reload shows the same. An address that names
// another page stays: the browser says that it was changed only later.
export function keep(query: Record<string, string>, page = "") {
  if (read().parts.join("/") !== page) return;
  const kept = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ""));
  const text = kept.toString();
  history.replaceState(null, "", text ? `#/${page}?${text}` : `#/${page}`);
}

const link = (kind: string) => (namespace: string, name: string) => `#/${kind}/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
export const releaseLink = link("rollouts");
export const canaryLink = link("canaries");

// SPDX-License-Identifier: Apache-2.0

import { useEffect, useRef, useState } from "preact/hooks";

// Link says whether the server is heard: lost is tried again by itself, refused is not.
export type Link = { state: "connecting" | "open" | "lost" } | { state: "refused"; message: string };

const unreachable = "The dashboard no longer answers. If you started it with kubectl traffic dashboard, run the command again and open the address that it prints. If it runs in the cluster, try again later, or ask your cluster admin.";

// useStream listens to a stream of events while the page is visible: a hidden page would
// keep one of the few connections that a browser makes.
export function useStream(url: string, handlers: Record<string, (data: never) => void>): Link {
  const [link, setLink] = useState<Link>({ state: "connecting" });
  const latest = useRef(handlers);
  latest.current = handlers;
  useEffect(() => {
    let source: EventSource | undefined;
    let over = false;
    const open = () => {
      source = new EventSource(url);
      source.onopen = () => setLink({ state: "open" });
      source.onerror = () => {
        if (source?.readyState !== EventSource.CLOSED) return setLink({ state: "lost" });
        whyRefused(url).then((message) => over || setLink({ state: "refused", message }));
      };
      for (const name of Object.keys(latest.current)) {
        source.addEventListener(name, (e) => latest.current[name]?.(JSON.parse((e as MessageEvent<string>).data) as never));
      }
    };
    const look = () => {
      source?.close();
      if (!document.hidden) open();
    };
    setLink({ state: "connecting" });
    look();
    document.addEventListener("visibilitychange", look);
    return () => {
      over = true;
      source?.close();
      document.removeEventListener("visibilitychange", look);
    };
  }, [url]);
  return link;
}

async function whyRefused(url: string): Promise<string> {
  const stop = new AbortController();
  try {
    const answer = await fetch(url, { signal: stop.signal });
    return answer.ok ? unreachable : await messageOf(answer);
  } catch {
    return unreachable;
  } finally {
    stop.abort();
  }
}

async function messageOf(answer: Response): Promise<string> {
  try {
    return ((await answer.json()) as { message: string }).message;
  } catch {
    return `The dashboard answered with the HTTP status ${answer.status}. Reload the page. If you see this again, look into the log of the dashboard.`;
  }
}

async function call<T>(url: string, request?: RequestInit): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(url, request);
  } catch {
    throw new Error(unreachable);
  }
  if (!answer.ok) throw new Error(await messageOf(answer));
  return (await answer.json()) as T;
}

export const get = <T>(url: string) => call<T>(url);

// ask sends a question with a body.
export const ask = <T>(url: string, body: unknown) => call<T>(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

// post sends a change and returns what was done.
export const post = async (url: string, body: unknown) => (await ask<{ message: string }>(url, body)).message;

const path = (kind: string) => (namespace: string, name: string) => `api/${kind}/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
export const rolloutPath = path("rollouts");
export const canaryPath = path("canaries");

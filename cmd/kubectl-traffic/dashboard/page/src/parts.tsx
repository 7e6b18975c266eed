// SPDX-License-Identifier: Apache-2.0

import type { ComponentChildren } from "preact";
import type { Link } from "./api";
import type { Group, Trouble } from "./types";

// groups are the states by what a user has to do, most urgent first. A sign says the same as a colour.
export const groups: { group: Group; label: string; sign: string }[] = [
  { group: "Failed", label: "Failed", sign: "✕" },
  { group: "NeedsUser", label: "Needs a user", sign: "!" },
  { group: "InProgress", label: "In progress", sign: "▸" },
  { group: "Stable", label: "Stable", sign: "✓" },
  { group: "Unknown", label: "Unknown", sign: "?" },
];

export function Badge({ group, text }: { group: Group; text: string }) {
  const found = groups.find((g) => g.group === group);
  return <span class={`badge ${group}`}><span class="sign" aria-hidden="true">{found?.sign}</span><span class="hidden">{found?.label}: </span>{text}</span>;
}

// WeightBar shows the canary's share of the traffic, and the share that is requested.
export function WeightBar({ live, requested }: { live?: number; requested?: number }) {
  if (requested === undefined) return <span class="quiet nothing">no split</span>;
  const text = live === undefined ? `${requested} % requested` : live === requested ? `${live} %` : `${live} % → ${requested} %`;
  return (
    <span class="weight">
      <span class="bar" aria-hidden="true">
        <span class="fill" style={{ width: `${live ?? 0}%` }} />
        {live !== requested && <span class="mark" style={{ left: `${requested}%` }} />}
      </span>
      <span>{text}</span>
    </span>
  );
}

// share is where evidence lies between nothing and the threshold, on a logarithmic scale.
export function share(evidence: number, threshold: number): number {
  if (!(evidence > 1) || !(threshold > 1)) return 0;
  return Math.min(1, Math.log(evidence) / Math.log(threshold));
}

export function EvidenceBar({ evidence, threshold }: { evidence?: string; threshold?: string }) {
  if (!evidence || !threshold) return <span class="quiet nothing">none</span>;
  return (
    <span class="weight">
      <span class="bar evidence" aria-hidden="true"><span class="fill" style={{ width: `${100 * share(Number(evidence), Number(threshold))}%` }} /></span>
      <span>{evidence} of {threshold}</span>
    </span>
  );
}

export function Notice({ kind, title, children }: { kind: "info" | "warn" | "error"; title?: string; children: ComponentChildren }) {
  return <div class={`notice ${kind}`} role={kind === "error" ? "alert" : "status"}>{title && <strong>{title} </strong>}{children}</div>;
}

// Health says what is wrong with what is shown, if anything is.
export function Health({ link, trouble }: { link: Link; trouble?: Trouble }) {
  if (link.state === "lost") return <Notice kind="warn" title="Connection lost.">The dashboard does not answer. The page tries again by itself; what you see may be out of date.</Notice>;
  if (trouble?.kind === "unreachable") return <Notice kind="warn" title="Connection lost.">{trouble.message}</Notice>;
  return null;
}

// Empty fills a page that has nothing to show.
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return <div class="empty"><h2>{title}</h2>{children}</div>;
}

const troubles = { forbidden: "You may not see this", missing: "Serin is not installed", unreachable: "The cluster does not answer" };

// Blocked is shown in the place of what can't be shown; null when it can.
export function Blocked({ link, trouble, has }: { link: Link; trouble?: Trouble; has: boolean }) {
  if (link.state === "refused") return <Empty title="The dashboard is not available"><p role="alert">{link.message}</p><button onClick={() => location.reload()}>Try again</button></Empty>;
  if (trouble && !(has && trouble.kind === "unreachable")) return <Empty title={troubles[trouble.kind]}><p role="alert">{trouble.message}</p></Empty>;
  return null;
}

// SPDX-License-Identifier: Apache-2.0

import { Badge } from "./parts";
import { canaryLink, releaseLink } from "./route";
import { keyOf, useRows } from "./rows";
import { SearchPage, useWish } from "./search";
import type { CanaryRow } from "./types";

export function CanariesPage({ query }: { query: URLSearchParams }) {
  const wish = useWish("canaries", query);
  const all = useRows<CanaryRow>("api/canaries", wish.namespace);
  return <SearchPage title="Canaries of Helm releases" noun="CanaryReleases" all={all} wish={wish} placeholder="Name, namespace, Helm release or state"
    text={(c) => `${c.state} ${c.release} ${c.rollout ?? ""}`}
    empty="A CanaryRelease tries other values of a Helm release on a share of its traffic, until you adopt or deprecate them."
    card={(c) => <CanaryCard key={keyOf(c)} canary={c} />} />;
}

function CanaryCard({ canary: c }: { canary: CanaryRow }) {
  return (
    <section class="card" aria-label={`CanaryRelease ${keyOf(c)}`}>
      <h2 class="state"><span><a href={canaryLink(c.namespace, c.name)}>{c.name}</a> <span class="quiet">{c.namespace}</span></span> <Badge group={c.group} text={c.state} /></h2>
      <p>{c.message}</p>
      <p>Next: {c.next.what}.</p>
      <p class="quiet"><Revisions canary={c} /> · {share(c)}{c.rollout && <> · <a href={releaseLink(c.namespace, c.rollout)}>Rollout {c.rollout}</a></>}</p>
    </section>
  );
}

const share = (c: CanaryRow) => (/\d/.test(c.share) ? `${c.share.replace("-", " to ").replace("%", " %")} of the traffic` : "share of the traffic not confirmed yet");

// Revisions are that of the Helm release that the canary is compared with, and the adopted one.
export function Revisions({ canary: c }: { canary: CanaryRow }) {
  return <>Helm release {c.release}, revision {c.version}{c.adopted ? ` · adopted as revision ${c.adopted}` : ""}</>;
}

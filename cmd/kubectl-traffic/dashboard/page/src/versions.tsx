// SPDX-License-Identifier: Apache-2.0

import type { Version } from "./types";

export function Versions({ versions }: { versions: Version[] }) {
  return (
    <section class="card wide" aria-labelledby="versions"><h2 id="versions">Versions</h2>
      {versions.length === 0 && <p class="quiet">There are no versions yet.</p>}
      {versions.map((v) => (
        <div key={v.role} class="version">
          <h3>{v.role} <code>{v.revision}</code></h3>
          <p>{v.ready} of {v.replicas} pods ready{v.weight !== "-" && `, ${v.weight.replace("%", " %")} of the traffic`}</p>
          {v.images.map((image) => <p key={image}><code class="cut">{image}</code></p>)}
          {v.pods.length > 0 && <details><summary>Pods ({v.pods.length})</summary><div class="scroll"><table>
            <thead><tr><th scope="col">Pod</th><th scope="col">State</th><th scope="col">Ready</th><th scope="col" class="num">Restarts</th></tr></thead>
            <tbody>{v.pods.map((p) => <tr key={p.name}><th scope="row"><code>{p.name}</code></th><td>{p.state}</td><td>{p.ready ? "yes" : "no"}</td><td class="num">{p.restarts}</td></tr>)}</tbody>
          </table></div></details>}
        </div>
      ))}
    </section>
  );
}

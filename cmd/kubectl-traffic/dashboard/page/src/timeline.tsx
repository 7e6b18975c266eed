// SPDX-License-Identifier: Apache-2.0

import { Instant } from "./time";
import type { Step } from "./types";

const words = { Done: "done", Present: "now", Later: "later" };
const signs = { Done: "✓", Present: "▸", Later: "○", Promotion: "★" };

export function Timeline({ steps, releasing, timeZone }: { steps: Step[]; releasing: boolean; timeZone?: string }) {
  return (
    <section class="card wide" aria-labelledby="steps"><h2 id="steps">{releasing ? "Steps" : "Steps of the next release"}</h2>
      {!releasing && steps.length > 0 && <p class="quiet">These would be the times of a release that begins now.</p>}
      <ol class="timeline">
        {steps.map((s) => (
          <li key={s.stepIndex} class={s.state} aria-current={s.state === "Present" ? "step" : undefined}>
            <span class="sign" aria-hidden="true">{signs[s.state]}</span>
            <span class="what"><strong>{s.state === "Promotion" ? "Promotion" : `Step ${s.stepIndex + 1}: ${s.weight} %`}</strong> {s.state !== "Promotion" && <span class="quiet">{words[s.state]}</span>}</span>
            <span class="when"><When step={s} /></span>
          </li>
        ))}
      </ol>
      {timeZone && <p class="quiet">The schedule uses the time zone {timeZone}. The times on this page are in yours.</p>}
    </section>
  );
}

function When({ step: s }: { step: Step }) {
  if (s.state === "Done") return s.began ? <>live since <Instant at={s.began} /></> : null;
  const present = s.state === "Present";
  return (
    <>
      {s.begins ? <>{present ? "live since " : "at the earliest "}<Moment at={s.begins} past={present} /></> : <span class="quiet">{present ? "being prepared" : "time unknown"}</span>}
      {s.ends && s.state !== "Promotion" && <>, {soon(s.ends) ? "the hold is over" : <>held until <Instant at={s.ends} /></>}</>}
      {s.waitsFor && <> · waits for {s.waitsFor}</>}
    </>
  );
}

// soon is whether a time to come is now: the server counts such times from its own clock.
const soon = (at: string) => Date.parse(at) < Date.now() + 2000;

function Moment({ at, past }: { at: string; past: boolean }) {
  return !past && soon(at) ? <>now</> : <Instant at={at} />;
}

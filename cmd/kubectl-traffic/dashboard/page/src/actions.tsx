// SPDX-License-Identifier: Apache-2.0

import { useEffect, useRef, useState } from "preact/hooks";
import { post } from "./api";
import { Notice } from "./parts";
import type { Action } from "./types";

interface Props {
  // path of the object that the actions are about
  path: string;
  actions: Action[];
}

const dangerous = ["Abort", "Skip", "PromoteFull", "Undo", "Deprecated"];
const mains = ["Promote", "Adopted"];

export function Actions({ path, actions }: Props) {
  const [asked, setAsked] = useState<Action>();
  const [said, setSaid] = useState("");
  const press = (a: Action) => {
    setSaid(a.disabled ? `${a.label}: ${a.disabled}` : "");
    if (!a.disabled) setAsked(a);
  };
  return (
    <section class="actions" aria-label="Decide">
      <div class="buttons">
        {actions.map((a) => (
          <button key={a.name} class={mains.includes(a.name) ? "main" : dangerous.includes(a.name) ? "danger" : ""} aria-disabled={a.disabled ? true : undefined}
            aria-describedby={a.disabled ? `why-${a.name}` : undefined} title={a.disabled} onClick={() => press(a)}>
            {a.label}{a.disabled && <span class="hidden" id={`why-${a.name}`}>{a.disabled}</span>}
          </button>
        ))}
      </div>
      <p class="said" role="status">{said}</p>
      {asked && <Confirm key={asked.name} action={asked} path={`${path}/actions`} close={(done) => { setAsked(undefined); setSaid(done); }} />}
    </section>
  );
}

// Confirm asks whether the user means it. The question is the one that was asked when the button was pressed:
// the server refuses the answer when the release has gone on meanwhile.
function Confirm({ action, path, close }: { action: Action; path: string; close: (done: string) => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [reason, setReason] = useState("");
  const [wrong, setWrong] = useState("");
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    dialog.current?.showModal();
    return () => before?.focus();
  }, []);
  const send = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    setWrong("");
    try {
      close(await post(path, { action: action.name, revision: action.revision, step: action.step ?? 0, reason: reason.trim() }));
    } catch (err) {
      setWrong((err as Error).message);
      setBusy(false);
    }
  };
  return (
    <dialog ref={dialog} aria-labelledby="ask" onClose={() => close("")}>
      <form onSubmit={send}>
        <h2 id="ask">{action.label}</h2>
        <p>{action.confirm}</p>
        {action.takesReason && <label class="field"><span>Reason (kept in the history)</span><input value={reason} maxLength={256} onInput={(e) => setReason(e.currentTarget.value)} /></label>}
        {wrong && <Notice kind="error">{wrong}</Notice>}
        <div class="buttons end">
          <button type="button" onClick={() => dialog.current?.close()}>Cancel</button>
          <button type="submit" class={dangerous.includes(action.name) ? "danger" : "main"} disabled={busy}>{action.label}</button>
        </div>
      </form>
    </dialog>
  );
}

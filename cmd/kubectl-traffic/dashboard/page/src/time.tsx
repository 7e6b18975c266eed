// SPDX-License-Identifier: Apache-2.0

import { useEffect, useState } from "preact/hooks";

const relative = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "long" });
const absolute = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long" });
const clock = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZoneName: "short" });

// times are those of rows that lie seconds apart.
export const times = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" });

const units: [Intl.RelativeTimeFormatUnit, number][] = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

export function fromNow(at: number, now: number): string {
  const seconds = Math.round((at - now) / 1000);
  if (Math.abs(seconds) < 1) return "now";
  const [unit, length] = units.find(([, n]) => Math.abs(seconds) >= n) ?? ["second", 1];
  return relative.format(Math.trunc(seconds / length), unit);
}

// ticking are those who are told of each second. One timer tells all of them, so that they are drawn in one frame.
const ticking = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function eachSecond(tick: () => void): () => void {
  ticking.add(tick);
  timer ??= setInterval(() => ticking.forEach((each) => each()), 1000);
  return () => {
    ticking.delete(tick);
    if (ticking.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

// Ago shows how far a time is away, with the time itself for who points at it. It is drawn again when it reads differently.
export function Ago({ at }: { at: string }) {
  const time = Date.parse(at);
  const [, setText] = useState("");
  useEffect(() => {
    const tick = () => setText(fromNow(time, Date.now()));
    tick();
    return eachSecond(tick);
  }, [time]);
  return <time dateTime={at} title={absolute.format(time)}>{fromNow(time, Date.now())}</time>;
}

// Instant shows a time with its zone, and how far it is away.
export function Instant({ at }: { at: string }) {
  return <><time dateTime={at} title={absolute.format(Date.parse(at))}>{clock.format(Date.parse(at))}</time> <span class="quiet">(<Ago at={at} />)</span></>;
}

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

// useNow is the time, which goes on each second.
function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

// Ago shows how far a time is away, with the time itself for who points at it.
export function Ago({ at }: { at: string }) {
  const now = useNow();
  const time = Date.parse(at);
  return <time dateTime={at} title={absolute.format(time)}>{fromNow(time, now)}</time>;
}

// Instant shows a time with its zone, and how far it is away.
export function Instant({ at }: { at: string }) {
  return <><time dateTime={at} title={absolute.format(Date.parse(at))}>{clock.format(Date.parse(at))}</time> <span class="quiet">(<Ago at={at} />)</span></>;
}

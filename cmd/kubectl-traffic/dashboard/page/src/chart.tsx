// SPDX-License-Identifier: Apache-2.0

import uPlot from "uplot";
import { useEffect, useRef } from "preact/hooks";

export interface Look {
  ink: string;
  grid: string;
  line: string;
  band: string;
  limit: string;
}

function look(): Look {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(name).trim();
  // light-dark() is resolved on an element only.
  const probe = document.createElement("span");
  document.body.append(probe);
  const resolve = (name: string) => {
    probe.style.color = of(name);
    return getComputedStyle(probe).color;
  };
  const found = { ink: resolve("--quiet"), grid: resolve("--line"), line: resolve("--accent"), band: resolve("--band"), limit: resolve("--bad") };
  probe.remove();
  return found;
}

export type Make<T> = (of: T, l: Look) => Pick<uPlot.Options, "series" | "scales" | "bands" | "axes"> & { data: uPlot.AlignedData };

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export function axes(l: Look, more: uPlot.Axis): uPlot.Axis[] {
  const plain = { stroke: l.ink, grid: { stroke: l.grid, width: 1 }, ticks: { stroke: l.grid, width: 1 } };
  return [{ ...plain, space: 90, values: (_, ticks) => ticks.map((t) => clock.format(1000 * t)) }, { ...plain, size: 64, ...more }];
}

// powers are those of ten between two numbers.
export function powers(from: number, to: number): number[] {
  const found = [];
  for (let n = Math.ceil(Math.log10(from)); n <= Math.floor(Math.log10(to)); n++) found.push(10 ** n);
  return found;
}

// Chart draws what make makes of its data, and draws it again when the theme changes.
export function Chart<T>({ make, of, label }: { make: Make<T>; of: T; label: string }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    let plot: uPlot | undefined;
    const draw = () => {
      plot?.destroy();
      const { data, ...options } = make(of, look());
      for (const series of options.series) series.points = { show: false };
      plot = new uPlot({ width: element.clientWidth, height: 200, legend: { show: false }, cursor: { show: false }, ...options }, data, element);
    };
    draw();
    const watcher = new ResizeObserver(() => plot && element.clientWidth !== plot.width && plot.setSize({ width: element.clientWidth, height: 200 }));
    watcher.observe(element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    addEventListener("serin-theme", draw);
    return () => {
      watcher.disconnect();
      dark.removeEventListener("change", draw);
      removeEventListener("serin-theme", draw);
      plot?.destroy();
    };
  }, [make, of]);
  return <div class="chart" ref={box} role="img" aria-label={label} />;
}

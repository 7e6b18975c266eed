// SPDX-License-Identifier: Apache-2.0

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "./api";
import { CalendarPage } from "./calendar";
import { CallsPage } from "./calls";
import { CanariesPage } from "./canaries";
import { CanaryPage } from "./canary";
import { FleetPage } from "./fleet";
import { LoginPage, LogoutButton, type Ways } from "./login";
import { Empty } from "./parts";
import { ReleasePage } from "./release";
import { type Route, useRoute } from "./route";
import { ThemeButton } from "./theme";
import { TrafficPage } from "./traffic";
import type { Viewer } from "./types";

const pages = [["", "Rollouts"], ["traffic", "Traffic"], ["calls", "Calls"], ["canaries", "Canaries"], ["calendar", "Calendar"]];

function App() {
  const route = useRoute();
  const [viewer, setViewer] = useState<Viewer>();
  const [ways, setWays] = useState<Ways>();
  const begun = useRef(false);
  useEffect(() => {
    // Where there is nothing to log in to, the page itself says what is wrong.
    get<Viewer>("api/viewer").then(setViewer, () => get<Ways>("api/login").then(setWays, () => undefined));
  }, []);
  const place = route.parts.join("/");
  useEffect(() => {
    // A screen reader goes on at the new page, as it does after a navigation.
    if (begun.current) document.querySelector<HTMLElement>("h1")?.focus();
    begun.current = true;
  }, [place]);
  return (
    <>
      <a class="skip" href="#app" onClick={(e) => { e.preventDefault(); document.querySelector<HTMLElement>("main a, main button, main input")?.focus(); }}>Skip to the content</a>
      <header>
        <a class="brand" href="#/"><img src="icon.svg" alt="" width="28" height="28" />Serin</a>
        <nav aria-label="Pages">{pages.map(([path, label]) => <a key={path} href={`#/${path}`} aria-current={route.parts.join("/") === path ? "page" : undefined}>{label}</a>)}</nav>
        <span class="who">{viewer?.readOnly && <span class="badge">read-only</span>}<span class="cut" title="The cluster, and your user name there">{viewer && [viewer.cluster, viewer.user].filter(Boolean).join(" · ")}</span></span>
        {viewer?.logout && <LogoutButton />}
        <ThemeButton />
      </header>
      {ways ? <LoginPage ways={ways} /> : <Page route={route} />}
    </>
  );
}

function Page({ route }: { route: Route }) {
  const [kind, namespace, name] = route.parts;
  if (!kind) return <FleetPage query={route.query} />;
  if (kind === "traffic") return <TrafficPage query={route.query} />;
  if (kind === "calls") return <CallsPage query={route.query} />;
  if (kind === "canaries" && namespace && name) return <CanaryPage key={`${namespace}/${name}`} namespace={namespace} name={name} />;
  if (kind === "canaries") return <CanariesPage query={route.query} />;
  if (kind === "calendar") return <CalendarPage query={route.query} />;
  if (kind === "rollouts" && namespace && name) return <ReleasePage key={`${namespace}/${name}`} namespace={namespace} name={name} />;
  return <main><Empty title="There is no such page"><a href="#/">All Rollouts</a></Empty></main>;
}

render(<App />, document.getElementById("app")!);

// SPDX-License-Identifier: Apache-2.0

import { useEffect, useState } from "preact/hooks";

const themes = ["system", "light", "dark"] as const;
type Theme = (typeof themes)[number];

const kept = "serin-theme";

function read(): Theme {
  const value = localStorage.getItem(kept);
  return themes.find((t) => t === value) ?? "system";
}

// ThemeButton chooses how light the page is: as the system has it, unless the user wants another.
export function ThemeButton() {
  const [theme, setTheme] = useState(read);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem(kept, theme);
    dispatchEvent(new Event("serin-theme"));
  }, [theme]);
  const next = themes[(themes.indexOf(theme) + 1) % themes.length]!;
  const signs = { system: "◐", light: "☀", dark: "☾" };
  return <button class="theme" aria-label={`Theme: ${theme}. Change to ${next}`} title={`Theme: ${theme}`} onClick={() => setTheme(next)}><span aria-hidden="true">{signs[theme]}</span></button>;
}

// SPDX-License-Identifier: Apache-2.0

import { useState } from "preact/hooks";
import { post } from "./api";
import { Notice } from "./parts";

// Ways are those in which users may log in.
export interface Ways {
  provider?: string;
  tokens: boolean;
}

// LoginPage is shown in place of every page to who has no session. The page that was asked for is shown after the login.
export function LoginPage({ ways }: { ways: Ways }) {
  return (
    <main class="login">
      <h1 tabIndex={-1}>Log in</h1>
      <p class="quiet">You have the same rights here as with kubectl.</p>
      {ways.provider && <a class="button main" href={`login/oidc?at=${encodeURIComponent(location.hash.slice(1) || "/")}`}>Log in with {ways.provider}</a>}
      {ways.tokens && <TokenForm />}
    </main>
  );
}

function TokenForm() {
  const [token, setToken] = useState("");
  const [wrong, setWrong] = useState("");
  const send = async (e: Event) => {
    e.preventDefault();
    try {
      await post("api/login/token", { token });
      location.reload();
    } catch (err) {
      setWrong((err as Error).message);
    }
  };
  return (
    <form class="card" onSubmit={send}>
      <label class="field"><span>Token of a user or ServiceAccount of the cluster</span>
        <input type="password" name="token" autocomplete="off" required value={token} onInput={(e) => setToken(e.currentTarget.value)} /></label>
      <p class="quiet"><code>kubectl create token NAME</code> prints one for a ServiceAccount.</p>
      {wrong && <Notice kind="error">{wrong}</Notice>}
      <button type="submit">Log in with the token</button>
    </form>
  );
}

export function LogoutButton() {
  const [wrong, setWrong] = useState("");
  const leave = () => post("api/logout", {}).then(() => location.reload(), (err: Error) => setWrong(err.message));
  return <><button class="logout" onClick={leave}>Log out</button>{wrong && <span role="alert">{wrong}</span>}</>;
}

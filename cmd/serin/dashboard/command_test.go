// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/serin-dev/serin/cmd/serin/dashboard"
)

func TestFlagsThatWouldNotServeAreRefused(t *testing.T) {
	short := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(short, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	const valid = "--url=https://serin.example.org/ --api-server-ca-file=/none"
	for _, test := range []struct{ flags, want string }{
		{"", `required flag(s) "api-server-ca-file", "url" not set`},
		{valid, "no user could log in"},
		{valid + " --token-login --url=http://serin.example.org/", "has to begin with https"},
		{valid + " --token-login --session-keys-file=" + short, "--session-keys-file: the keys of sessions in " + short + ": key 1 has 6 characters"},
		{valid + " --token-login --session-keys-file=/none", "--session-keys-file: read the keys"},
		{valid + " --token-login --session-duration=0s", "--session-duration: 0s is not a time"},
		{valid + " --oidc-issuer-url=http://sso.example.org --oidc-client-id=serin", "--oidc-issuer-url:"},
		{valid + " --oidc-issuer-url=https://sso.example.org", "missing [oidc-client-id]"},
		{valid + " --token-login --tls-cert-file=/none/tls.crt --tls-private-key-file=/none/tls.key --bind-address=127.0.0.1:0", "--tls-cert-file:"},
		{valid + " --token-login --bind-address=nowhere", "--bind-address:"},
	} {
		cmd := dashboard.NewCommand()
		cmd.SetArgs(strings.Fields(test.flags))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.flags, err)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/login"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/session"
)

// options are the flags of serin dashboard.
type options struct {
	address, url         string
	forwardedHost        bool
	certFile, keyFile    string
	apiServer, caFile    string
	cluster, namespace   string
	readOnly, tokens     bool
	issuer, client, name string
	secretFile, keysFile string
	scopes               []string
	duration             time.Duration
}

// NewCommand makes serin dashboard.
func NewCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Serve the dashboard to users who log in",
		Long: `Serve the dashboard to users who log in, by OpenID Connect or with a token of the cluster.

Each request to the API server is made with the token of the user whose request it serves. The
server itself has no credentials.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.bind(cmd.Flags())
	for _, required := range []string{"url", "api-server-ca-file"} {
		if err := cmd.MarkFlagRequired(required); err != nil {
			panic(err) // the flag is bound above
		}
	}
	cmd.MarkFlagsRequiredTogether("tls-cert-file", "tls-private-key-file")
	cmd.MarkFlagsRequiredTogether("oidc-issuer-url", "oidc-client-id")
	return cmd
}

func (o *options) bind(flags *pflag.FlagSet) {
	flags.StringVar(&o.address, "bind-address", ":8080", "address of the page and of the probes")
	flags.StringVar(&o.url, "url", "", "URL under which users reach the page, with its path; requests for other hosts are refused")
	flags.BoolVar(&o.forwardedHost, "trust-forwarded-host", false, "take the host of requests from X-Forwarded-Host; only behind a proxy that sets this header itself")
	flags.StringVar(&o.certFile, "tls-cert-file", "", "file of a certificate to serve with; it is read again when it changes. Without one, the proxy in front has to do TLS")
	flags.StringVar(&o.keyFile, "tls-private-key-file", "", "file of the certificate's private key")
	flags.StringVar(&o.apiServer, "api-server", "https://kubernetes.default.svc", "URL of the API server")
	flags.StringVar(&o.caFile, "api-server-ca-file", "", "file of the certificates that verify the API server")
	flags.StringVar(&o.cluster, "cluster-name", "", "name of the cluster in the page")
	flags.StringVar(&o.namespace, "default-namespace", "default", "namespace to show to users who may not list the Rollouts of the whole cluster; they may choose another one")
	flags.BoolVar(&o.readOnly, "read-only", true, "refuse every change")
	flags.BoolVar(&o.tokens, "token-login", false, "let users log in with a token that they paste")
	flags.StringVar(&o.issuer, "oidc-issuer-url", "", "URL of the OpenID Connect provider, whose ID tokens the API server accepts")
	flags.StringVar(&o.client, "oidc-client-id", "", "client of the dashboard at the provider, which is the audience of the ID tokens")
	flags.StringVar(&o.secretFile, "oidc-client-secret-file", "", "file of the client's secret; it is read when it is used")
	flags.StringSliceVar(&o.scopes, "oidc-scopes", []string{"openid", "profile", "email", "offline_access"}, "scopes to ask the provider for: those of the claims that the API server reads, and that of a refresh token")
	flags.StringVar(&o.name, "oidc-name", "", "what users call the provider; default: its host")
	flags.StringVar(&o.keysFile, "session-keys-file", "", "file of the keys that seal the sessions, one in each line: the first one seals, all of them open. Default: a random key that ends with the process, and with it all sessions")
	flags.DurationVar(&o.duration, "session-duration", 12*time.Hour, "time after which a user has to log in again")
}

func (o *options) run(ctx context.Context) error {
	site, err := o.login(ctx)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.address)
	if err != nil {
		return fmt.Errorf("--bind-address: %w", err)
	}
	if o.certFile != "" {
		watcher, err := certwatcher.New(o.certFile, o.keyFile)
		if err != nil {
			return errors.Join(fmt.Errorf("--tls-cert-file: %w", err), listener.Close())
		}
		go func() {
			if err := watcher.Start(ctx); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "Could not watch the certificate for changes")
			}
		}()
		listener = tls.NewListener(listener, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: watcher.GetCertificate, NextProtos: []string{"http/1.1"}})
	}
	return dashboard.Serve(ctx, listener, site.Handler(dashboard.Options{ReadOnly: o.readOnly}))
}

// providerTimeout bounds one answer of the provider.
const providerTimeout = 10 * time.Second

// login is who may log in, by the flags.
func (o *options) login(ctx context.Context) (*login.Login, error) {
	keys := session.RandomKey()
	if o.keysFile != "" {
		keys = session.KeyFile(o.keysFile)
	}
	if _, err := keys(); err != nil {
		return nil, fmt.Errorf("--session-keys-file: %w", err)
	}
	if o.duration <= 0 {
		return nil, fmt.Errorf("--session-duration: %s is not a time; give one such as 12h", o.duration)
	}
	cluster := &rest.Config{Host: o.apiServer, TLSClientConfig: rest.TLSClientConfig{CAFile: o.caFile}}
	provider, err := o.provider()
	if err != nil {
		return nil, err
	}
	return login.New(login.Options{
		URL: o.url, ForwardedHost: o.forwardedHost, Provider: provider, Tokens: o.tokens, Keys: keys, Duration: o.duration,
		Connect:   func(token string) (client.WithWatch, error) { return cli.WatcherAs(token, cluster) },
		Metrics:   func(token string) (dashboard.Metrics, error) { return cli.MetricsAs(token, cluster) },
		Namespace: o.namespace, Cluster: o.cluster, Clock: clock.RealClock{}, Log: ctrl.LoggerFrom(ctx).WithName("login"),
	})
}

func (o *options) provider() (*login.Provider, error) {
	if o.issuer == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	u, err := url.Parse(o.issuer)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("--oidc-issuer-url: %q is not a URL such as https://sso.example.org", o.issuer)
	}
	name := o.name
	if name == "" {
		name = u.Host
	}
	return &login.Provider{Issuer: o.issuer, ClientID: o.client, SecretFile: o.secretFile, Scopes: o.scopes, Name: name, HTTP: &http.Client{Timeout: providerTimeout}}, nil
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"

	"k8s.io/client-go/rest"

	"github.com/serin-dev/serin/controllers/canaryrelease/chart"
	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
)

// apiFile is the connection to the API server.
const apiFile = 3

func main() {
	// Helm's packages print values to the standard logger, and there is no setting for it.
	log.SetOutput(io.Discard)
	ctx := context.Background()
	endOverTime(ctx)
	if err := serve(ctx, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "serin-helm:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, in io.Reader, out io.Writer) error {
	transport, err := dial(ctx)
	if err != nil {
		return fmt.Errorf("file %d is no connection to an API server; the manager of Serin runs this program: %w", apiFile, err)
	}
	if err := confine(); err != nil {
		return fmt.Errorf("give up what is not needed: %w", err)
	}
	call, err := releases.ParseCall(in)
	if err != nil {
		return fmt.Errorf("read the call: %w", err)
	}
	helm := chart.New(&rest.Config{Host: "http://api", Transport: transport, QPS: -1}, call.Account)
	return json.NewEncoder(out).Encode(answer(ctx, helm, call))
}

func answer(ctx context.Context, helm *chart.Helm, call releases.Call) releases.Answer {
	if call.Method == releases.MethodAdopt {
		return releases.Answered(nil, helm.Adopt(ctx, call.Request))
	}
	proposal, err := helm.Propose(ctx, call.Request)
	return releases.Answered(&proposal, err)
}

// dial makes the one connection. There is no second one.
func dial(ctx context.Context) (http.RoundTripper, error) {
	file := os.NewFile(apiFile, "api")
	if file == nil {
		return nil, errors.New("it is not open")
	}
	connection, err := net.FileConn(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	t := &http.Transport{
		Protocols:   new(http.Protocols),
		DialContext: func(context.Context, string, string) (net.Conn, error) { return connection, nil },
	}
	t.Protocols.SetUnencryptedHTTP2(true)
	return t.NewClientConn(ctx, "http", "api:80")
}

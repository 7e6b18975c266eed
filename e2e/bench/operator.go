// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/e2e/cluster/process"
)

// stopGrace is how long the operator gets to release its lease.
const stopGrace = 10 * time.Second

// operator is the running manager.
type operator struct {
	usage
	child *process.Child
	clock clock.Clock
}

// startOperator runs the manager as the chart does, but for the addresses of its
// metrics and probes, which any free ones are good enough for.
func (s *stage) startOperator(clk clock.Clock) (*operator, error) {
	config, err := s.plane.ConfigFor(operatorUser, "system:serviceaccounts", "system:authenticated")
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(s.plane.Dir, "operator.kubeconfig")
	if err := clientcmd.WriteToFile(kubeconfigFor(config), kubeconfig); err != nil {
		return nil, fmt.Errorf("write the operator's kubeconfig: %w", err)
	}
	args, env, err := command(s.program.chart)
	if err != nil {
		return nil, err
	}
	args = slices.Concat(args, []string{"--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0"}, s.program.args)
	child, err := process.StartChild(process.Spec{
		Name: "serin manager", Path: s.program.binary,
		Args: args,
		Env:  append(env, clientcmd.RecommendedConfigPathEnvVar+"="+kubeconfig, "HOME="+s.plane.Dir),
		Log:  filepath.Join(s.plane.Dir, "logs", "operator.log"),
	})
	if err != nil {
		return nil, err
	}
	return &operator{usage: usage{pid: child.PID()}, child: child, clock: clk}, nil
}

func kubeconfigFor(config *rest.Config) clientcmdapi.Config {
	const name = "bench"
	out := clientcmdapi.NewConfig()
	out.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	out.CurrentContext = name
	return *out
}

// running is an error when the operator has ended.
func (o *operator) running() error {
	select {
	case <-o.child.Exited():
		return o.child.Err()
	default:
		return nil
	}
}

func (o *operator) stop() { o.child.Stop(o.clock, stopGrace) }

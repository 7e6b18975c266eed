// SPDX-License-Identifier: Apache-2.0

package cluster

import "path/filepath"

// programNames are the programs of a cluster in the order they are started.
var programNames = []string{
	"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler",
	"containerd", "kubelet", "kube-proxy", "coredns",
}

func statusLocal(options Options) ([]ProcessStatus, error) {
	record, err := readRecord(options.Dir)
	if err != nil || record.Boot == "" {
		return nil, err
	}
	statuses := make([]ProcessStatus, 0, len(programNames))
	for _, name := range programNames {
		known := record.Processes[name]
		statuses = append(statuses, ProcessStatus{
			Name: name, PID: known.PID, Running: known.Alive(),
			Log: filepath.Join(options.Dir, "logs", name+".log"),
		})
	}
	return statuses, nil
}

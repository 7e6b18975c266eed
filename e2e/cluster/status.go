// SPDX-License-Identifier: Apache-2.0

package cluster

// ProcessStatus is what is known of one program of the local cluster.
type ProcessStatus struct {
	// Name is the program.
	Name string
	// PID is the number of its process, 0 when it was never started.
	PID int
	// Running tells whether it runs now.
	Running bool
	// Log is the file that it writes to.
	Log string
}

// Status lists the programs of the local cluster in the order they are started.
// It changes nothing. There are none when the cluster was never started.
func Status(options Options) ([]ProcessStatus, error) {
	options, _, err := options.complete()
	if err != nil {
		return nil, err
	}
	return statusLocal(options)
}

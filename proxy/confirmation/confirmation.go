// SPDX-License-Identifier: Apache-2.0

package confirmation

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Path at which an agent says what it serves, on the port of its probes. It reveals
// nothing that the TrafficSplit and the metrics beside it do not.
const Path = "/served"

// MaxBytes of an answer.
const MaxBytes = 8 << 10

// maxMessage is the bound of a message in the status of a TrafficSplit.
const maxMessage = 1024

// Served is what a proxy serves.
type Served struct {
	// Pod is the UID of the pod that says so. An address may be another pod's by now.
	Pod types.UID `json:"pod"`
	// Generation of the TrafficSplit that every request is served by; 0 for none.
	Generation int64 `json:"generation"`
	// Configuration is the digest of the split that is served; "" for none.
	Configuration string `json:"configuration,omitempty"`
	// Version of the proxy; one that does not say it goes with every operator.
	Version string `json:"version,omitempty"`
	// Message says why a newer generation is not served, or what of this one has no
	// backend; empty when neither is so.
	Message string `json:"message,omitempty"`
	// Busy is how much of what the proxy takes on at once it had in progress at most in the last
	// seconds, in percent.
	Busy int32 `json:"busy,omitempty"`
}

// Write answers with what is served.
func Write(w http.ResponseWriter, served Served) {
	served.Message = bounded(served.Message)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(served) // an error is that of a client that is gone
}

// errAnotherPod: what answers is not the pod that was asked.
var errAnotherPod = errors.New("another pod answers")

// Parse reads an answer of a pod.
func Parse(body []byte, pod types.UID) (Served, error) {
	var served Served
	if err := json.Unmarshal(body, &served); err != nil {
		return Served{}, fmt.Errorf("it does not report what it serves: %w", err)
	}
	if pod == "" || served.Pod != pod {
		return Served{}, errAnotherPod
	}
	served.Message, served.Busy = bounded(served.Message), min(max(served.Busy, 0), 100)
	return served, nil
}

// bounded makes a message fit the status.
func bounded(message string) string {
	message = strings.ToValidUTF8(message, "?")
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "")
	}
	return message
}

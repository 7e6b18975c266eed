// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	listers "k8s.io/client-go/listers/core/v1"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/traffic"
)

// Selector selects the pods of Serin's proxies, whatever split they serve.
func Selector() (labels.Selector, error) {
	r, err := labels.NewRequirement(traffic.LabelProxy, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("select proxies: %w", err)
	}
	return labels.NewSelector().Add(*r), nil
}

// Proxy is a proxy's pod. What it tells concerns the namespace that it runs in, where its
// split is: anyone who may make pods elsewhere may give them the label of proxies.
type Proxy struct {
	analysis.Pod
	Namespace string
}

// Proxies lists the running proxies, of which the metrics are at a port. The lister may
// hold other pods too.
func Proxies(pods listers.PodLister, port int32) (func() ([]Proxy, error), error) {
	selector, err := Selector()
	if err != nil {
		return nil, err
	}
	return func() ([]Proxy, error) {
		found, err := pods.List(selector)
		if err != nil {
			return nil, err
		}
		var proxies []Proxy
		for _, pod := range found {
			if pod.Status.PodIP != "" && pod.Status.Phase == corev1.PodRunning {
				address := net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port)))
				proxies = append(proxies, Proxy{Pod: analysis.Pod{UID: string(pod.UID), Address: address}, Namespace: pod.Namespace})
			}
		}
		return proxies, nil
	}, nil
}

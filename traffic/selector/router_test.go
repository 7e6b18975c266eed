// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/serin-dev/serin/traffic"
)

func service(name string, target int32) *corev1.Service {
	s := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(target)}}}}
	s.Name = name
	return s
}

func split(blue, green int32) traffic.Split {
	return traffic.Split{Root: "web", Ports: []traffic.Port{{Number: 80, Destinations: []traffic.Destination{
		{Service: "blue", Weight: blue}, {Service: "green", Weight: green},
	}}}}
}

func TestOnlyWhatASelectorCanDoIsServed(t *testing.T) {
	limited, mirrored := split(100, 0), split(100, 0)
	limited.Limited, mirrored.Mirror = true, &traffic.Mirror{Service: "green", Percent: 10}
	for name, test := range map[string]struct {
		split  traffic.Split
		target int32
		want   string
	}{
		"all to one":            {split: split(100, 0), target: 8080},
		"all to the other":      {split: split(0, 1), target: 8080},
		"none has a weight":     {split: split(0, 0), target: 8080},
		"both have a weight":    {split: split(99, 1), target: 8080, want: `Services "blue" and "green" have weights`},
		"some requests":         {split: limited, target: 8080, want: "can't limit a split to some requests"},
		"mirrored requests":     {split: mirrored, target: 8080, want: "can't mirror requests"},
		"another port of a pod": {split: split(100, 0), target: 9090, want: "give both the same targetPort"},
	} {
		services := map[string]*corev1.Service{"web": service("web", 8080), "blue": service("blue", test.target), "green": service("green", 8080)}
		problems := New(0).Check(test.split, services)
		if test.want == "" && len(problems) > 0 || test.want != "" && (len(problems) != 1 || !traffic.Refused(problems) || !strings.Contains(problems[0].Message, test.want)) {
			t.Errorf("%s: %v", name, problems)
		}
	}
	if problems := New(0).Check(split(100, 0), nil); len(problems) > 0 {
		t.Errorf("Services that are not there yet: %v", problems)
	}
}

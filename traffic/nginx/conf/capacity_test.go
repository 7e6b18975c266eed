// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"testing"

	"github.com/serin-dev/serin/traffic"
)

func TestWhatNginxTakesOnFitsIntoTheMemory(t *testing.T) {
	web := testPort(8080, traffic.ProtocolHTTP, testDestination("web-stable", 1))
	calls := testPort(9090, traffic.ProtocolHTTP2, testDestination("web-stable", 1))
	db := testPort(5432, traffic.ProtocolTCP, testDestination("web-stable", 1))
	mirrored := testSplit(web)
	mirrored.Mirror = &traffic.Mirror{Percent: 10}
	for name, test := range map[string]struct {
		split  traffic.Split
		memory int64
		most   int // connections of a worker; 0: 65536
		want   Capacity
	}{
		"without a limit of memory only the connections are bounded": {testSplit(web), 0, 0, Capacity{Connections: 65536}},
		"the chart's memory":                   {testSplit(web), 512 * mib, 0, Capacity{Requests: 1412, Connections: 5776}},
		"half as much again":                   {testSplit(web), 768 * mib, 0, Capacity{Requests: 2918, Connections: 11800}},
		"streams of HTTP/2 take more":          {testSplit(calls), 512 * mib, 0, Capacity{Requests: 910, Connections: 3768}},
		"so do bodies that may be mirrored":    {mirrored, 512 * mib, 0, Capacity{Requests: 569, Connections: 2404}},
		"a TCP port":                           {testSplit(db), 512 * mib, 0, Capacity{Streams: 1950, Connections: 7928}},
		"two kinds of ports share the memory":  {testSplit(web, db), 512 * mib, 0, Capacity{Requests: 706, Streams: 975, Connections: 6852}},
		"two HTTP ports share one limit":       {testSplit(web, testPort(81, traffic.ProtocolHTTP, testDestination("web-stable", 1))), 512 * mib, 0, Capacity{Requests: 1412, Connections: 5776}},
		"few open files":                       {testSplit(web), 512 * mib, 1024, Capacity{Requests: 224, Connections: 1024}},
		"little memory still serves":           {testSplit(web), 128 * mib, 0, Capacity{Requests: 188, Connections: 880}},
		"hardly any memory still serves a few": {testSplit(web), 1 * mib, 0, Capacity{Requests: minInProgress, Connections: 160}},
		"a node without a limit":               {testSplit(web), 64 << 30, 0, Capacity{Requests: 16352, Connections: 65536}},
	} {
		t.Run(name, func(t *testing.T) {
			opts := testOptions()
			opts.Memory, opts.Connections = test.memory, 65536
			if test.most != 0 {
				opts.Connections = test.most
			}
			listeners, err := Listeners(test.split)
			if err != nil {
				t.Fatal(err)
			}
			if got := capacityOf(test.split, listeners, opts); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

func TestMoreMemoryNeverTakesOnLess(t *testing.T) {
	split := testSplit(testPort(8080, traffic.ProtocolHTTP, testDestination("web-stable", 1)))
	listeners, err := Listeners(split)
	if err != nil {
		t.Fatal(err)
	}
	before := Capacity{}
	for memory := int64(mib); memory < 4096*mib; memory += 7 * mib {
		opts := testOptions()
		opts.Memory, opts.Connections = memory, 65536
		got := capacityOf(split, listeners, opts)
		if got.Requests < before.Requests || got.Connections < placesPerRequest*got.Requests {
			t.Fatalf("with %d MiB %+v, with 7 MiB less %+v", memory/mib, got, before)
		}
		before = got
	}
}

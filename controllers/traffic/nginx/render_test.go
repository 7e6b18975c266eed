// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/controllers/traffic"
)

var update = flag.Bool("update", false, "write the golden files anew")

func testOptions() RenderOptions {
	return RenderOptions{
		Dir: DefaultDir, StreamModule: "/usr/lib/nginx/modules/ngx_stream_module.so",
		Workers: 2, Connections: 10240, OpenFiles: 20480, IPv6: true,
	}
}

func testSplit(ports ...traffic.Port) traffic.Split {
	return traffic.Split{
		NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"},
		Generation:     7, Root: "web", Ports: ports,
	}
}

func testPort(target int32, protocol traffic.Protocol, destinations ...traffic.Destination) traffic.Port {
	return traffic.Port{Number: 80, TargetNumber: target, Protocol: protocol, Destinations: destinations}
}

func testDestination(service string, weight int32) traffic.Destination {
	address := map[string]string{"web-stable": "10.0.0.1", "web-canary": "10.0.0.2"}[service]
	if address == "" {
		address = "fd00::3"
	}
	return traffic.Destination{Service: service, Address: address, Port: 80, Weight: weight}
}

func TestRenderGolden(t *testing.T) {
	for name, split := range map[string]traffic.Split{
		"http":     testSplit(testPort(8080, traffic.ProtocolHTTP, testDestination("web-stable", 95), testDestination("web-canary", 5))),
		"tcp":      testSplit(testPort(5432, traffic.ProtocolTCP, testDestination("web-stable", 2), testDestination("web-canary", 1), testDestination("web-extra", 0))),
		"nobody":   testSplit(testPort(8080, traffic.ProtocolHTTP), testPort(5432, traffic.ProtocolTCP)),
		"one-ipv6": testSplit(testPort(8080, traffic.ProtocolHTTP, testDestination("web-extra", 1))),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Render(split, testOptions())
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".conf")
			if *update {
				if err := os.WriteFile(file, got.Config, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got.Config)); diff != "" {
				t.Errorf("%s differs (-want +got); run with -update when that is intended:\n%s", file, diff)
			}
		})
	}
}

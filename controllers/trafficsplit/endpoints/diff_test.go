// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/serin-dev/serin/traffic"
)

// website is a root Service with a port by name.
func website() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "website", UID: "root", Labels: map[string]string{"team": "web"}},
		Spec: corev1.ServiceSpec{
			ClusterIP: "10.96.0.10", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, Selector: map[string]string{"app": "website"},
			Ports: []corev1.ServicePort{
				{Name: "http", Port: 80, TargetPort: intstr.FromString("web"), Protocol: corev1.ProtocolTCP},
				{Name: "dns", Port: 53, TargetPort: intstr.FromInt32(5353), Protocol: corev1.ProtocolUDP},
			},
		},
	}
}

// proxy is a ready pod on a node.
func proxy(n int, change ...func(*corev1.Pod)) *corev1.Pod {
	address := fmt.Sprintf("10.0.%d.%d", n/200, n%200+1)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprintf("p%d", n), UID: types.UID(fmt.Sprintf("u%d", n)), Labels: map[string]string{traffic.LabelProxy: "website"},
		},
		Spec: corev1.PodSpec{
			NodeName:   []string{"one", "two"}[n%2],
			Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 18000, Protocol: corev1.ProtocolTCP}}}},
		},
		Status: corev1.PodStatus{
			PodIP: address, PodIPs: []corev1.PodIP{{IP: address}, {IP: fmt.Sprintf("fd00::%d", n+1)}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}

func unready(p *corev1.Pod) { p.Status.Conditions = nil }

func terminating(p *corev1.Pod) {
	p.DeletionTimestamp, p.Finalizers = new(metav1.Now()), []string{"test/running"}
}

// twoZones are a node in each.
func twoZones(t *testing.T) corelisters.NodeLister {
	t.Helper()
	nodes := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	for name, zone := range map[string]string{"one": "north", "two": "south"} {
		if err := nodes.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}}}); err != nil {
			t.Fatal(err)
		}
	}
	return corelisters.NewNodeLister(nodes)
}

// tell is a slice in lines.
func tell(s *discoveryv1.EndpointSlice) string {
	lines := []string{s.Name}
	for _, p := range s.Ports {
		lines = append(lines, fmt.Sprintf("port %s %d/%s", *p.Name, *p.Port, *p.Protocol))
	}
	for _, e := range s.Endpoints {
		words := append([]string{e.TargetRef.Name}, e.Addresses...)
		if e.Zone != nil {
			words = append(words, "in", *e.Zone)
		}
		if *e.Conditions.Terminating {
			words = append(words, "terminating")
		}
		if !*e.Conditions.Ready {
			words = append(words, "unready")
		}
		if !*e.Conditions.Serving {
			words = append(words, "not serving")
		}
		if e.Hints != nil {
			for _, z := range e.Hints.ForZones {
				words = append(words, "for", z.Name)
			}
			for _, n := range e.Hints.ForNodes {
				words = append(words, "for node", n.Name)
			}
		}
		lines = append(lines, strings.Join(words, " "))
	}
	slices.Sort(lines[1+len(s.Ports):]) // endpoints have no order
	return strings.Join(lines, "\n")
}

func tellAll(told []*discoveryv1.EndpointSlice) (all []string) {
	for _, s := range told {
		all = append(all, tell(s))
	}
	return all
}

func TestTheFirstSlices(t *testing.T) {
	ports := "\nport dns 5353/UDP\nport http 18000/TCP"
	for name, test := range map[string]struct {
		edit func(*corev1.Service)
		pods []*corev1.Pod
		want []string
	}{
		"proxies are endpoints with the numbers of their named ports, and their zones": {
			pods: []*corev1.Pod{proxy(0), proxy(1)},
			want: []string{"website-proxies-ipv4" + ports + "\np0 10.0.0.1 in north\np1 10.0.0.2 in south"},
		},
		"both families of addresses": {
			edit: func(s *corev1.Service) { s.Spec.IPFamilies = append(s.Spec.IPFamilies, corev1.IPv6Protocol) },
			pods: []*corev1.Pod{proxy(0)},
			want: []string{"website-proxies-ipv4" + ports + "\np0 10.0.0.1 in north", "website-proxies-ipv6" + ports + "\np0 fd00::1 in north"},
		},
		"a proxy that is not ready, and one that stops": {
			pods: []*corev1.Pod{proxy(0, unready), proxy(1, terminating), proxy(2, terminating, unready)},
			want: []string{"website-proxies-ipv4" + ports +
				"\np0 10.0.0.1 in north unready not serving\np1 10.0.0.2 in south terminating unready\np2 10.0.0.3 in north terminating unready not serving"},
		},
		"one that has ended, and one without an address, are left out": {
			pods: []*corev1.Pod{
				proxy(0), proxy(1, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
				proxy(2, func(p *corev1.Pod) { p.Status.PodIP, p.Status.PodIPs = "", nil }),
			},
			want: []string{"website-proxies-ipv4" + ports + "\np0 10.0.0.1 in north"},
		},
		"clients prefer their zone": {
			edit: func(s *corev1.Service) {
				s.Spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferSameZone)
			},
			pods: []*corev1.Pod{proxy(0), proxy(1)},
			want: []string{"website-proxies-ipv4" + ports + "\np0 10.0.0.1 in north for north\np1 10.0.0.2 in south for south"},
		},
		"clients prefer their node": {
			edit: func(s *corev1.Service) {
				s.Spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferSameNode)
			},
			pods: []*corev1.Pod{proxy(0)},
			want: []string{"website-proxies-ipv4" + ports + "\np0 10.0.0.1 in north for north for node one"},
		},
		"without a proxy there is an empty slice": {want: []string{"website-proxies-ipv4"}},
	} {
		t.Run(name, func(t *testing.T) {
			service := website()
			if test.edit != nil {
				test.edit(service)
			}
			changes, err := Diff(service, "website", test.pods, nil, twoZones(t))
			if err != nil {
				t.Fatal(err)
			}
			got := tellAll(changes.Create)
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(changes.Update)+len(changes.Delete) > 0 {
				t.Errorf("it also changes %v and deletes %v", tellAll(changes.Update), tellAll(changes.Delete))
			}
			for _, s := range changes.Create {
				want := map[string]string{
					discoveryv1.LabelServiceName: "website", discoveryv1.LabelManagedBy: ManagedBy, traffic.LabelProxy: "website", "team": "web",
				}
				if diff := cmp.Diff(want, s.Labels); diff != "" {
					t.Errorf("labels (-want +got):\n%s", diff)
				}
				if o := metav1.GetControllerOf(s); o == nil || o.UID != "root" || o.BlockOwnerDeletion != nil {
					t.Errorf("its owner is %+v", o)
				}
			}
			again, err := Diff(service, "website", test.pods, changes.Create, twoZones(t))
			if n := len(again.Create) + len(again.Update) + len(again.Delete); n > 0 || err != nil {
				t.Errorf("a second look makes %d changes, error %v", n, err)
			}
		})
	}
}

// made are the slices of a Service as they are stored.
func made(t *testing.T, service *corev1.Service, pods ...*corev1.Pod) []*discoveryv1.EndpointSlice {
	t.Helper()
	changes, err := Diff(service, "website", pods, nil, twoZones(t))
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range changes.Create {
		s.UID, s.ResourceVersion = types.UID(s.Name), strconv.Itoa(i+7)
	}
	return changes.Create
}

func TestSlicesFollow(t *testing.T) {
	dual := func(s *corev1.Service) {
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	}
	for name, test := range map[string]struct {
		had, has               []*corev1.Pod
		before, after          func(*corev1.Service)
		create, update, delete int
		want                   string
	}{
		"nothing has changed": {had: []*corev1.Pod{proxy(0)}, has: []*corev1.Pod{proxy(0)}},
		"a proxy stops": {
			had: []*corev1.Pod{proxy(0)}, has: []*corev1.Pod{proxy(0, terminating)}, update: 1, want: "p0 10.0.0.1 in north terminating unready",
		},
		"a proxy is replaced": {had: []*corev1.Pod{proxy(0)}, has: []*corev1.Pod{proxy(1)}, update: 1, want: "p1 10.0.0.2 in south"},
		"the last proxy goes": {had: []*corev1.Pod{proxy(0)}, update: 1, want: "website-proxies-ipv4"},
		"the first one comes": {has: []*corev1.Pod{proxy(0)}, update: 1, want: "p0 10.0.0.1 in north"},
		"the Service gets another label": {
			had: []*corev1.Pod{proxy(0)}, has: []*corev1.Pod{proxy(0)}, after: func(s *corev1.Service) { s.Labels["team"] = "shop" }, update: 1,
		},
		"the Service gets a port": {
			had: []*corev1.Pod{proxy(0)}, has: []*corev1.Pod{proxy(0)},
			after: func(s *corev1.Service) {
				s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "admin", Port: 81, TargetPort: intstr.FromInt32(81), Protocol: corev1.ProtocolTCP})
			}, update: 1, want: "port admin 81/TCP",
		},
		"the Service gets a family":            {had: []*corev1.Pod{proxy(0)}, has: []*corev1.Pod{proxy(0)}, after: dual, create: 1},
		"the Service loses a family":           {had: []*corev1.Pod{proxy(0)}, has: []*corev1.Pod{proxy(0)}, before: dual, delete: 1},
		"a proxy's node is not known any more": {had: []*corev1.Pod{proxy(0), proxy(1)}, has: []*corev1.Pod{proxy(0), proxy(1, func(p *corev1.Pod) { p.Spec.NodeName = "gone" })}, update: 1},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := website(), website()
			if test.before != nil {
				test.before(before)
			}
			if test.after != nil {
				test.after(after)
			}
			existing := made(t, before, test.had...)
			changes, err := Diff(after, "website", test.has, existing, twoZones(t))
			if missing := strings.Contains(name, "not known"); (err != nil) != missing {
				t.Errorf("error %v", err)
			}
			if len(changes.Create) != test.create || len(changes.Update) != test.update || len(changes.Delete) != test.delete {
				t.Fatalf("creates %v\nupdates %v\ndeletes %v", tellAll(changes.Create), tellAll(changes.Update), tellAll(changes.Delete))
			}
			for _, s := range append(changes.Update, changes.Delete...) {
				if s.UID == "" || s.ResourceVersion == "" {
					t.Errorf("%s is written without the version that was observed", s.Name)
				}
			}
			if got := strings.Join(tellAll(changes.Update), "\n"); !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q in it", got, test.want)
			}
		})
	}
}

func TestManyProxiesFillSlicesOfKnownNames(t *testing.T) {
	var pods []*corev1.Pod
	for n := range 2*perSlice + 1 {
		pods = append(pods, proxy(n))
	}
	names, total := map[string]bool{}, 0
	for _, s := range made(t, website(), pods...) {
		names[s.Name] = true
		total += len(s.Endpoints)
	}
	if want := map[string]bool{"website-proxies-ipv4": true, "website-proxies-ipv4-2": true, "website-proxies-ipv4-3": true}; !cmp.Equal(names, want) || total != len(pods) {
		t.Errorf("%d endpoints in %v", total, names)
	}
	changes, err := Diff(website(), "website", pods[:perSlice+1], made(t, website(), pods[:perSlice]...), twoZones(t))
	if err != nil || len(changes.Create) != 1 || changes.Create[0].Name != "website-proxies-ipv4-2" {
		t.Errorf("one more than a slice holds: error %v, created %v", err, tellAll(changes.Create))
	}
}

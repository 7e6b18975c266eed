// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"net"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// tarpit takes connections and never answers. It returns its address and how many it took.
func tarpit(t *testing.T) (address string, taken func() int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connections := make(chan net.Conn, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connections <- c
		}
	}()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		<-done
		close(connections)
		for c := range connections {
			_ = c.Close() // the Sender has closed its end
		}
	})
	return "http://" + l.Addr().String(), func() int { return len(connections) }
}

// Of ten tenants, one has fifty endpoints that never answer. Those of the others get their
// requests while all of these hang.
func TestATarpitOfOneTenantDelaysTheRequestsOfNoOther(t *testing.T) {
	const tenants, hanging, slots = 10, 50, 32
	quick := listen(t, nil)
	s := play(t, cluster(), loopback, Options{Timeout: time.Hour})
	var taken []func() int
	for i := range hanging {
		address, n := tarpit(t)
		taken = append(taken, n)
		s.Send(types.NamespacedName{Namespace: "tarpit", Name: fmt.Sprint("r", i)}, question("q", address))
	}
	count := func() (n int) {
		for _, of := range taken {
			n += of()
		}
		return n
	}
	s.await("half of the slots hang", 0, func() bool { return count() >= slots/2 })
	for i := range tenants - 1 {
		s.Send(types.NamespacedName{Namespace: fmt.Sprint("tenant", i), Name: "website"}, question("q", quick.URL))
	}
	s.await("all others are delivered", 0, func() bool { return len(quick.heard()) == tenants-1 })
	if n := count(); n > slots/2 {
		t.Errorf("%d requests of one tenant at once", n)
	}
}

// Tenants may share a host. One that fills what may be sent to it at once fills its own part.
func TestATarpitBehindASharedHostDelaysItsTenant(t *testing.T) {
	b := block(t)
	s := play(t, cluster(), loopback, Options{Timeout: time.Hour})
	for i := range 50 {
		s.Send(types.NamespacedName{Namespace: "tarpit", Name: fmt.Sprint("r", i)}, question(fmt.Sprint("hangs", i), b.URL))
	}
	for range s.options.PerHost {
		receive(t, "as many as one host gets", b.arrived)
	}
	s.Send(website, question("other", b.URL))
	for id := ""; id != "other"; {
		id = receive(t, "the other tenant's", b.arrived)
	}
	b.counting.Lock()
	defer b.counting.Unlock()
	if b.most > s.options.PerHost+1 {
		t.Errorf("%d requests at once", b.most)
	}
}

// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"

	"github.com/serin-dev/serin/proxy/accesslog"
	"github.com/serin-dev/serin/traffic"
)

// Options are the facts of the pod that nginx runs in.
type Options struct {
	// Dir that nginx and the agent share. Required.
	Dir Dir
	// StreamModule is the file of nginx's stream module, loaded when there is a TCP
	// port; "" when nginx has it built in.
	StreamModule string
	// Workers is the number of worker processes, at least 1.
	Workers int
	// Connections that a worker can have open at most, client and backend side counted
	// apart, at least 64.
	Connections int
	// Memory is the limit of the pod's memory in bytes, by which the requests in progress are
	// bounded; 0 leaves them to Connections.
	Memory int64
	// OpenFiles is the limit of open files of a worker; 0 leaves it as it is.
	OpenFiles int
	// User that workers run as; "" when nginx does not start as root.
	User string
	// IPv6 is whether to listen on IPv6 addresses too.
	IPv6 bool
}

func (o Options) check() error {
	if err := o.Dir.check(); err != nil {
		return err
	}
	switch {
	case o.StreamModule != "" && !plainPath.MatchString(o.StreamModule):
		return fmt.Errorf("streamModule: %q must be an absolute path of letters, digits and ._-/", o.StreamModule)
	case o.Workers < 1:
		return fmt.Errorf("workers: %d must be at least 1", o.Workers)
	case o.Connections < 64:
		return fmt.Errorf("connections: %d must be at least 64", o.Connections)
	case o.Memory < 0:
		return fmt.Errorf("memory: %d must not be negative", o.Memory)
	case o.OpenFiles < 0:
		return fmt.Errorf("openFiles: %d must not be negative", o.OpenFiles)
	case o.User != "" && !plainWord.MatchString(o.User):
		return fmt.Errorf("user: %q must be letters, digits, _ and -", o.User)
	}
	return nil
}

// Rendering is a split as nginx serves it.
type Rendering struct {
	// Config is the text of nginx.conf.
	Config []byte
	// Key is a digest of Config. nginx answers it at /key of the status socket.
	Key string
	// Sockets are what nginx listens on for clients.
	Sockets []Socket
	// Table is the weights of the HTTP listeners. The weights of TCP listeners are
	// in Config.
	Table Table
	// Datagrams are the listeners of UDP, which nginx does not serve.
	Datagrams []DatagramListener
	// Services are the backend Services by the ID that stands for them in the
	// access log and in Table.
	Services map[string]string
	// Capacity is what nginx takes on at once.
	Capacity Capacity
}

// Render turns a split into nginx's configuration and its table of weights.
//
// The result depends on nothing but the arguments. A change of HTTP weights
// changes Table only. Nothing from an API object but numbers, IP addresses, names of
// methods and headers, and hashes reaches the text, and regular expressions as they
// were parsed.
func Render(split traffic.Split, opts Options) (Rendering, error) {
	if err := opts.check(); err != nil {
		return Rendering{}, err
	}
	listeners, err := Listeners(split)
	if err != nil {
		return Rendering{}, err
	}
	for _, l := range listeners {
		if err := checkPort(l.Port, split.Needs()); err != nil {
			return Rendering{}, err
		}
	}
	if err := CheckMatches(split.Matches); err != nil {
		return Rendering{}, err
	}
	if m := split.Mirror; m != nil && (m.Percent < 1 || m.Percent > 100) {
		return Rendering{}, fmt.Errorf("mirror: %d %% is not a percentage from 1 to 100", m.Percent)
	}
	if err := checkSticky(split.Sticky); err != nil {
		return Rendering{}, err
	}
	// The key is in the text that it is a digest of, so it is made from the text
	// with the key left out.
	sum := sha256.Sum256(renderConfig(split, listeners, opts, "0"))
	key := hex.EncodeToString(sum[:8])
	config := renderConfig(split, listeners, opts, key)
	return Rendering{
		Config:   config,
		Key:      key,
		Sockets:  sockets(config),
		Table:    makeTable(listeners),
		Services: services(listeners), Datagrams: datagrams(listeners, opts.IPv6),
		Capacity: capacityOf(split, listeners, opts),
	}, nil
}

// serviceName is what a Service's name can be (RFC 1123 label).
var (
	serviceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	plainWord   = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
)

// CheckProtocol refuses ports that nginx can't split, or not as the split needs it.
func CheckProtocol(port traffic.Port, needs []traffic.Ability) error {
	switch port.Protocol {
	case traffic.ProtocolHTTP:
	case traffic.ProtocolHTTP2:
		if slices.Contains(needs, traffic.AbilityMirror) {
			return fmt.Errorf("spec.service: port %d is HTTP/2, whose requests nginx can't mirror: it would have to read them whole before it passes them on; "+
				"move the port to a Service of its own, or remove the mirror", port.Number)
		}
	case traffic.ProtocolTCP, traffic.ProtocolUDP:
		if slices.ContainsFunc(needs, traffic.Ability.OfRequests) {
			return fmt.Errorf("spec.service: port %d is not HTTP, so it has no requests to match or mirror, and no cookies", port.Number)
		}
	default:
		return fmt.Errorf("spec.service: port %d has the protocol %q, which can't be split; only HTTP, HTTP/2, TCP and UDP",
			port.Number, port.Protocol)
	}
	return nil
}

// checkPort refuses values that an API server would not have let through.
func checkPort(port traffic.Port, needs []traffic.Ability) error {
	if err := CheckProtocol(port, needs); err != nil {
		return err
	}
	if n := len(port.Destinations); n > maxDestinations {
		return fmt.Errorf("spec.backends: port %d has %d destinations; at most %d", port.Number, n, maxDestinations)
	}
	seen := map[string]bool{}
	for _, d := range port.Destinations {
		if err := checkDestination(d); err != nil {
			return err
		}
		if seen[d.Service] {
			return fmt.Errorf("spec.backends: %q is named twice", d.Service)
		}
		seen[d.Service] = true
	}
	for _, d := range []*traffic.Destination{port.Default, port.Mirror} {
		if d == nil {
			continue
		}
		if err := checkDestination(*d); err != nil {
			return err
		}
	}
	return nil
}

func checkDestination(d traffic.Destination) error {
	addr, err := netip.ParseAddr(d.Address)
	switch {
	case !serviceName.MatchString(d.Service):
		return fmt.Errorf("spec.backends: %q is not the name of a Service", d.Service)
	case err != nil || addr.Zone() != "":
		return fmt.Errorf("spec.backends: Service %q has the address %q, which is not an IP address; give it a ClusterIP",
			d.Service, d.Address)
	case d.Port < 1 || d.Port > 65535:
		return fmt.Errorf("spec.backends: Service %q has the port %d; it must be between 1 and 65535", d.Service, d.Port)
	case d.Weight < 0:
		return fmt.Errorf("spec.backends: Service %q has the weight %d; it must not be negative", d.Service, d.Weight)
	}
	return nil
}

// BackendID stands for a backend Service's port where its name must not go:
// in names and in the access log.
func BackendID(d traffic.Destination) string {
	sum := sha256.Sum256([]byte(d.Service + "\x00" + strconv.Itoa(int(d.Port))))
	return "b" + hex.EncodeToString(sum[:6])
}

// services are the Services of all listeners by ID.
func services(listeners []Listener) map[string]string {
	m := map[string]string{}
	for _, l := range listeners {
		for _, d := range l.Port.Receivers() {
			m[BackendID(d)] = d.Service
		}
	}
	return m
}

// renderConfig writes nginx.conf.
func renderConfig(split traffic.Split, listeners []Listener, opts Options, key string) []byte {
	t := &text{}
	capacity := capacityOf(split, listeners, opts)
	renderProcess(t, listeners, capacity, opts)
	t.block("http", nil, func() {
		renderHTTPDefaults(t, opts)
		renderRequestLimit(t, capacity)
		renderLogFormat(t, refusedFormat, accesslog.Refused())
		renderHTTPMaps(t)
		if uses(listeners, traffic.ProtocolHTTP2) {
			renderHTTP2Maps(t)
		}
		if split.Limited {
			renderMatches(t, split.Matches)
		}
		if split.Mirror != nil {
			renderMirrorMaps(t, *split.Mirror)
		}
		renderStatus(t, key)
		for i, l := range listeners {
			switch h := (httpListener{index: i, Listener: l, limited: split.Limited, sticky: split.Sticky, capacity: capacity}); l.Port.Protocol {
			case traffic.ProtocolHTTP:
				renderHTTPListener(t, h, opts, key)
			case traffic.ProtocolHTTP2:
				renderHTTP2Listener(t, h, opts)
			default: // has no requests
			}
		}
	})
	if uses(listeners, traffic.ProtocolTCP) {
		t.block("stream", nil, func() {
			renderStreamDefaults(t)
			renderStreamLimit(t, capacity)
			for i, l := range listeners {
				if l.Port.Protocol == traffic.ProtocolTCP {
					renderStreamListener(t, i, l, opts)
				}
			}
		})
	}
	return t.out
}

// renderProcess writes what concerns nginx as a whole.
func renderProcess(t *text, listeners []Listener, capacity Capacity, opts Options) {
	if uses(listeners, traffic.ProtocolTCP) && opts.StreamModule != "" {
		t.line("load_module", opts.StreamModule)
	}
	if opts.User != "" {
		t.line("user", opts.User)
	}
	t.line("daemon", "off")
	t.line("pid", pidFile)
	t.line("error_log", "stderr", "warn")
	t.line("worker_processes", strconv.Itoa(opts.Workers))
	if opts.OpenFiles > 0 {
		t.line("worker_rlimit_nofile", strconv.Itoa(opts.OpenFiles))
	}
	// How long the workers of a previous configuration may finish what they have:
	// WebSockets and long downloads outlive a reload.
	t.line("worker_shutdown_timeout", "1h")
	t.block("events", nil, func() {
		t.line("worker_connections", strconv.Itoa(capacity.Connections))
	})
}

// renderListen writes the addresses of a listener, with options beside those of all.
func renderListen(t *text, number int32, ipv6 bool, more ...string) {
	options := append([]string{"backlog=4096", "so_keepalive=on"}, more...)
	port := strconv.Itoa(int(number))
	t.line("listen", append([]string{port}, options...)...)
	if ipv6 {
		t.line("listen", append([]string{"[::]:" + port, "ipv6only=on"}, options...)...)
	}
}

// renderServer writes the address of an upstream: the Service's. max_fails=0,
// because what refused one connection is one pod of many, never the Service.
func renderServer(t *text, d traffic.Destination) {
	address := netip.AddrPortFrom(netip.MustParseAddr(d.Address), uint16(d.Port)) //nolint:gosec // checked by checkDestination
	t.line("server", address.String(), "max_fails=0")
}

func uses(listeners []Listener, protocol traffic.Protocol) bool {
	return slices.ContainsFunc(listeners, func(l Listener) bool { return l.Port.Protocol == protocol })
}

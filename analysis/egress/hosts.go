// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Hosts are patterns of hosts: example.org is that name, *.example.org all names below
// it, and 10.0.0.7 or [fd00::7] a URL with that address. With a port, as in
// example.org:8443, a pattern is for that port, otherwise for all.
type Hosts []hostPattern

type hostPattern struct {
	// host is canonical; with below it stands for the names that end with it, which
	// then begins with a dot.
	host  string
	below bool
	// service is host with the short name of a Service; "" where it would be that of all.
	service string
	// port is "" for all.
	port string
}

// ParseHosts reads patterns.
func ParseHosts(list []string) (Hosts, error) {
	hosts := make(Hosts, 0, len(list))
	for _, text := range list {
		p, ok := parseHost(text)
		if !ok {
			return nil, fmt.Errorf("%q is not a host; write for example example.org, *.example.org or 10.0.0.7:9090", short(text))
		}
		p.service = service(p.host)
		hosts = append(hosts, p)
	}
	return hosts, nil
}

var (
	portSuffix = regexp.MustCompile(`:([0-9]{1,5})$`)
	hostName   = regexp.MustCompile(`^[a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9_])?(\.[a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9_])?)*$`)
)

func parseHost(text string) (p hostPattern, ok bool) {
	if a, err := netip.ParseAddr(text); err == nil {
		return hostPattern{host: canonical(a.String())}, true
	}
	if m := portSuffix.FindStringSubmatch(text); m != nil {
		p.port, text = m[1], strings.TrimSuffix(text, m[0])
	}
	if inside, bracketed := strings.CutPrefix(text, "["); bracketed {
		a, err := netip.ParseAddr(strings.TrimSuffix(inside, "]"))
		p.host = canonical(a.String())
		return p, err == nil && strings.HasSuffix(inside, "]")
	}
	text, p.below = strings.CutPrefix(text, "*.")
	p.host = canonical(text)
	valid := len(text) <= 253 && hostName.MatchString(p.host)
	if p.below {
		p.host = "." + p.host
	}
	return p, valid
}

// match is whether a pattern is for a canonical host and a port.
func (h Hosts) match(host, port string) bool {
	return slices.ContainsFunc(h, func(p hostPattern) bool { return p.match(p.host, host, port) })
}

// match compares a host with one name of the pattern.
func (p hostPattern) match(name, host, port string) bool {
	if p.port != "" && p.port != port {
		return false
	}
	if p.below {
		return strings.HasSuffix(host, name) && len(host) > len(name)
	}
	return name == host
}

// Match is whether a pattern is for the host of a URL.
func (h Hosts) Match(u *url.URL) bool { return h.match(Host(u)) }

// Host is the host of a URL in the one form in which hosts are compared, and its port.
func Host(u *url.URL) (host, port string) {
	port = u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return canonical(u.Hostname()), port
}

// SameHost is whether two URLs lead to one host and port.
func SameHost(a, b string) bool {
	first, err := url.Parse(a)
	if err != nil {
		return false
	}
	second, err := url.Parse(b)
	if err != nil {
		return false
	}
	host, port := Host(first)
	other, otherPort := Host(second)
	return host == other && port == otherPort
}

// canonical is a host in lower case without the dot at its end, or an address as
// netip writes it.
func canonical(host string) string {
	if a, err := netip.ParseAddr(host); err == nil {
		return plain(a).String()
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// matchAny is match for all names of a Service, whichever of them the pattern and the host
// have. A pattern for all Services has no short name, which would be that of all hosts.
func (h Hosts) matchAny(host, port string) bool {
	short := service(host)
	return h.match(host, port) || slices.ContainsFunc(h, func(p hostPattern) bool {
		return p.service != "" && p.match(p.service, short, port)
	})
}

// matchAddress is whether a pattern is for an address, whatever name led to it.
func (h Hosts) matchAddress(a netip.Addr, port uint16) bool {
	return len(h) > 0 && h.match(a.String(), strconv.Itoa(int(port)))
}

// service is the short name of a Service, "name.namespace"; other names stay as they are.
func service(host string) string {
	return strings.TrimSuffix(strings.TrimSuffix(host, ".svc.cluster.local"), ".svc")
}

// short keeps messages short.
func short(host string) string {
	const most = 100
	if len(host) <= most {
		return host
	}
	return strings.ToValidUTF8(host[:most], "") + "…"
}

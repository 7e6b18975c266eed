// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"net/netip"
	"strings"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/metricsapi/observe"
)

// unknown is what Istio writes where it does not know.
const unknown = "unknown"

// Services reports whether there is a Service.
type Services func(types.NamespacedName) bool

// reader reads names out of labels.
type reader struct {
	services Services
	// joined are the Services that labels were found to mean.
	joined map[string]types.NamespacedName
}

// text is the value of a plain label, "" if unknown.
func text(m model.Metric, n Name) string {
	if n.Label == "" {
		return ""
	}
	if v := string(m[model.LabelName(n.Label)]); v != unknown {
		return v
	}
	return ""
}

// name reads the name of a Service, pod or workload.
func (r *reader) name(m model.Metric, n Name) string {
	v := text(m, n)
	switch n.Form {
	case Host:
		return hostName(v)
	case Joined:
		return r.divide(v).Name
	default:
		return v
	}
}

// namespace reads the name of a namespace.
func (r *reader) namespace(m model.Metric, n Name) string {
	v := text(m, n)
	switch n.Form {
	case Host:
		if parts := strings.Split(withoutPort(v), "."); len(parts) >= 2 && hostName(v) != "" {
			return parts[1]
		}
		return ""
	case Joined:
		return r.divide(v).Namespace
	default:
		return v
	}
}

// hostName is the Service of a host in the cluster: web, web.shop, web.shop.svc and
// web.shop.svc.cluster.local, with or without a port. Another host has none.
func hostName(host string) string {
	host = withoutPort(host)
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	parts := strings.Split(host, ".")
	if len(parts) > 2 && parts[2] != "svc" {
		return ""
	}
	return parts[0]
}

func withoutPort(host string) string {
	if a, err := netip.ParseAddrPort(host); err == nil {
		return a.Addr().String()
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return host
	}
	name, _, _ := strings.Cut(host, ":")
	return name
}

// divide finds out which Service NAMESPACE-SERVICE-PORT@PROVIDER means: the one that
// there is, with the longest name if several of a namespace would do. Where several
// namespaces would is unknown.
func (r *reader) divide(v string) types.NamespacedName {
	if known, found := r.joined[v]; found {
		return known
	}
	found := r.search(v)
	r.joined[v] = found
	return found
}

func (r *reader) search(v string) (found types.NamespacedName) {
	v, provider, _ := strings.Cut(v, "@")
	if !strings.HasPrefix(provider, "kubernetes") || r.services == nil {
		return found
	}
	parts := strings.Split(v, "-")
	for i := 1; i < len(parts)-1; i++ {
		namespace := strings.Join(parts[:i], "-")
		for j := len(parts) - 1; j > i; j-- {
			candidate := types.NamespacedName{Namespace: namespace, Name: strings.Join(parts[i:j], "-")}
			if !r.services(candidate) {
				continue
			}
			if found.Name != "" {
				return types.NamespacedName{}
			}
			found = candidate
			break
		}
	}
	return found
}

// party reads one end.
func (r *reader) party(m model.Metric, p *Party) observe.Party {
	out := observe.Party{
		Namespace: r.namespace(m, p.Namespace), Pod: r.name(m, p.Pod), Address: address(text(m, p.Address)),
		Service: r.name(m, p.Service),
	}
	if name := r.name(m, p.Workload); name != "" {
		out.Workload.Name = name
		out.Workload.Kind, _ = kindOf(p.WorkloadKind)
	}
	return out
}

// address reads the address of a pod, with or without a port.
func address(v string) netip.Addr {
	if a, err := netip.ParseAddrPort(v); err == nil {
		return a.Addr().Unmap()
	}
	a, err := netip.ParseAddr(v)
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap()
}

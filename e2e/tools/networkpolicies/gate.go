// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

const (
	// bypass lets packets pass while no program reads the queue: rules that a killed program leaves
	// behind keep nothing from pods that get these addresses later.
	bypass = 1
	// Offsets of the addresses in the header of an IPv4 packet, and their length.
	source, destination, length = 12, 16, 4
)

// errNotPossible says that this kernel can't do it.
var errNotPossible = errors.New("this kernel hands no packets to programs: it lacks CONFIG_NETFILTER_XT_TARGET_NFQUEUE, CONFIG_NETFILTER_NETLINK_QUEUE or CONFIG_NFT_COMPAT")

// gate is the rules that put the first packet of each connection from and to some pods in the
// queue. They do so by a target of xtables, which nftables can use too.
type gate struct {
	connection *nftables.Conn
	table      *nftables.Table
	pods       *nftables.Set
	guarded    []netip.Addr
	// namespaces are those whose policies are enforced.
	namespaces []string
}

// openGate makes the rules, in place of those that are there. They are about no pod yet. Pods are
// reached, and reach others, by packets that the node forwards; what is on the node itself they
// reach by its input. What the node sends by itself, such as the probes of its kubelet,
// NetworkPolicies do not concern.
func openGate(queue int, namespaces []string) (*gate, error) {
	c, err := nftables.New(nftables.AsLasting())
	if err != nil {
		return nil, fmt.Errorf("reach the kernel's packet filter: %w", err)
	}
	g := &gate{connection: c, table: &nftables.Table{Family: nftables.TableFamilyIPv4, Name: "serin-enforcement"}, namespaces: namespaces}
	g.pods = &nftables.Set{Table: g.table, Name: "pods", KeyType: nftables.TypeIPAddr}
	c.AddTable(g.table)
	c.DelTable(g.table)
	c.AddTable(g.table)
	if err := c.AddSet(g.pods, nil); err != nil {
		return nil, err
	}
	forward := g.chain("forward", nftables.ChainHookForward)
	g.enqueue(forward, source, queue)
	g.enqueue(forward, destination, queue)
	g.enqueue(g.chain("input", nftables.ChainHookInput), source, queue)
	err = c.Flush()
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil, fmt.Errorf("%w (%w)", errNotPossible, err)
	}
	return g, err
}

func (g *gate) chain(name string, hook *nftables.ChainHook) *nftables.Chain {
	return g.connection.AddChain(&nftables.Chain{
		Table: g.table, Name: name, Type: nftables.ChainTypeFilter, Hooknum: hook, Priority: nftables.ChainPriorityFilter,
	})
}

// enqueue puts the packets of a chain that begin a connection, and have the address of one of the
// pods, in the queue. A packet comes there once: an accepted one goes on behind the chain.
func (g *gate) enqueue(chain *nftables.Chain, address uint32, queue int) {
	// struct xt_NFQ_info_v3: the queue, the number of queues, flags, and padding.
	var info xt.Unknown
	for _, field := range []int{queue, 1, bypass, 0} {
		info = append(info, binaryutil.NativeEndian.PutUint16(uint16(field))...)
	}
	g.connection.AddRule(&nftables.Rule{Table: g.table, Chain: chain, Exprs: []expr.Any{
		&expr.Ct{Register: 1, Key: expr.CtKeySTATE},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(expr.CtStateBitNEW), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: address, Len: length},
		&expr.Lookup{SourceRegister: 1, SetName: g.pods.Name, SetID: g.pods.ID},
		&expr.Target{Name: "NFQUEUE", Rev: 3, Info: &info},
	}})
}

// guard has the rules be about pods with these addresses, and no others. It tells whether that
// is a change.
func (g *gate) guard(addresses []netip.Addr) (changed bool, err error) {
	if slices.Equal(addresses, g.guarded) {
		return false, nil
	}
	var elements []nftables.SetElement
	for _, a := range addresses {
		elements = append(elements, nftables.SetElement{Key: a.AsSlice()})
	}
	g.connection.FlushSet(g.pods)
	if err := g.connection.SetAddElements(g.pods, elements); err != nil {
		return false, err
	}
	g.guarded = addresses
	return true, g.connection.Flush()
}

// close removes the rules.
func (g *gate) close() error {
	g.connection.DelTable(g.table)
	return errors.Join(g.connection.Flush(), g.connection.CloseLasting())
}

// concerned are the addresses of the pods that an enforced policy may be about: those of
// namespaces that have one.
func (g *gate) concerned(policies []*networkingv1.NetworkPolicy, pods []*corev1.Pod) (addresses []netip.Addr) {
	have := map[string]bool{}
	for _, p := range policies {
		have[p.Namespace] = slices.Contains(g.namespaces, p.Namespace)
	}
	for _, p := range pods {
		if !have[p.Namespace] || p.Spec.HostNetwork || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		if address, err := netip.ParseAddr(p.Status.PodIP); err == nil && address.Is4() {
			addresses = append(addresses, address)
		}
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	return slices.Compact(addresses)
}

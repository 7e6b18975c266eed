// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applydiscovery "k8s.io/client-go/applyconfigurations/discovery/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	applyrbac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/serin-dev/serin/e2e/cluster/component"
)

const dnsService = "kube-dns"

// applyOptions own the objects that belong to the cluster itself.
var applyOptions = metav1.ApplyOptions{FieldManager: "serin-local-cluster", Force: true}

// startDNS starts the DNS server of the cluster and returns when it answers at
// the address that pods are told. It runs beside the node's agents, not in a pod: it is there
// before the first pod and needs no image.
func (l *local) startDNS(ctx context.Context) error {
	if err := l.applyDNS(ctx); err != nil {
		return fmt.Errorf("make the objects of the DNS server: %w", err)
	}
	if err := l.ensure(ctx, l.node.DNS()); err != nil {
		return err
	}
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, network, net.JoinHostPort(l.networks.dns.String(), strconv.Itoa(component.DNSPort)))
	}}
	return l.await(ctx, "DNS", func(ctx context.Context) error {
		addresses, err := resolver.LookupHost(ctx, "kubernetes.default.svc."+component.Domain+".")
		if err == nil && addresses[0] != l.networks.api.String() {
			return fmt.Errorf("the API server's name stands for %s, want %s", addresses, l.networks.api)
		}
		return err
	}, l.node.DNS(), l.node.Proxy())
}

// applyDNS makes the role of the server and the Service that leads to it.
func (l *local) applyDNS(ctx context.Context) error {
	read := []string{"get", "list", "watch"}
	role := applyrbac.ClusterRole(component.DNSUser.Name).WithRules(
		applyrbac.PolicyRule().WithAPIGroups("").WithResources("services", "pods", "namespaces").WithVerbs(read...),
		applyrbac.PolicyRule().WithAPIGroups("discovery.k8s.io").WithResources("endpointslices").WithVerbs(read...))
	if _, err := l.client.RbacV1().ClusterRoles().Apply(ctx, role, applyOptions); err != nil {
		return err
	}
	binding := applyrbac.ClusterRoleBinding(component.DNSUser.Name).
		WithRoleRef(applyrbac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(component.DNSUser.Name)).
		WithSubjects(applyrbac.Subject().WithAPIGroup(rbacv1.GroupName).WithKind(rbacv1.UserKind).WithName(component.DNSUser.Name))
	if _, err := l.client.RbacV1().ClusterRoleBindings().Apply(ctx, binding, applyOptions); err != nil {
		return err
	}
	service := applycore.Service(dnsService, metav1.NamespaceSystem).WithSpec(applycore.ServiceSpec().
		WithClusterIP(l.networks.dns.String()).WithPorts(
		applycore.ServicePort().WithName("dns").WithProtocol(corev1.ProtocolUDP).WithPort(component.DNSPort),
		applycore.ServicePort().WithName("dns-tcp").WithProtocol(corev1.ProtocolTCP).WithPort(component.DNSPort)))
	if _, err := l.client.CoreV1().Services(metav1.NamespaceSystem).Apply(ctx, service, applyOptions); err != nil {
		return err
	}
	_, err := l.client.DiscoveryV1().EndpointSlices(metav1.NamespaceSystem).Apply(ctx, l.makeDNSEndpoints(), applyOptions)
	return err
}

// makeDNSEndpoints leads the Service, which selects no pods, to the server.
func (l *local) makeDNSEndpoints() *applydiscovery.EndpointSliceApplyConfiguration {
	slice := applydiscovery.EndpointSlice(dnsService, metav1.NamespaceSystem).
		WithAddressType(discoveryv1.AddressTypeIPv4).
		WithEndpoints(applydiscovery.Endpoint().WithAddresses(l.node.Address.String()).
			WithConditions(applydiscovery.EndpointConditions().WithReady(true))).
		WithPorts(
			applydiscovery.EndpointPort().WithName("dns").WithProtocol(corev1.ProtocolUDP).WithPort(component.DNSPort),
			applydiscovery.EndpointPort().WithName("dns-tcp").WithProtocol(corev1.ProtocolTCP).WithPort(component.DNSPort))
	slice.ObjectMetaApplyConfiguration = applymeta.ObjectMeta().
		WithName(dnsService).WithNamespace(metav1.NamespaceSystem).
		WithLabels(map[string]string{discoveryv1.LabelServiceName: dnsService})
	return slice
}

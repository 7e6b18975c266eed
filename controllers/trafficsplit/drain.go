// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/trafficsplit/endpoints"
	"github.com/serin-dev/serin/traffic"
)

// managedBySerin is who manages the EndpointSlices that this controller makes: that of
// Kubernetes leaves them alone.
const managedBySerin = "serin.dev"

// labelMadeAt on such a one is when that was, in seconds of Unix time. It is a label, since
// the cache keeps no annotations of EndpointSlices.
const labelMadeAt = "serin.dev/made-at"

// draining are the EndpointSlices that were made for a split.
func (r *Reconciler) draining(ctx context.Context, split *splitv1.TrafficSplit) ([]traffic.Object, error) {
	var list discoveryv1.EndpointSliceList
	err := r.Client.List(ctx, &list, client.InNamespace(split.Namespace), client.MatchingFields{traffic.IndexProxy: split.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the EndpointSlices of the split: %w", err)
	}
	var out []traffic.Object
	for i := range list.Items {
		s := &list.Items[i]
		if s.Labels[discoveryv1.LabelManagedBy] == managedBySerin && s.DeletionTimestamp.IsZero() {
			out = append(out, traffic.Object{
				GroupVersionKind: discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
				Name:             s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion, Created: madeAt(s),
			})
		}
	}
	return out, nil
}

// madeAt is when this controller made an EndpointSlice, by its own clock: that of the API
// server may be another. It is zero when the label is gone.
func madeAt(s *discoveryv1.EndpointSlice) time.Time {
	seconds, err := strconv.ParseInt(s.Labels[labelMadeAt], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// drain keeps the pods of the root Service among its endpoints, as terminating ones. Where
// that fails, answers to datagrams that are on their way in one moment are lost, which is no
// reason to put off the cutover.
func (r *Reconciler) drain(ctx context.Context, o *observation) error {
	err := r.copySlices(ctx, o)
	if err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "Answers to datagrams that are on their way may be lost")
		return nil
	}
	return err
}

// copySlices copies the EndpointSlices of the root Service that have a UDP port, with its
// ready pods as terminating ones. Addresses come from the API server, since the cache holds
// none.
func (r *Reconciler) copySlices(ctx context.Context, o *observation) error {
	var list discoveryv1.EndpointSliceList
	err := r.Live.List(ctx, &list, client.InNamespace(o.Split.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: o.Root.Service.Name})
	if err != nil {
		return fmt.Errorf("list the EndpointSlices of Service %q: %w", o.Root.Service.Name, err)
	}
	for i := range list.Items {
		slice := leaving(&list.Items[i], o)
		if slice == nil {
			continue
		}
		if err := r.Client.Create(ctx, slice, client.FieldOwner(traffic.FieldManager)); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// leaving is an EndpointSlice with the ready pods of another one, as terminating ones; nil
// when there is nothing to keep.
func leaving(live *discoveryv1.EndpointSlice, o *observation) *discoveryv1.EndpointSlice {
	root := o.Root.Service
	out := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: live.Namespace, Name: live.Name + "-leaving",
			Labels: map[string]string{
				discoveryv1.LabelServiceName: root.Name, discoveryv1.LabelManagedBy: managedBySerin, traffic.LabelProxy: o.Split.Name,
				labelMadeAt: strconv.FormatInt(o.Now.Unix(), 10),
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Service", Name: root.Name, UID: root.UID,
			}},
		},
		AddressType: live.AddressType,
	}
	for _, port := range live.Ports {
		if ptr.Deref(port.Protocol, corev1.ProtocolTCP) == corev1.ProtocolUDP {
			out.Ports = append(out.Ports, port)
		}
	}
	for _, e := range live.Endpoints {
		if _, proxy := o.Proxy(shell.EndpointName(e)); proxy || !ptr.Deref(e.Conditions.Ready, true) {
			continue
		}
		e.Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
		e.Hints = nil
		out.Endpoints = append(out.Endpoints, e)
	}
	if live.Labels[discoveryv1.LabelManagedBy] == managedBySerin || endpoints.Ours(live) || len(out.Ports) == 0 || len(out.Endpoints) == 0 {
		return nil
	}
	return out
}

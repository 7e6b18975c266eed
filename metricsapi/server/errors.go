// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// retryAfter is when to ask again, in seconds, for numbers that are not to be had now.
const retryAfter = 5

// apiError is the answer to a request whose numbers a Provider could not tell. Words
// that come from a store are written to the log, and never into an answer.
func apiError(ctx context.Context, verb string, err error) error {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return err
	}
	unavailable, known := errors.AsType[*observe.UnavailableError](err)
	if !known && errors.Is(err, context.DeadlineExceeded) {
		return apierrors.NewTimeoutError("no traffic could be read in time; ask for fewer resources, or try again later", retryAfter)
	}
	message := "traffic could not be read; the log of serin metrics says why"
	if known {
		message = unavailable.Message
	} else if !errors.Is(err, context.Canceled) {
		klog.FromContext(ctx).Error(err, "Traffic could not be read", "verb", verb)
	}
	status := apierrors.NewServiceUnavailable(message)
	status.ErrStatus.Details = &metav1.StatusDetails{Group: metricsv1.GroupVersion.Group, RetryAfterSeconds: retryAfter}
	return status
}

// notFound is the answer for a resource that does not exist.
func notFound(kind observe.Kind, name string) error {
	return apierrors.NewNotFound(groupResource(kind), name)
}

// withoutTraffic is the answer for one that exists, and that has no numbers to show.
func withoutTraffic(kind observe.Kind, name string) error {
	err := apierrors.NewNotFound(groupResource(kind), name)
	err.ErrStatus.Message = "no TrafficMetrics of " + kind.Resource + " \"" + name + "\": the " + kind.Kind +
		" exists, and no request from or to it was seen in the last window"
	return err
}

func groupResource(kind observe.Kind) schema.GroupResource {
	return schema.GroupResource{Group: metricsv1.GroupVersion.Group, Resource: kind.Resource}
}

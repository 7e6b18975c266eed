// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/controllers/workload"
)

// History is what the manager takes after a start for Deployments with old ReplicaSets.
type History struct {
	Deployments, Old int
	// ReplicaSetSize is that of one, as the API has it.
	ReplicaSetSize int
	// Resident memory, the part of it that is no file's, and the peak since the start.
	Resident, Own, Peak int64
	// CPU that the start took.
	CPU time.Duration
}

// measureHistory starts the manager where there are Deployments already. They are stand-ins:
// no pod runs, and no controller looks at them.
func (o Options) measureHistory(ctx context.Context, p program) (h History, err error) {
	h.Deployments, h.Old = o.Deployments, o.Old
	plane, stop, err := inOwnFolder(ctx, o.Out, startAPI)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	s, err := newStage(ctx, plane, p)
	if err != nil {
		return h, err
	}
	f := newFleet("history", o.Deployments, idleReplicas, o)
	fmt.Fprintf(o.Out, "%s: creating %d Deployments with %d ReplicaSets each\n", f.name, o.Deployments, o.Old+1)
	if h.ReplicaSetSize, err = f.createHistory(ctx, s.admin, o.Old); err != nil {
		return h, err
	}
	operator, err := s.startOperator(o.Clock)
	if err != nil {
		return h, err
	}
	defer operator.stop()
	if h.CPU, err = operator.settle(ctx); err != nil {
		return h, err
	}
	if h.Resident, h.Peak, err = operator.memory(); err != nil {
		return h, err
	}
	h.Own, err = operator.ownMemory()
	return h, err
}

// createHistory creates Deployments with a ReplicaSet for the present template and each old
// one, and returns how large a ReplicaSet is.
func (f fleet) createHistory(ctx context.Context, c client.Client, old int) (size int, err error) {
	if err := f.createNamespaces(ctx, c); err != nil {
		return 0, err
	}
	if size, err = f.createVersions(ctx, c, f.apps[0], old); err != nil {
		return 0, err
	}
	rest := f
	rest.apps = f.apps[1:]
	return size, rest.each(ctx, func(ctx context.Context, a app) error {
		_, err := f.createVersions(ctx, c, a, old)
		return err
	})
}

func (f fleet) createVersions(ctx context.Context, c client.Client, a app, old int) (size int, err error) {
	d, ok := f.makeApp(a)[0].(*appsv1.Deployment)
	if !ok {
		return 0, errors.New("an app begins with no Deployment")
	}
	if err := c.Create(ctx, d); err != nil {
		return 0, fmt.Errorf("create the Deployment %s/%s: %w", a.namespace, a.name, err)
	}
	owner := *metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))
	for i := range old + 1 {
		version := d.DeepCopy()
		version.Spec.Template.Spec.Containers[0].Image = fmt.Sprintf("%s-%d", imageV1, i)
		replicas := int32(0)
		if i == 0 {
			version, replicas = d, f.replicas
		}
		rs := workload.MakeCanary(version, owner, fmt.Sprintf("5d8c7f%04d", i), replicas)
		if err := c.Create(ctx, rs); err != nil {
			return 0, fmt.Errorf("create the ReplicaSet %s/%s: %w", a.namespace, rs.Name, err)
		}
		encoded, err := json.Marshal(rs)
		if err != nil {
			return 0, err
		}
		size = len(encoded)
	}
	return size, nil
}

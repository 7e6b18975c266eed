// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/analysis/source"
)

// timeout of the calls to the API for one measurement.
const timeout = 10 * time.Second

// kept is how many Jobs of a repeated metric are kept, without the present one.
const kept = 3

// Measurer runs the Jobs of one metric.
type Measurer struct {
	reader client.Reader
	writer client.Writer
	spec   Spec
	job    *batchv1.JobTemplateSpec

	// ordinal of the Job that is awaited; "" when there is none. made is whether it was
	// seen.
	ordinal string
	made    bool
	// last is the outcome of the last Job that ended.
	last *source.Sample
	// ended are the Jobs that ended, oldest first.
	ended []metav1.ObjectMeta
}

// New makes a Measurer. The reader reads Jobs one by one from the API, since a cache
// would hold every Job of the cluster. Its error names the field and the fix.
func New(reader client.Reader, writer client.Writer, s Spec) (*Measurer, error) {
	template, err := s.parse()
	if err != nil {
		return nil, err
	}
	return &Measurer{reader: reader, writer: writer, spec: s, job: template}, nil
}

// Measure returns the outcome of the present Job; it is Pending until it has ended.
// The Job is made if there is none yet. While one runs, no other one is begun.
func (m *Measurer) Measure(ctx context.Context, at time.Time) (source.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if m.last != nil && m.spec.Name(m.spec.ordinal(at)) == m.ended[len(m.ended)-1].Name {
		return *m.last, nil
	}
	if m.ordinal == "" {
		m.ordinal, m.made = m.spec.ordinal(at), false
	}
	j, err := m.present(ctx)
	if err != nil {
		return source.Sample{}, err
	}
	s, err := outcome(j, at)
	if err != nil {
		return source.Sample{}, err
	}
	m.end(ctx, j, &s)
	return s, nil
}

// present returns the Job that is awaited.
func (m *Measurer) present(ctx context.Context) (*batchv1.Job, error) {
	j := &batchv1.Job{}
	key := types.NamespacedName{Namespace: m.spec.Namespace, Name: m.spec.Name(m.ordinal)}
	err := m.reader.Get(ctx, key, j)
	switch {
	case apierrors.IsNotFound(err) && m.made:
		return nil, &source.MissingError{Reason: source.NoData, Message: "the Job " + key.Name + " was deleted before it ended"}
	case apierrors.IsNotFound(err):
		j = m.spec.make(m.job, m.ordinal)
		if err := m.writer.Create(ctx, j); err != nil {
			return nil, refusal(err)
		}
	case err != nil:
		return nil, &source.MissingError{Reason: source.Unavailable, Message: "the Job could not be read from the API"}
	case !metav1.IsControlledBy(j, &metav1.ObjectMeta{UID: m.spec.Owner}):
		return nil, &source.MissingError{Reason: source.Rejected, Message: "there is a Job " + key.Name + " that belongs to another owner; delete it"}
	}
	m.made = true
	return j, nil
}

// end remembers an outcome, and deletes the oldest of those that are more than enough.
func (m *Measurer) end(ctx context.Context, j *batchv1.Job, s *source.Sample) {
	m.last = s
	m.ended = append(m.ended, metav1.ObjectMeta{Namespace: j.Namespace, Name: j.Name, UID: j.UID})
	m.ordinal = ""
	if len(m.ended) <= kept {
		return
	}
	old := &batchv1.Job{ObjectMeta: m.ended[0]}
	// What is not deleted now goes a day after its end. Another Job may have the name by now.
	_ = m.writer.Delete(ctx, old, client.Preconditions{UID: &old.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	m.ended = m.ended[1:]
}

// refusal says why a Job could not be made. What the API server says about a field
// would quote the template, so only the field is named.
func refusal(err error) error {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsInvalid(err) && errors.As(err, &status) && status.Status().Details != nil && len(status.Status().Details.Causes) > 0:
		return &source.MissingError{Reason: source.Rejected, Message: "the API server refuses the Job: correct template." + status.Status().Details.Causes[0].Field}
	case apierrors.IsForbidden(err):
		return &source.MissingError{Reason: source.Rejected, Message: "the Job could not be created: a quota, a policy or the operator's rights forbid it"}
	case apierrors.IsAlreadyExists(err):
		return pending()
	default:
		return &source.MissingError{Reason: source.Unavailable, Message: "the Job could not be created"}
	}
}

func pending() error {
	return &source.MissingError{Reason: source.Pending, Message: "the Job has not ended yet"}
}

// outcome is 1 or 0 once the Job has ended.
func outcome(j *batchv1.Job, at time.Time) (source.Sample, error) {
	for _, c := range j.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		ended := c.LastTransitionTime.Time
		if ended.IsZero() {
			ended = at
		}
		switch c.Type {
		case batchv1.JobComplete:
			return source.Sample{At: ended, Value: 1}, nil
		case batchv1.JobFailed:
			return source.Sample{At: ended, Value: 0}, nil
		default: // it still runs, or is about to end
		}
	}
	return source.Sample{}, pending()
}

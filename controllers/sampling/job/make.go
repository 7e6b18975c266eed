// SPDX-License-Identifier: Apache-2.0

package job

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// Spec is what to run.
type Spec struct {
	// Rollout that the Jobs are for and owned by, with its UID.
	Namespace, Rollout string
	Owner              types.UID
	// Revision of the canary, and the name of the metric.
	Revision, Metric string
	// Template is that of the Jobs: metadata and spec.
	Template runtime.RawExtension
	// Args become environment variables.
	Args map[string]string
	// Repeat has a Job run at each interval instead of one for each step.
	Repeat   bool
	Interval time.Duration
	// Step is the index of the present step, and Began when it did.
	Step  int32
	Began string
}

// The labels of a Job, in addition to those of its template.
const (
	LabelRollout = "serin.dev/rollout"
	LabelMetric  = "serin.dev/metric"
)

// Bounds of what a template may say, and what is taken when it says nothing.
const (
	defaultDeadline = 10 * 60
	maxDeadline     = 60 * 60
	maxBackoff      = 6
	// keptFor is how long a finished Job is kept, in seconds. The next one of the same
	// name could only be made once it is gone.
	keptFor = 24 * 60 * 60
	// minRepeat is the shortest interval of repeated Jobs.
	minRepeat = time.Minute
)

// parse reads a template and returns an error that names the field and the fix.
func (s Spec) parse() (*batchv1.JobTemplateSpec, error) {
	var t batchv1.JobTemplateSpec
	decoder := json.NewDecoder(bytes.NewReader(s.Template.Raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&t); err != nil {
		return nil, fmt.Errorf("template: is not that of a Job: %w", plain(err))
	}
	if s.Repeat && s.Interval < minRepeat {
		return nil, fmt.Errorf("repeat: needs an interval of at least %s; give one", minRepeat)
	}
	return &t, check(&t.Spec)
}

// check refuses what would not end, or not run.
func check(j *batchv1.JobSpec) error {
	switch {
	case len(j.Template.Spec.Containers) == 0:
		return errors.New("template.spec.template.spec.containers: none; give one")
	case !slices.Contains([]corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}, j.Template.Spec.RestartPolicy):
		return errors.New("template.spec.template.spec.restartPolicy: must be Never or OnFailure; write Never")
	case ptr.Deref(j.Suspend, false):
		return errors.New("template.spec.suspend: would never run; remove it")
	case ptr.Deref(j.ActiveDeadlineSeconds, 0) > maxDeadline:
		return fmt.Errorf("template.spec.activeDeadlineSeconds: %d; give at most %d", *j.ActiveDeadlineSeconds, maxDeadline)
	case ptr.Deref(j.BackoffLimit, 0) > maxBackoff:
		return fmt.Errorf("template.spec.backoffLimit: %d; give at most %d", *j.BackoffLimit, maxBackoff)
	case ptr.Deref(j.ManualSelector, false) || j.Selector != nil:
		return errors.New("template.spec.selector: is made by the cluster; remove it")
	}
	return nil
}

// plain leaves out what the decoder quotes of the template beyond the field.
func plain(err error) error {
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s has another type", kind.Field)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

// Name is that of the Job for an ordinal: which step or which interval it is for.
func (s Spec) Name(ordinal string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{string(s.Owner), s.Revision, s.Metric, ordinal}, "/")))
	return s.Metric + "-" + hex.EncodeToString(sum[:8])
}

// ordinal is the same for all calls in the same step or interval.
func (s Spec) ordinal(at time.Time) string {
	if !s.Repeat {
		return fmt.Sprint("step-", s.Step, "-", s.Began)
	}
	return fmt.Sprint("slot-", at.Unix()/int64(s.Interval/time.Second))
}

// make builds the Job for an ordinal.
func (s Spec) make(t *batchv1.JobTemplateSpec, ordinal string) *batchv1.Job {
	t = t.DeepCopy()
	controller := true
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: s.Name(ordinal), Annotations: t.Annotations, Labels: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "Rollout", Name: s.Rollout, UID: s.Owner, Controller: &controller,
			}},
		},
		Spec: t.Spec,
	}
	maps.Copy(j.Labels, t.Labels)
	j.Labels[LabelRollout], j.Labels[LabelMetric] = s.Rollout, s.Metric
	setDefault(&j.Spec.ActiveDeadlineSeconds, defaultDeadline)
	setDefault(&j.Spec.BackoffLimit, 0)
	kept := int32(keptFor)
	j.Spec.TTLSecondsAfterFinished = &kept
	environment := s.environment()
	pod := &j.Spec.Template.Spec
	for i := range pod.InitContainers {
		pod.InitContainers[i].Env = append(slices.Clone(environment), pod.InitContainers[i].Env...)
	}
	for i := range pod.Containers {
		pod.Containers[i].Env = append(slices.Clone(environment), pod.Containers[i].Env...)
	}
	return j
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// odd is what no environment variable's name may have.
var odd = regexp.MustCompile(`[^A-Z0-9_]`)

// environment are the arguments, before the container's own variables, which may then
// refer to them.
func (s Spec) environment() []corev1.EnvVar {
	list := make([]corev1.EnvVar, 0, len(s.Args))
	for _, name := range slices.Sorted(maps.Keys(s.Args)) {
		list = append(list, corev1.EnvVar{
			Name: "SERIN_ARG_" + odd.ReplaceAllString(strings.ToUpper(name), "_"),
			// The cluster expands $(NAME) in values: a value is taken as it is.
			Value: strings.ReplaceAll(s.Args[name], "$", "$$"),
		})
	}
	return list
}

// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/freeze"
)

// freezeOf is the manifest of a Freeze with a spec.
func freezeOf(spec string) string {
	return "apiVersion: serin.dev/v1alpha1\nkind: Freeze\nmetadata: {name: peak-season}\nspec: " + spec + "\n"
}

// scheduleOf is the manifest of a Rollout with a schedule.
func scheduleOf(schedule string) string {
	return strings.Replace(smallest, "  service: website\n", "  service: website\n  schedule: "+schedule+"\n", 1)
}

// tryFreeze sends a manifest of a Freeze, which has no namespace, without keeping it.
func tryFreeze(t *testing.T, manifest string) (*v1alpha1.Freeze, error) {
	t.Helper()
	objects, err := decode([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	o := objects[0]
	if err := admin.Create(t.Context(), o, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
		return nil, err
	}
	// What the schema took has to be what the operator's type reads: one object that
	// it can't read would hide all others.
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	typed := &v1alpha1.Freeze{}
	if err := json.Unmarshal(text, typed); err != nil {
		t.Errorf("the schema takes what the type can't read: %v\n%s", err, manifest)
	}
	return typed, nil
}

func TestTheSchemaTakesEveryKindOfFreeze(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]string{
		"for good":                  `{reason: audit}`,
		"from":                      `{reason: audit, from: "2026-11-26T00:00:00Z"}`,
		"until":                     `{reason: audit, until: "2026-12-01T00:00:00+01:00"}`,
		"from and until":            `{reason: audit, from: "2026-11-26T00:00:00Z", until: "2026-12-01T00:00:00Z"}`,
		"across offsets":            `{reason: audit, from: "2026-11-26T09:00:00+09:00", until: "2026-11-26T00:00:01Z"}`,
		"recurring":                 `{reason: audit, recurring: {start: "0 0 28-31 * *", duration: 72h}}`,
		"recurring in a zone":       `{reason: audit, recurring: {timeZone: America/Argentina/Buenos_Aires, start: "@monthly", duration: 1h30m}}`,
		"a zone with a plus":        `{reason: audit, recurring: {timeZone: Etc/GMT+5, start: "0 9 * * MON-FRI", duration: 8h}}`,
		"some namespaces by labels": `{reason: audit, namespaceSelector: {matchLabels: {team: shop}}}`,
		"some by expressions":       `{reason: audit, namespaceSelector: {matchExpressions: [{key: tier, operator: NotIn, values: [dev]}]}}`,
		"all namespaces":            `{reason: audit, namespaceSelector: {}}`,
	} {
		t.Run(name, func(t *testing.T) {
			f, err := tryFreeze(t, freezeOf(spec))
			if err != nil {
				t.Fatal(err)
			}
			if r := f.Spec.Recurring; r != nil && r.TimeZone == "" {
				t.Error("no zone was set by default")
			}
		})
	}
}

func TestTheSchemaRefusesBadFreezes(t *testing.T) {
	t.Parallel()
	const (
		start    = "spec.recurring.start in body should match"
		duration = "spec.recurring.duration in body should match"
		one      = "spec: recurring excludes from and until; keep one of them"
		after    = "spec.until: must be after spec.from; correct one of them"
	)
	for name, c := range map[string]struct{ spec, want string }{
		"no reason":                 {`{}`, "spec.reason: Required value"},
		"an empty reason":           {`{reason: ""}`, "spec.reason: Invalid value"},
		"a reason that is too long": {`{reason: ` + strings.Repeat("a", 257) + `}`, "spec.reason: Too long"},
		"recurring and from":        {`{reason: audit, from: "2026-11-26T00:00:00Z", recurring: {start: "@daily", duration: 1h}}`, one},
		"recurring and until":       {`{reason: audit, until: "2026-11-26T00:00:00Z", recurring: {start: "@daily", duration: 1h}}`, one},
		"until before from":         {`{reason: audit, from: "2026-11-26T00:00:00Z", until: "2026-11-25T00:00:00Z"}`, after},
		"until at from":             {`{reason: audit, from: "2026-11-26T00:00:00Z", until: "2026-11-26T00:00:00Z"}`, after},
		"until before from, told by offsets": {
			`{reason: audit, from: "2026-11-26T00:00:00Z", until: "2026-11-26T08:00:00+09:00"}`, after,
		},
		"a day instead of a time":           {`{reason: audit, from: "2026-11-26"}`, "spec.from"},
		"a time without an offset":          {`{reason: audit, from: "2026-11-26T00:00:00"}`, "spec.from"},
		"a day that does not exist":         {`{reason: audit, until: "2027-02-29T00:00:00Z"}`, "spec.until"},
		"a leap second":                     {`{reason: audit, until: "2026-12-31T23:59:60Z"}`, "spec.until"},
		"an hour that does not exist":       {`{reason: audit, until: "2026-12-31T24:00:00Z"}`, "spec.until"},
		"small letters":                     {`{reason: audit, until: "2026-12-31t23:59:59z"}`, "spec.until"},
		"an offset that does not exist":     {`{reason: audit, until: "2026-12-31T23:00:00+25:00"}`, "spec.until"},
		"recurring without a start":         {`{reason: audit, recurring: {duration: 1h}}`, "spec.recurring.start: Required value"},
		"recurring without a duration":      {`{reason: audit, recurring: {start: "@daily"}}`, "spec.recurring.duration: Required value"},
		"seconds":                           {`{reason: audit, recurring: {start: "0 0 9 * * *", duration: 1h}}`, start},
		"@every":                            {`{reason: audit, recurring: {start: "@every 5m", duration: 1h}}`, start},
		"a zone in the expression":          {`{reason: audit, recurring: {start: "TZ=UTC 0 9 * * *", duration: 1h}}`, start},
		"a zone before five fields":         {`{reason: audit, recurring: {start: "CRON_TZ=UTC 9 * * *", duration: 1h}}`, start},
		"an expression that is too long":    {`{reason: audit, recurring: {start: "` + strings.Repeat("1,", 60) + `1 1 1 1 * *", duration: 1h}}`, "spec.recurring.start: Too long"},
		"a duration without a unit":         {`{reason: audit, recurring: {start: "@daily", duration: "5"}}`, duration},
		"a negative duration":               {`{reason: audit, recurring: {start: "@daily", duration: "-5m"}}`, duration},
		"days":                              {`{reason: audit, recurring: {start: "@daily", duration: 2d}}`, duration},
		"a path as a zone":                  {`{reason: audit, recurring: {start: "@daily", duration: 1h, timeZone: ../UTC}}`, "spec.recurring.timeZone in body should match"},
		"an empty zone":                     {`{reason: audit, recurring: {start: "@daily", duration: 1h, timeZone: ""}}`, "spec.recurring.timeZone in body should match"},
		"a field of a Rollout's freeze":     {`{reason: audit, start: "@daily"}`, `unknown field "spec.start"`},
		"a selector that is a list of maps": {`{reason: audit, namespaceSelector: {matchLabels: [{team: shop}]}}`, "spec.namespaceSelector.matchLabels"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tryFreeze(t, freezeOf(c.spec))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestTheSchemaOfSchedules(t *testing.T) {
	t.Parallel()
	for name, schedule := range map[string]string{
		"nothing":        `{}`,
		"windows":        `{timeZone: Europe/Berlin, windows: [{start: "0 9 * * MON-THU", duration: 8h}, {start: "0 9 * * 5", duration: 4h}]}`,
		"freezes":        `{freezes: [{start: "0 0 20 12 *", duration: 336h, reason: end of year}, {start: "@hourly", duration: 5m}]}`,
		"finish":         `{windows: [{start: "*/30 8-17/3 1,15 JAN-NOV ?", duration: 20m}], whenClosed: Finish}`,
		"sixteen of all": `{windows: [` + strings.Repeat(`{start: "@daily", duration: 1h},`, 16) + `], freezes: [` + strings.Repeat(`{start: "@daily", duration: 1h},`, 16) + `]}`,
	} {
		t.Run("takes "+name, func(t *testing.T) {
			if err := dryRun(t.Context(), scheduleOf(schedule)); err != nil {
				t.Error(err)
			}
		})
	}
	for name, c := range map[string]struct{ schedule, want string }{
		"a zone that is none":            {`{timeZone: "GMT 1"}`, "spec.schedule.timeZone in body should match"},
		"a window without a start":       {`{windows: [{duration: 8h}]}`, "spec.schedule.windows[0].start: Required value"},
		"a window without a duration":    {`{windows: [{start: "@daily"}]}`, "spec.schedule.windows[0].duration: Required value"},
		"a window with a reason":         {`{windows: [{start: "@daily", duration: 8h, reason: work}]}`, `unknown field "spec.schedule.windows[0].reason"`},
		"four fields":                    {`{windows: [{start: "0 9 * *", duration: 8h}]}`, "spec.schedule.windows[0].start in body should match"},
		"seconds":                        {`{freezes: [{start: "0 0 9 * * *", duration: 8h}]}`, "spec.schedule.freezes[0].start in body should match"},
		"@reboot":                        {`{freezes: [{start: "@reboot", duration: 8h}]}`, "spec.schedule.freezes[0].start in body should match"},
		"a duration in words":            {`{freezes: [{start: "@daily", duration: one day}]}`, "spec.schedule.freezes[0].duration in body should match"},
		"another whenClosed":             {`{whenClosed: Abort}`, `spec.schedule.whenClosed: Unsupported value: "Abort": supported values: "Hold", "Finish"`},
		"seventeen windows":              {`{windows: [` + strings.Repeat(`{start: "@daily", duration: 1h},`, 17) + `]}`, "spec.schedule.windows: Too many: 17: must have at most 16 items"},
		"seventeen freezes":              {`{freezes: [` + strings.Repeat(`{start: "@daily", duration: 1h},`, 17) + `]}`, "spec.schedule.freezes: Too many: 17: must have at most 16 items"},
		"a reason that is much too long": {`{freezes: [{start: "@daily", duration: 1h, reason: ` + strings.Repeat("a", 257) + `}]}`, "spec.schedule.freezes[0].reason: Too long"},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			err := dryRun(t.Context(), scheduleOf(c.schedule))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestKubectlShowsWhenAFreezeHolds(t *testing.T) {
	t.Parallel()
	from := metav1.NewTime(time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC))
	f := &v1alpha1.Freeze{Spec: v1alpha1.FreezeSpec{
		Reason: "books are closed", From: &from, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"no": "namespace"}},
	}}
	f.Name = "table"
	if err := admin.Create(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(t.Context()), f); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	config := rest.CopyConfig(plane.Config)
	config.GroupVersion = &schema.GroupVersion{Group: "serin.dev", Version: "v1alpha1"}
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(newScheme()).WithoutConversion()
	api, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	text, err := api.Get().Resource("freezes").Name("table").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table := &metav1.Table{}
	if err := json.Unmarshal(text, table); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range table.ColumnDefinitions {
		names = append(names, c.Name)
	}
	if want := []string{"Name", "In force", "Next change", "From", "Until", "Start", "Duration", "Reason", "Age"}; !slices.Equal(names, want) {
		t.Errorf("columns %q, want %q", names, want)
	}
	if cells := table.Rows[0].Cells; cells[3] != "2026-11-26T00:00:00Z" || cells[7] != "books are closed" {
		t.Errorf("cells %q", cells)
	}
}

func TestAFreezeSaysWhetherItIsInForce(t *testing.T) {
	t.Parallel()
	s := &scene{T: t, namespace: "freezes"}
	mgr := s.newManager(logOf(t), nil)
	if err := freeze.New(mgr.GetClient(), clock.RealClock{}).SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	run(t, mgr)
	f := &v1alpha1.Freeze{Spec: v1alpha1.FreezeSpec{Reason: "audit", NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"no": "namespace"}}}}
	f.Name = "in-force"
	if err := admin.Create(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(t.Context()), f); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	is := func(reason v1alpha1.Reason) func() error {
		return func() error {
			if err := admin.Get(t.Context(), client.ObjectKeyFromObject(f), f); err != nil {
				return err
			}
			c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionInForce)
			if c == nil || c.Reason != reason || c.ObservedGeneration != f.Generation {
				return fmt.Errorf("the condition is %+v", c)
			}
			return nil
		}
	}
	eventually(t, "a Freeze without times is in force", is(v1alpha1.ReasonActive))
	until := metav1.NewTime(time.Now().Add(3 * time.Second))
	f.Spec.Until = &until
	if err := admin.Update(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it ends at its time", is(v1alpha1.ReasonEnded))
}

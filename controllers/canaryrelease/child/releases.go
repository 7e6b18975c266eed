// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
	"github.com/serin-dev/serin/poll/fair"
)

// Limits of one call.
type Limits struct {
	// Memory is the most bytes of data that the process may have.
	Memory int64
	// Time is how long the process may take, and CPU how long it may compute.
	Time, CPU time.Duration
}

const (
	// memory is for a chart and a record of several megabytes each, of which Helm has copies.
	memory = 160 << 20
	// renderTime is for a chart that looks at hundreds of objects.
	renderTime = 30 * time.Second
	// upgradeTime is for an upgrade in which Helm waits for hooks.
	upgradeTime = 30 * time.Minute
	// maxRecords is how many bytes the list of a release's records may have.
	maxRecords = 8 << 20
)

// The memory limit of the chart is for the manager and for as many processes as there are
// slots. Upgrades have slots of their own, since one may wait for a hook for minutes. They are
// interrupted after upgradeKeep when another namespace waits: hooks that hang keep others from
// their upgrades for that long at most, and those that two hooks may take have time.
const upgradeKeep = 10 * time.Minute

var (
	renderSlots  = fair.Limits{Slots: 2, PerNamespace: 1}
	upgradeSlots = fair.Limits{Slots: 3, PerNamespace: 1, Keep: upgradeKeep}
)

// Options of Releases.
type Options struct {
	// Program is the path of serin-helm.
	Program string
	// Account is the name of the ServiceAccount, of the release's namespace, that Helm is
	// called as: a namespace takes part by giving it the rights that its releases need.
	Account string
	// Render and Upgrade limit calls; zero for what suits the chart's memory limit.
	Render, Upgrade Limits
}

// Releases reads releases, and calls Helm in processes.
type Releases struct {
	config          *rest.Config
	options         Options
	renders, grades *fair.Slots
}

// New makes Releases that act as accounts of namespaces, by impersonation.
func New(config *rest.Config, o Options) *Releases {
	if o.Render == (Limits{}) {
		o.Render = Limits{Memory: memory, Time: renderTime, CPU: renderTime}
	}
	if o.Upgrade == (Limits{}) {
		o.Upgrade = Limits{Memory: memory, Time: upgradeTime, CPU: 2 * renderTime}
	}
	return &Releases{config: config, options: o, renders: fair.NewSlots(renderSlots), grades: fair.NewSlots(upgradeSlots)}
}

// Slots are those for calls of Helm, by what is called.
func (r *Releases) Slots() map[string]*fair.Slots {
	return map[string]*fair.Slots{"helm-render": r.renders, "helm-upgrade": r.grades}
}

// As is a configuration that acts as the account of a namespace.
func (r *Releases) As(namespace string) *rest.Config {
	c := rest.CopyConfig(r.config)
	c.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":" + r.options.Account}
	return c
}

func (r *Releases) guard(ctx context.Context, namespace string) *releases.Guard {
	return &releases.Guard{Context: ctx, Account: r.options.Account + " of namespace " + namespace}
}

// Get tells what there is of a release, which needs no Helm.
func (r *Releases) Get(ctx context.Context, namespace, release string) (releases.Release, error) {
	g := r.guard(ctx, namespace)
	g.ReadOnly, g.MaxAnswer = true, maxRecords
	c := r.As(namespace)
	c.WarningHandler, c.WarningHandlerWithContext = rest.NoWarnings{}, nil
	c.Wrap(g.Through)
	client, err := metadata.NewForConfig(c)
	if err != nil {
		return releases.Release{}, fmt.Errorf("connect to the API server: %w", err)
	}
	state, err := releases.State(ctx, releases.Records(client, namespace), release)
	return state, releases.Explain(err, g.Trouble())
}

// Propose compares the release as it is with the candidate. Without a Turn it takes no slot: that is
// for an upgrade, which has one and calls Helm for nothing else meanwhile.
func (r *Releases) Propose(ctx context.Context, q releases.Request) (releases.Proposal, error) {
	if q.Turn == nil {
		return r.propose(ctx, q)
	}
	held, release, err := r.renders.Claim(ctx, q.Namespace, place(q), q.Turn)
	if err != nil {
		return releases.Proposal{}, errBusy
	}
	defer release()
	return r.propose(held, q)
}

func (r *Releases) propose(held context.Context, q releases.Request) (releases.Proposal, error) {
	answer, err := r.call(held, releases.MethodPropose, q)
	if err != nil {
		return releases.Proposal{}, err
	}
	if answer.Proposal == nil {
		return releases.Proposal{}, releases.FailureError("the program that runs Helm did not answer")
	}
	return *answer.Proposal, nil
}

const errBusy = releases.BusyError("Helm is called for other CanaryReleases first")

// Adopt upgrades the release to the candidate. It does not wait for its turn: a namespace can
// have others wait for long, who would take all workers of the controller.
func (r *Releases) Adopt(ctx context.Context, q releases.Request) error {
	held, release, err := r.grades.Claim(ctx, q.Namespace, place(q), q.Turn)
	if err != nil {
		return errBusy
	}
	defer release()
	if q.Still != nil {
		if err := q.Still(held); err != nil {
			return err
		}
	}
	_, err = r.call(held, releases.MethodAdopt, q)
	return err
}

// place is the key of a CanaryRelease: it waits for one call of each method.
func place(q releases.Request) string {
	return types.NamespacedName{Namespace: q.Namespace, Name: q.Name}.String()
}

// WithdrawUpgrade gives up the place of an upgrade, if one waits.
func (r *Releases) WithdrawUpgrade(canary types.NamespacedName) { r.grades.Drop(canary.String()) }

// WithdrawProposal gives up the place of a comparison, if one waits.
func (r *Releases) WithdrawProposal(canary types.NamespacedName) { r.renders.Drop(canary.String()) }

func (r *Releases) call(held context.Context, method string, q releases.Request) (releases.Answer, error) {
	call, err := json.Marshal(releases.Call{Method: method, Account: r.options.Account, Request: q})
	if err != nil {
		return releases.Answer{}, releases.FailureError("the call of Helm can't be encoded")
	}
	limits, guard := r.options.Upgrade, r.guard(held, q.Namespace)
	if method == releases.MethodPropose {
		limits, guard.ReadOnly = r.options.Render, true
	}
	api, err := gateway(r.As(q.Namespace), guard)
	if err != nil {
		return releases.Answer{}, fmt.Errorf("connect to the API server: %w", err)
	}
	raw, err := program{path: r.options.Program, limits: limits}.run(held, call, api)
	if err != nil {
		return releases.Answer{}, err
	}
	answer, err := releases.ParseAnswer(raw)
	if err != nil {
		return answer, err
	}
	return answer, answer.Err()
}

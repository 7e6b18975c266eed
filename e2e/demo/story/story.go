// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"fmt"
	"time"
)

// Observer sees the state of the demo.
type Observer interface {
	// Next waits until something changed, at most a second, and returns the state.
	// What can't be read is said in Snapshot.Problem; an error means that ctx ended.
	Next(ctx context.Context) (Snapshot, error)
}

// View shows the story to a person.
type View interface {
	// Show shows the present state.
	Show(frame Frame)
	// Say shows a line that stays, such as a command.
	Say(line string)
}

// Frame is what a View shows.
type Frame struct {
	// Scenes are all scenes, in order.
	Scenes []SceneState
	// Account is what was seen so far. It may only be used until Show returns.
	Account *Account
}

// SceneState is how far a scene is.
type SceneState struct {
	Title string
	State State
	// Took is how long it took, or has taken.
	Took time.Duration
}

// State of a scene.
type State int

// The states of a scene.
const (
	Waiting State = iota
	Running
	Done
	Failed
)

// Story runs scenes.
type Story struct {
	Scenes   []Scene
	Stage    Stage
	Observer Observer
	View     View
	// Faults are injected while the scenes run.
	Faults []Fault

	states []SceneState
	// pending are the faults that were not injected yet.
	pending []Fault
}

// Run plays the scenes and returns the account. The error says which scene did
// not reach its end, and why; the account is complete up to there.
func (s *Story) Run(ctx context.Context) (*Account, error) {
	account := &Account{}
	s.pending = append([]Fault(nil), s.Faults...)
	s.states = make([]SceneState, len(s.Scenes))
	for i, scene := range s.Scenes {
		s.states[i].Title = scene.Title
	}
	if err := s.observe(ctx, account); err != nil {
		return account, err
	}
	for i, scene := range s.Scenes {
		if err := s.play(ctx, account, scene, &s.states[i]); err != nil {
			s.states[i].State = Failed
			s.show(account)
			return account, fmt.Errorf("%s: %w", scene.Title, err)
		}
	}
	if len(s.pending) > 0 {
		return account, fmt.Errorf("the moment of %s never came", s.pending[0])
	}
	return account, nil
}

// play begins a scene and waits for its end.
func (s *Story) play(ctx context.Context, account *Account, scene Scene, state *SceneState) error {
	started := account.Now
	state.State = Running
	s.show(account)
	if scene.Version != "" {
		account.Begin(scene.Version, started)
	}
	if err := scene.Do(ctx, s.Stage); err != nil {
		return err
	}
	for {
		if err := s.observe(ctx, account); err != nil {
			return err
		}
		state.Took = account.Now.Sub(started)
		if err := s.inject(ctx, account); err != nil {
			return err
		}
		if scene.Done(account) {
			state.State = Done
			if scene.Version != "" {
				account.Settle(account.Now)
			}
			s.show(account)
			return nil
		}
		s.show(account)
		if err := givenUp(account, scene, state.Took, s.limit(scene)); err != nil {
			return err
		}
	}
}

// limit is how long a scene may take with the faults that are injected into it.
func (s *Story) limit(scene Scene) time.Duration {
	limit := scene.Within
	for _, fault := range s.Faults {
		if fault.Version == scene.Version {
			limit += recovery
		}
	}
	return limit
}

// givenUp says why waiting for the end of a scene makes no sense any more.
func givenUp(account *Account, scene Scene, took, limit time.Duration) error {
	if scene.Lost != nil {
		if why := scene.Lost(account); why != "" {
			return fmt.Errorf("%s", why)
		}
	}
	if took <= limit {
		return nil
	}
	if account.Last.Problem != "" {
		return fmt.Errorf("not reached within %s: %s", limit, account.Last.Problem)
	}
	return fmt.Errorf("not reached within %s; the Rollout says: %s", limit, reasonOf(account.Last))
}

func (s *Story) observe(ctx context.Context, account *Account) error {
	snapshot, err := s.Observer.Next(ctx)
	if err != nil {
		return fmt.Errorf("watch the demo: %w", err)
	}
	account.Add(snapshot)
	return nil
}

// inject kills what is to be killed now.
func (s *Story) inject(ctx context.Context, account *Account) error {
	var later []Fault
	for _, fault := range s.pending {
		if !fault.due(account) {
			later = append(later, fault)
			continue
		}
		s.View.Say("kill -9 of the " + string(fault.Target) + " (" + fault.String() + ")")
		if err := s.Stage.Kill(ctx, fault.Target); err != nil {
			return fmt.Errorf("inject %s: %w", fault, err)
		}
	}
	s.pending = later
	return nil
}

func (s *Story) show(account *Account) {
	s.View.Show(Frame{Scenes: append([]SceneState(nil), s.states...), Account: account})
}

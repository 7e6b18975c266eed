// SPDX-License-Identifier: Apache-2.0

package story

import (
	"time"

	"github.com/serin-dev/serin/e2e/demo/load/generator"
)

// Summary is the story in figures.
type Summary struct {
	// Took is how long the whole story took.
	Took time.Duration
	// Promoted is the time from applying v2 until nothing was left to do.
	Promoted time.Duration
	// OutOfTraffic is the time from applying v3 until no request went to it any
	// more, RolledBack until nothing was left to do.
	OutOfTraffic, RolledBack time.Duration
	// BadWeight is the highest weight that v3 had.
	BadWeight int32
	// Sent counts all requests, Rate is the number of them per second.
	Sent int64
	Rate int
	// BadAnswers counts the answers of v3, FailedByBad those that failed.
	BadAnswers, FailedByBad int64
	// FailedOtherwise counts every other request that failed. ProxyKilled tells that
	// the story killed a proxy, with which its connections died.
	FailedOtherwise int64
	ProxyKilled     bool
	// Retried counts requests that the HTTP client sent again because their idle
	// connection was closed.
	Retried int64
	// Unexplained are the latest failed requests that v3 did not cause, at most ten.
	Unexplained []generator.Failure
	// PodsKept of the PodsCreated of v2 served first as the canary and then for the Deployment.
	PodsKept, PodsCreated int
	// Broken are the promises that were not kept.
	Broken []string
}

// Summarise returns the figures of an account.
func Summarise(a *Account, p Promises) Summary {
	load := a.Last.load()
	bad := load.Version(Bad)
	s := Summary{
		Took:            a.Now.Sub(a.StartedAt),
		Sent:            load.Sent,
		Rate:            load.Rate,
		Retried:         load.Retried,
		BadAnswers:      bad.Requests,
		FailedByBad:     bad.Failed,
		FailedOtherwise: load.Failed() - bad.Failed,
		ProxyKilled:     p.ProxyKilled,
		Unexplained:     unexplained(load),
		Broken:          p.Check(a),
	}
	if r := a.Release(Good); r != nil {
		s.Promoted, s.PodsCreated = r.settledIn(), len(r.Pods)
		for _, pod := range r.Pods {
			if pod.Canary && pod.Adopted {
				s.PodsKept++
			}
		}
	}
	if r := a.Release(Bad); r != nil {
		s.OutOfTraffic, s.RolledBack, s.BadWeight = r.outOfTrafficIn(), r.settledIn(), r.MaxWeight()
	}
	return s
}

// shown is the number of unexplained failures that a summary shows.
const shown = 10

func unexplained(load generator.Report) []generator.Failure {
	var list []generator.Failure
	for _, failure := range load.Failures {
		if failure.Version != Bad && failure.Kind != generator.KindSlow && len(list) < shown {
			list = append(list, failure)
		}
	}
	return list
}

// SPDX-License-Identifier: Apache-2.0

package analysis

import "time"

// Reason says in one CamelCase word why a scrape closed no window. The empty
// Reason means that it did.
type Reason string

const (
	// ReasonFirstScrape means that there is nothing to compare the counters with yet.
	ReasonFirstScrape Reason = "FirstScrape"
	// ReasonNoData means that no pod could be read.
	ReasonNoData Reason = "NoData"
	// ReasonNoPods means that the target has no pods to read.
	ReasonNoPods Reason = "NoPods"
	// ReasonOutOfOrder means that the scrape is not later than the one before.
	ReasonOutOfOrder Reason = "OutOfOrder"
	// ReasonGap means that the scrape before is too long ago, so that the window
	// would mix too much.
	ReasonGap Reason = "Gap"
	// ReasonWeightChanging means that the weight is not confirmed, or was
	// confirmed only after the window began.
	ReasonWeightChanging Reason = "WeightChanging"
	// ReasonSeriesChanged means that no pod has counters in both scrapes that
	// belong together: all restarted, were replaced or were reset.
	ReasonSeriesChanged Reason = "SeriesChanged"
)

// Health says how well a target is being measured.
type Health struct {
	// LastScrape is when counters of at least one pod were last read; zero if never.
	LastScrape time.Time
	// LastWindow is the end of the newest window; zero if none closed yet.
	LastWindow time.Time
	// Reason is why the latest scrape closed no window; empty if it did or if
	// none was tried yet.
	Reason Reason
	// Message is for users: what was wrong with the latest scrape. Empty when
	// every pod was read.
	Message string
	// Pods and Missed are how many pods the latest scrape was to read, and how
	// many of them it could not.
	Pods, Missed int
}

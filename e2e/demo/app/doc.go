// SPDX-License-Identifier: Apache-2.0

// Command app is the web app that the demo releases: it answers every request
// with its version, fails as often as it is told to and stops as a well-behaved
// server does.
//
// It is configured by the environment:
//
//	VERSION       the version it answers with (required)
//	FAIL_PERCENT  share of answers that are errors with status 500, 0 to 100 (default 0)
//	LATENCY       how long each answer takes, such as 20ms (default 0)
//	PORT          the port it listens on (default 8080)
//	DRAIN         how long it goes on serving after SIGTERM, so that every client
//	              learns that it is going (default 5s)
//	POD_NAME      the name of its pod, for the answers (default: the host name)
//
// It knows nothing of Serin: it must behave as any app does.
package main

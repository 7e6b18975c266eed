// SPDX-License-Identifier: Apache-2.0

// Command load calls a web app at a constant rate and keeps count of what came
// back. It runs as a pod beside the app, as the app's users would.
//
// It is configured by the environment:
//
//	TARGET      URL that is called (default http://website)
//	RATE        requests per second, 1 to 5000 (default 200)
//	DURATION    how long it calls, up to 24h (default 1h); the report stays after that
//	FRESH       percentage of requests on a connection of their own (default 10)
//	TIMEOUT     how long an answer may take (default 10s)
//	CONTROL     URL of a server that nothing is done to, called 20 times a second beside
//	            the target: what it is slow by is the machine's fault (default: none)
//	PORT        port of the report (default 8080)
//
// GET /report answers with everything counted since the start as JSON, in the
// form of generator.Report.
package main

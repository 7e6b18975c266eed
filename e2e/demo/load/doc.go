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
//	LIFE        requests after which any other connection is ended at the latest (default 100)
//	TIMEOUT     how long an answer may take (default 10s)
//	CONTROL     URL of a server without Serin, called beside the target on as many new
//	            connections: what fails there is not Serin's fault (default: none)
//	PROBE       how often a connection to the target, and to the control, is opened and
//	            ended at once, such as 5ms (default: never)
//	STREAM      how long the answers take that are read beside, such as 8s; the target has
//	            to be the demo's app (default: none)
//	HOLD        how often a request is sent on one connection that is kept, such as 100ms
//	            (default: none)
//	PORT        port of the report (default 8080)
//
// GET /report answers with everything counted since the start as JSON, in the
// form of generator.Report.
package main

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// config is what the environment says.
type config struct {
	version string
	pod     string
	port    string
	// failShare is the share of answers that are errors, 0 to 1.
	failShare float64
	latency   time.Duration
	drain     time.Duration
}

// parseConfig reads the configuration. Each error names the variable and the fix.
func parseConfig(getenv func(string) string, hostname string) (config, error) {
	c := config{
		version: getenv("VERSION"),
		pod:     valueOr(getenv("POD_NAME"), hostname),
		port:    valueOr(getenv("PORT"), "8080"),
	}
	var errs []error
	if c.version == "" {
		errs = append(errs, errors.New("VERSION: must be set; name the version that the app answers with, such as v1"))
	}
	percent, err := strconv.ParseFloat(valueOr(getenv("FAIL_PERCENT"), "0"), 64)
	if err != nil || !(percent >= 0 && percent <= 100) { // the negation refuses NaN too
		errs = append(errs, fmt.Errorf("FAIL_PERCENT: %q is not a number from 0 to 100", getenv("FAIL_PERCENT")))
	}
	c.failShare = percent / 100
	c.latency, err = parseDuration("LATENCY", valueOr(getenv("LATENCY"), "0s"))
	errs = append(errs, err)
	c.drain, err = parseDuration("DRAIN", valueOr(getenv("DRAIN"), "5s"))
	errs = append(errs, err)
	return c, errors.Join(errs...)
}

func parseDuration(name, value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 || d > time.Minute {
		return 0, fmt.Errorf("%s: %q is not a duration from 0s to 1m, such as 20ms", name, value)
	}
	return d, nil
}

func valueOr(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

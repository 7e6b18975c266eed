// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	// MaxCall is the most bytes of a call: values have 64 KiB at most, which base64 and names
	// add to.
	MaxCall = 256 << 10
	// MaxAnswer is the most bytes of an answer. A proposal stays in the controller's memory
	// while its CanaryRelease does.
	MaxAnswer = 2 << 20
	// ExitOverTime is the status with which the process ends when the kernel says that it has
	// computed for as long as it may.
	ExitOverTime = 3
)

// Methods of a Call.
const (
	MethodPropose = "Propose"
	MethodAdopt   = "Adopt"
)

// Call asks the program that runs Helm for something.
type Call struct {
	Method string `json:"method"`
	// Account that the call acts as, for messages. Who it acts as in truth is decided by
	// what the program is connected to.
	Account string  `json:"account"`
	Request Request `json:"request"`
}

// Answer is what the program says. It has at most one of Invalid and Failure.
type Answer struct {
	Proposal *Proposal     `json:"proposal,omitempty"`
	Invalid  *InvalidError `json:"invalid,omitempty"`
	Failure  string        `json:"failure,omitempty"`
}

// Answered makes an answer of what a call returns.
func Answered(p *Proposal, err error) Answer {
	if invalid, ok := errors.AsType[InvalidError](err); ok {
		return Answer{Invalid: &invalid}
	}
	if err != nil {
		return Answer{Failure: err.Error()} // it is explained already
	}
	return Answer{Proposal: p}
}

// Err is the error that the call returned.
func (a Answer) Err() error {
	switch {
	case a.Invalid != nil:
		return *a.Invalid
	case a.Failure != "":
		return FailureError(a.Failure)
	}
	return nil
}

// ErrTooMuch says that more was sent than is read.
var ErrTooMuch = errors.New("it is too large")

// ReadAtMost reads all that there is, or fails where there is more.
func ReadAtMost(from io.Reader, most int64) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(raw)) > most {
		err = ErrTooMuch
	}
	return raw, err
}

// ParseCall reads a call.
func ParseCall(from io.Reader) (Call, error) {
	var c Call
	raw, err := ReadAtMost(from, MaxCall)
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err == nil && c.Method != MethodPropose && c.Method != MethodAdopt {
		err = fmt.Errorf("there is no method %q", c.Method)
	}
	return c, err
}

// ParseAnswer reads an answer. Its objects can be written to the API as they are.
func ParseAnswer(raw []byte) (Answer, error) {
	var a Answer
	if err := json.Unmarshal(raw, &a); err != nil {
		return Answer{}, FailureError("the answer of the program that runs Helm can't be read")
	}
	if a.Proposal == nil {
		return a, nil
	}
	for _, copied := range a.Proposal.Copies {
		if copied == nil {
			return Answer{}, FailureError("the answer of the program that runs Helm lacks a copy")
		}
	}
	return a, nil
}

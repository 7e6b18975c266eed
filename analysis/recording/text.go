// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

const (
	// MaxText is how many bytes of text a recording takes at most.
	MaxText = 64 << 10
	// maxUnpacked is how many bytes it takes at most when it is unpacked, so that what was
	// tampered with can't fill the memory of who reads it.
	maxUnpacked = 4 << 20
	// maxStored is how many lines are read at most.
	maxStored = 4096
)

// Key is the name of a recording among those of a Rollout.
func Key(revision string, began time.Time) string {
	return revision + "." + strconv.FormatInt(began.Unix(), 10)
}

// ParseKey is the opposite of Key; false when it is none.
func ParseKey(key string) (revision string, began time.Time, ok bool) {
	i := strings.LastIndexByte(key, '.')
	if i < 1 {
		return "", time.Time{}, false
	}
	seconds, err := strconv.ParseInt(key[i+1:], 10, 64)
	return key[:i], time.Unix(seconds, 0).UTC(), err == nil
}

// Text stores the recording. What takes too much is thinned first.
func (r *Recorder) Text() (string, error) {
	for {
		text, err := encode(stored(r.release, r.lines))
		if err == nil || !errors.Is(err, errTooLarge) || !r.shrink() {
			return text, err
		}
	}
}

// stored are the lines without what follows from the ones before.
func stored(of Release, lines []Line) []Line {
	out := append([]Line(nil), lines...)
	for i := range out {
		out[i].Release = nil
		if i == 0 {
			out[i].Release = &of
		} else if same(lines[i-1].Settings, lines[i].Settings) {
			out[i].Settings = nil
		}
	}
	return out
}

var errTooLarge = fmt.Errorf("the recording takes more than %d bytes", MaxText)

func encode(lines []Line) (string, error) {
	var plain bytes.Buffer
	if err := Write(lines, &plain); err != nil {
		return "", err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	size := plain.Len()
	_, err = plain.WriteTo(w)
	if err = errors.Join(err, w.Close()); err != nil {
		return "", err
	}
	if size > maxUnpacked || base64.StdEncoding.EncodedLen(packed.Len()) > MaxText {
		return "", errTooLarge
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes()), nil
}

// Write writes lines as a file has them.
func Write(lines []Line, to io.Writer) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	for i := range lines {
		if err := encoder.Encode(&lines[i]); err != nil {
			return err
		}
	}
	return nil
}

// ReadText reads what Text stored. Anything else is an error, which says what is wrong.
func ReadText(text string) ([]Line, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("the recording has %d bytes, and at most %d are possible", len(text), MaxText)
	}
	packed, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("the recording is not base64: %w", err)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("the recording can't be unpacked: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(unpacked, maxUnpacked+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the recording can't be unpacked: %w", err)
	case len(plain) > maxUnpacked:
		return nil, fmt.Errorf("the recording unpacks to more than %d bytes", maxUnpacked)
	}
	return readLines(plain)
}

func readLines(plain []byte) ([]Line, error) {
	var lines []Line
	scanner := bufio.NewScanner(bytes.NewReader(plain))
	scanner.Buffer(nil, maxUnpacked)
	for scanner.Scan() {
		if len(lines) == maxStored {
			return nil, fmt.Errorf("the recording has more than %d lines", maxStored)
		}
		l, err := Parse(scanner.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d of the recording: %w", len(lines)+1, err)
		}
		lines = append(lines, l)
	}
	if err := errors.Join(scanner.Err(), complete(lines)); err != nil {
		return nil, err
	}
	return lines, nil
}

// complete checks what a stored recording has beyond a file that a user wrote.
func complete(lines []Line) error {
	if len(lines) == 0 || lines[0].Release == nil || lines[0].Settings == nil {
		return errors.New("the recording does not begin with its release and its settings")
	}
	for i := range lines {
		if i > 0 && (lines[i].Release != nil || *lines[i].T < *lines[i-1].T) || lines[i].Step == nil {
			return fmt.Errorf("line %d of the recording is not after the one before, or has no step", i+1)
		}
	}
	return nil
}

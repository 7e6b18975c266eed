// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// escape encodes a name as one segment of a URI's path: everything but the
// unreserved characters of RFC 3986, section 2.3.
func escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// invisible breaks what a chat would take for a mention or a link and is not seen.
const invisible = "\u200b"

// chatText makes text safe for chats: one line, without control characters and
// those that change the direction of writing, with the characters escaped that
// Slack gives a meaning, and with what other chats give one broken up: "@name" and
// "[text](link)". The result has at most limit UTF-16 units, the measure of chats.
func chatText(text string, limit int) string {
	const ellipsis = "…"
	var (
		b      strings.Builder
		length int
	)
	for _, r := range strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ") {
		escaped := chatRune(r)
		units := len(utf16.Encode([]rune(escaped)))
		if length+units > limit-1 {
			b.WriteString(ellipsis)
			break
		}
		b.WriteString(escaped)
		length += units
	}
	return b.String()
}

func chatRune(r rune) string {
	switch {
	case r == '&':
		return "&amp;"
	case r == '<':
		return "&lt;"
	case r == '>':
		return "&gt;"
	case r == '@':
		return "@" + invisible
	case r == ']':
		return "]" + invisible
	case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Cf, r):
		return ""
	default:
		return string(r)
	}
}

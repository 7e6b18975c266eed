// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/serin-dev/serin/traffic"
)

// directive is what nginx's parser makes of a configuration.
type directive struct {
	words []string
	block []directive // nil for a simple directive
}

// parse reads a configuration by the rules of nginx's own tokenizer
// (ngx_conf_read_token): words end at white space, ";" and "{"; quotes and
// backslashes protect; "#" begins a comment.
func parse(text string) ([]directive, error) {
	p := &parser{rest: text}
	block, err := p.block(false)
	if err == nil && p.rest != "" {
		err = fmt.Errorf("unexpected %.20q", p.rest)
	}
	return block, err
}

type parser struct{ rest string }

func (p *parser) block(inner bool) ([]directive, error) {
	directives := []directive{}
	var words []string
	for {
		word, quoted, err := p.token()
		if err != nil {
			return nil, err
		}
		switch {
		case quoted:
			words = append(words, word)
		case word == "":
			if inner || len(words) > 0 {
				return nil, errors.New("unexpected end")
			}
			return directives, nil
		case word == ";":
			if len(words) == 0 {
				return nil, errors.New("unexpected ;")
			}
			directives, words = append(directives, directive{words: words}), nil
		case word == "{":
			body, err := p.block(true)
			if err != nil || len(words) == 0 {
				return nil, errors.Join(err, fmt.Errorf("block of %q", words))
			}
			directives, words = append(directives, directive{words, body}), nil
		case word == "}":
			if !inner || len(words) > 0 {
				return nil, errors.New("unexpected }")
			}
			return directives, nil
		default:
			words = append(words, word)
		}
	}
}

// token returns the next word, or one of ; { } unquoted, or "" at the end.
func (p *parser) token() (word string, quoted bool, err error) {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	if p.rest == "" {
		return "", false, nil
	}
	switch c := p.rest[0]; c {
	case ';', '{', '}':
		p.rest = p.rest[1:]
		return string(c), false, nil
	case '#':
		return "", false, errors.New("a comment")
	case '"', '\'':
		return p.quoted(c)
	}
	for i := 0; i < len(p.rest); i++ {
		switch p.rest[i] {
		case '\\':
			return "", false, errors.New("a backslash outside of quotes")
		case '$':
			if i+1 < len(p.rest) && p.rest[i+1] == '{' {
				i++ // nginx reads ${ as part of the word
			}
		case ' ', '\t', '\r', '\n', ';', '{':
			word, p.rest = p.rest[:i], p.rest[i:]
			return word, false, nil
		}
	}
	return "", false, errors.New("a word without an end")
}

func (p *parser) quoted(quote byte) (string, bool, error) {
	var b strings.Builder
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; c {
		case '\\':
			i++
			if i < len(p.rest) {
				b.WriteByte(p.rest[i])
			}
		case quote:
			p.rest = p.rest[i+1:]
			if p.rest == "" || !strings.ContainsRune(" \t\r\n;{)", rune(p.rest[0])) {
				return "", false, fmt.Errorf("after a quoted word: %.10q", p.rest)
			}
			return b.String(), true, nil
		default:
			b.WriteByte(c)
		}
	}
	return "", false, errors.New("a quote without an end")
}

// shape counts directives by their path, such as "http/server/listen".
func shape(directives []directive, prefix string, counts map[string]int) {
	for _, d := range directives {
		path := prefix + d.words[0]
		counts[path]++
		if d.block != nil && !isTable(d.words[0]) {
			shape(d.block, path+"/", counts)
		}
	}
}

// isTable tells whether the lines of a block are keys instead of directives.
func isTable(name string) bool { return name == "map" || name == "split_clients" }

// FuzzRender checks that whatever a split holds, nginx either gets nothing or
// exactly the structure that the number of ports and destinations gives, and no
// word of the text comes from the split.
func FuzzRender(f *testing.F) {
	f.Add("web", "web-canary", "10.0.0.2", int32(80), int32(8080), "", int32(5), false)
	f.Add("web", "web-canary", "fd00::1", int32(80), int32(0), "http", int32(0), true)
	f.Add("x;}", `"; include /etc/passwd; #`, "10.0.0.1; }", int32(-1), int32(70000), "a\n}", int32(-5), true)
	f.Add("w", "default", "::1%{", int32(443), int32(15020), "$host", int32(1), false)
	f.Fuzz(func(t *testing.T, root, service, address string, port, target int32, name string, weight int32, tcp bool) {
		protocol := traffic.ProtocolHTTP
		if tcp {
			protocol = traffic.ProtocolTCP
		}
		split := testSplit(
			traffic.Port{
				Name: name, Number: port, TargetNumber: target, TargetName: name, Protocol: protocol,
				Destinations: []traffic.Destination{
					testDestination("web-stable", 95), {Service: service, Address: address, Port: port, Weight: weight},
				},
			},
			testPort(9999, traffic.ProtocolHTTP, testDestination("web-stable", 1)),
		)
		split.Root, split.Namespace = root, root
		r, err := Render(split, testOptions())
		if err != nil {
			return
		}
		directives, err := parse(string(r.Config))
		if err != nil {
			t.Fatalf("nginx could not read it: %v\n%s", err, r.Config)
		}
		got := map[string]int{}
		shape(directives, "", got)
		want := map[string]int{
			"http": 1, "events": 1,
			"http/server": 3, "http/server/listen": 5, "http/upstream": 2 + 4, "http/upstream/server": 2 + 4, "http/log_format": 1 + 2 + 3,
		}
		if tcp {
			used := 1 + min(int(weight), 1)
			want = map[string]int{
				"load_module": 1, "stream": 1, "stream/server": 1, "stream/server/listen": 2, "stream/upstream": used, "stream/upstream/server": 3 * used,
				"http/server": 2, "http/server/listen": 3, "http/upstream": 2, "http/log_format": 1 + 1 + 1,
			}
		}
		for path, n := range want {
			if got[path] != n {
				t.Errorf("%s: %d times, want %d\n%s", path, got[path], n, r.Config)
			}
		}
		for _, text := range []string{root, service, name} {
			if len(text) > 12 && strings.Contains(string(r.Config), text) {
				t.Errorf("the text holds %q\n%s", text, r.Config)
			}
		}
	})
}

// FuzzQuote checks that any argument is read back as one and the same word.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "plain", `a"b\c`, "a b;{}", "#", "'", "${x}", "\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		directives, err := parse("name " + quote(arg) + ";")
		if err != nil {
			t.Fatalf("%q: %v", quote(arg), err)
		}
		if len(directives) != 1 || len(directives[0].words) != 2 || directives[0].words[1] != arg {
			t.Errorf("%q was read back as %q", arg, directives)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Words are what a command says of itself.
type Words struct{ Short, Long, Example string }

// NewWords makes them.
func NewWords(short, long, example string) Words { return Words{short, long, example} }

// Usage marks what is wrong with the arguments as an error of usage.
func Usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return WrongUsage(fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()))
		}
		return nil
	}
}

// selectorOf reads labels as kubectl takes them.
func selectorOf(text string) (client.MatchingLabelsSelector, error) {
	selector, err := labels.Parse(text)
	if err != nil {
		return client.MatchingLabelsSelector{}, UsageErrorf("--selector: %w", err)
	}
	return client.MatchingLabelsSelector{Selector: selector}, nil
}

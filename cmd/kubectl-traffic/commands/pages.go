// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// Pages are the pages of the documentation by the names of their files: one for each
// command.
func Pages() (map[string]string, error) {
	pages := map[string]string{}
	return pages, addPages(NewRoot(), pages)
}

func addPages(cmd *cobra.Command, pages map[string]string) error {
	var page bytes.Buffer
	if err := doc.GenMarkdown(cmd, &page); err != nil {
		return err
	}
	pages[strings.ReplaceAll(cmd.CommandPath(), " ", "_")+".md"] = page.String()
	for _, child := range cmd.Commands() {
		if !child.IsAvailableCommand() || child.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := addPages(child, pages); err != nil {
			return err
		}
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"encoding/json"
	"fmt"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// The most UTF-16 units that Slack takes in a header and in another text, with
// room for what is put around them.
const (
	maxHeader = 150
	maxText   = 2900
)

// slackMessage is what incoming webhooks take. Chats that know no blocks show the
// text.
type slackMessage struct {
	Text   string       `json:"text"`
	Blocks []slackBlock `json:"blocks"`
}

type slackBlock struct {
	Type     string      `json:"type"`
	Text     *slackText  `json:"text,omitempty"`
	Elements []slackText `json:"elements,omitempty"`
}

// slackText is always plain: nothing in it is formatted or made a link.
type slackText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func plain(text string, limit int) slackText {
	return slackText{Type: "plain_text", Text: chatText(text, limit)}
}

// renderSlack renders a message for users.
func renderSlack(ro Rollout, n v1alpha1.PendingNotification) (Payload, error) {
	title := fmt.Sprintf("%s: %s/%s", headline(n.Kind), ro.Namespace, ro.Name)
	facts := "revision " + n.Revision
	if n.Step != "" {
		facts += ", step " + n.Step
	}
	facts += fmt.Sprintf(", weight %d %%", n.Weight)
	summary := fmt.Sprintf("%s (%s)", title, facts)
	header, details := plain(title, maxHeader), plain(facts, maxText)
	blocks := []slackBlock{{Type: "header", Text: &header}}
	if n.Message != "" {
		message := plain(n.Message, maxText)
		summary += ": " + n.Message
		if message.Text != "" { // Slack refuses a block with an empty text
			blocks = append(blocks, slackBlock{Type: "section", Text: &message})
		}
	}
	blocks = append(blocks, slackBlock{Type: "context", Elements: []slackText{details}})
	body, err := json.Marshal(slackMessage{Text: chatText(summary, maxText), Blocks: blocks})
	if err != nil {
		return Payload{}, fmt.Errorf("render the message: %w", err)
	}
	return Payload{ContentType: "application/json; charset=utf-8", Body: body}, nil
}

func headline(kind v1alpha1.NotificationKind) string {
	switch kind {
	case v1alpha1.NotifyStarted:
		return "Release started"
	case v1alpha1.NotifyStepProgrammed:
		return "Step programmed"
	case v1alpha1.NotifyWaiting:
		return "Waiting for approval"
	case v1alpha1.NotifyPromoted:
		return "Promoted"
	case v1alpha1.NotifyRolledBack:
		return "Rolled back"
	case v1alpha1.NotifySuperseded:
		return "Superseded by a newer version"
	default:
		return string(kind)
	}
}

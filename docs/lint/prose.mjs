// SPDX-License-Identifier: Apache-2.0

// Looks for words too many in the prose of Markdown files: repeated words, and long phrases for short
// words. Code, links' addresses and tables' borders are no prose.

import { readFileSync } from "node:fs";
import MarkdownIt from "markdown-it";
import writeGood from "write-good";

// Checks that are left out ask for another style, not for fewer words.
const checks = { passive: false, adverb: false, weasel: false, eprime: false, so: false, thereIs: false, cliches: false };

// Phrases that the linter takes for long. They have no shorter word with the same meaning here, or stand in
// descriptions of Kubernetes' own fields.
const accepted = [
  "a number of", "aggregate", "all of", "demonstrate", "equivalent", "however", "in between", "it is", "it was", "minimum",
  "multiple", "nevertheless", "requirement", "therefore", "type of", "with respect to",
];

// textOf is the prose of one block, with a word of its own in the place of each piece of code.
function textOf(token) {
  return token.children.map((child, i) => {
    switch (child.type) {
      case "text":
        return child.content;
      case "softbreak":
      case "hardbreak":
        return "\n";
      case "code_inline":
        return `code${i}`;
      default:
        return "";
    }
  }).join("");
}

let found = 0;
let row = 0; // A cell of a table has no line of its own, but its row has.
for (const file of process.argv.slice(2)) {
  for (const block of new MarkdownIt().parse(readFileSync(file, "utf8"), {})) {
    row = block.map?.[0] ?? row;
    if (block.type !== "inline") continue;
    const text = textOf(block);
    for (const { reason, index } of writeGood(text, checks)) {
      const phrase = /^"(.*)" is wordy/s.exec(reason)?.[1].replace(/\s+/g, " ").toLowerCase();
      if (accepted.includes(phrase)) continue;
      const line = row + 1 + (text.slice(0, index).match(/\n/g)?.length ?? 0);
      console.log(`${file}:${line}: ${reason.replace(/\s+/g, " ")}`);
      found++;
    }
  }
}
process.exitCode = found > 0 ? 1 : 0;

// SPDX-License-Identifier: Apache-2.0

// Prints the Flesch reading ease of Markdown files, lowest first, and with --at-least N fails for files below it.
// It counts paragraphs and items of lists. Headings, tables and blocks of code are no sentences; code in a sentence
// counts as a word of one syllable, whatever its length. It reads documents of other projects by the same rules.

import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { flesch } from "flesch";
import MarkdownIt from "markdown-it";
import { syllable } from "syllable";

// prose are the texts of paragraphs. A template tag of a site generator is a line of its own and no prose.
function prose(source) {
  const tokens = new MarkdownIt().parse(source.replace(/^\s*\{%.*%\}\s*$/gm, ""), {});
  return tokens.filter((t, i) => t.type === "inline" && tokens[i - 1]?.type === "paragraph_open").map((t) =>
    t.children.map(({ type, content }) => {
      if (type === "text") return content;
      return type === "code_inline" ? "code" : type.endsWith("break") ? " " : "";
    }).join(""));
}

export function readingEase(source) {
  const counts = { sentence: 0, word: 0, syllable: 0 };
  for (const text of prose(source)) {
    for (const sentence of text.split(/(?<=[.!?:])["')]*\s+/)) {
      const words = sentence.match(/[\p{L}\p{N}][\p{L}\p{N}'’]*/gu) ?? [];
      if (words.length === 0) continue;
      counts.sentence++;
      counts.word += words.length;
      counts.syllable += words.reduce((sum, word) => sum + Math.max(syllable(word), 1), 0);
    }
  }
  return { ease: flesch(counts), ...counts };
}

const { values, positionals } = parseArgs({ allowPositionals: true, options: { "at-least": { type: "string" } } });
const least = Number(values["at-least"] ?? -Infinity);
const pages = positionals.map((file) => ({ file, ...readingEase(readFileSync(file, "utf8")) })).sort((a, b) => a.ease - b.ease);
const below = pages.filter(({ ease }) => !(ease >= least));
for (const { file, ease, word, sentence } of values["at-least"] === undefined ? pages : below) {
  const bound = values["at-least"] === undefined ? "" : `, below ${least}: shorten its sentences or its words`;
  console.log(`${file}: reading ease ${ease.toFixed(1)} (${word} words in ${sentence} sentences)${bound}`);
}
process.exitCode = below.length > 0 ? 1 : 0;

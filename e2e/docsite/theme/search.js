// Finds sections that have every word of the query. Words in a heading count most, then those
// of a title.
const input = document.getElementById("search"), list = document.getElementById("found");

function find(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  return documents.map(d => [d, words.map(word => score(d, word))])
    .filter(([, scores]) => scores.every(Boolean))
    .map(([d, scores]) => [d, scores.reduce((a, b) => a + b)])
    .sort((a, b) => b[1] - a[1]).slice(0, 20).map(([d]) => d);
}

function score(d, word) {
  const has = text => text.toLowerCase().includes(word);
  return (has(d.heading) ? 8 : 0) + (has(d.title) ? 4 : 0) + (has(d.text) ? 1 : 0);
}

function show() {
  const hits = find(input.value);
  list.hidden = !input.value.trim();
  list.replaceChildren(...(hits.length ? hits.map(item) : [Object.assign(document.createElement("li"), {textContent: "Nothing found"})]));
}

function item(d) {
  const link = document.createElement("a"), where = document.createElement("small"), line = document.createElement("li");
  link.href = document.body.dataset.root + d.url;
  link.textContent = d.heading || d.title;
  where.textContent = d.title + ": " + d.text.slice(0, 140);
  line.append(link, where);
  return line;
}

input.addEventListener("input", show);
document.addEventListener("keydown", e => {
  if (e.key === "/" && document.activeElement !== input) { e.preventDefault(); input.focus(); }
  if (e.key === "Escape") { input.value = ""; show(); }
});

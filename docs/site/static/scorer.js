// The order of search results: what is called exactly so (classes before functions, these before members),
// then headings, then what has the word in its name or text, then the members of what has it in its name.
// Pages about the project name everything, and come last.
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([page, title, anchor, description, score, file, kind]) => {
    const words = (new URLSearchParams(location.search).get("q") || "").trim().toLowerCase().split(/\s+/);
    const query = words.join("_"), name = title.toLowerCase();
    if (/^([A-Z_]+|apps\/.*|docs\/(reproduction|mutants|internals|testing))$/.test(page)) score -= 4;
    if (kind === "title") {
      if (name === words.join(" ")) return score + 30;
      return name.endsWith(" > " + words.join(" ")) ? score + 25 : score;
    }
    if (kind !== "object") return score;
    const scope = name.split(/::|\./), last = scope.pop();
    if (last !== query && name !== query) return last.includes(query) ? score : score - 8;
    const isType = /class|struct|enum/.test(description), isMain = page.endsWith("/" + query);
    return 70 - 5 * scope.length + (isType ? 10 : 0) + (isMain ? 3 : 0);
  },
};

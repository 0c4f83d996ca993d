/** Maximum length of a line that is searched and shown, UTF-16 units. */
const MAX_LINE = 200;
const SHOWN_LINE = 120;
/** Maximum number of entries. */
const MAX_ENTRIES = 200;

const MARKDOWN = /^#{1,6} \S/;
const KEY = /^(?: {2}|\t)?"[^"]+" ?:|^[\w.-]+:(?: |$)|^\[.+\]$/;
const SYMBOL =
  /^\s{0,8}(?:(?:export|default|public|private|protected|static|abstract|async|pub|declare|final) ){0,4}(?:function|class|interface|type|enum|const|def|fn|func|struct|impl|trait|module|namespace|package)\*? [A-Za-z_$(]/;

const HEADINGS: ReadonlySet<string> = new Set(['md', 'markdown', 'mdx', 'txt', '']);
const KEYS: ReadonlySet<string> = new Set(['json', 'yaml', 'yml', 'toml', 'ini']);

const patternOf = (path: string): RegExp => {
  const name = path.slice(path.lastIndexOf('/') + 1);
  const dot = name.lastIndexOf('.');
  const ending = dot < 1 ? '' : name.slice(dot + 1).toLowerCase();
  if (HEADINGS.has(ending)) return MARKDOWN;
  return KEYS.has(ending) ? KEY : SYMBOL;
};

/**
 * Returns the outline of the lines after the first `shown` ones. It has headings of a text,
 * top-level keys of data, or symbols of code, each with the number of its line.
 */
export const outlineOf = (path: string, lines: readonly string[], shown: number): string[] => {
  const pattern = patternOf(path);
  const entries: string[] = [];
  let isFenced = false;
  for (const [index, full] of lines.entries()) {
    const line = full.slice(0, MAX_LINE);
    if (pattern === MARKDOWN && line.startsWith('```')) isFenced = !isFenced;
    if (index < shown || isFenced || !pattern.test(line)) continue;
    entries.push(`${index + 1}\t${line.trimEnd().slice(0, SHOWN_LINE)}`);
    if (entries.length === MAX_ENTRIES) break;
  }
  return entries;
};

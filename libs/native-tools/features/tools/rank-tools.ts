import type { ToolDescription } from '@antiphon/contracts/sandbox';

/** A tool as its ranking sees it: the weight of each term, and the sum of all weights. */
interface IndexedTool {
  readonly terms: ReadonlyMap<string, number>;
  readonly length: number;
}

const NAME_WEIGHT = 3;
const DESCRIPTION_WEIGHT = 1;
const PARAMETER_WEIGHT = 0.5;
/** Parameters of BM25: saturation of repeated terms, and influence of the length. */
const SATURATION = 1.2;
const LENGTH_SHARE = 0.5;
/** Part of the weight of a term that a word of the same meaning has. */
const SYNONYM_WEIGHT = 0.6;
/** Bounds of what is read of a tool, so that a hostile description costs little. */
const MAX_TEXT = 4_000;
const MAX_PARAMETERS = 64;

const STOP_WORDS: ReadonlySet<string> = new Set(
  (
    'a an and any are as at be by can for from has have how i in into is it its me my need of on or our ' +
    'that the their them there these this to tool use using want what when where which who will with you your'
  ).split(' '),
);

/** Words of one meaning in the names of tools. Each line is a group. */
const GROUPS: readonly string[] = [
  'create add new make insert open register',
  'delete remove erase drop destroy',
  'update edit change modify set rename patch',
  'list show all browse enumerate',
  'get read fetch retrieve view lookup load',
  'search find query lookup',
  'send post deliver notify',
  'stop cancel abort end halt terminate',
  'start run launch execute begin trigger',
  'mail email message inbox',
  'file document attachment',
  'picture image photo',
  'user person people member account',
  'customer client contact',
  'issue ticket bug',
  'payment charge pay',
  'invoice bill',
  'calendar meeting event appointment schedule',
  'repo repository',
  'translate translation language',
  'weather forecast',
  'flight plane airline',
  'hotel room accommodation',
  'upload put store save',
  'download export',
  'close resolve',
  'comment reply respond answer',
  'folder directory',
  'price cost quote',
  'currency exchange convert conversion',
  'table sheet spreadsheet',
  'chat channel slack',
  'deploy release rollout',
  'undo revert rollback restore',
  'merge combine',
  'summarize summary',
];

/** Removes common endings, so that forms of one word meet. */
const stem = (word: string): string => {
  const ends = [/ies$/, /(?<=..[^s])s$/, /(?<=....)ing$/, /(?<=...)ed$/, /(?<=....)(?:ation|ion|er)$/];
  let stemmed = word;
  for (const end of ends) stemmed = stemmed.replace(end, end === ends[0] ? 'y' : '');
  return stemmed.length > 3 ? stemmed.replace(/e$/, '') : stemmed;
};

/** Returns the stemmed words of a text: names in camel case and with underscores are split. */
const termsOf = (text: string): string[] =>
  text
    .slice(0, MAX_TEXT)
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '' && !STOP_WORDS.has(word))
    .map(stem);

const SYNONYMS: ReadonlyMap<string, ReadonlySet<string>> = (() => {
  const found = new Map<string, Set<string>>();
  for (const group of GROUPS) {
    const terms = group.split(' ').map(stem);
    for (const term of terms) found.set(term, new Set([...(found.get(term) ?? []), ...terms]));
  }
  for (const [term, others] of found) others.delete(term);
  return found;
})();

/** Returns the names and descriptions of the parameters of a schema. */
const parametersOf = ({ inputSchema }: Pick<ToolDescription, 'inputSchema'>): string => {
  const { properties } = inputSchema as { properties?: unknown };
  if (properties === null || typeof properties !== 'object') return '';
  return Object.entries(properties)
    .slice(0, MAX_PARAMETERS)
    .map(([name, schema]: [string, unknown]) => {
      const { description } = (schema ?? {}) as { description?: unknown };
      return `${name} ${typeof description === 'string' ? description : ''}`;
    })
    .join(' ');
};

const indexOf = (tool: ToolDescription): IndexedTool => {
  const terms = new Map<string, number>();
  let length = 0;
  const add = (text: string, weight: number): void => {
    for (const term of termsOf(text)) {
      terms.set(term, (terms.get(term) ?? 0) + weight);
      length += weight;
    }
  };
  add(tool.name, NAME_WEIGHT);
  add(tool.description, DESCRIPTION_WEIGHT);
  add(parametersOf(tool), PARAMETER_WEIGHT);
  return { terms, length };
};

/** Indexes of the tools of the catalogue, which keeps its descriptions while they stay the same. */
const indexes = new WeakMap<ToolDescription, IndexedTool>();

const cachedIndexOf = (tool: ToolDescription): IndexedTool => {
  const known = indexes.get(tool);
  if (known) return known;
  const indexed = indexOf(tool);
  indexes.set(tool, indexed);
  return indexed;
};

/** Weight of a term in a tool: its own, or a part of that of a word with the same meaning. */
const weightIn = ({ terms }: IndexedTool, term: string): number => {
  const own = terms.get(term) ?? 0;
  let similar = 0;
  for (const other of SYNONYMS.get(term) ?? []) similar = Math.max(similar, terms.get(other) ?? 0);
  return Math.max(own, similar * SYNONYM_WEIGHT);
};

/**
 * Returns the tools that have a word of a query, the best first, by the rank function BM25 over
 * names, descriptions and parameters. Tools of equal rank are in the order of their names.
 */
export const rankTools = (tools: readonly ToolDescription[], query: string): ToolDescription[] => {
  const wanted = [...new Set(termsOf(query))];
  const indexed = tools.map((tool) => ({ tool, index: cachedIndexOf(tool) }));
  const mean = indexed.reduce((sum, { index }) => sum + index.length, 0) / Math.max(1, indexed.length);
  const rarity = new Map(
    wanted.map((term) => {
      const having = indexed.filter(({ index }) => weightIn(index, term) > 0).length;
      return [term, Math.log(1 + (indexed.length - having + 0.5) / (having + 0.5))];
    }),
  );
  const scoreOf = (index: IndexedTool): number => {
    const norm = SATURATION * (1 - LENGTH_SHARE + (LENGTH_SHARE * index.length) / mean);
    return wanted.reduce((sum, term) => {
      const weight = weightIn(index, term);
      return sum + ((rarity.get(term) ?? 0) * weight * (SATURATION + 1)) / (weight + norm);
    }, 0);
  };
  return indexed
    .map(({ tool, index }) => ({ tool, score: scoreOf(index) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || (a.tool.name < b.tool.name ? -1 : 1))
    .map(({ tool }) => tool);
};

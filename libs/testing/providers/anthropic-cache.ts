import { createHash } from 'node:crypto';

/** Blocks that the vendor looks back from a mark for an entry of its cache. */
const LOOKBACK = 20;
const MAX_MARKS = 4;
const BYTES_PER_TOKEN = 4;

interface Block {
  readonly cache_control?: { readonly type: string; readonly ttl?: string };
}
interface Request {
  readonly model: string;
  readonly system?: string | readonly Block[];
  readonly tools?: readonly Block[];
  readonly messages: readonly { readonly role: string; readonly content: string | readonly Block[] }[];
}

/** Input of one call as Anthropic reports it: the parts are apart. */
export interface CachedInput {
  readonly inputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
}

const blocksOf = (content: string | readonly Block[] | undefined): readonly Block[] =>
  typeof content === 'string' ? [{ type: 'text', text: content } as Block] : (content ?? []);

/** Returns the blocks of a request in the order of the cache: tools, system text, messages. */
const inOrder = ({ tools = [], system, messages }: Request): { scope: string; block: Block }[] => [
  ...tools.map((block) => ({ scope: 'tools', block })),
  ...blocksOf(system).map((block) => ({ scope: 'system', block })),
  ...messages.flatMap(({ role, content }) => blocksOf(content).map((block) => ({ scope: role, block }))),
];

/**
 * Prompt cache of a mock model, by the public rules of Anthropic. A request reads the longest
 * beginning that an earlier request wrote at one of its marks. It looks at most 20 blocks back from
 * each of at most four marks, and neither reads nor writes less than a minimum.
 * https://docs.claude.com/en/docs/build-with-claude/prompt-caching
 */
export class AnthropicCache {
  private readonly entries = new Set<string>();

  constructor(private readonly minimumTokens = 1_024) {}

  /** Reads and writes the cache for a request. Throws for more than four marks. */
  count(request: Request): CachedInput {
    const hash = createHash('sha256').update(request.model);
    const prefixes: { readonly key: string; readonly tokens: number; readonly isMarked: boolean }[] = [];
    let tokens = 0;
    for (const { scope, block } of inOrder(request)) {
      const { cache_control: mark, ...content } = block;
      const text = JSON.stringify([scope, content]);
      hash.update(`${text}\n`);
      tokens += Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
      prefixes.push({ key: hash.copy().digest('hex'), tokens, isMarked: mark !== undefined });
    }
    const marks = prefixes.flatMap(({ isMarked }, index) => (isMarked ? [index] : []));
    if (marks.length > MAX_MARKS) throw new Error(`a maximum of ${MAX_MARKS} blocks with cache_control`);
    const hits = marks.flatMap((at) => {
      const found = prefixes.slice(Math.max(0, at - LOOKBACK + 1), at + 1);
      return found.filter(({ key }) => this.entries.has(key)).map((prefix) => prefix.tokens);
    });
    const read = Math.max(0, ...hits);
    const writes = marks
      .flatMap((at) => prefixes[at] ?? [])
      .filter((one) => one.tokens >= this.minimumTokens);
    for (const { key } of writes) this.entries.add(key);
    const written = Math.max(read, ...writes.map((prefix) => prefix.tokens)) - read;
    return { inputTokens: tokens - read - written, cacheReadTokens: read, cacheWriteTokens: written };
  }
}

import { expect, it } from '@jest/globals';
import { AnthropicCache } from './anthropic-cache.js';

const mark = { cache_control: { type: 'ephemeral' } };
const block = (text: string, more: object = {}) => ({ type: 'text', text: text.repeat(100), ...more });
const request = (...content: object[]) => ({ model: 'm', messages: [{ role: 'user', content }] });

it('reads what a mark wrote, and counts the rest as written or fresh', () => {
  const cache = new AnthropicCache(10);
  const first = cache.count(request(block('a'), block('b', mark), block('c')));
  expect(first).toMatchObject({ cacheReadTokens: 0 });
  const second = cache.count(request(block('a'), block('b'), block('x'), block('y', mark)));
  expect(second.cacheReadTokens).toBe(first.cacheWriteTokens);
  expect(second).toMatchObject({ inputTokens: 0 });
  expect(cache.count(request(block('z'), block('b', mark))).cacheReadTokens).toBe(0);
});

it('looks 20 blocks back from a mark', () => {
  const cache = new AnthropicCache(10);
  cache.count(request(block('a', mark)));
  const others = (count: number) => Array.from({ length: count }, (_, n) => block(String(n)));
  expect(cache.count(request(block('a'), ...others(18), block('z', mark))).cacheReadTokens).toBeGreaterThan(
    0,
  );
  expect(cache.count(request(block('a'), ...others(40), block('z', mark))).cacheReadTokens).toBe(0);
});

it('caches nothing below the minimum, and refuses a fifth mark', () => {
  const cache = new AnthropicCache();
  const few = cache.count(request(block('a', mark)));
  expect(few).toMatchObject({ cacheReadTokens: 0, cacheWriteTokens: 0 });
  expect(() => cache.count(request(...'abcde'.split('').map((text) => block(text, mark))))).toThrow('4');
});

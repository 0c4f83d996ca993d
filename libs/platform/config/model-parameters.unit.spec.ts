import { describe, expect, it } from '@jest/globals';
import { findParameters } from './model-parameters.js';
import { parseConfig } from './parse-config.js';

const parse = (text: string) =>
  parseConfig(text, { source: '/a.toml', folder: '/', homeDir: '/', env: {}, requireKeys: false });
const at = (kind: 'anthropic' | 'openai' | 'openai-compatible' | 'openrouter', model: string) =>
  findParameters({ parameters: [] }, { name: 'it', kind }, model).parameters;

describe('the table of families of models', () => {
  it.each([
    ['openai', 'gpt-5', { outputLimit: 'max_completion_tokens', temperature: false, thinking: 'effort' }],
    ['openai', 'gpt-4o', { outputLimit: 'max_completion_tokens', temperature: true, thinking: 'none' }],
    ['openai', 'o1-mini', { systemRole: 'user', thinking: 'none' }],
    ['openai-compatible', 'gpt-5', { outputLimit: 'max_tokens', thinking: 'effort' }],
    ['openrouter', 'openai/gpt-5', { outputLimit: 'max_tokens', thinking: 'reasoning' }],
    ['openrouter', 'deepseek/deepseek-v4-pro', { reasoning: 'session' }],
    ['anthropic', 'claude-3-5-sonnet-latest', { thinking: 'none' }],
    ['anthropic', 'claude-3-7-sonnet-latest', { thinking: 'budget', temperature: true }],
    ['anthropic', 'claude-opus-4-1-20250805', { thinking: 'budget', temperature: true }],
    ['anthropic', 'claude-opus-4-20250514', { thinking: 'budget' }],
    ['anthropic', 'claude-opus-4-6', { thinking: 'adaptive', temperature: true }],
    ['anthropic', 'claude-opus-4-7', { thinking: 'adaptive', temperature: false }],
    ['anthropic', 'claude-haiku-5-5', { thinking: 'adaptive' }],
    ['anthropic', 'kimi-k2', { thinking: 'budget', reasoning: 'turn' }],
  ] as const)('says of %s %s: %j', (kind, model, expected) => {
    expect(at(kind, model)).toMatchObject(expected);
  });
});

describe('[[parameters]]', () => {
  it('sets the keys that it names, the first entry of the file first', () => {
    const { parameters } = parse(`
[[parameters]]
provider = "corp"
model = "gpt-*"
temperature = false
[[parameters]]
provider = "*"
model = "*"
temperature = true
system_role = "developer"
`);
    const found = findParameters({ parameters }, { name: 'corp', kind: 'openai-compatible' }, 'gpt-5');
    expect(found.parameters).toMatchObject({ temperature: false, systemRole: 'developer' });
    expect([...found.fixed].sort()).toEqual(['systemRole', 'temperature']);
  });

  it('refuses an unknown value with those that are known', () => {
    const text = '[[parameters]]\nprovider = "a"\nmodel = "b"\noutput_limit = "max_token"\n';
    expect(() => parse(text)).toThrow(/line 4: found the string "max_token"/);
  });
});

describe('the thinking and the temperature of an agent', () => {
  const agent = (lines: string) => parse(`[[agents]]\nid = "main"\n${lines}`).agents[0];

  it.each([
    ['', null, null],
    ['thinking = "low"', 'low', null],
    ['thinking = 8192', 8_192, null],
    ['temperature = 0.7', null, 0.7],
    ['temperature = 1', null, 1],
  ])('are read from %j', (lines, thinking, temperature) => {
    expect(agent(lines)).toMatchObject({ thinking, temperature });
  });

  it.each([
    'thinking = 1023',
    'thinking = "max"',
    'thinking = true',
    'temperature = 2.1',
    'temperature = nan',
    'temperature = "1"',
  ])('are refused as %s', (lines) => {
    expect(() => agent(lines)).toThrow(/line 3: found/);
  });
});

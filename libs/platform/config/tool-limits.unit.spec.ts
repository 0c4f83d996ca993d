import { describe, expect, it } from '@jest/globals';
import { configProblems, parseConfig } from '@antiphon/config';
import type { ConfigProblem } from '@antiphon/config';

const parse = (text: string) =>
  parseConfig(text, {
    ...{ source: '/etc/antiphon.toml', folder: '/etc', homeDir: '/root', env: {}, requireKeys: true },
  });
const problems = (text: string): readonly ConfigProblem[] => {
  try {
    parse(text);
  } catch (error) {
    return configProblems(error);
  }
  return [];
};

const AGENT = '[[agents]]\nid = "main"\ntools = ["echo"]\n';
const PLUGIN = '[[plugins]]\nname = "weather"\npath = "w.wasm"\n';
const limit = (text: string): string => `${AGENT}[[agents.tool_limits]]\n${text}\n`;

describe("what an agent's calls of a tool are held to", () => {
  it('is empty unless the configuration sets it', () => {
    expect(parse(AGENT).agents[0]?.toolLimits).toEqual([]);
    expect(parse(limit('tool = "echo"\nmax_attempts = 1')).agents[0]?.toolLimits).toEqual([
      { tool: 'echo', timeoutMs: null, maxAttempts: 1, maxBackoffMs: null },
    ]);
  });

  it.each([
    ['a tool that the agent does not have', 'tool = "ecko"', 'unknown tool "ecko"'],
    ['two limits for one tool', 'tool = "*"\n[[agents.tool_limits]]\ntool = "*"', 'a second limit'],
    ['no try', 'tool = "echo"\nmax_attempts = 0', 'the integer 0'],
    ['more time than the maximum', 'tool = "echo"\ntimeout_ms = 60001', 'the integer 60001'],
    ['a key that it does not know', 'tool = "echo"\nattempts = 2', 'unknown key'],
  ])('is refused with %s', (_, text, message) =>
    expect(problems(limit(text))).toEqual([
      expect.objectContaining({ message: expect.stringContaining(message) }),
    ]),
  );
});

describe('what the tool of a plug-in may declare of its retries', () => {
  it('is unlimited unless the configuration limits it', () => {
    expect(parse(PLUGIN).plugins[0]?.retry).toEqual({ maxAttempts: null, maxBackoffMs: null });
    const caps = `${PLUGIN}[plugins.retry]\nmax_attempts = 3\nmax_backoff_ms = 30000\n`;
    expect(parse(caps).plugins[0]?.retry).toEqual({ maxAttempts: 3, maxBackoffMs: 30_000 });
  });

  it('never exceeds the maximum', () =>
    expect(problems(`${PLUGIN}[plugins.retry]\nmax_attempts = 11\n`)).toEqual([
      expect.objectContaining({ message: expect.stringContaining('the integer 11') }),
    ]));
});

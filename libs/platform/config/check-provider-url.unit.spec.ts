import { describe, expect, it } from '@jest/globals';
import { baseUrlProblem, providerWarnings } from './check-provider-url.js';
import { configProblems } from './config-problem.js';
import { parseConfig } from './parse-config.js';

const parse = (provider: string, env = {}) =>
  parseConfig(`[[providers]]\nname = "p"\n${provider}\n[[agents]]\nid = "a"\nmodel = "m"`, {
    ...{ source: '/a.toml', folder: '/conf', homeDir: '/root', env, requireKeys: false },
  });
const warningsOf = (provider: string, env = {}): string => providerWarnings(parse(provider), env).join('\n');

describe('base_url', () => {
  // @shows U32
  it.each([
    ['https://host/v1/chat/completions', '/chat/completions', 'https://host/v1'],
    ['https://host/v1/chat/completions/', '/chat/completions', 'https://host/v1'],
    ['https://host:8443/prefix/chat/completions?x=1', '/chat/completions', 'https://host:8443/prefix'],
    ['https://api.anthropic.com/v1/messages', '/messages', 'https://api.anthropic.com/v1'],
    ['https://host/v1/messages/count_tokens', '/messages/count_tokens', 'https://host/v1'],
    ['https://host/v1/responses', '/responses', 'https://host/v1'],
    ['https://host/v1/completions', '/completions', 'https://host/v1'],
    ['https://host/v1/embeddings', '/embeddings', 'https://host/v1'],
    ['http://gpu:11434/api/chat', '/api/chat', 'http://gpu:11434'],
    ['http://gpu:11434/api/generate', '/api/generate', 'http://gpu:11434'],
  ])('%s is refused, since %s is added to it', (url, endpoint, base) =>
    expect(baseUrlProblem(url)).toEqual({
      message: `it ends in ${endpoint}, which is added to it: leave that out`,
      example: `base_url = "${base}"`,
    }),
  );

  it.each([
    'https://host/v1',
    'https://host/v1/',
    'https://host',
    'https://host/openai/deployments/gpt?api-version=2026-01-01',
    'https://x.services.ai.azure.com/models',
    'https://host/chat',
    'https://messages/v1',
  ])('%s is accepted', (url) => expect(baseUrlProblem(url)).toBeNull());

  it.each([
    ['ftp://host', 'not an http or https URL'],
    ['host/v1', 'not an http or https URL'],
    ['https://u:p@host', 'credentials in the URL'],
    ['https://host/v1#x', 'a part behind #, which is never sent'],
  ])('%s is refused: %s', (url, message) => expect(baseUrlProblem(url)?.message).toBe(message));

  it('is refused at its line, with the address to write instead', () => {
    let problems;
    try {
      parse('kind = "openai"\nbase_url = "https://host/v1/chat/completions"');
    } catch (error) {
      problems = configProblems(error);
    }
    expect(problems).toEqual([
      expect.objectContaining({
        key: 'providers[0].base_url',
        line: 4,
        example: 'base_url = "https://host/v1"',
      }),
    ]);
  });

  // @shows U32
  it.each([
    ['kind = "openai-compatible"\nbase_url = "https://host"', 'most servers expect /v1: https://host/v1'],
    ['kind = "openai"\nbase_url = "http://host:8080/"', 'most servers expect /v1: http://host:8080/v1'],
    ['kind = "openai"\nbase_url = "https://host/v1?key=CANARY"', 'has a query (key), which every call sends'],
  ])('%j is warned about: %s', (provider, warning) => {
    expect(warningsOf(provider)).toContain(warning);
    expect(warningsOf(provider)).not.toContain('CANARY');
  });

  it.each([
    'kind = "openai-compatible"\nbase_url = "https://host/v1"',
    'kind = "openai-compatible"\nbase_url = "https://api.deepseek.com"',
    'kind = "openai-compatible"\nbase_url = "https://host/x?api-version=1"',
    'kind = "ollama"\nbase_url = "http://gpu:11434"',
    'kind = "anthropic"\nbase_url = "https://host"',
    'kind = "openai"',
    'kind = "scripted"',
  ])('%j has no warning', (provider) => expect(warningsOf(provider)).toBe(''));
});

describe('proxy', () => {
  it.each(['socks5://proxy:1', 'ftp://proxy', 'http://u:CANARY@proxy:1/path', 'a b', 'http://u:%zz@proxy'])(
    '%j is refused, and not shown',
    (proxy) => {
      let problems: unknown;
      try {
        parse(`kind = "openai"\nproxy = "${proxy}"`);
      } catch (error) {
        problems = configProblems(error);
      }
      expect(problems).toEqual([expect.objectContaining({ key: 'providers[0].proxy' })]);
      expect(JSON.stringify(problems)).not.toContain('CANARY');
    },
  );

  it.each(['http://proxy:3128', 'https://u:p@proxy', 'proxy:3128', 'none'])('%j is accepted', (proxy) =>
    expect(parse(`kind = "openai"\nproxy = "${proxy}"`).providers[0]?.proxy).toBe(proxy),
  );

  it('is warned about where it has no effect, and where a variable holds no proxy', () => {
    const local = 'kind = "openai-compatible"\nbase_url = "http://127.0.0.1:1/v1"\nproxy = "http://proxy:1"';
    expect(warningsOf(local)).toBe(
      'provider p: proxy has no effect, because base_url is an address of this machine',
    );
    const socks = { HTTPS_PROXY: 'socks5://u:CANARY@proxy:1' };
    expect(warningsOf('kind = "openai"', socks)).toBe(
      'provider p: HTTPS_PROXY is not the URL of an http or https proxy, so that its calls fail',
    );
    expect(warningsOf('kind = "openai"\nproxy = "none"', socks)).toBe('');
  });
});

it('warns about a wait that is longer than the whole attempt', () => {
  const openai = 'kind = "openai"\nfirst_byte_s = 90';
  expect(warningsOf(`${openai}\nattempt_s = 60`)).toBe(
    'provider p: first_byte_s = 90 has no effect, because attempt_s = 60 ends a call',
  );
  expect(warningsOf(openai)).toBe('');
  expect(warningsOf(`${openai}\nattempt_s = 90`)).toBe('');
});

it('reads ca_file from the folder of the configuration', () => {
  expect(parse('kind = "openai"\nca_file = "company.pem"').providers[0]?.caFile).toBe('/conf/company.pem');
  expect(parse('kind = "openai"\nca_file = "/etc/x.pem"').providers[0]?.caFile).toBe('/etc/x.pem');
});

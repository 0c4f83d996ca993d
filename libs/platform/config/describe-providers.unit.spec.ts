import { describe, expect, it } from '@jest/globals';
import { describeProviders } from './describe-providers.js';
import { parseConfig } from './parse-config.js';

const SECRET = 'CANARY0of0a0proxy';

const FILE = `
[[providers]]
name = "company"
kind = "openai-compatible"
base_url = "https://models.example/v1?key=${SECRET}"
api_key_env = "COMPANY_KEY"
first_byte_s = 90
max_output_tokens = 20000
concurrent_calls = 4
[[providers]]
name = "local"
kind = "ollama"
[[agents]]
id = "main"
provider = "company"
model = "gpt-4o"
first_byte_s = 30
max_output_tokens = 30000
[agents.fallback]
provider = "local"
model = "qwen3:32b"
`;

const show = (env: Record<string, string> = {}) => {
  const context = { source: '/a.toml', folder: '/', homeDir: '/root', env, requireKeys: false };
  return describeProviders(parseConfig(FILE, context), env);
};

describe('the view of a provider', () => {
  it('has each limit in the unit of the file, and where it comes from', () => {
    const [company, local] = show();
    expect(company?.limits).toEqual({
      connect_s: { value: 10, from: 'default' },
      first_byte_s: { value: 90, from: 'provider company' },
      between_bytes_s: { value: 60, from: 'default' },
      attempt_s: { value: 600, from: 'default' },
      tries: { value: 3, from: 'default' },
      retry_timeouts: { value: true, from: 'default' },
      max_output_tokens: { value: 20_000, from: 'provider company' },
      concurrent_calls: { value: 4, from: 'provider company' },
    });
    expect(local?.limits).toMatchObject({
      first_byte_s: { value: 600, from: 'default of kind ollama' },
      retry_timeouts: { value: false, from: 'default of kind ollama' },
      max_output_tokens: { value: null, from: 'default of the model' },
      concurrent_calls: { value: null, from: 'default' },
    });
  });

  it('has the limits of its agents, also of those whose fallback it is', () => {
    const [company, local] = show();
    expect(company?.agents).toMatchObject([
      {
        ...{ id: 'main', model: 'gpt-4o', isFallback: false },
        limits: {
          first_byte_s: { value: 30, from: 'agent main' },
          // The provider's own limit.
          max_output_tokens: { value: 20_000, from: 'provider company' },
        },
      },
    ]);
    expect(local?.agents).toMatchObject([
      {
        ...{ id: 'main', model: 'qwen3:32b', isFallback: true },
        limits: { max_output_tokens: { value: 16_384, from: 'default of qwen3:32b' } },
      },
    ]);
  });

  it('has its proxy and its address, without a secret', () => {
    const env = { HTTPS_PROXY: `http://user:${SECRET}@proxy.example:3128`, COMPANY_KEY: SECRET };
    const shown = show(env);
    expect(JSON.stringify(shown)).not.toContain(SECRET);
    expect(shown).toMatchObject([
      {
        ...{ baseUrl: 'https://models.example/v1', keyVariable: 'COMPANY_KEY', isKeySet: true },
        ...{ proxy: 'http://proxy.example:3128', proxyFrom: 'HTTPS_PROXY' },
      },
      { baseUrl: 'http://127.0.0.1:11434/v1', proxy: null, proxyFrom: 'loopback', keyVariable: null },
    ]);
    expect(show({ ...env, NO_PROXY: '.example' })[0]).toMatchObject({ proxy: null, proxyFrom: 'NO_PROXY' });
  });
});

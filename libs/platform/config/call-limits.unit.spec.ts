import { describe, expect, it } from '@jest/globals';
import type { ProviderConfig } from './antiphon-config.js';
import { resolveCallLimits } from './call-limits.js';

const provider = (fields: Partial<ProviderConfig>): ProviderConfig => ({
  ...{ name: 'it', kind: 'openai-compatible', baseUrl: 'https://models.example/v1' },
  ...{ apiKeyEnv: null, storedKey: false, promptCache: true },
  ...fields,
});

describe('the limits of a call', () => {
  // @shows U68
  it('wait for minutes where the model runs on this machine, and the same wait is not tried again', () => {
    const local = {
      firstByteMs: 600_000,
      betweenBytesMs: 600_000,
      attemptMs: 3_600_000,
      retryTimeouts: false,
    };
    for (const one of [
      provider({ kind: 'ollama', baseUrl: null }),
      provider({ kind: 'ollama', baseUrl: 'http://gpu.lan:11434' }),
      provider({ baseUrl: 'http://127.0.0.1:8080/v1' }),
      provider({ baseUrl: 'http://127.1.2.3:8080/v1' }),
      provider({ baseUrl: 'http://localhost:1234/v1' }),
      provider({ baseUrl: 'http://LOCALHOST.:1234/v1' }),
      provider({ baseUrl: 'http://[::1]:1234/v1' }),
      provider({ baseUrl: 'http://[::ffff:127.0.0.1]:1234/v1' }),
      provider({ kind: 'anthropic', baseUrl: 'http://0.0.0.0:1234' }),
    ])
      expect(resolveCallLimits(one, 'm')).toMatchObject(local);
  });

  it('are short elsewhere, where a wait is tried again', () => {
    for (const one of [
      provider({}),
      provider({ kind: 'openai', baseUrl: null }),
      provider({ baseUrl: 'http://localhost.example/v1' }),
      provider({ baseUrl: 'http://10.0.0.1/v1' }),
      provider({ baseUrl: 'http://127.example/v1' }),
    ])
      expect(resolveCallLimits(one, 'm')).toMatchObject({
        ...{ connectMs: 10_000, firstByteMs: 60_000, betweenBytesMs: 60_000, attemptMs: 600_000 },
        ...{ tries: 3, retryTimeouts: true, concurrentCalls: null },
      });
  });

  it('of the provider replace the defaults, and those of the agent replace both', () => {
    const one = provider({ firstByteMs: 5_000, tries: 1, retryTimeouts: false });
    const agent = { id: 'main', model: 'm', firstByteMs: 9_000, retryTimeouts: true };
    const { origins, ...limits } = resolveCallLimits(one, 'm', agent);
    expect(limits).toMatchObject({ firstByteMs: 9_000, tries: 1, retryTimeouts: true, attemptMs: 600_000 });
    expect(origins).toMatchObject({
      firstByteMs: 'agent main',
      tries: 'provider it',
      attemptMs: 'default',
      maxOutputTokens: 'default of m',
    });
    expect(resolveCallLimits(provider({ kind: 'ollama' }), 'm').origins.firstByteMs).toBe(
      'default of kind ollama',
    );
  });

  it('leave room in the default of an attempt for its longer waits, and none in one that is set', () => {
    const attemptOf = (fields: Partial<ProviderConfig>, agent?: Partial<ProviderConfig>): number =>
      resolveCallLimits(provider(fields), 'm', agent ? { id: 'main', model: 'm', ...agent } : null).attemptMs;
    expect(attemptOf({ firstByteMs: 1_200_000 })).toBe(1_260_000);
    expect(attemptOf({}, { betweenBytesMs: 900_000 })).toBe(960_000);
    expect(attemptOf({ firstByteMs: 21_600_000 })).toBe(21_600_000);
    expect(attemptOf({ firstByteMs: 1_200_000, attemptMs: 300_000 })).toBe(300_000);
    expect(attemptOf({ firstByteMs: 1_200_000 }, { attemptMs: 300_000 })).toBe(300_000);
  });

  it('keep the output of an agent within its provider, and within another model', () => {
    const agent = { id: 'main', model: 'gpt-4o', maxOutputTokens: 50_000 };
    const outputOf = (fields: Partial<ProviderConfig>, model: string) =>
      resolveCallLimits(provider(fields), model, agent).maxOutputTokens;
    expect(outputOf({}, 'gpt-4o')).toBe(50_000);
    expect(outputOf({ maxOutputTokens: 20_000 }, 'gpt-4o')).toBe(20_000);
    expect(outputOf({ maxOutputTokens: 80_000 }, 'gpt-4o')).toBe(50_000);
    expect(outputOf({}, 'claude-3-5-haiku')).toBe(8_192);
  });

  it.each([
    ['claude-3-opus-20240229', 4_096],
    ['claude-3-5-sonnet-latest', 8_192],
    ['claude-opus-4-1', 16_384],
    ['anthropic/claude-sonnet-4.5', 16_384],
    ['gpt-4', 4_096],
    ['gpt-4-turbo', 4_096],
    ['gpt-4o-mini', 16_384],
    ['gpt-4.1', 16_384],
    ['gpt-5', 32_768],
    ['o3-mini', 32_768],
    ['deepseek-chat', 8_192],
    ['deepseek-r1:8b', 32_768],
    ['qwen3:32b', 16_384],
    ['Qwen/Qwen3-32B', 16_384],
    ['qwen2.5-coder', 8_192],
    ['llama3.1:8b', 8_192],
    ['google/gemini-2.5-pro', 32_768],
    ['something-unknown', 4_096],
  ])('ask for a sensible output of %s: %i tokens', (model, tokens) =>
    expect(resolveCallLimits(provider({}), model).maxOutputTokens).toBe(tokens),
  );
});

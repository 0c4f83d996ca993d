import { describe, expect, it } from '@jest/globals';
import type { ProviderConfig } from '@antiphon/config';
import { describeProvider } from './provider-settings.js';

const provider = (baseUrl: string): ProviderConfig =>
  ({ name: 'it', kind: 'openai-compatible', baseUrl, apiKeyEnv: null }) as unknown as ProviderConfig;

describe('describeProvider', () => {
  it.each([
    ['http://host:8080/v1?key=sk-CANARY', 'http://host:8080/v1'],
    ['https://user:sk-CANARY@host/v1', 'https://host/v1'],
    ['https://host/v1#sk-CANARY', 'https://host/v1'],
    ['http://127.0.0.1:11434/v1', 'http://127.0.0.1:11434/v1'],
  ])('shows %s as %s', (baseUrl, shown) =>
    expect(describeProvider(provider(baseUrl), {}).baseUrl).toBe(shown),
  );
});

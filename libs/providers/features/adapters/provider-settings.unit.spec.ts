import { describe, expect, it } from '@jest/globals';
import type { ProviderConfig } from '@antiphon/config';
import { baseUrlOf, describeProvider, endpointOf, secretsInUrl } from './provider-settings.js';

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

describe('the address of a call', () => {
  it.each([
    ['http://host/v1', '/chat/completions', 'http://host/v1/chat/completions'],
    ['http://host/v1/', '/chat/completions', 'http://host/v1/chat/completions'],
    ['http://host/v1?key=one&b=2', '/chat/completions', 'http://host/v1/chat/completions?key=one&b=2'],
    ['http://host', '/chat/completions', 'http://host/chat/completions'],
  ])('below %s and %s is %s', (baseUrl, path, url) =>
    expect(endpointOf(baseUrlOf(provider(baseUrl)), path).href).toBe(url),
  );

  it('keeps the query of the base, where a provider takes its key', () => {
    const anthropic = { ...provider('http://host/v1?key=one'), kind: 'anthropic' } as ProviderConfig;
    expect(endpointOf(baseUrlOf(anthropic), '/v1/messages').href).toBe('http://host/v1/messages?key=one');
    expect(secretsInUrl(provider('http://u:pass%20word@host/v1?key=one&x='))).toEqual(['pass word', 'one']);
  });
});

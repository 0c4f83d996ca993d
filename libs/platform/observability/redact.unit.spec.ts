import { describe, expect, it } from '@jest/globals';
import { redactValue } from './redact.js';
import { createRedactor, REDACTED, redactText } from './redact-text.js';

const BODY = 'Zx9'.repeat(16);

/** Secrets by kind; each is joined here, so that no scanner reports this file. */
const SECRETS: Readonly<Record<string, string>> = {
  'Anthropic key': `sk-ant-api03-${BODY}`,
  'OpenAI key': `sk-proj-${BODY}`,
  'OpenRouter key': `sk-or-v1-${BODY}`,
  'Google key': `AIza${'Sy0'.repeat(11)}-_`,
  'Google OAuth token': `ya29.${BODY}`,
  'AWS key id': `AKIA${'Q7'.repeat(8)}`,
  'AWS session key id': `ASIA${'Q7'.repeat(8)}`,
  'GitHub token': `ghp_${BODY.slice(0, 36)}`,
  'GitHub fine-grained token': `github_pat_${BODY}`,
  'GitLab token': `glpat-${BODY.slice(0, 20)}`,
  'Slack bot token': `xoxb-123456789012-${BODY}`,
  'Slack app token': `xapp-1-A0-${BODY}`,
  'Slack user token': `xoxp-123456789012-${BODY}`,
  'npm token': `npm_${BODY.slice(0, 36)}`,
  'Hugging Face token': `hf_${BODY.slice(0, 34)}`,
  'SendGrid key': `SG.${BODY.slice(0, 22)}.${BODY}`,
  'JSON Web Token': `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.${BODY}`,
  'API key of a gateway': `ak_abcdefghij234567_${BODY}`,
  'admin key': `antiphon_${BODY.slice(0, 43)}`,
  'bearer token': `Bearer ${BODY}`,
  'password of a URL': `postgresql://agent:${BODY}@db/antiphon`,
  'key of a query': `https://example.org/v1?key=${BODY}&x=1`,
  'key in a field': `{"x-api-key":"${BODY}"}`,
  'private key': `-----BEGIN PRIVATE KEY-----\n${BODY}\n${BODY}\n-----END PRIVATE KEY-----`,
};
const secretPart = (secret: string): string =>
  secret.includes(BODY.slice(0, 20)) ? BODY.slice(0, 20) : secret;

describe('a logged text', () => {
  it.each(Object.entries(SECRETS))('does not contain a %s', (_kind, secret) => {
    const text = redactText(`before ${secret} after`);
    expect(text).toContain(REDACTED);
    expect(text).not.toContain(secretPart(secret));
    expect(text).toMatch(/^before .*/);
    expect(JSON.stringify(redactValue({ err: new Error(secret), list: [secret] }))).not.toContain(
      secretPart(secret),
    );
  });

  it('does not contain a secret that its cut would divide', () => {
    const secret = SECRETS['OpenAI key'] ?? '';
    for (let overlap = 8; overlap < secret.length; overlap++) {
      const text = redactText(`${'x'.repeat(8_192 - overlap - 1)} ${secret}${'y'.repeat(50)}`);
      expect(text).not.toContain(BODY.slice(0, 8));
    }
  });

  it.each([
    'session-4711 moved to agent-1-abcd',
    'AKIA is a prefix, and eyJ is one too',
    'https://example.org/search?q=token&page=2',
    'tokens: 1234, npm run build, sk-1',
    'hf_x gsk_y ghp_z',
    'evt.default.session.session-0af7651916cd43dd8448eb211c80319c',
    'antiphon_before_restore_20261122184500123, npm_config_registry_x',
  ])('remains readable: %s', (text) => expect(redactText(text)).toBe(text));
});

describe('a text of a provider', () => {
  const redact = createRedactor(['a-secret "of" 7', 'abc']);

  it.each(Object.entries(SECRETS))('does not contain a %s', (_kind, secret) =>
    expect(redact(`before ${secret} after`)).not.toContain(secretPart(secret)),
  );

  it.each([
    'wrong key sk-ab***yz',
    'wrong key: xai-1234',
    'Bearer short was refused',
    'api_key=short1 is unknown',
    `echo a-secret "of" 7`,
    `echo ${encodeURIComponent('a-secret "of" 7')}`,
    `echo ${JSON.stringify('a-secret "of" 7')}`,
    `echo ${Buffer.from('a-secret "of" 7').toString('base64')}`,
  ])('does not contain an echoed key: %s', (text) => {
    expect(redact(text)).toContain(REDACTED);
    expect(redact(text)).not.toMatch(/\*\*\*|1234|short|a-secret|YS1z/);
  });

  it('retains a given secret that is a part of ordinary words', () =>
    expect(redact('abcdef')).toBe('abcdef'));
});
